/* gateway_state.h: what the files of the front door share about the gateway itself. */
#ifndef REQUEST_GATEWAY_STATE_H
#define REQUEST_GATEWAY_STATE_H

#include <uv.h>

#include "base/err.h"
#include "cache/cache.h"
#include "calls/observer.h"
#include "logging/span.h"
#include "time/env.h"
#include "cluster/registry.h"
#include "config/config.h"
#include "control/control.h"
#include "request/endpoint.h"
#include "request/request.h"
#include "request/settings.h"
#include "process/confirm.h"
#include "process/turns.h"
#include "retrieve/executor.h"
#include "sessions/session_thread.h"

typedef struct gateway gateway;
typedef struct ws_socket ws_socket;
typedef struct live live;

enum { GATEWAY_NUMBERED = 256, GATEWAY_SPANS = 1024 };

/* Which requests' spans are recorded beside those whose traceparent says so: for an export (telemetry/). */
typedef struct request_tracing {
    bool on;       /* requests without a traceparent begin a trace, */
    double sample; /* of which this share is sampled; */
    bool all;      /* the others are recorded, too: only their end says whether they are exported */
} request_tracing;

struct gateway {
    uv_loop_t *loop;
    control *control;                          /* NULL: this machine serves alone */
    const struct model_manager *model_manager; /* NULL: no models are loaded while it serves */
    /* Models that lie here, as model_manager.stored has them. NULL, or gives it: none. */
    const struct json_t *(*loadable)(const gateway *g);
    /* Models that clients made of others, as model_manager.variants has them. NULL, or gives it: none. */
    const struct json_t *(*variants)(const gateway *g);
    registry *registry;
    env time;                     /* the registry's */
    const gateway_config *config; /* the settings' */
    const endpoint_table *endpoints;
    calls *base;            /* to the replicas; the rules of the file are above them */
    calls *failover;        /* the one of its decorators that blames requests; NULL until it is there */
    settings *settings;     /* of new requests */
    settings *all_settings; /* these, and those that requests in flight came with */
    cache *cache;
    struct semantic *semantic;  /* NULL: answers are found by their key alone */
    struct served_list *served; /* files that answer, by model (caches.c) */
    uint64_t n_rolls;           /* how often a file was new to its model */
    metrics *metrics;
    struct confidence_watch *confidences;
    const struct request_sink *const *sinks; /* who is told of requests (sink.h); ends with NULL */
    request_tracing tracing;
    struct telemetry *telemetry; /* what goes to a collector (telemetry/telemetry.h); NULL: nothing does */
    span_ring *spans;            /* of traced requests: themselves, attempts, and what workers say of these */
    struct recent *recent;       /* requests that have ended */
    live *live;                  /* who watches the cluster */
    struct model_events *model_events; /* compat/llama_models.c's; NULL: nobody listens */
    executor *executor;          /* of the collections */
    struct batch_runner *batches;   /* batches/batch_runner.h; NULL: nothing runs */
    confirm_book confirms;          /* what guards asked back */
    turn_book turns;                /* of sessions of pipelines */
    session_thread *session_thread; /* of the conversations; NULL: none are kept */
    http_server *server;
    const struct http_guest
        *http_guest; /* another protocol's requests on its connections (http_ingress.h); NULL: */
    const struct http_tunnel *http_tunnel; /* none; and what tunnels' bytes go to */
    int port;                              /* of `listen`; 0: a Unix socket */
    char *own_socket;                      /* of this user's commands (listen.c); NULL: none */
    tls_context *tls;                      /* NULL: clear text */
    tls_context *workers_tls;              /* of workers that others start; NULL: clear text */
    struct tls_watch *tls_watch;
    struct grpc_ingress *grpc;
    gateway_request *requests;                   /* being answered, */
    gateway_request *numbered[GATEWAY_NUMBERED]; /* and by their numbers, the last of which is */
    uint64_t last_number;
    call_observer observer; /* of all calls (call_notes.h) */
    ws_socket *sockets;     /* ws_ingress.c's, and its clock while there are any */
    env_timer *ws_timer;
    size_t n_requests, n_admitted, n_background;
    size_t n_uploads; /* uploads.h */
    uint64_t n_upload_bytes;
    struct shadow *shadows; /* answers that nobody sees (shadow.h) */
    size_t n_shadows;
    buf metrics_text[METRICS_N_FORMS]; /* what GET /metrics answers, as of then; 0: never made */
    uint64_t metrics_at_ns[METRICS_N_FORMS];
    buf openapi; /* what GET /openapi.json answers, once somebody has asked */
    buf openapi_packed[2]; /* by gzip, by zstd; empty: nobody has asked */
    char openapi_etag[40];
    bool openapi_keyed;
    size_t n_log_readers;             /* who follow the log */
    char refused_id[REQUEST_ID_SIZE]; /* of the last that was refused before it was a request */
    bool draining;
    void (*drained)(void *user); /* of the drain */
    void *drained_user;
    size_t n_released; /* of the ingress list, once the gateway is freed; then this is called: */
    void (*released)(struct gateway *g);
    bool withdrawn;   /* it is not to be given new work, and answers what comes all the same */
    env_timer *watch; /* watch.c's, */
    bool watching;    /* and whether it runs */
};

/* The request's end, for log and metrics; unlinks and frees it. Status 499: the client left. */
void request_finish(gateway_request *rq, int status, const char *error_code);

#endif
