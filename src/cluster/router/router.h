/* router.h: which replicas answer this request, in which order and why, as a pure function.
 *
 * The view is a look at the replicas of the request's model, borrowed from whoever holds the registry; the
 * request carries its features, the time, and a random number. No sockets, no clock, no memory: the same view
 * and request give the same plan, so a decision can be logged, replayed and tested.
 *
 * A plan is a few steps: whom to ask, then whom to ask instead. As the choice says, they are in the order of
 *
 *   least_time    the expected completion time: what this gateway has there, plus what this request costs
 *                 there (of a generation with a reply of ROUTER_REPLY_TOKENS, each of which waits for the
 *                 streams beside it); equal times go to the less loaded, then to the lower place (of many: to
 *                 the first drawn);
 *   round_robin   who was sent a call longest ago: the replicas take turns, whoever asks;
 *   hash          the request's key: equal keys (a session, the beginning of a prompt) go to one replica,
 *                 which may hold their pages, and only those of a replica that comes or goes move (Thaler and
 *                 Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996). One that has
 *                 ROUTER_KEPT_LOAD times as much to do as it does at once steps back behind who has less.
 *                 Where the request knows who computed what it begins with (pages), that one stands before
 *                 the key's own, and steps back like it;
 *   least_energy  the joules of a token there, as far as they are known; those who tell none stand behind,
 *                 and equals are in the order of least_time;
 *   least_cost    that is a matter of models (routes/price.h): their replicas cost the same, and are in the
 *                 order of least_time.
 *
 * The key's own is told by the names of replicas, which are the same to every gateway and in every life, so
 * that gateways agree without a word. pages name one life: a process that was restarted holds nothing.
 *
 * Whatever the order, who can meet the deadline stands before who cannot. A replica is
 * never in a plan when it is not ready, when it lacks a capability that the request needs, or when the request
 * excludes this life of it: it already failed there. A life is an id in one generation, under a number of its
 * own, so that a restarted worker may be tried again; a place says nothing about who stands there the next
 * time.
 *
 * Up to ROUTER_EXACT ready replicas are all looked at. Of more, a few are drawn, and the best of them is
 * nearly as good as the best of all, while gateways that know nothing of each other do not all run to the
 * same one (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001). So the work of a
 * plan has a bound, but where the request wants an identity, an adapter or a capability that none of those
 * drawn has: then all are looked at; and for a hash the lives of all are weighed, which looks at none.
 *
 * An estimate may be wrong, so it refuses a deadline only where waiting is certain: with calls in flight
 * there, and another one tried within the last ROUTER_PROBE_MS, and then inputs beyond those that it was
 * learnt from (reach) count no more than those. Whoever is let through teaches the truth. And what was learnt
 * of a replica fades while it idles, so that one that was slow once is tried again one day.
 *
 * Replicas at other sites stand last in the view (n_away). Own ones come first; when a request may leave the
 * site is the rule `spill`: never, when no replica here can take it, or also when all those here are full and
 * one elsewhere is expected to be faster, its way there and back counted. Who is further away than max_rtt_ms
 * is not asked at all. A gateway whose link to another site is cut goes on with its own.
 *
 *     router_replica r[2] = {{.life = 1, .ready = true, .n_in_flight = 3}, {.life = 2, .ready = true}};
 *     router_view v = {.known = true, .n_ready = 2, .set = r, .peek = router_peek_array};
 *     router_request q = {.n_tokens = 12};
 *     router_decision d;
 *     router_plan(&v, &q, NULL, &d);  // d.n == 1, d.steps[0].place == 1, .why == ROUTER_LEAST_TIME
 */
#ifndef ROUTER_ROUTER_H
#define ROUTER_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/energy.h"

/* X(enum, name): why a replica stands where it does, then why none was taken. */
#define ROUTER_WHY_TABLE(X)                                                                          \
    X(ROUTER_ONLY_ONE, "only_replica")           /* one ready replica of the model was left */       \
    X(ROUTER_LEAST_TIME, "least_expected_time")  /* the fastest of several */                        \
    X(ROUTER_FRUGAL, "least_energy")             /* a token takes the least there */                 \
    X(ROUTER_TURN, "longest_without_a_call")     /* its turn */                                      \
    X(ROUTER_WARM, "holds_its_pages")            /* it computed what the request begins with */      \
    X(ROUTER_KEPT, "kept_for_this_key")          /* the key's own */                                 \
    X(ROUTER_STEPS_IN, "the_key_s_own_is_busy")  /* somebody else, as that one has much to do */     \
    X(ROUTER_LATE, "tried_though_it_seems_late") /* nobody seems to be in time, and it is probed */  \
    X(ROUTER_SPILLED, "other_site")              /* none here can take it, or it is faster there */  \
    X(ROUTER_UNKNOWN_MODEL, "unknown_model")     /* refusals from here on */                         \
    X(ROUTER_NONE_READY, "none_ready")                                                               \
    X(ROUTER_ALL_EXCLUDED, "all_excluded")     /* every ready replica already failed this request */ \
    X(ROUTER_KEPT_HOME, "only_at_other_sites") /* and the rule lets it go to none of those */        \
    X(ROUTER_INCAPABLE, "lacks_a_capability")  /* that it needs: all who are ready */                \
    X(ROUTER_DEADLINE, "deadline_cannot_be_met")
