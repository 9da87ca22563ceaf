/* redispatch.c: our own request on behalf of another one, and how the two end; see redispatch.h. */
#include "ingress/redispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "request/gateway_state.h"

static redispatch *redispatch_of(const ingress_request *in)
{
    return (redispatch *)in;
}

static void end_job(redispatch *a)
{
    if (a->rq) request_watch(redispatch_take(a), NULL, NULL);
    buf_done(&a->body);
    buf_done(&a->told);
    a->ops->free(a);
}

/* a is there until the settle that follows, whatever is asked and ends in between. */
static void hold(redispatch *a)
{
    a->n_held++;
}

/* Our request has ended, and nothing more was asked: that is the end of a. */
static void redispatch_settle(redispatch *a)
{
    if (--a->n_held == 0 && !a->open) end_job(a);
}

gateway_request *redispatch_take(redispatch *a)
{
    gateway_request *rq = a->rq;
    a->rq = NULL;
    request_watch(rq, NULL, NULL);
    request_on_room(rq, NULL);
    return rq;
}

/* ---- errors -------------------------------------------------------------------------------------- */

void redispatch_error(redispatch *a, int status, const char *message)
{
    api_error e;
    api_error_from_status(&e, status, message);
    request_error(redispatch_take(a), &e);
}

const char *redispatch_message(const json_t *ours)
{
    const char *s = json_string_value(json_object_get(json_object_get(ours, "error"), "message"));
    return s ? s : "it could not be answered";
}

void redispatch_fail(redispatch *a, const redispatch_reply *r)
{
    api_error e;
    api_error_from_status(&e, r->status >= 400 ? r->status : 500,
                          r->lacks_memory ? "out of memory" : redispatch_message(r->json));
    e.retry_after_s = r->retry_after_s;
    request_error(redispatch_take(a), &e);
}

void redispatch_bad_answer(redispatch *a, int rc)
{
    redispatch_error(a, 500, rc == SHOAL_ENOMEM ? "out of memory" : "the answer was not understood");
}

/* ---- our request, as its ingress sees it --------------------------------------------------------- */

static const char *redispatch_method(const ingress_request *in)
{
    return redispatch_of(in)->method;
}

static const char *redispatch_path(const ingress_request *in)
{
    return redispatch_of(in)->path;
}

static const char *redispatch_query(const ingress_request *in)
{
    return "";
}

/* The client's, but for what is about its body and its stream, which are not ours. */
static const char *redispatch_header(const ingress_request *in, const char *name)
{
    if (strcmp(name, "content-type") == 0) return "application/json";
    return strcmp(name, "last-event-id") == 0 ? NULL : request_header(redispatch_of(in)->rq, name);
}

static const char *redispatch_body(const ingress_request *in, size_t *ret_len)
{
    const buf *b = &redispatch_of(in)->body;
    if (ret_len) *ret_len = b->len;
    return b->len ? b->data : "";
}

static void redispatch_pause_body(ingress_request *in, bool paused) {}

/* What is left of the key's rates the client's own answer says. */
static bool is_handed_on(const char *name)
{
    return strncmp(name, "x-shoal-", strlen("x-shoal-")) == 0 || strcmp(name, "age") == 0;
}

/* Of several answers of ours the last one's. */
static void hand_on(redispatch *a, const http_header *headers, size_t n)
{
    buf_clear(&a->told);
    a->rq->n_more = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_handed_on(headers[i].name)) continue;
        buf_append(&a->told, headers[i].name, strlen(headers[i].name) + 1);
        buf_append(&a->told, headers[i].value, strlen(headers[i].value) + 1);
    }
    const char *at = a->told.data, *end = at + a->told.len;
    while (!a->told.failed && at < end) {
        const char *value = at + strlen(at) + 1;
        request_add_header(a->rq, at, value);
        at = value + strlen(value) + 1;
    }
}

static int retry_after(const http_header *headers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(headers[i].name, "retry-after") == 0) return atoi(headers[i].value);
    return 0;
}

