/* redispatch.h: a request of another dialect, asked again in our own words.
 *
 * Endpoints that speak for other servers (Ollama's, llama-server's, KServe's) answer nothing themselves: each
 * becomes one of our requests, or several one after the other, which come in as ingress requests of their own
 * on behalf of the client's. So keys, limits, routes, caches and ensembles are those of every request.
 *
 *     typedef struct job { redispatch redispatch; ... } job;            // the first member
 *     static const redispatch_ops OPS = {.reply = on_reply, .event = on_event, .end = on_end, .free = job_free};
 *
 *     redispatch_init(&j->redispatch, rq, &OPS);
 *     buf_puts(&j->redispatch.body, "{...}");
 *     redispatch_ask(&j->redispatch, "POST", "/v1/completions");        // j may be gone behind this
 *
 *     static void on_reply(redispatch *a, const redispatch_reply *r)
 *     {
 *         if (r->status >= 400) redispatch_fail(a, r);             // said as the client's dialect says errors
 *         else request_json(redispatch_take(a), 200, ...);
 *     }
 *
 * What our answer's headers say of caches, routes, ensembles and stand-ins (x-shoal-..., age) goes into the
 * client's answer, too.
 *
 * `reply`, or the last of a stream, `end`, takes the client's request and answers it, or asks once more.
 * `free` comes once, behind everything else: also when the client has left, and when the gateway goes.
 * Loop thread. */
#ifndef INGRESS_REDISPATCH_H
#define INGRESS_REDISPATCH_H

#include <jansson.h>

#include "request/request.h"

typedef struct redispatch redispatch;

typedef struct redispatch_reply { /* one that came whole; borrowed for the call */
    int status;
    const char *bytes;
    size_t n;
    const json_t *json; /* NULL: it is no JSON */
    bool lacks_memory;  /* or there was no memory to read it */
    int retry_after_s;  /* 0: not said */
} redispatch_reply;

typedef struct redispatch_ops {
    void (*reply)(redispatch *a, const redispatch_reply *r);
    /* Of a stream; NULL where none is asked for. */
    void (*begin)(redispatch *a);                 /* NULL: there is nothing to do */
    void (*event)(redispatch *a, const event *e); /* with data; no EVENT_LAST */
    void (*flush)(redispatch *a); /* behind the events that came together; NULL: nothing to do */
    void (*end)(redispatch *a);
    void (*free)(redispatch *a);
} redispatch_ops;

struct redispatch {
    ingress_request ingress; /* first: of our own request */
    const redispatch_ops *ops;
    gateway_request *rq; /* the client's; NULL: answered, or its client has left */
    const char *method;
    char path[256];
    buf body;        /* what is sent, JSON; of a GET nothing */
    buf told;        /* headers of ours that are handed on: names and values, each with its NUL */
    unsigned n_held; /* calls that still look at it */
    bool open;       /* an answer of ours is awaited */
};

/* A zeroed one. From now on `free` follows. */
void redispatch_init(redispatch *a, gateway_request *rq, const redispatch_ops *ops);
/* Send body; method is borrowed for good. Whoever asks in `reply` has done with what it was given. */
void redispatch_ask(redispatch *a, const char *method, const char *path);
/* The client's request, to be answered by the caller. */
gateway_request *redispatch_take(redispatch *a);
/* Before anything was asked: the end of a, whose request has been taken and answered. */
void redispatch_drop(redispatch *a);

/* Answer the client's request with an error: */
void redispatch_error(redispatch *a, int status, const char *message);
void redispatch_fail(redispatch *a, const redispatch_reply *r); /* the one that r says */
const char *redispatch_message(const json_t *ours);             /* of {"error": {"message": ...}} */
void redispatch_bad_answer(redispatch *a, int rc); /* SHOAL_ENOMEM, or an answer not understood */
/* For `event` and `flush` that have found no memory for what came: soon afterwards our request is dropped,
 * and the client's stream ends with an error. Until then nothing more is to be written. */
void redispatch_break_off(redispatch *a);

#endif