typedef enum router_why {
#define ROUTER_WHY_ENUM(e, n) e,
    ROUTER_WHY_TABLE(ROUTER_WHY_ENUM)
#undef ROUTER_WHY_ENUM
} router_why;
const char *router_why_name(router_why w);

/* X(enum, name, what it is): what of the protocol, beyond its task, a replica does; the names are those of
 * Capabilities in worker.proto. */
#define ROUTER_CAPABILITY_TABLE(X)                                        \
    X(ROUTER_BEAMS, beams, "beam search")                                 \
    X(ROUTER_BALLOTS, ballots, "votes of several models over each token") \
    X(ROUTER_LIKELIHOOD, likelihood, "likelihoods of given replies")      \
    X(ROUTER_ADAPTERS, adapters, "adapters")                              \
    X(ROUTER_GRAMMAR, grammar, "JSON, tools or choices as a constraint")  \
    X(ROUTER_TEMPLATES, templates, "a chat template of the request's own")
enum {
#define ROUTER_CAPABILITY_AT(e, name, what) e##_AT,
    ROUTER_CAPABILITY_TABLE(ROUTER_CAPABILITY_AT)
#undef ROUTER_CAPABILITY_AT
#define ROUTER_CAPABILITY_BIT(e, name, what) e = 1 << e##_AT,
        ROUTER_CAPABILITY_TABLE(ROUTER_CAPABILITY_BIT)
#undef ROUTER_CAPABILITY_BIT
};
/* "beams (beam search), grammar (...)" of these bits, as much as there is room for. */
void router_capabilities_put(char *out, size_t n, unsigned bits);

typedef struct router_replica {
    uint64_t life;              /* of this id in this generation, and of no other; 0: not said */
    uint64_t name;              /* of the id, to every gateway the same; 0: the life stands for it */
    uint64_t pages;             /* of the id in this generation, to every gateway the same; 0: not said */
    const char *identity;       /* what decides its bits (base/bit_identity.h); NULL when not known yet */
    const char *adapter_digest; /* of the adapter that the request names, as it is there; NULL: none */
    bool ready;
    unsigned lacks;              /* ROUTER_BEAMS, ...: what it cannot do */
    unsigned n_in_flight;        /* calls the gateway has there */
    unsigned n_tokens_in_flight; /* of their input, as far as nothing has come back for it */
    unsigned n_parallel;         /* requests it works on at once at full speed; 0: 1 */
    unsigned n_ctx;              /* a prompt over it is refused there with the numbers; 0: not known */
    double ms_per_call;          /* learnt: whatever the size (linear_cost.h); 0: not known */
    double ms_per_token;         /* learnt: and for each token of input; 0: not known */
    double reach;                /* tokens: longest input both were learnt for (linear_cost.h); 0: any */
    double ms_per_step;   /* learnt, of generations: each token of a reply, whoever writes beside it, */
    double ms_per_stream; /* and for each reply that is written at once; both 0: no generation */
    double worked_ms;     /* since it last gave something back or was idle: done of what is in flight */
    uint64_t sent_ns;     /* when the gateway last started a call there; 0: never */
    energy energy;        /* of a token, as it is measured there */
    double rtt_ms;        /* to there and back, as measured from here; 0: not known. Of other sites' ones */
} router_replica;

/* X(enum, name): when another site may be asked. */
#define ROUTER_POLICY_TABLE(X)                                                                           \
    X(ROUTER_WHEN_FULL, "when_full") /* all here work, and more than `queue` calls wait */               \
    X(ROUTER_WHEN_GONE, "when_gone") /* none here is ready, or those that are have failed the request */ \
    X(ROUTER_NEVER, "never")
typedef enum router_policy {
#define ROUTER_POLICY_ENUM(e, n) e,
    ROUTER_POLICY_TABLE(ROUTER_POLICY_ENUM)
#undef ROUTER_POLICY_ENUM
} router_policy;
const char *router_policy_name(router_policy p);

typedef struct router_spill {
    router_policy policy;
    double max_rtt_ms; /* 0: however far */
    unsigned queue;    /* so many calls may wait at each replica here, in line for its n_parallel */
} router_spill;

