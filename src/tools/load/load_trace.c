/* load_trace.c: see load_trace.h. */
#include "load/load_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/json.h"

enum { TOKENS_MOST = 10000000 };

/* ---- lines ---- */

static int add_line(load_lines *l, size_t *room, const char *text, size_t n)
{
    while (n > 0 && (text[n - 1] == '\r' || text[n - 1] == ' ')) n--;
    if (n == 0) return 0;
    if (l->n == *room) {
        size_t more = *room ? 2 * *room : 64;
        load_line *v = realloc(l->v, more * sizeof *v);
        if (!v) return SHOAL_ENOMEM;
        l->v = v;
        *room = more;
    }
    l->v[l->n++] = (load_line){text, n};
    return 0;
}

int load_lines_read(load_lines *ret, const char *path, bool whole, size_t most_bytes, shoal_err *err)
{
    load_lines l = {0};
    size_t room = 0;
    int rc = file_read(&l.text, path, most_bytes, err);
    const char *at = buf_text(&l.text), *end = at + (rc == 0 ? l.text.len : 0);
    while (rc == 0 && at < end) {
        const char *stop = whole ? NULL : memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        if (add_line(&l, &room, at, (size_t)(stop - at)) != 0) rc = err_nomem(err);
        at = stop + 1;
    }
    if (rc == 0 && l.n == 0) rc = err_set(err, SHOAL_EFORMAT, "%s: it holds nothing to send", path);
    if (rc == 0)
        *ret = l;
    else
        load_lines_done(&l);
    return rc;
}

void load_lines_done(load_lines *l)
{
    free(l->v);
    buf_done(&l->text);
    *l = (load_lines){0};
}

/* ---- traces ---- */

static void line_done(load_trace_line *t)
{
    free(t->path);
    free(t->body);
    free(t->model);
    free(t->prompt);
}

/* A member: of a path its letters, else its JSON. *ret stays NULL without one. */
static int take_text(const json_t *v, const char *key, bool is_path, char **ret, shoal_err *err)
{
    const json_t *member = json_object_get(v, key);
    buf out = {0};
    if (!member || json_is_null(member)) return 0;
    if (is_path && !json_is_string(member)) return err_set(err, SHOAL_EINVALID, "\"%s\" is no string", key);
    if (is_path)
        buf_append(&out, json_string_value(member), json_string_length(member));
    else
        json_put(&out, member);
    *ret = buf_take(&out);
    return *ret ? 0 : err_nomem(err);
}

static int take_tokens(const json_t *v, const char *key, size_t *ret, shoal_err *err)
{
    int64_t n = (int64_t)*ret;
    int rc = json_get_int(v, key, 0, TOKENS_MOST, &n, err);
    *ret = (size_t)n;
    return rc;
}

static int take_line(load_trace_line *t, const json_t *v, shoal_err *err)
{
    double at = -1, ms = -1;
    int rc = json_get_num(v, "at", 0, 1e12, &at, err);
    if (rc == 0) rc = json_get_num(v, "timestamp", 0, 1e15, &ms, err);
    if (rc == 0 && at < 0 && ms < 0)
        rc = err_set(err, SHOAL_EINVALID, "it has neither \"at\" nor \"timestamp\"");
    t->at_s = at >= 0 ? at : ms / 1e3;
    if (rc == 0) rc = take_text(v, "path", true, &t->path, err);
    if (rc == 0 && t->path && (t->path[0] != '/' || strpbrk(t->path, " \r\n\t")))
        rc = err_set(err, SHOAL_EINVALID, "\"path\" is none");
    if (rc == 0) rc = take_text(v, "body", false, &t->body, err);
    if (rc == 0) rc = take_text(v, "model", false, &t->model, err);
    if (rc == 0) rc = take_text(v, "prompt", false, &t->prompt, err);
    if (rc == 0) rc = take_tokens(v, "input_length", &t->n_prompt, err);
    if (rc == 0) rc = take_tokens(v, "prompt_tokens", &t->n_prompt, err);
    if (rc == 0) rc = take_tokens(v, "output_length", &t->n_reply, err);
    if (rc == 0) rc = take_tokens(v, "max_tokens", &t->n_reply, err);
    return rc;
}

