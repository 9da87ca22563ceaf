/* request.h: one request and its answer, as endpoint handlers see them.
 *
 * The gateway names the request, checks key, deadline and admission, and gives the handler a
 * gateway_request. Its transport (ingress_request.h) makes no difference. The handler answers exactly once:
 * request_json, request_error, or request_stream_begin + write* + end. That call counts and logs the request
 * and frees the request. If the client leaves first, on_gone(work) runs once instead and the request is dead
 * afterwards: cancel the model calls there.
 *
 *     static void handle(gateway_request *rq) {
 *         struct job *j = ...;
 *         request_watch(rq, on_gone, j);
 *         j->call = calls_classify(rq->calls, model, &req, &ctx, done, j);   // done: request_json
 *     }
 *
 * Loop thread only. */
#ifndef REQUEST_REQUEST_H
#define REQUEST_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "calls/observer.h"
#include "config/config.h"
#include "messages/degraded.h"
#include "messages/api_error.h"
#include "cache/cache_directives.h"
#include "request/metrics.h"
#include "request/ingress_request.h"
#include "logging/span.h"
#include "logging/trace.h"

struct gateway;
struct cache;
struct endpoint;
struct auth_key;
struct settings;

/* X(enum, name): what of a request's time is known, as metrics and GET /v1/requests name it. */
#define REQUEST_TIME_TABLE(X)                                                       \
    X(REQUEST_QUEUE, "queue")             /* in the engine's line */                \
    X(REQUEST_PREFILL, "prefill")         /* its input was read */                  \
    X(REQUEST_FIRST_TOKEN, "first_token") /* from the request to its first token */ \
    X(REQUEST_DECODE, "decode")           /* its answer was written */              \
    X(REQUEST_TOTAL, "total")             /* of the model call, waiting for a replica included */
typedef enum request_time {
#define REQUEST_TIME_ENUM(e, name) e,
    REQUEST_TIME_TABLE(REQUEST_TIME_ENUM)
#undef REQUEST_TIME_ENUM
        REQUEST_N_TIMES
} request_time;
const char *request_time_name(request_time t);

/* How a request went, for those who look back at it (recent.h). */
typedef struct request_facts {
    double ms[REQUEST_N_TIMES]; /* of several calls the longest */
    unsigned known;             /* bit i: ms[i] is */
    char replica[96];           /* who answered last; "": nobody was asked */
    unsigned n_moves;           /* how often its call went on elsewhere, */
    char move_cause[16];        /* why the last time, */
    double move_gap_ms;         /* and how long nothing came then */
    unsigned n_restarts;        /* of the moves: its answer began anew, with other bits */
} request_facts;

enum { REQUEST_MORE_MAX = 12 };

enum { REQUEST_ID_SIZE = 129 };

