/* hosts_out.c: the calls of hosts.h, by wire/http_out.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/list.h"
#include "hosts/hosts.h"
#include "wire/http_out.h"

enum { PER_HOST_MAX = 16, CONNECTIONS_MAX = 64, HEADER_FILE_MAX = 16384 };

typedef struct known_host { /* a rule, ready */
    const host_rule *rule;
    buf headers; /* "Name: value\r\n" each */
} known_host;

typedef struct out_call {
    host_call base; /* first: it is the call */
    struct out_hosts *hosts;
    const host_rule *rule;
    http_out_call *out;
    buf body;
    uint64_t start_ns;
    bool by_deadline; /* it ends at the request's deadline, not after the host's timeout */
    void *user;
    void (*done)(void *user, const host_reply *r);
    list_node link; /* in the calls of hosts */
} out_call;

typedef struct out_hosts {
    hosts base; /* first: it is the seam */
    http_out *out;
    known_host *known;
    size_t n_known;
    list_node calls;
} out_hosts;

/* ---- one call's end --------------------------------------------------------------------------------- */

static void hosts_out_call_free(out_call *c)
{
    buf_done(&c->body);
    free(c);
}

static void hosts_out_cancel(host_call *call)
{
    out_call *c = (out_call *)call;
    http_out_cancel(c->out);
    list_take(&c->link);
    hosts_out_call_free(c);
}

/* Success is an answer of 2xx: of others nothing is known that a stage could read. */
static int judge_answer(const out_call *c, int http, char *message, size_t size)
{
    if (http >= 200 && http < 300) return 0;
    snprintf(message, size, "'%.64s' answers %d%s", c->rule->name, http,
             http >= 300 && http < 400 ? ", a redirect, and those are not followed" : "");
    return SHOAL_EUNAVAILABLE;
}

static int judge_late(const out_call *c, char *message, size_t size)
{
    if (c->by_deadline)
        snprintf(message, size, "the deadline passed while '%.64s' was asked", c->rule->name);
    else
        snprintf(message, size, "'%.64s' did not answer within %llu ms", c->rule->name,
                 (unsigned long long)c->rule->timeout_ms);
    return SHOAL_EDEADLINE;
}

/* The call's status, and the sentence that says why. */
static int hosts_out_judge(const out_call *c, const http_out_end *end, char *message, size_t size)
{
    const char *name = c->rule->name;
    switch (end->fault) {
    case HTTP_OUT_OK: return judge_answer(c, end->status, message, size);
    case HTTP_OUT_LATE: return judge_late(c, message, size);
    case HTTP_OUT_STOPPED: /* no room for the body */
    case HTTP_OUT_NO_MEMORY: snprintf(message, size, "out of memory"); return SHOAL_ENOMEM;
    case HTTP_OUT_HEAD_TOO_LONG:
        snprintf(message, size, "'%.64s' sent more than %d bytes of headers", name, HTTP_OUT_HEAD_MAX);
        return SHOAL_ELIMIT;
    case HTTP_OUT_BODY_TOO_LONG:
        snprintf(message, size, "'%.64s' sent more than %llu KiB, which its max_kb allows", name,
                 (unsigned long long)c->rule->max_bytes >> 10);
        return SHOAL_ELIMIT;
    case HTTP_OUT_NO_ADDRESS:
        snprintf(message, size, "'%.64s' cannot be asked: its address is not known (%s)", name, end->why);
        return SHOAL_EUNAVAILABLE;
    default:
        snprintf(message, size, "'%.64s' cannot be asked: %.256s", name, end->why);
        return SHOAL_EUNAVAILABLE;
    }
}

static void on_done(void *user, const http_out_end *end)
{
    out_call *c = user;
    char message[400] = "";
    int status = hosts_out_judge(c, end, message, sizeof message);
    list_take(&c->link); /* `done` may free the hosts */
    c->done(c->user, &(host_reply){.status = status,
                                   .message = message,
                                   .http = end->fault == HTTP_OUT_OK ? end->status : 0,
                                   .type = end->type,
                                   .body = buf_text(&c->body),
                                   .n_body = c->body.len,
                                   .ms = clock_ms_since(c->start_ns)});
    hosts_out_call_free(c);
}

static int hosts_out_on_data(void *user, int status, const char *data, size_t n)
{
    return buf_append(&((out_call *)user)->body, data, n);
}

/* ---- one call's way --------------------------------------------------------------------------------- */

static void put_header(buf *to, const char *name, const char *value)
{
    buf_printf(to, "%s: %s\r\n", name, value);
}

static void put_headers(buf *to, const known_host *k, const host_ask *a)
{
    buf_join(to, &k->headers);
    if (a->body) put_header(to, "Content-Type", "application/json");
    if (a->request_id && *a->request_id) put_header(to, "x-request-id", a->request_id);
    put_header(to, "Accept", "application/json, text/plain;q=0.9, */*;q=0.1");
}

static void put_url(buf *to, const char *base, const char *path)
{
    size_t n = strlen(base);
    while (n && base[n - 1] == '/') n--;
    buf_append(to, base, n);
    buf_puts(to, path);
}

