/* stream_client.c: whole events of several tries, one behind the other. */
#define _GNU_SOURCE
#include "client/stream_client.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/sse.h"
#include "json/json.h"

/* What another gateway would say as well (docs/http.md, "Streams that go on at another gateway"). */
static const char *const final_codes[] = {"other_request", "model_replaced", "stream_differs"};

/* ---- refusals ---- */

static bool is_final(const char *code)
{
    for (size_t i = 0; i < sizeof final_codes / sizeof *final_codes; i++)
        if (strcmp(final_codes[i], code) == 0) return true;
    return false;
}

/* {"error": {"message", "code"}} as its sentence; whether it is one that no other gateway would take back. */
static bool take_error(const json_t *v, char *why, size_t cap)
{
    const json_t *error = json_object_get(v, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    const char *code = json_string_value(json_object_get(error, "code"));
    snprintf(why, cap, "%s", message ? message : "an error without a message");
    return code && is_final(code);
}

/* An event's data, or a whole body. *ret_error: it is an error. */
static bool look_for_error(const char *data, size_t n, bool *ret_error, char *why, size_t cap)
{
    static const char begins[] = "{\"error\"";
    json_t *v = NULL;
    bool final = false;
    *ret_error = false;
    if (n < sizeof begins - 1 || memcmp(data, begins, sizeof begins - 1) != 0) return false;
    *ret_error = json_parse(&v, data, n, "answer", NULL) == 0 && json_object_get(v, "error");
    if (*ret_error) final = take_error(v, why, cap);
    json_decref(v);
    return final;
}

/* ---- one try ---- */

static stream_try refused(const stream_client *s, int status, const char *body, size_t n, char *why,
                          size_t cap)
{
    char said[200] = "";
    bool error, final = look_for_error(body, n, &error, said, sizeof said);
    snprintf(why, cap, "status %d: %s", status, said);
    return final || (s->id[0] && status == 400) ? STREAM_REFUSED : STREAM_BROKEN;
}

/* An event that says something and no id cannot be gone on from, nor from those before it. */
static int stream_client_keep(stream_client *s, const char *at, size_t n, const sse_event *e)
{
    bool named = e->id && e->n_id <= STREAM_CLIENT_ID_MAX && memchr(e->id, '\0', e->n_id) == NULL;
    if (named) memcpy(s->id, e->id, e->n_id);
    if (named || (e->data && !sse_is_done(e))) s->id[named ? e->n_id : 0] = '\0';
    return buf_append(&s->events, at, n);
}

stream_try stream_client_take(stream_client *s, int status, const char *body, size_t n, char *why,
                              size_t why_cap)
{
    sse_event e;
    if (status == 0) return STREAM_BROKEN;
    if (status != 200) return refused(s, status, body, n, why, why_cap);
    s->n_resumed += s->id[0] != '\0';
    for (size_t len; (len = sse_read(&e, body, n)) > 0; body += len, n -= len) {
        bool error = false, final = e.data && look_for_error(e.data, e.n_data, &error, why, why_cap);
        if (error) return final ? STREAM_REFUSED : STREAM_BROKEN;
        if (stream_client_keep(s, body, len, &e) != 0) {
            snprintf(why, why_cap, "out of memory");
            return STREAM_REFUSED;
        }
        if (sse_is_done(&e)) return STREAM_WHOLE;
    }
    return STREAM_BROKEN;
}

stream_try stream_client_ask(stream_client *s, http_client *c, const http_ask *r, char *why, size_t why_cap)
{
    buf headers = {0};
    shoal_err err = {0};
    http_ask ask = *r;
    if (!s->id[0]) buf_clear(&s->events);
    buf_puts(&headers, r->headers ? r->headers : "");
    if (s->id[0]) buf_printf(&headers, "last-event-id: %s\r\n", s->id);
    ask.headers = headers.data;
    c->status = 0;
    buf_clear(&c->body);
    int rc = headers.failed ? err_nomem(&err) : http_client_exchange(c, &ask, &err);
    snprintf(why, why_cap, "%s", rc == 0 ? "the stream ends without [DONE]" : err.message);
    buf_done(&headers);
    return stream_client_take(s, c->status, c->body.data ? c->body.data : "", c->body.len, why, why_cap);
}

void stream_client_done(stream_client *s)
{
    buf_done(&s->events);
}
