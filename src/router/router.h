/* router.h: which replica answers this request, as a pure function.
 *
 * The view is a snapshot of the replicas, made by whoever holds the registry; the request carries
 * its features and the time. No sockets, no clock, no memory: the same view and request give the
 * same decision, so a decision can be logged, replayed and tested.
 *
 * The pick is the least expected completion time: what this gateway has there, plus what this request
 * costs there; equal times go to the less loaded, then to the lowest place in the view. A replica is never
 * picked when it is not ready or is in the exclude mask (it already failed this request).
 *
 * An estimate may be wrong, so it refuses a deadline only where waiting is certain: with calls in flight
 * there, and another one tried within the last ROUTER_PROBE_MS. Whoever is let through teaches the truth.
 *
 *     router_replica r[2] = {{.model = "m", .ready = true, .n_in_flight = 3}, {.model = "m", .ready = true}};
 *     router_view v = {.replicas = r, .n_replicas = 2};
 *     router_request q = {.model = "m"};
 *     router_decision d;
 *     router_pick(&v, &q, &d);        // d.index == 1, d.why == ROUTER_LEAST_TIME
 */
#ifndef ROUTER_ROUTER_H
#define ROUTER_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(enum, name): why a replica was picked, then why none was. */
#define ROUTER_WHY_TABLE(X)                                                                      \
    X(ROUTER_ONLY_ONE, "only_replica")          /* one ready replica of the model was left */    \
    X(ROUTER_LEAST_TIME, "least_expected_time") /* the fastest of several */                     \
    X(ROUTER_UNKNOWN_MODEL, "unknown_model")    /* refusals from here on */                      \
    X(ROUTER_NONE_READY, "none_ready")                                                           \
    X(ROUTER_ALL_EXCLUDED, "all_excluded") /* every ready replica already failed this request */ \
    X(ROUTER_DEADLINE, "deadline_cannot_be_met")
typedef enum router_why {
#define ROUTER_WHY_ENUM(e, n) e,
    ROUTER_WHY_TABLE(ROUTER_WHY_ENUM)
#undef ROUTER_WHY_ENUM
} router_why;
const char *router_why_name(router_why w);

typedef struct router_replica {
    const char *model;  /* the name clients use */
    const char *digest; /* of the model file; NULL when not known yet */
    bool ready, draining;
    unsigned n_in_flight;        /* calls the gateway has there */
    unsigned n_tokens_in_flight; /* of their input, as far as nothing has come back for it */
    unsigned n_parallel;         /* requests it works on at once at full speed; 0: 1 */
    unsigned n_ctx;              /* a prompt over it is refused there with the numbers; 0: not known */
    double ms_per_call;          /* learnt: whatever the size (cost.h); 0: not known */
    double ms_per_token;         /* learnt: and for each token of input; 0: not known */
    double worked_ms; /* since it last gave something back or was idle: done of what is in flight */
    uint64_t sent_ns; /* when the gateway last started a call there; 0: never */
} router_replica;

typedef struct router_view {
    const router_replica *replicas;
    size_t n_replicas;
} router_view;

#define ROUTER_EXCLUDE_MAX 64 /* places of the view that the mask can name */
#define ROUTER_PROBE_MS    1000

typedef struct router_request {
    const char *model;
    const char *digest; /* only replicas of this very file (a replay); NULL: any */
    uint64_t now_ns;
    uint64_t deadline_ns;  /* 0: none */
    unsigned n_tokens;     /* of input; an estimate */
    unsigned n_tokens_max; /* what they cannot exceed, for one prompt; 0: no prompt with a context to fit */
    uint64_t exclude;      /* bit i: not the replica at place i */
} router_request;

typedef struct router_decision {
    int index; /* place in the view, -1: refused */
    router_why why;
    double expected_ms; /* completion there; for ROUTER_DEADLINE the best there was */
} router_decision;

/* Returns 0, or SHOAL_ENOTFOUND (unknown model), SHOAL_EUNAVAILABLE (none ready, all excluded),
 * SHOAL_EDEADLINE. *ret is always written. What is not measured yet costs nothing: a cold replica is
 * tried rather than refused. */
int router_pick(const router_view *view, const router_request *req, router_decision *ret);

/* Expected milliseconds from now to this request's answer on r; of a generation the first token only,
 * since most answers end long before max_tokens and a deadline must not refuse those. */
double router_expected_ms(const router_replica *r, const router_request *req);

#endif
