/* cli_process.c: one request to /v1/process, and its answer for a person. */
#define _GNU_SOURCE
#include "command/cli_process.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "json/json_put.h"
#include "command/cli.h"
#include "command/cli_home.h"
#include "config/config.h"
#include "os/own_socket.h"
#include "rules/home.h"

/* ---- where --------------------------------------------------------------------------------------------- */

/* "0.0.0.0:8080" is where a server listens, not where it is asked. */
static int where_of_listen(http_where *ret, const gateway_config *c, shoal_err *err)
{
    const char *listen = c->listen ? c->listen : "127.0.0.1:8080", *colon = strrchr(listen, ':');
    if (strncmp(listen, "unix:", 5) == 0) return http_where_parse(ret, listen, err);
    bool any =
        !colon || colon == listen || strncmp(listen, "0.0.0.0:", 8) == 0 || strncmp(listen, "[::]:", 5) == 0;
    char url[300];
    snprintf(url, sizeof url, "%s://%.*s%s", c->tls_cert ? "https" : "http", any ? 9 : (int)(colon - listen),
             any ? "127.0.0.1" : listen, colon ? colon : ":8080");
    return http_where_parse(ret, url, err);
}

/* --ca, else SHOAL_CA. */
static void take_ca(http_where *w)
{
    const char *env = getenv("SHOAL_CA");
    const char *option = *cli_ca();
    w->ca_file = option ? option : env && *env ? env : NULL;
}

void cli_process_own(http_where *where)
{
    static const char *const here[] = {"127.0.0.1", "localhost", "::1"};
    char path[OWN_SOCKET_PATH_BYTES], name[OWN_SOCKET_NAME_BYTES];
    bool is_here = !where->port; /* a Unix socket */
    for (size_t i = 0; i < sizeof here / sizeof *here; i++) is_here |= strcmp(where->host, here[i]) == 0;
    if (!is_here || !own_socket_name(name, where->port, where->host) || !own_socket_find(path, name)) return;
    *where = (http_where){0};
    snprintf(where->host, sizeof where->host, "%s", path);
}

const char *cli_process_named(const char *server)
{
    const char *host = getenv("SHOAL_HOST");
    return server ? server : host && *host ? host : NULL;
}