static http_out_call *hosts_out_start(out_call *c, const known_host *k, const host_ask *a)
{
    uint64_t until_ns = c->start_ns + c->rule->timeout_ms * 1000000u;
    buf url = {0}, headers = {0};
    c->by_deadline = a->deadline_ns && a->deadline_ns < until_ns;
    put_url(&url, c->rule->url, a->path);
    put_headers(&headers, k, a);
    http_out_request r = {.method = a->method != HOST_GET || a->body ? host_method_name(a->method) : NULL,
                          .url = url.data,
                          .headers = headers.data,
                          .body = a->body,
                          .n_body = a->n_body,
                          .ca = c->rule->ca,
                          .until_ns = c->by_deadline ? a->deadline_ns : until_ns,
                          .max_bytes = c->rule->max_bytes,
                          .data = hosts_out_on_data,
                          .done = on_done,
                          .user = c};
    http_out_call *out = url.failed || headers.failed ? NULL : http_out_start(c->hosts->out, &r);
    buf_done(&url);
    buf_done(&headers);
    return out;
}

static host_call *hosts_out_ask(hosts *base, const host_ask *a)
{
    out_hosts *h = (out_hosts *)base;
    const known_host *k = h->known;
    while (strcmp(k->rule->name, a->host) != 0) k++; /* the configuration was checked */
    out_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (out_call){.base = {base->ops},
                    .hosts = h,
                    .rule = k->rule,
                    .start_ns = clock_ns(),
                    .user = a->user,
                    .done = a->done};
    list_put(&h->calls, &c->link);
    if ((c->out = hosts_out_start(c, k, a))) return &c->base;
    list_take(&c->link);
    hosts_out_call_free(c);
    return NULL;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void free_hosts(hosts *base)
{
    out_hosts *h = (out_hosts *)base;
    for (out_call *c; (c = list_first(&h->calls, out_call, link));) hosts_out_cancel(&c->base);
    http_out_close(h->out);
    for (size_t i = 0; i < h->n_known; i++) buf_done(&h->known[i].headers);
    free(h->known);
    free(h);
}

/* The first line of a file, as a header's value. */
static int read_value(const host_header *from, buf *ret, shoal_err *err)
{
    shoal_err why;
    int rc = file_read(ret, from->file, HEADER_FILE_MAX, &why);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc) return err_set(err, SHOAL_EINVALID, "%s", why.message);
    size_t n = ret->data ? strcspn(ret->data, "\r\n") : 0;
    if (n) ret->data[n] = 0;
    if (n && n == strlen(ret->data) && host_header_value_ok(ret->data)) return 0;
    return err_set(err, SHOAL_EINVALID, "%s: its first line is no header's value", from->file);
}

int host_header_put(buf *to, const host_header *from, shoal_err *err)
{
    buf value = {0};
    int rc = from->file ? read_value(from, &value, err) : 0;
    if (!rc) put_header(to, from->name, from->file ? value.data : from->value);
    buf_done(&value);
    return !rc && to->failed ? err_nomem(err) : rc;
}

static int read_headers(known_host *k, size_t i_rule, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < k->rule->n_headers && !rc; i++) {
        shoal_err why;
        rc = host_header_put(&k->headers, &k->rule->headers[i], &why);
        if (rc == SHOAL_ENOMEM) return err_nomem(err);
        if (rc) rc = err_set(err, rc, "hosts[%zu].headers[%zu].file: %s", i_rule, i, why.message);
    }
    return rc;
}

static int check_ca(const host_rule *r, size_t i, shoal_err *err)
{
    if (!r->ca || file_exists(r->ca)) return 0;
    return err_set(err, SHOAL_EINVALID, "hosts[%zu].ca: %s: there is no such file", i, r->ca);
}

static int open_known(out_hosts *h, const host_rule *rules, size_t n, shoal_err *err)
{
    int rc = 0;
    h->known = calloc(n + 1, sizeof *h->known);
    if (!h->known) return err_nomem(err);
    for (; h->n_known < n && !rc; h->n_known++) {
        known_host *k = &h->known[h->n_known];
        k->rule = &rules[h->n_known];
        rc = check_ca(k->rule, h->n_known, err);
        if (!rc) rc = read_headers(k, h->n_known, err);
    }
    return rc;
}

int hosts_open(hosts **ret, uv_loop_t *loop, const host_rule *rules, size_t n, shoal_err *err)
{
    static const hosts_ops OPS = {.ask = hosts_out_ask, .cancel = hosts_out_cancel, .free = free_hosts};
    const http_out_options o = {.connections_max = CONNECTIONS_MAX, .per_host_max = PER_HOST_MAX};
    out_hosts *h = calloc(1, sizeof *h);
    if (!h) return err_nomem(err);
    h->base.ops = &OPS;
    list_init(&h->calls);
    int rc = open_known(h, rules, n, err);
    if (!rc) rc = http_out_open(&h->out, loop, &o, err);
    if (rc)
        free_hosts(&h->base);
    else
        *ret = &h->base;
    return rc;
}
