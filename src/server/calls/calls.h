/* calls.h: the one seam for calls of models.
 *
 * `calls` is anything that makes model calls: four functions over one kind of call. What comes of a call are
 * events: pieces of a stream, and one end. Endpoints and pipelines know only this file; a test gives its own.
 *
 *     static void on_tagged(void *user, const call_result *r, const Shoal__V1__TagReply *reply) { ... }
 *     model_call *call = calls_tag(c, "home-slots", &req, &(call_context){.request_id = id}, on_tagged, job);
 *
 * Decorators are calls over calls, so that each rule is a file that is read and tested alone:
 *
 *     span_calls       tells what an ensemble took, whose members' calls stand below it
 *     limit_calls      ends a reply whose tokens do not come, with what there is
 *     route_calls      resolves the name of a route to the model that answers
 *     fallback_calls   a smaller model answers when none of the wanted one's replicas lives, and says so
 *     hedge_calls      a second replica when the first is silent; whoever speaks first wins
 *     failover_calls   goes on elsewhere when a worker dies under a call
 *     retry_calls      elsewhere while a queue is full; a short wait while nobody is there
 *     replica_calls    the bottom: picks a replica, makes one gRPC call, counts it
 *
 * decorator.h is what they have in common.
 *
 * A task is a row of CALL_TASK_TABLE (tasks/task.h), from which its typed wrapper, its path and its codec follow.
 *
 * No callback comes from inside the function that starts a call, and none after the end or a cancel; the call
 * is dead then. A callback may cancel its own call or any other, and start new ones. One thread. */
#ifndef CALLS_CALLS_H
#define CALLS_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bit_identity.h"
#include "base/err.h"
#include "calls/feed.h"
#include "router/router.h"
#include "routes/routes.h"
#include "shoal/v1/worker.pb-c.h"
#include "tasks/task.h"

/* ---- how a call ends ----------------------------------------------------------------------------- */

/* X(enum, name): whose fault a failure is, for those who may try again. */
#define CALL_FAULT_TABLE(X)                                                                          \
    X(CALL_FAULT_NONE, "none")       /* no failure, or one that another replica would repeat */      \
    X(CALL_FAULT_ABSENT, "absent")   /* no replica could take it: nothing was sent */                \
    X(CALL_FAULT_FULL, "full")       /* the replica's queue is full: nothing was done */             \
    X(CALL_FAULT_LEAVES, "leaves")   /* the replica shuts down, and gave the call back */            \
    X(CALL_FAULT_LOST, "lost")       /* the worker died, or the link to it, with the call in hand */ \
    X(CALL_FAULT_NONSENSE, "broken") /* the replica answered what is no answer */                    \
    X(CALL_FAULT_KILLS, "kills")     /* the request itself makes workers die: it is refused */       \
    X(CALL_FAULT_UNLIKE, "unlike")   /* what came cannot go on: who is left gives other bits */
typedef enum call_fault {
#define CALL_FAULT_ENUM(e, n) e,
    CALL_FAULT_TABLE(CALL_FAULT_ENUM)
#undef CALL_FAULT_ENUM
} call_fault;
const char *call_fault_name(call_fault f);

typedef struct call_result {
    int status;                                                       /* 0 or SHOAL_E... */
    const char *message;                                              /* one sentence, "" on success */
    const char *model, *replica_id, *version, *quantisation, *digest; /* "" when it never reached one */
    const char *identity;       /* what decided its bits (base/bit_identity.h); NULL or "": it reached none */
    bool exact_resume;          /* what it had begun can go on at any replica of that identity */
    const char *adapter_digest; /* of the adapter that the call names, as it is there; "": none */
    double ms;                  /* wall time of the call in the gateway, waiting included */
    const char *wanted, *why;   /* another model answered: whom was asked, and why not that one; else NULL */
    /* How several models came to this: "home-chat-s 0.62 < 0.80, home-chat-m"; else NULL. */
    const char *trace;
    call_fault fault;
    bool cut;                      /* it is well, but a time limit ended it: another time it may be longer */
    bool lasting;                  /* with CALL_FAULT_ABSENT: asking again soon does not help */
    uint64_t life;                 /* the life of a replica that had it last, 0: none */
    const ProtobufCMessage *reply; /* of a unary call that ended well; dies after the callback */
} call_result;

