/* service.h: what the worker's services share: the worker itself and the start and end of a call.
 *
 * Each gRPC method is one function of grpc_method's shape with the worker as its user. Loop thread. */
#ifndef WORKER_SERVICE_H
#define WORKER_SERVICE_H

#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "logging/log.h"
#include "base/bit_identity.h"
#include "logging/trace.h"
#include "infer/intake.h"
#include "model/model.h"
#include "speech/hearing.h"
#include "speech/voice.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"
#include "worker/model_facts.h"
#include "worker/bridge.h"
#include "worker/meter.h"
#include "worker/pool.h"
#include "worker/stage_link.h"
#include "worker/worker.h"

enum { MAX_HEALTH_WATCHERS = 32, SERVICE_N_STAGE_METHODS = 1 };

typedef struct stage_host stage_host; /* service_stage.c */

struct worker {
    uv_loop_t *loop;
    char *name, *socket; /* socket: the path of a Unix address, removed at the end; else NULL */
    char *path;          /* of the model */
    model *model;        /* NULL of trees, */
    engine *engine;      /* and so is this */
    intake intake;
    model_task task;
    net_layers layers; /* end 0: all */
    arbiter *arbiter;
    stage_host *stage; /* of a worker that has some layers only, and so no engine; else NULL */
    stage_link *link;  /* to the other stages, when this is the first; else NULL */
    bridge *bridge;
    grpc_server *server;
    const char *version, *quantisation; /* the model's */
    model_facts facts;
    char digest[65], vocabulary[65]; /* the latter of the tokens alone; "" without */
    char identity[BIT_IDENTITY_BYTES];
    bool resumes_exactly; /* both as worker_identity.h says */
    int n_threads;
    double load_ms;
    meter meter;
    bool draining;
    size_t n_blocking; /* calls on threads of the pool, or waiting for one */
    uint64_t n_scored, n_score_failures, n_score_cancels; /* of trees, which have no engine to count */
    pool pool;                                            /* of threads, which these share */
    bool closing;                /* the server is closed, and some are still under way */
    buf scratch;                 /* packed messages; valid until the next use */
    struct gen_job *resting;     /* generations whose reader does not keep up (service_generate.c) */
    uv_timer_t *rest_timer;      /* looks after them; freed by its close, as is the next */
    struct gen_job *generations; /* all of them */
    uv_timer_t *pulse_timer;     /* looks after these */
    uint64_t progress_seen;      /* by its last look */
    grpc_call *watchers[MAX_HEALTH_WATCHERS];
    size_t n_watchers;
    hearing *hearing;                    /* of a model that hears; else NULL */
    voice *voice;                        /* of a voice detector, which has no engine; else NULL */
    bool no_vad;                         /* of transcriptions that do not say */
    sampling_defaults sampling;          /* of generations that do not say */
    size_t sound_bytes, sound_bytes_max; /* of sounds under way: files, and windows of samples */
    size_t n_hearing; /* transcriptions and detections that are not freed yet: they hold on to the model */
    void (*heard_all)(worker *w); /* set at the end: runs when the last of them is freed */
    void (*closed)(void *user);
    void *closed_user;
};