static void reply_redispatch(ingress_request *in, int status, const http_header *headers, size_t n,
                             const void *bytes, size_t len)
{
    redispatch *a = redispatch_of(in);
    json_t *json = NULL;
    redispatch_reply r = {
        .status = status, .bytes = bytes, .n = len, .retry_after_s = retry_after(headers, n)};
    r.lacks_memory = json_parse(&json, bytes, len, "the answer", NULL) == SHOAL_ENOMEM;
    r.json = json;
    hold(a);
    hand_on(a, headers, n);
    a->open = false;
    a->ops->reply(a, &r);
    json_decref(json);
    redispatch_settle(a);
}

static void redispatch_begin(ingress_request *in, int status, const http_header *headers, size_t n)
{
    redispatch *a = redispatch_of(in);
    hold(a);
    hand_on(a, headers, n);
    if (a->ops->begin) a->ops->begin(a);
    redispatch_settle(a);
}

static void hear_event(ingress_request *in, const event *e)
{
    redispatch *a = redispatch_of(in);
    bool is_told = e->kind == EVENT_DATA || e->kind == EVENT_ERROR;
    hold(a);
    if (is_told && e->n_data > 0) a->ops->event(a, e);
    redispatch_settle(a);
}

static void hear_flush(ingress_request *in)
{
    redispatch *a = redispatch_of(in);
    hold(a);
    if (a->ops->flush) a->ops->flush(a);
    redispatch_settle(a);
}

static void redispatch_end(ingress_request *in)
{
    redispatch *a = redispatch_of(in);
    hold(a);
    a->open = false;
    a->ops->end(a);
    redispatch_settle(a);
}

static size_t redispatch_unsent(const ingress_request *in)
{
    return request_unsent(redispatch_of(in)->rq);
}

/* The gateway goes; the client's request is dropped by itself. */
static void drop_redispatch(ingress_request *in)
{
    redispatch *a = redispatch_of(in);
    hold(a);
    a->open = false;
    redispatch_settle(a);
}

static const ingress_request_ops REDISPATCH_OPS = {.method = redispatch_method,
                                                   .path = redispatch_path,
                                                   .query = redispatch_query,
                                                   .header = redispatch_header,
                                                   .body = redispatch_body,
                                                   .pause = redispatch_pause_body,
                                                   .reply = reply_redispatch,
                                                   .begin = redispatch_begin,
                                                   .event = hear_event,
                                                   .flush = hear_flush,
                                                   .end = redispatch_end,
                                                   .unsent = redispatch_unsent,
                                                   .drop = drop_redispatch};

/* ---- the client's request ------------------------------------------------------------------------ */

/* Its client has left, or the gateway goes. */
static void redispatch_on_gone(void *work)
{
    redispatch *a = work;
    hold(a);
    if (a->ingress.rq) ingress_request_leave(&a->ingress); /* which may still read what was asked */
    a->rq = NULL;
    a->open = false;
    redispatch_settle(a);
}

void redispatch_init(redispatch *a, gateway_request *rq, const redispatch_ops *ops)
{
    a->ingress.ops = &REDISPATCH_OPS;
    a->ingress.local = rq->ingress->local;
    a->ingress.of = rq;
    a->ingress.key = rq->ingress->key;
    a->ingress.key_digest = rq->ingress->key_digest;
    a->ingress.owner = rq->ingress->owner;
    a->ops = ops;
    a->rq = rq;
    request_watch(rq, redispatch_on_gone, a);
}

void redispatch_ask(redispatch *a, const char *method, const char *path)
{
    snprintf(a->path, sizeof a->path, "%s", path);
    a->method = method;
    a->open = true;
    hold(a);
    ingress_request_enter(a->rq->gateway, &a->ingress);
    redispatch_settle(a);
}

/* Not within a call that our own request makes, which ends here. */
static void break_off(void *work)
{
    redispatch *a = work;
    hold(a);
    if (a->ingress.rq) ingress_request_leave(&a->ingress);
    a->open = false;
    redispatch_error(a, 500, "out of memory");
    redispatch_settle(a);
}

void redispatch_break_off(redispatch *a)
{
    request_on_room(a->rq, break_off);
}

void redispatch_drop(redispatch *a)
{
    hold(a);
    redispatch_settle(a);
}