int cli_process_where(http_where *ret, const char *server, shoal_err *err)
{
    const char *named = cli_process_named(server);
    if (named) {
        int rc = http_where_parse(ret, named, err);
        if (rc == 0) take_ca(ret);
        return rc == 0 || server ? rc : err_prefix(err, rc, "SHOAL_HOST");
    }
    char *path = NULL;
    gateway_config *c = NULL;
    if (cli_home_find(&path, err) != 0) return http_where_parse(ret, "http://127.0.0.1:8080", err);
    int rc = config_load(&c, &HOME_STAGES, path, err);
    if (rc == 0) rc = where_of_listen(ret, c, err);
    if (rc == 0) take_ca(ret);
    /* Its certificate hardly names 127.0.0.1; its own socket is as safe. */
    if (rc == 0 && ret->tls && !ret->ca_file) cli_process_own(ret);
    config_free(c);
    free(path);
    return rc;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

typedef struct form {
    buf body;
    char boundary[40]; /* drawn, so that no file holds it */
} form;

static void put_part(form *f, const char *name, const char *filename, const char *data, size_t n)
{
    buf_printf(&f->body, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", f->boundary, name);
    if (filename) buf_printf(&f->body, "; filename=\"%s\"", filename);
    buf_puts(&f->body, "\r\n\r\n");
    buf_append(&f->body, data, n);
    buf_puts(&f->body, "\r\n");
}

static void put_text_part(form *f, const char *name, const char *text)
{
    if (text) put_part(f, name, NULL, text, strlen(text));
}

static void put_file_part(form *f, const char *name, const buf *file)
{
    if (file) put_part(f, name, name, file->data ? file->data : "", file->len);
}

static void make_form(form *f, const cli_process_ask *ask)
{
    uint64_t drawn[2];
    rng_bytes(drawn, sizeof drawn);
    snprintf(f->boundary, sizeof f->boundary, "shoal%016llx%016llx", (unsigned long long)drawn[0],
             (unsigned long long)drawn[1]);
    put_text_part(f, "pipeline", ask->pipeline);
    put_text_part(f, "input", ask->text);
    put_text_part(f, "context", ask->devices);
    put_text_part(f, "stream", ask->live ? "true" : NULL);
    put_file_part(f, "audio", ask->audio);
    put_file_part(f, "image", ask->image);
    put_file_part(f, "csv", ask->csv);
    buf_printf(&f->body, "--%s--\r\n", f->boundary);
}

static int put_devices(buf *out, const char *devices, shoal_err *err)
{
    const char *s = devices + strspn(devices, " \t\r\n");
    buf_puts(out, ",\"context\":");
    if (*s != '[') {
        json_put_string(out, devices, strlen(devices));
        return 0;
    }
    json_t *list = NULL;
    int rc = json_parse(&list, s, strlen(s), "the device list", err);
    if (rc == 0) json_put(out, list);
    json_decref(list);
    return rc;
}

static int make_json(buf *out, const cli_process_ask *ask, shoal_err *err)
{
    int rc = 0;
    buf_putc(out, '{');
    json_put_text(out, "input", ask->text);
    if (ask->pipeline) json_put_text(out, "pipeline", ask->pipeline);
    if (ask->session) json_put_text(out, "session", ask->session);
    if (ask->live) buf_puts(out, ",\"stream\":true");
    if (ask->devices) rc = put_devices(out, ask->devices, err);
    buf_putc(out, '}');
    return rc == 0 && out->failed ? err_nomem(err) : rc;
}

/* JSON, or with files a form, of which `type` gets the Content-Type. */
static int make_body(buf *out, char type[96], const cli_process_ask *ask, shoal_err *err)
{
    form f = {0};
    strcpy(type, "application/json");
    if (!ask->audio && !ask->image && !ask->csv) return make_json(out, ask, err);
    make_form(&f, ask);
    snprintf(type, 96, "multipart/form-data; boundary=%s", f.boundary);
    *out = f.body;
    return out->failed ? err_nomem(err) : 0;
}

/* A header's value is one line of visible characters. */
int cli_process_headers(buf *out, const char *key, shoal_err *err)
{
    for (const char *s = key; s && *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f)
            return err_set(err, SHOAL_EINVALID, "the API key holds a space or a control character");
    if (key && *key) buf_printf(out, "authorization: Bearer %s\r\n", key);
    return out->failed ? err_nomem(err) : 0;
}

#define NOBODY "no Shoal serves there"

int cli_process_nobody(shoal_err *err)
{
    shoal_err why = *err;
    return err_set(err, SHOAL_EUNAVAILABLE,
                   NOBODY " (%.300s): start one with \"shoal serve\", or name another with --server or "
                          "SHOAL_HOST",
                   why.message);
}

bool cli_process_ends(int rc, const shoal_err *err)
{
    return rc == SHOAL_ENOMEM || strncmp(err->message, NOBODY, sizeof NOBODY - 1) == 0;
}

int cli_process_reach(const http_where *where, shoal_err *err)
{
    int status, rc = http_client_once(where, &(http_ask){.path = "/healthz"}, &status, NULL, err);
    return rc == SHOAL_EUNAVAILABLE ? cli_process_nobody(err) : rc;
}

int cli_process_refused(int status, const json_t *answer, shoal_err *err)
{
    const char *why = json_text_of(json_object_get(answer, "error"), "message");
    if (!*why && status != 401)
        return err_set(
            err, SHOAL_EUNAVAILABLE,
            "the server answers %d without a reason: perhaps another program listens there, such as a proxy",
            status);
    return err_set(err, status == 400 ? SHOAL_EINVALID : SHOAL_EUNAVAILABLE, "the server answers %d: %s%s",
                   status, why, status == 401 ? "; give the key with --key or SHOAL_API_KEY" : "");
}

/* One exchange; what came is JSON, and was not refused. live NULL: in one piece. */
static int exchange_live(const http_where *where, const http_ask *ask, const cli_process_ask *live,
                         buf *ret_json, shoal_err *err)
{
    buf answer = {0};
    json_t *parsed = NULL;
    int status = 0, rc = live ? cli_process_live(where, ask, live, &status, &answer, err)
                              : http_client_once(where, ask, &status, &answer, err);
    if (rc == SHOAL_EUNAVAILABLE) rc = cli_process_nobody(err);
    const char *text = answer.data ? answer.data : "";
    if (rc == 0 && status == 200) {
        rc = json_parse(&parsed, text, answer.len, "the answer", err);
    } else if (rc == 0) {
        json_parse(&parsed, text, answer.len, "the answer", NULL);
        rc = cli_process_refused(status, parsed, err);
    }
    if (rc == 0 && buf_append(ret_json, answer.data, answer.len) != 0) rc = err_nomem(err);
    json_decref(parsed);
    buf_done(&answer);
    return rc;
}

static int exchange(const http_where *where, const http_ask *ask, buf *ret_json, shoal_err *err)
{
    return exchange_live(where, ask, NULL, ret_json, err);
}

int cli_process_get(const http_where *where, const char *path, const char *key, buf *ret_json, shoal_err *err)
{
    buf headers = {0};
    int rc = cli_process_headers(&headers, key, err);
    if (rc == 0) rc = exchange(where, &(http_ask){.path = path, .headers = headers.data}, ret_json, err);
    buf_done(&headers);
    return rc;
}

int cli_process_post_json(const http_where *where, const char *path, const char *body, const char *key,
                          buf *ret_json, shoal_err *err)
{
    buf headers = {0};
    int rc = cli_process_headers(&headers, key, err);
    http_ask ask = {.method = "POST",
                    .path = path,
                    .body = body,
                    .n_body = strlen(body),
                    .type = "application/json",
                    .headers = headers.data};
    if (rc == 0) rc = exchange(where, &ask, ret_json, err);
    buf_done(&headers);
    return rc;
}

int cli_process_post(const http_where *where, const char *path, const char *key, buf *ret_json,
                     shoal_err *err)
{
    return cli_process_post_json(where, path, "{}", key, ret_json, err);
}

int cli_process_send(const http_where *where, const cli_process_ask *ask, buf *ret_json, shoal_err *err)
{
    buf body = {0}, headers = {0};
    char type[96];
    int rc = make_body(&body, type, ask, err);
    if (rc == 0) rc = cli_process_headers(&headers, ask->key, err);
    if (rc == 0)
        rc = exchange_live(where,
                           &(http_ask){.method = "POST",
                                       .path = "/v1/process",
                                       .body = body.data,
                                       .n_body = body.len,
                                       .type = type,
                                       .headers = headers.data},
                           ask->live ? ask : NULL, ret_json, err);
    buf_done(&headers);
    buf_done(&body);
    return rc;
}

/* ---- showing ------------------------------------------------------------------------------------------- */

enum { MARGIN = 2, FIELD = 10 }; /* before each line; before what a line says */

static void print_call(const json_t *call)
{
    if (!json_is_object(call)) return;
    buf args = {0};
    json_put_digits(&args, json_object_get(call, "arguments"), 15); /* 21.1, not 21.100000000000001 */
    cli_print_line(FIELD, "  call    %s %s", json_text_of(call, "name"), args.data ? args.data : "");
    buf_done(&args);
}

/* Each of its lines behind the margin. */
static void print_text(const char *text)
{
    for (const char *s = text;; s++) {
        size_t n = strcspn(s, "\n");
        cli_print_line(MARGIN, "  %.*s", (int)n, s);
        s += n;
        if (!*s) return;
    }
}

/* Every call, in the order in which they are to be done. */
static void print_calls(const json_t *a)
{
    const json_t *calls = json_object_get(a, "tool_calls");
    for (size_t i = 0; i < json_array_size(calls); i++) print_call(json_array_get(calls, i));
    if (!calls) print_call(json_object_get(a, "tool_call"));
}

/* What stages came to that go through lists, follow a schema or ask hosts: a line each, as JSON. */
static void print_results(const json_t *results)
{
    const char *stage;
    json_t *v;
    json_object_foreach((json_t *)results, stage, v)
    {
        buf text = {0};
        json_put_digits(&text, v, 15);
        cli_print_line(FIELD, "  result  %-14s %s", stage, text.data ? text.data : "");
        buf_done(&text);
    }
}

static void print_understood(const json_t *a)
{
    const json_t *intent = json_object_get(a, "intent"), *slots = json_object_get(a, "slots");
    if (json_is_object(intent))
        cli_print_line(FIELD, "  intent  %s (%.1f %%)", json_text_of(intent, "label"),
                       100 * json_number_value(json_object_get(intent, "score")));
    for (size_t i = 0; i < json_array_size(slots); i++)
        cli_print_line(FIELD, "  slot    %s = %s", json_text_of(json_array_get(slots, i), "label"),
                       json_text_of(json_array_get(slots, i), "text"));
}

/* Calls took their time; rules have none, but a verdict. */
static void print_stage(const json_t *t)
{
    const json_t *ms = json_object_get(t, "ms");
    const char *error = json_text_of(t, "error"), *said = *error ? error : json_text_of(t, "label");
    if (!json_is_true(json_object_get(t, "ran"))) return;
    if (ms)
        cli_print_line(FIELD, "  route   %-14s %-12s %7.2f ms  %s%s%s", json_text_of(t, "stage"),
                       json_text_of(t, json_object_get(t, "model") ? "model" : "kind"), json_number_value(ms),
                       json_text_of(t, "why"), *said ? ": " : "", said);
    else
        cli_print_line(FIELD, "  route   %-14s %-12s %10s  %s", json_text_of(t, "stage"),
                       json_text_of(t, "verdict"), "rule", json_text_of(t, "why"));
}

void cli_process_print(const json_t *a, bool without_text, bool trace)
{
    const json_t *stages = json_object_get(a, "trace"), *results = json_object_get(a, "results");
    const json_t *heard = json_object_get(a, "heard");
    bool has_text = json_is_string(json_object_get(a, "text")), acts;
    acts =
        json_array_size(json_object_get(a, "tool_calls")) || json_is_object(json_object_get(a, "tool_call"));
    if (json_is_string(heard)) cli_print_line(FIELD, "  heard   %s", json_string_value(heard));
    if (has_text && !without_text) print_text(json_text_of(a, "text"));
    print_calls(a);
    print_results(results);
    if (trace || (!has_text && !acts && json_object_size(results) == 0)) print_understood(a);
    for (size_t i = 0; i < json_array_size(stages); i++)
        if (trace || *json_text_of(json_array_get(stages, i), "error"))
            print_stage(json_array_get(stages, i));
    if (trace) cli_printf("  total   %.2f ms\n", json_number_value(json_object_get(a, "ms")));
}
