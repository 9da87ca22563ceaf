/* backend.h: model calls as endpoints and pipelines make them.
 *
 * Give a model name and a request; the backend asks the router for a replica, makes the gRPC call,
 * counts it, and calls back on the loop thread. It retries on another replica only while nothing has
 * come back. Cancel from any callback or later; after `end` (or cancel) the handle is dead. */
#ifndef GATEWAY_BACKEND_H
#define GATEWAY_BACKEND_H

#include <stdint.h>

#include "base/err.h"
#include "cluster/registry.h"

typedef struct backend backend;
typedef struct backend_call backend_call;

typedef struct backend_context { /* of the request this call belongs to; copied */
    const char *request_id;
    uint64_t deadline_ns; /* 0: none */
    const char *why;      /* for traces: "intent stage", "endpoint" */
} backend_context;

typedef struct backend_result {                                       /* how a call ended */
    int status;                                                       /* 0 or SHOAL_E... */
    const char *message;                                              /* one sentence, "" on success */
    const char *model, *replica_id, *version, *quantisation, *digest; /* "" when it never reached one */
    double ms;      /* wall time of the call in the gateway */
    bool retryable; /* the same request may be sent again (worker died, queue full) */
} backend_result;

typedef struct backend_generate_events {
    void *user;
    void (*event)(void *user, const Shoal__V1__GenerateEvent *ev);
    void (*end)(void *user, const backend_result *r);
} backend_generate_events;

/* The registry is borrowed and must outlive it. Free cancels what still runs, without callbacks; run the loop
 * once more afterwards. Loop thread, as all below. */
int backend_new(backend **ret, uv_loop_t *loop, registry *g, shoal_err *err);
void backend_free(backend *b);
registry *backend_registry(backend *b);

/* A replica of the model that was described once (for its labels, digest, context...), NULL when the
 * name is unknown or nothing has come up yet; *ret_known tells the two apart (may be NULL). */
const replica *backend_find(backend *b, const char *model, bool *ret_known);

/* NULL of these: out of memory, and no callback follows. All other failures come through `end` or `done`,
 * always later than the call that started it. */
backend_call *backend_generate(backend *b, const char *model, const Shoal__V1__GenerateRequest *req,
                               const backend_context *ctx, const backend_generate_events *ev);

typedef struct backend_transcribe_events {
    void *user;
    void (*event)(void *user, const Shoal__V1__TranscribeEvent *ev);
    void (*end)(void *user, const backend_result *r);
} backend_transcribe_events;
backend_call *backend_transcribe(backend *b, const char *model, const Shoal__V1__TranscribeRequest *req,
                                 const backend_context *ctx, const backend_transcribe_events *ev);

/* Unary calls; reply is NULL unless r->status is 0, and dies after the callback. */
backend_call *backend_classify(
    backend *b, const char *model, const Shoal__V1__ClassifyRequest *req, const backend_context *ctx,
    void (*done)(void *user, const backend_result *r, const Shoal__V1__ClassifyReply *reply), void *user);
backend_call *backend_tag(backend *b, const char *model, const Shoal__V1__TagRequest *req,
                          const backend_context *ctx,
                          void (*done)(void *user, const backend_result *r, const Shoal__V1__TagReply *reply),
                          void *user);
backend_call *
backend_embed(backend *b, const char *model, const Shoal__V1__EmbedRequest *req, const backend_context *ctx,
              void (*done)(void *user, const backend_result *r, const Shoal__V1__EmbedReply *reply),
              void *user);
backend_call *backend_detect(
    backend *b, const char *model, const Shoal__V1__DetectSpeechRequest *req, const backend_context *ctx,
    void (*done)(void *user, const backend_result *r, const Shoal__V1__DetectSpeechReply *reply), void *user);
backend_call *
backend_score(backend *b, const char *model, const Shoal__V1__ScoreRequest *req, const backend_context *ctx,
              void (*done)(void *user, const backend_result *r, const Shoal__V1__ScoreReply *reply),
              void *user);
backend_call *backend_classify_image(
    backend *b, const char *model, const Shoal__V1__ImageRequest *req, const backend_context *ctx,
    void (*done)(void *user, const backend_result *r, const Shoal__V1__ClassifyReply *reply), void *user);
backend_call *backend_fill_mask(
    backend *b, const char *model, const Shoal__V1__FillMaskRequest *req, const backend_context *ctx,
    void (*done)(void *user, const backend_result *r, const Shoal__V1__FillMaskReply *reply), void *user);
backend_call *backend_describe(backend *b, const char *model, const backend_context *ctx,
                               void (*done)(void *user, const backend_result *r,
                                            const Shoal__V1__ModelInfo *reply),
                               void *user);
/* While paused no event comes (but the end, when the deadline passes or the worker dies), and the worker
 * rests. */
void backend_pause(backend_call *c, bool paused);
/* No callback follows. */
void backend_cancel(backend_call *c);

#endif