/* ---- what is asked ------------------------------------------------------------------------------- */

/* Who is told of the parts of a request's work (observer.h), and under which span they stand; zeroed: nobody. */
typedef struct call_spans {
    const struct call_observer *to; /* outlives the calls */
    uint64_t parent;
} call_spans;

typedef struct call_context { /* of the request this call belongs to; copied */
    const char *request_id;
    uint64_t request;        /* its number, for observers (observer.h); 0: none */
    const char *traceparent; /* W3C Trace Context, handed on to the worker; NULL: none */
    call_spans spans;
    uint64_t deadline_ns; /* 0: none */
    const char *why;      /* for traces: "intent stage", "endpoint" */
    call_feed *feed; /* messages that follow the request, where the task takes a stream of them; NULL: none */
    router_order order;         /* which of the model's replicas are preferred */
    uint64_t key;               /* of ROUTER_BY_HASH */
    uint64_t pages;             /* and who computed what it begins with (router.h); 0: nobody known */
    Shoal__V1__Latency latency; /* how urgent it is, to the worker's queue */
    /* Models that answer when none of its replicas lives, instead of the configuration's for all its calls.
     */
    const char *const *stand_ins;
    size_t n_stand_ins;
    reply_limits limits; /* of the route that the request names; 0: the server's (limit_calls.h) */
} call_context;

/* One call as asked, shared by all who carry it out and never changed. */
typedef struct call_order {
    unsigned refs;
    call_task task;
    const char *model, *request_id, *traceparent, *why; /* "" for none */
    uint64_t request;                                   /* its number; 0: none */
    call_spans spans;
    const char *adapter; /* that the request names; "": none */
    unsigned needs;      /* capabilities that its replica must have (ROUTER_CAPABILITY_TABLE) */
    uint64_t deadline_ns;
    bool resumes;       /* it goes on with a stream that began elsewhere, */
    uint64_t n_resumed; /* of which so many bytes of text, or segments of speech, have come */
    size_t n_msg;
    const uint8_t *msg; /* the request, packed, */
    call_feed *feed;    /* and what follows it; NULL: nothing */
    router_order order;
    uint64_t key, pages;
    const char *const *stand_ins;
    size_t n_stand_ins;
    reply_limits limits;
    Shoal__V1__Latency latency; /* in the message, too */
} call_order;

/* Copies all it is given. NULL: out of memory. */
call_order *call_order_new(call_task task, const char *model, const ProtobufCMessage *request,
                           const call_context *ctx);
/* The same call, its request followed by more fields: what is single replaces, what is repeated is added. */
call_order *call_order_more(const call_order *o, const ProtobufCMessage *more, uint64_t n_resumed);
/* The same call of another model, without stand-ins. NULL: out of memory. */
call_order *call_order_for(const call_order *o, const char *model);
/* The same call under another span. NULL: out of memory. */
call_order *call_order_under(const call_order *o, uint64_t span);
/* The same request as another task, of the same kind of request, with a feed behind it. NULL: out of memory.
 */
call_order *call_order_as(const call_order *o, call_task task, call_feed *feed);
/* The same call of the model that a route came to: order, key and stand-ins are `how`'s. NULL: out of memory.
 */
call_order *call_order_routed(const call_order *o, const char *model, const call_context *how);
call_order *call_order_ref(call_order *o);
void call_order_unref(call_order *o); /* accepts NULL */
/* The request as it was given; free with protobuf_c_message_free_unpacked. NULL: out of memory. */
ProtobufCMessage *call_order_request(const call_order *o);

/* Of another call for the same request: what names it and how urgent it is, and nothing of which replicas or
 * models are preferred. Borrows from ctx. */
