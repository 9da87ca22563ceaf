/* again.c: our own request on behalf of another one, and how the two end; see again.h. */
#include "ingress/again.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "request/gateway_state.h"

static again *again_of(const door *d)
{
    return (again *)d;
}

static void end_job(again *a)
{
    if (a->rq) request_watch(again_take(a), NULL, NULL);
    buf_done(&a->body);
    buf_done(&a->told);
    a->ops->free(a);
}

/* a is there until the settle that follows, whatever is asked and ends in between. */
static void hold(again *a)
{
    a->n_held++;
}

/* Our request has ended, and nothing more was asked: that is the end of a. */
static void settle(again *a)
{
    if (--a->n_held == 0 && !a->open) end_job(a);
}

gateway_request *again_take(again *a)
{
    gateway_request *rq = a->rq;
    a->rq = NULL;
    request_watch(rq, NULL, NULL);
    request_on_room(rq, NULL);
    return rq;
}

/* ---- errors -------------------------------------------------------------------------------------- */

void again_error(again *a, int status, const char *message)
{
    api_error e;
    api_error_from_status(&e, status, message);
    request_error(again_take(a), &e);
}

const char *again_message(const json_t *ours)
{
    const char *s = json_string_value(json_object_get(json_object_get(ours, "error"), "message"));
    return s ? s : "it could not be answered";
}

void again_fail(again *a, const again_reply *r)
{
    api_error e;
    api_error_from_status(&e, r->status >= 400 ? r->status : 500,
                          r->lacks_memory ? "out of memory" : again_message(r->json));
    e.retry_after_s = r->retry_after_s;
    request_error(again_take(a), &e);
}

void again_bad_answer(again *a, int rc)
{
    again_error(a, 500, rc == SHOAL_ENOMEM ? "out of memory" : "the answer was not understood");
}

/* ---- our request's door -------------------------------------------------------------------------- */

static const char *method(const door *d)
{
    return again_of(d)->method;
}

static const char *path(const door *d)
{
    return again_of(d)->path;
}

static const char *query(const door *d)
{
    return "";
}

/* The client's, but for what is about its body and its stream, which are not ours. */
static const char *header(const door *d, const char *name)
{
    if (strcmp(name, "content-type") == 0) return "application/json";
    return strcmp(name, "last-event-id") == 0 ? NULL : request_header(again_of(d)->rq, name);
}

static const char *body(const door *d, size_t *ret_len)
{
    const buf *b = &again_of(d)->body;
    if (ret_len) *ret_len = b->len;
    return b->len ? b->data : "";
}

static void pause_body(door *d, bool paused) {}

/* What is left of the key's rates the client's own answer says. */
static bool is_handed_on(const char *name)
{
    return strncmp(name, "x-shoal-", strlen("x-shoal-")) == 0 || strcmp(name, "age") == 0;
}

/* Of several answers of ours the last one's. */
static void hand_on(again *a, const http_header *headers, size_t n)
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

static void reply(door *d, int status, const http_header *headers, size_t n, const void *bytes, size_t len)
{
    again *a = again_of(d);
    json_t *json = NULL;
    again_reply r = {.status = status, .bytes = bytes, .n = len, .retry_after_s = retry_after(headers, n)};
    r.lacks_memory = json_parse(&json, bytes, len, "the answer", NULL) == SHOAL_ENOMEM;
    r.json = json;
    hold(a);
    hand_on(a, headers, n);
    a->open = false;
    a->ops->reply(a, &r);
    json_decref(json);
    settle(a);
}

static void begin(door *d, int status, const http_header *headers, size_t n)
{
    again *a = again_of(d);
    hold(a);
    hand_on(a, headers, n);
    if (a->ops->begin) a->ops->begin(a);
    settle(a);
}

static void hear_event(door *d, const event *e)
{
    again *a = again_of(d);
    bool is_told = e->kind == EVENT_DATA || e->kind == EVENT_ERROR;
    hold(a);
    if (is_told && e->n_data > 0) a->ops->event(a, e);
    settle(a);
}

static void hear_flush(door *d)
{
    again *a = again_of(d);
    hold(a);
    if (a->ops->flush) a->ops->flush(a);
    settle(a);
}

static void end(door *d)
{
    again *a = again_of(d);
    hold(a);
    a->open = false;
    a->ops->end(a);
    settle(a);
}

static size_t unsent(const door *d)
{
    return request_unsent(again_of(d)->rq);
}

/* The gateway goes; the client's request is dropped by itself. */
static void drop(door *d)
{
    again *a = again_of(d);
    hold(a);
    a->open = false;
    settle(a);
}

static const door_ops AGAIN_DOOR = {.method = method,
                                    .path = path,
                                    .query = query,
                                    .header = header,
                                    .body = body,
                                    .pause = pause_body,
                                    .reply = reply,
                                    .begin = begin,
                                    .event = hear_event,
                                    .flush = hear_flush,
                                    .end = end,
                                    .unsent = unsent,
                                    .drop = drop};

/* ---- the client's request ------------------------------------------------------------------------ */

/* Its client has left, or the gateway goes. */
static void on_gone(void *work)
{
    again *a = work;
    hold(a);
    if (a->door.rq) door_leave(&a->door); /* which may still read what was asked */
    a->rq = NULL;
    a->open = false;
    settle(a);
}

void again_init(again *a, gateway_request *rq, const again_ops *ops)
{
    a->door.ops = &AGAIN_DOOR;
    a->door.local = rq->door->local;
    a->door.of = rq;
    a->door.key = rq->door->key;
    a->ops = ops;
    a->rq = rq;
    request_watch(rq, on_gone, a);
}

void again_ask(again *a, const char *method, const char *path)
{
    snprintf(a->path, sizeof a->path, "%s", path);
    a->method = method;
    a->open = true;
    hold(a);
    door_enter(a->rq->gateway, &a->door, clock_ns());
    settle(a);
}

/* Not within a call that our own request makes, which ends here. */
static void break_off(void *work)
{
    again *a = work;
    hold(a);
    if (a->door.rq) door_leave(&a->door);
    a->open = false;
    again_error(a, 500, "out of memory");
    settle(a);
}

void again_break_off(again *a)
{
    request_on_room(a->rq, break_off);
}

void again_drop(again *a)
{
    hold(a);
    settle(a);
}
