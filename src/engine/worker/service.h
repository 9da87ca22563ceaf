/* service.h: what the worker's services share: the worker itself and the start and end of a call.
 *
 * Each gRPC method is one function of grpc_method's shape with the worker as its user. Loop thread. */
#ifndef WORKER_SERVICE_H
#define WORKER_SERVICE_H

#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "base/arena.h"
#include "base/bit_identity.h"
#include "base/buf.h"
#include "base/err.h"
#include "logging/log.h"
#include "logging/trace.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"
#include "worker/bridge.h"
#include "worker/meter.h"
#include "worker/pool.h"
#include "worker/worker.h"
#include "worker/worker_gate.h"

enum { MAX_HEALTH_WATCHERS = 32, SERVICE_SOUNDS_MAX = 8, SERVICE_N_STAGE_METHODS = 1 };

typedef struct stage_host stage_host; /* service_stage.c */

/* Calls that work on threads of the pool. */
typedef struct service_blocking {
    size_t n;                                 /* on such threads, or waiting for one */
    uint64_t n_scored, n_failed, n_cancelled; /* Score and ClassifyImage, of backends that do not count */
} service_blocking;

/* Generate's, Vote's (service_generate.c). */
typedef struct service_generations {
    struct gen_job *first;       /* all of them */
    struct gen_job *resting;     /* whose reader does not keep up */
    uv_timer_t *rest_timer;      /* looks after those; freed by its close, as is the next */
    uv_timer_t *heartbeat_timer; /* looks after all */
    uint64_t progress_seen;      /* by its last look */
} service_generations;

/* Transcriptions and detections. */
typedef struct service_sounds {
    bool no_vad;                  /* of transcriptions that do not say */
    size_t n_bytes, n_bytes_max;  /* of sounds under way: files, and windows of samples */
    size_t n_jobs;                /* that are not freed yet: they hold on to the backend */
    void (*all_ended)(worker *w); /* set at the end: runs when the last of them is freed */
} service_sounds;

struct worker {
    uv_loop_t *loop;
    char *name, *path; /* of the model */
    char *socket;      /* path of a Unix address, removed at the end; else NULL */
    net_layers layers; /* end 0: all */
    backend backend;
    char digest[65]; /* of the file and what its weights were brought to, in hex */
    char identity[BIT_IDENTITY_BYTES];
    double load_ms;
    meter meter;
    struct { /* of the process, as it was when it last worked */
        uint64_t n_steps, n_requests, run_delay_ns;
        size_t rss_bytes;
    } seen;

    arbiter *arbiter;
    grpc_server *server;
    worker_gate *gate; /* NULL: in clear text */
    bridge *bridge;
    pool pool;
    buf scratch; /* packed messages; valid until the next use */

    bool draining;
    bool closing; /* the server is closed, and some calls are still under way */
    void (*closed)(void *user);
    void *closed_user;

    /* What the services keep. */
    service_blocking blocking;
    service_generations generations;
    service_sounds sounds;
    stage_host *stage_host; /* of a backend that is a stage; else NULL */
    grpc_call *watchers[MAX_HEALTH_WATCHERS];
    size_t n_watchers;
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
/* Stage.Run (proto/shoal/v1/stage.proto) of a backend that is a stage, whose user is the worker. Open starts
 * the thread that computes, with keys and values kept as `kept`; close joins it; drain ends the stream of the
 * first stage. Close and drain do nothing where open was not called. */
extern const grpc_stream_method service_stage_methods[SERVICE_N_STAGE_METHODS];
int service_stage_open(worker *w, kv_type kept, shoal_err *err);
void service_stage_stats(const worker *w, engine_stats *ret); /* of a worker with a stage_host */
void service_stage_drain(worker *w);
void service_stage_close(worker *w);
/* The last blocking call of a worker that is closing has ended (worker.c). */
void worker_blocking_ended(worker *w);
/* Draining began: tell those who watch and end their calls. */
void service_health_drain(worker *w);

/* A message of more bytes is not unpacked, tokenised or compiled on the loop, which would stall every
 * other stream. */
enum { SERVICE_LONG_BYTES = 64 << 10, SERVICE_BLOCKING_MAX = 256 };
/* 0, or SHOAL_EFULL: SERVICE_BLOCKING_MAX calls are on threads of the pool or wait for one (blocking.n). */
int service_check_blocking(const worker *w, shoal_err *err);
/* One of blocking.n has ended; w may be gone when this returns. */
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
/* 0, or SHOAL_EFULL: SERVICE_SOUNDS_MAX sounds are under way. */
int service_sound_check(const worker *w, shoal_err *err);
/* One of sounds.n_jobs has ended; w may be gone when this returns. */
void service_sound_ended(worker *w);
/* Memory for a sound, counted against the worker's bound: SHOAL_EFULL while others have it, SHOAL_ELIMIT when
 * it is more than all of it. What was taken is given back by the same number. */
int service_sound_take(worker *w, size_t n_bytes, shoal_err *err);
void service_sound_give(worker *w, size_t n_bytes);
/* The reply of one classification, in `a`; it borrows the logits. NULL: out of memory. */
Shoal__V1__ClassifyReply *service_classify_reply(const worker *w, arena *a, float *logits);
/* SHOAL_EINVALID naming `what` unless s is UTF-8. */
int service_check_utf8(const char *s, const char *what, shoal_err *err);

#endif