call_context call_context_named(const call_context *ctx, const char *why);
/* The same with the preferred replicas, its texts in mem, for work that outlives the request. False: no memory.
 */
bool call_context_keep(call_context *ret, const call_context *ctx, const char *why, arena *mem);
/* Of a further call that `o` needs: the same request, trace, deadline, urgency, and preferred replicas.
 * Borrows from o; why NULL: o's. */
call_context call_context_beside(const call_order *o, const char *why);

/* How a call ends that no replica had. */
call_result call_result_of(const call_order *o, int status, const char *message);

/* On what terms a call is made; zero: whoever is there. Copied. */
enum { CALL_AVOID_MAX = 8, CALL_DIGEST_BYTES = 72 };
typedef struct call_terms {
    char identity[BIT_IDENTITY_BYTES];      /* only replicas that give the same bits; "": any */
    char adapter_digest[CALL_DIGEST_BYTES]; /* and only where the order's adapter is this one; "": any */
    uint64_t avoid[CALL_AVOID_MAX];         /* lives of replicas that are not asked */
    unsigned n_avoid;
    uint64_t hold_until_ns; /* how long to wait for a replica; 0: as the task and the deadline say */
    uint64_t patience_ms;   /* the same, while nothing has come back: since it began, or was lost */
} call_terms;
void call_terms_avoid(call_terms *t, uint64_t life); /* 0 is nobody; over the maximum the oldest goes */
bool call_terms_avoids(const call_terms *t, uint64_t life);
/* From now on only replicas whose bits are those with which an answer has begun. Terms that name some stay. */
void call_terms_pin(call_terms *t, const char *identity, const char *adapter_digest);

/* What a call would meet now. */
typedef struct call_estimate {
    int status;         /* 0, SHOAL_ENOTFOUND, SHOAL_EUNAVAILABLE, SHOAL_EDEADLINE, SHOAL_ENOMEM */
    bool may_return;    /* nobody is there, but somebody is starting or being restarted */
    size_t n_ready;     /* replicas of the model that take calls, whatever the terms */
    double expected_ms; /* until the first answer, with status 0; 0: not known */
    double step_ms;     /* between two events of a stream there, as measured; 0: not known */
    double load;        /* calls in flight there over what it does at once */
    double mean_reply;  /* tokens of the model's replies so far; 0: not known */
    energy energy;      /* of a token, as measured */
} call_estimate;

/* ---- the seam ------------------------------------------------------------------------------------ */