static int add_traced(load_trace *t, size_t *room, const char *text, size_t n, shoal_err *err)
{
    json_t *v = NULL;
    if (t->n == *room) {
        size_t more = *room ? 2 * *room : 64;
        load_trace_line *lines = realloc(t->v, more * sizeof *lines);
        if (!lines) return err_nomem(err);
        t->v = lines;
        *room = more;
    }
    load_trace_line line = {0};
    int rc = json_parse(&v, text, n, "the line", err);
    if (rc == 0) rc = take_line(&line, v, err);
    json_decref(v);
    if (rc == 0)
        t->v[t->n++] = line;
    else
        line_done(&line);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    double x = ((const load_trace_line *)a)->at_s, y = ((const load_trace_line *)b)->at_s;
    return (x > y) - (x < y);
}

static bool is_blank(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) at++;
    return at == end;
}

int load_trace_parse(load_trace *ret, const char *text, size_t n, const char *name, shoal_err *err)
{
    load_trace t = {0};
    size_t room = 0, number = 0;
    int rc = 0;
    for (const char *at = text, *end = text + n, *stop; rc == 0 && at < end; at = stop + 1) {
        shoal_err why = {0};
        stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        number++;
        if (is_blank(at, stop)) continue;
        if ((rc = add_traced(&t, &room, at, (size_t)(stop - at), &why)) == 0) continue;
        rc = rc == SHOAL_ENOMEM
                 ? err_nomem(err)
                 : err_set(err, SHOAL_EFORMAT, "%s, line %zu: %.180s", name, number, why.message);
    }
    if (rc == 0 && t.n == 0) rc = err_set(err, SHOAL_EFORMAT, "%s: no request is in it", name);
    if (rc == 0) qsort(t.v, t.n, sizeof *t.v, by_time);
    for (size_t i = t.n; rc == 0 && i-- > 0;) t.v[i].at_s -= t.v[0].at_s;
    if (rc == 0)
        *ret = t;
    else
        load_trace_done(&t);
    return rc;
}

void load_trace_done(load_trace *t)
{
    for (size_t i = 0; i < t->n; i++) line_done(&t->v[i]);
    free(t->v);
    *t = (load_trace){0};
}

/* ---- of a server's list of requests ---- */

static const struct {
    const char *endpoint, *path;
} endpoints[] = {
    {"completions", "/v1/completions"}, {"chat_completions", "/v1/chat/completions"},
    {"embeddings", "/v1/embeddings"},   {"rerank", "/v1/rerank"},
    {"classify", "/v1/classify"},       {"process", "/v1/process"},
};

static const char *path_of(const char *endpoint)
{
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++)
        if (strcmp(endpoints[i].endpoint, endpoint) == 0) return endpoints[i].path;
    return NULL;
}

/* The body as it was sent, where the server has it whole (log.prompts). */
static json_t *body_of(const json_t *r)
{
    const char *asked = json_text_of(r, "asked");
    json_t *v = NULL;
    if (asked[0] == '{') (void)json_parse(&v, asked, strlen(asked), "asked", NULL);
    return v;
}

static void put_member(buf *out, const char *key, const json_t *v)
{
    if (!v) return;
    buf_printf(out, ",\"%s\":", key);
    json_put(out, v);
}

static double began_at(const json_t *r)
{
    return json_number_of(r, "at") - json_number_of(r, "ms") / 1e3;
}

int load_trace_put_requests(buf *out, const json_t *requests, size_t *ret_n, shoal_err *err)
{
    const json_t *list = json_object_get(requests, "data");
    double first = INFINITY;
    *ret_n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) first = fmin(first, began_at(json_array_get(list, i)));
    for (size_t i = json_array_size(list); i-- > 0;) { /* the newest comes first */
        const json_t *r = json_array_get(list, i);
        const char *path = path_of(json_text_of(r, "endpoint"));
        if (!path) continue;
        json_t *body = body_of(r);
        const char *named = strcmp(path, "/v1/process") == 0 ? "pipeline" : "model";
        buf_printf(out, "{\"at\":%.3f,\"path\":\"%s\"", began_at(r) - first, path);
        put_member(out, "body", body);
        if (!body) {
            put_member(out, "model", json_object_get(r, named));
            put_member(out, "prompt_tokens", json_object_get(r, "prompt_tokens"));
            put_member(out, "max_tokens", json_object_get(r, "completion_tokens"));
        }
        buf_puts(out, "}\n");
        json_decref(body);
        ++*ret_n;
    }
    return out->failed ? err_nomem(err) : 0;
}