/* The replicas of one model. */
typedef struct router_view {
    bool known;     /* there is such a model, be it without a replica */
    size_t n_ready; /* places to look at: replicas that, as far as is known, take calls */
    size_t n_away;  /* of these, so many at the end are at other sites */
    router_spill spill;
    const void *set;
    void (*peek)(const void *set, size_t place, router_replica *ret); /* pure: twice the same */
    /* name and pages as peek says them, quicker; NULL: peek is asked */
    void (*names)(const void *set, size_t place, uint64_t *ret_name, uint64_t *ret_pages);
} router_view;
/* The peek for a set that is an array of router_replica. */
void router_peek_array(const void *set, size_t place, router_replica *ret);

enum {
    ROUTER_EXACT = 24,      /* so many ready replicas are all looked at */
    ROUTER_SAMPLE = 4,      /* of more, so many, and one for each life excluded */
    ROUTER_EXCLUDE_MAX = 8, /* lives that a request may name */
    ROUTER_STEPS_MAX = 4,   /* of a plan */
    ROUTER_KEPT_LOAD = 2,   /* calls there over what it does at once */
    ROUTER_PROBE_MS = 1000,
    ROUTER_REPLY_TOKENS = 64, /* what a reply is taken to be long when replicas are compared */
    ROUTER_FADE_S = 20,       /* what is known of one that has nothing to do counts half after so long */
};

typedef struct router_request {
    const char *identity;       /* only replicas that give the same bits (a replay); NULL: any */
    const char *adapter_digest; /* and with this very adapter; NULL: any */
    unsigned needs;             /* ROUTER_BEAMS, ...: only replicas that can do all of this */
    uint64_t now_ns;
    uint64_t deadline_ns;    /* 0: none */
    unsigned n_tokens;       /* of input; an estimate */
    unsigned n_tokens_max;   /* what they cannot exceed, for one prompt; 0: no prompt with a context to fit */
    const uint64_t *exclude; /* lives: not these; those beyond ROUTER_EXCLUDE_MAX are not looked at */
    size_t n_exclude;
    uint64_t random; /* which replicas of many are looked at */
    uint64_t key;    /* of ROUTER_BY_HASH */
    uint64_t pages;  /* of ROUTER_BY_HASH: who computed what the request begins with; 0: nobody known */
} router_request;

/* X(enum, name) */
#define ROUTER_ORDER_TABLE(X)           \
    X(ROUTER_BY_TIME, "least_time")     \
    X(ROUTER_BY_TURN, "round_robin")    \
    X(ROUTER_BY_HASH, "hash")           \
    X(ROUTER_BY_ENERGY, "least_energy") \
    X(ROUTER_BY_COST, "least_cost")
typedef enum router_order {
#define ROUTER_ORDER_ENUM(e, n) e,
    ROUTER_ORDER_TABLE(ROUTER_ORDER_ENUM)
#undef ROUTER_ORDER_ENUM
        ROUTER_N_ORDERS
} router_order;
const char *router_order_name(router_order o);

typedef struct router_choice { /* zero: the one fastest */
    router_order order;
    unsigned n_steps; /* 0: 1; ROUTER_STEPS_MAX at most */
} router_choice;

typedef struct router_step {
    size_t place; /* in the view */
    router_why why;
    double expected_ms; /* there; see router_expected_ms */
} router_step;

typedef struct router_decision {
    size_t n; /* steps; 0: refused */
    router_step steps[ROUTER_STEPS_MAX];
    router_why why;     /* of the first step, or of the refusal */
    double expected_ms; /* of the first step; for ROUTER_DEADLINE the least of the best there was */
    unsigned
        lacks; /* for ROUTER_INCAPABLE: what none has; what one after the other lacks, if each has some */
    size_t n_looked; /* what the decision cost */
} router_decision;

/* choice NULL: zero. Returns 0, or SHOAL_ENOTFOUND (unknown model), SHOAL_EUNAVAILABLE (none ready, all
 * excluded, kept home), SHOAL_EUNSUPPORTED (incapable), SHOAL_EDEADLINE. *ret is always written. What is not measured yet costs nothing: a
 * cold replica is tried rather than refused. */
int router_plan(const router_view *view, const router_request *req, const router_choice *choice,
                router_decision *ret);

/* Expected milliseconds from now to this request's answer on r; of a generation the first token only,
 * since most answers end long before max_tokens and a deadline must not refuse those. */
double router_expected_ms(const router_replica *r, const router_request *req);
/* And from there to the end of a reply of ROUTER_REPLY_TOKENS, beside the streams that are there now; 0: no
 * generation. Those that the replica does not work on at once wait for their turn. */
double router_reply_ms(const router_replica *r, const router_request *req);

#endif