typedef struct gateway_request {
    /* Where it is served: parts of the gateway, as the request found them when it came. */
    struct gateway *gateway;
    calls *calls;
    registry *registry;
    struct cache *cache; /* cache/cache.h */
    metrics *metrics;
    struct settings *settings; /* that it came with (settings.h) */
    const gateway_config *config;
    struct gateway_request *next, *prev; /* the gateway's list */
    uint64_t number;                     /* for its calls (call_notes.h) */
    struct gateway_request *next_numbered;

    /* What is asked, and by which transport: set by ingress_request_enter. */
    const struct endpoint *endpoint;
    ingress_request *ingress;
    char id[REQUEST_ID_SIZE]; /* x-request-id */
    char trace[TRACE_SIZE];   /* traceparent, with a span of ours; "": none (trace.h) */
    uint64_t trace_parent;    /* the sender's span; 0: none */
    span_list spans;          /* what took its time so far, where it is recorded; see trace_request */
    bool is_recorded;
    bool is_traced; /* by its client, with the flag "sampled": recent.h shows its spans */
    bool is_inner;  /* another request makes it, in another form (ingress_request.of) */
    char *
        asked_path; /* of a recorded one, as its transport is gone when it has ended; owned. NULL: not known */
    char *asked_host;
    background_kind background;  /* it has no client (ingress_request.h) */
    const char *allow;           /* for a 405 */
    const char *readable_origin; /* the page's, when it may read the answer: it is allowed, or refused */

    /* What it may take: time, money and energy. */
    uint64_t start_ns, deadline_ns; /* deadline 0: none */
    bool names_deadline;            /* it is the client's, not the configuration's */
    route_latency latency;          /* x-shoal-latency */
    double max_cost, max_energy_j;  /* x-shoal-max-cost, x-shoal-max-energy-j; 0: any */

    /* Who asks, and what counts against him: admission.c, capacity.c, uploads.c. */
    const struct auth_key *key; /* that it came with (auth.h); NULL: it needs none */
    bool is_unauthenticated;    /* keys are needed, and it has shown none that counts */
    bool key_counts;            /* it is one of the key's requests (admission.h) */
    size_t n_counted;           /* against max_requests: one, and one for each choice after the first */
    bool uploading;             /* its body is still coming (uploads.h), and so much of it has come: */
    uint64_t n_upload_bytes;

    /* Who answers: learned by the handler, for headers, log line and metrics. */
    char model[96], version[48], quantisation[24];
    const char *alias; /* of the configuration, or the variant, that the client named for it; NULL: none */
    struct json_t *variant; /* that it is, owned; NULL: none (model_resolve_variant) */
    char variant_name[128];
    const char *pipeline;                 /* whose run answers; NULL: none. Of the configuration */
    char adapter[64], adapter_digest[65]; /* of the answer; "": none, resp. not known yet */
    struct routed *routed;                /* what a route came to (routed.h); NULL: none was asked for */
    degraded degraded;                    /* the answer is another model's; such answers are not kept */
    char tool_syntax[48]; /* how the model writes the calls of a request with tools; "": none were offered */
    char ensemble[1024];  /* how several models came to the answer; "": one gave it */

    /* What the answer took. */
    uint64_t n_prompt_tokens, n_generated_tokens, n_drafted_tokens, n_accepted_tokens;
    request_facts facts;

    /* Whether the answer is kept: the response cache, the semantic cache, a conversation. */
    cache_directives directives; /* what it says about the cache */
    const char *cache_state;     /* "hit", "miss", "shared", "stale"; NULL: not cacheable */
    char cache_text[16];         /* "near 0.971", where that is the state */
    char near_note[48];          /* what a lookup by likeness came to; "": there was none */
    uint64_t age_s;              /* of a kept answer */
    const char *cache_of; /* of whom kept answers are counted: "route", "pipeline", "ensemble" or "model", */
    char cache_name[96];  /* and its name */
    bool keeps;           /* it writes into a conversation */

    /* The answer on its way out. */
    bool streaming;
    const char *error_code;             /* of a failure inside a stream that had begun */
    http_header more[REQUEST_MORE_MAX]; /* more headers, borrowed until it has begun */
    size_t n_more;

    /* For who looks back at it (recent.h). */
    char *asked; /* the beginning of its body, where the configuration keeps it; owned */

    /* What its handler waits for; each is called with `work`. */
    void *work;
    void (*on_gone)(void *work);
    void (*on_deadline)(void *work);
    void (*on_room)(void *work);
    size_t room_bytes; /* on_room: no more than so many are unread */
    void (*on_body)(void *work, const uint8_t *bytes, size_t n);
    void (*on_body_end)(void *work, int status, const char *why);
} gateway_request;

/* What is asked, borrowed from its transport. */
const char *request_method(const gateway_request *rq);
const char *request_path(const gateway_request *rq);                           /* not decoded */
const char *request_query(const gateway_request *rq);                          /* behind '?', "" when none */
const char *request_header(const gateway_request *rq, const char *lower_name); /* NULL: none */
const char *request_body(const gateway_request *rq, size_t *ret_len);          /* NUL-terminated */
void request_pause(gateway_request *rq, bool paused);                          /* of one in pieces */
size_t request_unsent(const gateway_request *rq); /* bytes of the answer that the client has not taken */

/* By the gateway's env: the time, milliseconds since the request came, and seconds since 1970. */
uint64_t request_now_ns(const gateway_request *rq);
double request_ms(const gateway_request *rq);
int64_t request_date_s(const gateway_request *rq);

/* Whose documents it may see: the digest of its API key, as conversations have it; "" where no keys are
 * configured, or it came with none. Returns out. */