typedef struct call_events call_events;
struct call_events { /* copied; `to` is where the typed wrappers keep what they were given */
    void *user;
    void (*event)(const call_events *ev, const ProtobufCMessage *m); /* of a stream; m dies after it */
    void (*end)(const call_events *ev, const call_result *r);
    /* Of a stream whose replica was lost, where nobody is left who could go on with the same bits: what came is
     * void, and the answer begins anew with the next event. It starts nothing and does not cancel this call. With
     * takes_back this may happen at any time; without it only until the reply has begun to grow, and a stream that has ends in
     * CALL_FAULT_UNLIKE. NULL: then the second beginning is not told either. */
    void (*restarted)(const call_events *ev);
    bool takes_back;
    union {
#define CALL_TO_STREAM(e, name, method, Request, request, Reply, reply, flags) \
    struct {                                                                   \
        void (*event)(void *user, const Shoal__V1__##Reply *ev);               \
        void (*end)(void *user, const call_result *r);                         \
    } name;
        CALL_STREAM_TABLE(CALL_TO_STREAM)
#undef CALL_TO_STREAM
#define CALL_TO_UNARY(e, name, method, Request, request, Reply, reply, flags) \
    void (*name)(void *user, const call_result *r, const Shoal__V1__##Reply *reply);
        CALL_UNARY_TABLE(CALL_TO_UNARY)
#undef CALL_TO_UNARY
        void (*unary)(void *user, const call_result *r, const ProtobufCMessage *reply);
    } to;
};

typedef struct calls calls;
typedef struct model_call model_call;

/* Who has a call now; zero: nobody, it waits. Strings are borrowed for the moment. */
typedef struct call_place {
    uint64_t life;
    uint64_t pages; /* what the life is to every gateway (router.h); 0: nobody's, or several have it */
    const char *replica_id, *digest, *identity, *adapter_digest, *model;
    const char *wanted, *why, *trace; /* all as call_result's */
    bool exact_resume;                /* this, too */
    bool silent;                      /* its worker has not answered when it was asked how it is */
    /* Does it work now, or would it if its machine gave it a core (call_place_works)? NULL: that is not
     * known. */
    bool (*is_at_work)(const void *who);
    const void *who; /* for the moment */
} call_place;
bool call_place_works(const call_place *p);
/* Where a call of `model` ended; borrows from r. */
call_place call_place_of(const call_result *r, const char *model);

typedef struct calls_ops {
    /* NULL: out of memory, and no callback follows. All other failures come through `end`, later. */
    model_call *(*start)(calls *c, call_order *o, const call_terms *t, const call_events *ev);
    void (*pause)(model_call *call, bool paused);
    void (*cancel)(model_call *call);
    call_place (*where)(const model_call *call);
    void (*estimate)(calls *c, const call_order *o, const call_terms *t, call_estimate *ret);
    const Shoal__V1__ModelInfo *(*info)(calls *c, const char *model, bool *ret_known);
    void (*free)(calls *c); /* cancels what still runs, without callbacks; frees what it stands on */
} calls_ops;

/* Both are the first member of what implements them. */
struct calls {
    const calls_ops *ops;
};
struct model_call {
    const calls_ops *ops;
};

model_call *calls_start(calls *c, call_order *o, const call_terms *t, const call_events *ev);
/* While paused no event comes (but the end, when the deadline passes or the call fails), and the worker
 * rests. Accepts NULL, as does cancel. */
void calls_pause(model_call *call, bool paused);
void calls_cancel(model_call *call);
call_place calls_where(const model_call *call); /* accepts NULL */
void calls_estimate(calls *c, const call_order *o, const call_terms *t, call_estimate *ret);
/* What a replica of the model said of itself (labels, digest, context...), NULL when the name is unknown or
 * none has come up yet; *ret_known tells the two apart (may be NULL). */
const Shoal__V1__ModelInfo *calls_info(calls *c, const char *model, bool *ret_known);
void calls_free(calls *c); /* accepts NULL */

/* ---- one function for each task ------------------------------------------------------------------ */

/* calls_generate and calls_transcribe: NULL when out of memory. */
#define CALL_STREAM_DECLARE(e, name, method, Request, request, Reply, reply, flags)        \
    typedef struct calls_##name##_events {                                                 \
        void *user;                                                                        \
        void (*event)(void *user, const Shoal__V1__##Reply *ev);                           \
        void (*end)(void *user, const call_result *r);                                     \
    } calls_##name##_events;                                                               \
    model_call *calls_##name(calls *c, const char *model, const Shoal__V1__##Request *req, \
                             const call_context *ctx, const calls_##name##_events *ev);
CALL_STREAM_TABLE(CALL_STREAM_DECLARE)
#undef CALL_STREAM_DECLARE

/* calls_classify and the others: the reply is NULL unless r->status is 0, and dies after the callback. */
#define CALL_UNARY_DECLARE(e, name, method, Request, request, Reply, reply, flags)                           \
    typedef void (*calls_##name##_done)(void *user, const call_result *r, const Shoal__V1__##Reply *reply_); \
    model_call *calls_##name(calls *c, const char *model, const Shoal__V1__##Request *req,                   \
                             const call_context *ctx, calls_##name##_done done, void *user);
CALL_UNARY_TABLE(CALL_UNARY_DECLARE)
#undef CALL_UNARY_DECLARE
/* The same for any of them, by its number. */
typedef void (*calls_unary_done)(void *user, const call_result *r, const ProtobufCMessage *reply);
model_call *calls_unary(calls *c, call_task task, const char *model, const ProtobufCMessage *req,
                        const call_context *ctx, calls_unary_done done, void *user);

#endif
