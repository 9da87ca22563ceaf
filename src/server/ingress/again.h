/* again.h: a request of another dialect, asked again in our own words.
 *
 * Endpoints that speak for other servers (Ollama's, llama-server's, KServe's) answer nothing themselves: each
 * becomes one of our requests, or several one after the other, which come in by a door of their own (door.h)
 * on behalf of the client's. So keys, limits, routes, caches and ensembles are those of every request.
 *
 *     typedef struct job { again again; ... } job;            // again is the first member
 *     static const again_ops OPS = {.reply = on_reply, .event = on_event, .end = on_end, .free = job_free};
 *
 *     again_init(&j->again, rq, &OPS);
 *     buf_puts(&j->again.body, "{...}");
 *     again_ask(&j->again, "POST", "/v1/completions");        // j may be gone behind this
 *
 *     static void on_reply(again *a, const again_reply *r)
 *     {
 *         if (r->status >= 400) again_fail(a, r);             // said as the client's dialect says errors
 *         else request_json(again_take(a), 200, ...);
 *     }
 *
 * What our answer's headers say of caches, routes, ensembles and stand-ins (x-shoal-..., age) goes into the
 * client's answer, too.
 *
 * `reply`, or the last of a stream, `end`, takes the client's request and answers it, or asks once more.
 * `free` comes once, behind everything else: also when the client has left, and when the gateway goes.
 * Loop thread. */
#ifndef INGRESS_AGAIN_H
#define INGRESS_AGAIN_H

#include <jansson.h>

#include "request/request.h"

typedef struct again again;

typedef struct again_reply { /* one that came whole; borrowed for the call */
    int status;
    const char *bytes;
    size_t n;
    const json_t *json; /* NULL: it is no JSON */
    bool lacks_memory;  /* or there was no memory to read it */
    int retry_after_s;  /* 0: not said */
} again_reply;

typedef struct again_ops {
    void (*reply)(again *a, const again_reply *r);
    /* Of a stream; NULL where none is asked for. */
    void (*begin)(again *a);                 /* NULL: there is nothing to do */
    void (*event)(again *a, const event *e); /* with data; no EVENT_LAST */
    void (*flush)(again *a);                 /* behind the events that came together; NULL: nothing to do */
    void (*end)(again *a);
    void (*free)(again *a);
} again_ops;

struct again {
    door door; /* first: of our own request */
    const again_ops *ops;
    gateway_request *rq; /* the client's; NULL: answered, or its client has left */
    const char *method;
    char path[256];
    buf body;        /* what is sent, JSON; of a GET nothing */
    buf told;        /* headers of ours that are handed on: names and values, each with its NUL */
    unsigned n_held; /* calls that still look at it */
    bool open;       /* an answer of ours is awaited */
};

/* A zeroed one. From now on `free` follows. */
void again_init(again *a, gateway_request *rq, const again_ops *ops);
/* Send body; method is borrowed for good. Whoever asks in `reply` has done with what it was given. */
void again_ask(again *a, const char *method, const char *path);
/* The client's request, to be answered by the caller. */
gateway_request *again_take(again *a);
/* Before anything was asked: the end of a, whose request has been taken and answered. */
void again_drop(again *a);

/* Answer the client's request with an error: */
void again_error(again *a, int status, const char *message);
void again_fail(again *a, const again_reply *r); /* the one that r says */
const char *again_message(const json_t *ours);   /* of {"error": {"message": ...}} */
void again_bad_answer(again *a, int rc);         /* SHOAL_ENOMEM, or an answer not understood */
/* For `event` and `flush` that have found no memory for what came: soon afterwards our request is dropped,
 * and the client's stream ends with an error. Until then nothing more is to be written. */
void again_break_off(again *a);

#endif