enum { REQUEST_OWNER_SIZE = 65 };
const char *request_owner(const gateway_request *rq, char out[REQUEST_OWNER_SIZE]);
/* For model calls made on behalf of rq; strings are borrowed from rq. */
call_context request_context(const gateway_request *rq, const char *why);
void request_watch(gateway_request *rq, void (*on_gone)(void *work), void *work);
/* Of an endpoint that takes its body as it comes (ENDPOINT_PIECES): each piece, borrowed, then once the end.
 * status and why: those of http_handler.on_body_end. After the answer none comes. */
void request_on_body(gateway_request *rq, void (*on_body)(void *work, const uint8_t *bytes, size_t n),
                     void (*on_end)(void *work, int status, const char *why));
/* fn(work) runs once when the request's deadline passes; NULL: not any more. For requests that wait for
 * something else than a model call, since calls keep the deadline themselves. */
void request_on_deadline(gateway_request *rq, void (*fn)(void *work));
/* Remember which model answers (for headers, log, metrics). */
void request_note_model(gateway_request *rq, const char *model, const char *version,
                        const char *quantisation);
/* The name that a reply gives its model: the alias that the client named, or `model`. */
const char *request_shown_model(const gateway_request *rq, const char *model);
/* Who answers a stream that is about to begin. */
void request_note_place(gateway_request *rq, const call_place *p);
void request_note_result(gateway_request *rq, const call_result *r);

/* A model call of rq took so long in this: for the metrics, and for who looks back. */
void request_note_time(gateway_request *rq, request_time t, double ms);
/* Its call goes on elsewhere. */
void request_note_move(gateway_request *rq, const call_move *m);

/* The request asks for so many answers at once (n > 1): 0, or 429 when that is over max_requests. */
int request_count_choices(gateway_request *rq, size_t n, api_error *e);

/* One more header of the answer; over REQUEST_MORE_MAX they are left out. Both are borrowed until it has
 * begun. */
void request_add_header(gateway_request *rq, const char *lower_name, const char *value);

/* The answer was made for it: it did not come out of the cache. */
bool request_is_computed(const gateway_request *rq);

/* Each of these ends the request. */
void request_json(gateway_request *rq, int status, const buf *body); /* a failed buf becomes a 500 */
void request_text(gateway_request *rq, int status, const char *content_type, const buf *body);
/* With headers of its own behind those that every answer has. content_type NULL: the answer has no body. */
void request_reply(gateway_request *rq, int status, const char *content_type, const http_header *more,
                   size_t n_more, const void *body, size_t len);
void request_error(gateway_request *rq, const api_error *e);
/* A message that became no request (malformed, too large, too many) was refused: counted as refused requests are. */
void request_count_refused(struct gateway *g, const api_error *e);
/* The headers of an answer that says so: its id, which is g->refused_id, and CORS for an allowed origin. Into
 * ret[HTTP_ERROR_HEADERS]; they last until the next call. origin: the request's, or NULL. anthropic: with the id's name
 * in Anthropic's API, too. */
size_t request_refusal_headers(struct gateway *g, const char *origin, bool anthropic, http_header *ret);
/* The client's x-request-id where it is fine, else a new one. */
void request_name(char ret[REQUEST_ID_SIZE], const char *given);
void request_preflight(gateway_request *rq); /* a browser asks for a page of an allowed origin (CORS) */

/* A stream of events (messages/event.h), over HTTP as text/event-stream. */
void request_stream_begin(gateway_request *rq);
/* The same as lines of JSON (application/x-ndjson): the events' data, where the transport takes them. */
void request_lines_begin(gateway_request *rq);
void request_stream_write(gateway_request *rq, const buf *events);
void request_event(gateway_request *rq, const event *e); /* one, without a buffer */
void request_stream_end(gateway_request *rq);            /* ends the request */
/* How many streams of the same endpoint its client has open: of the same key or, without keys, from the same
 * address. For endpoints with a limited number of places, which one client must not hold alone. */
size_t request_count_like(const gateway_request *rq);
/* Does the client leave so much unread that the source should rest? Then fn(work) runs once it has read most
 * of it. NULL: not wanted any more. */
bool request_stream_is_full(const gateway_request *rq);
void request_on_room(gateway_request *rq, void (*fn)(void *work));

#endif