/* The methods; see proto/shoal/v1/worker.proto and proto/grpc/health/v1/health.proto. */
void service_describe(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_stats(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_tokenize(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_detokenize(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_render(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_generate(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
extern const grpc_stream_method service_vote; /* its request is a stream, too */
void service_likelihood(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_classify(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_tag(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_embed(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
extern const grpc_stream_method service_transcribe; /* its request is a stream */
void service_detect(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_score(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_classify_image(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_fill_mask(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_health_check(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
void service_health_watch(void *worker, grpc_call *c, const uint8_t *msg, size_t n);
/* The timer of generations that rest. */
int service_generate_open(worker *w, shoal_err *err);
void service_generate_close(worker *w);
/* What it learns from the model, and its end; a model that does not hear is no error. */
int service_transcribe_open(worker *w, shoal_err *err);
void service_transcribe_close(worker *w);
int service_detect_open(worker *w, const char *path, shoal_err *err); /* of another model: nothing */
/* Stage.Run (proto/shoal/v1/stage.proto) of workers that are stages, whose user is the worker. Open makes the
 * stage of w->model; close joins its thread; drain ends the stream of the first stage. All but open do
 * nothing without a stage. */
extern const grpc_stream_method service_stage_methods[SERVICE_N_STAGE_METHODS];
typedef struct stage_figures {
    size_t first, end, n_pages;
    uint64_t n_steps;
    bool taken; /* a first stage uses it */
} stage_figures;
int service_stage_open(worker *w, const stage_options *o, shoal_err *err);
void service_stage_figures(const worker *w, stage_figures *ret); /* w->stage is there */
void service_stage_drain(worker *w);
void service_stage_close(worker *w);
/* The last blocking call of a worker that is closing has ended (worker.c). */
void service_score_ended(worker *w);
/* Draining began: tell those who watch and end their calls. */
void service_health_drain(worker *w);

/* A message of more bytes is not unpacked, tokenised or compiled on the loop, which would stall every
 * other stream. */
enum { SERVICE_LONG_BYTES = 64 << 10, SERVICE_BLOCKING_MAX = 256 };
/* 0, or SHOAL_EFULL: SERVICE_BLOCKING_MAX calls are on threads of the pool or wait for one (n_blocking). */
int service_check_blocking(const worker *w, shoal_err *err);
/* One of n_blocking has ended; w may be gone when this returns. */
void service_blocking_ended(worker *w);

/* Names a call in the log, and when it began. */
typedef struct call_trace {
    char request_id[128];
    char trace_id[TRACE_ID_SIZE]; /* of the W3C trace that it belongs to; "": none */
    const char *method;
    uint64_t start_ns;
} call_trace;

/* What Vote has in common with Generate: a reply is begun for a request, its tokens chosen from ballots
 * when it votes. begun (may be NULL) follows when it has begun, before this returns or, where that takes
 * long, from the loop; the call may be refused instead. g lives until the call has ended, and hears of its
 * cancel. An error: the caller refuses the call. */
int service_generate_start(worker *w, grpc_call *c, const call_trace *trace, bool votes, const uint8_t *msg,
                           size_t n, void (*begun)(grpc_call *c, struct gen_job *g), shoal_err *err);
uint64_t service_generate_id(const struct gen_job *g); /* the engine's */
void service_generate_gone(struct gen_job *g);         /* the client has left */

/* Note where the call comes from and log its start at debug level. */
void service_call_begin(worker *w, grpc_call *c, const char *method, call_trace *ret);
/* Calls of one request have the same number: together they get the engine's places of one. */
uint64_t service_call_group(const call_trace *t);
/* 0 when this worker takes calls for `task` now; otherwise the reason, to be given to service_call_refuse. */
int service_call_admit(const worker *w, model_task task, shoal_err *err);
/* Log and end a call that failed before it reached the engine, or in it. */
void service_call_refuse(worker *w, grpc_call *c, const call_trace *t, const shoal_err *err);
/* The message of a call: SHOAL_EINVALID when it is malformed, SHOAL_ENOMEM when there is no memory for it.
 * Freed with protobuf_c_message_free_unpacked(m, NULL). */
int service_call_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *msg, size_t n,
                        ProtobufCMessage **ret, shoal_err *err);
/* Pack `m` and send it; SHOAL_ENOMEM leaves the call open. */
int service_call_send(worker *w, grpc_call *c, const ProtobufCMessage *m);
/* Send one reply and end with OK (or with RESOURCE_EXHAUSTED when memory is out). */
void service_call_reply(worker *w, grpc_call *c, const ProtobufCMessage *m);
/* Is a call's work on another thread still of use? SHOAL_ECANCELLED once *gone is set, SHOAL_EDEADLINE once the
 * deadline (0: none) has passed, `when`: "before all of the sound was decoded". Any thread. */
int service_may_go_on(const atomic_bool *gone, uint64_t deadline_ns, const char *when, shoal_err *err);
/* Memory for a sound, counted against the worker's bound: SHOAL_EFULL while others have it, SHOAL_ELIMIT when
 * it is more than all of it. What was taken is given back by the same number. */
int service_sound_take(worker *w, size_t n_bytes, shoal_err *err);
void service_sound_give(worker *w, size_t n_bytes);
/* The reply of one classification, in `a`; it borrows the logits. NULL: out of memory. */
Shoal__V1__ClassifyReply *service_classify_reply(const worker *w, arena *a, float *logits);
/* SHOAL_EINVALID naming `what` unless s is UTF-8. */
int service_check_utf8(const char *s, const char *what, shoal_err *err);

#endif
