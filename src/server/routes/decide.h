/* decide.h: which model answers, whom to ask instead, and why; a pure function.
 *
 * The rules of a route are gone through in order. The first that holds, and whose target exists, does the
 * endpoint's task, would meet the deadline, is within the budget and is not too busy, is the first step; the
 * route's fallbacks follow, as far as they would do. A rule of several models that are all as good gives a
 * step for each that would do, in the route's order. A target that is a route is decided in its turn. When
 * all that hold would be late or have nobody, the best of them is the only step ("nothing else"): then the
 * call says what is the matter, or waits for a worker that is being restarted. Who is over the budget is
 * never asked.
 *
 * A rule that wants a domain which has not been asked for stops the decision: DECIDE_ASK, and the set. The
 * answer, or that there is none, goes into the facts, and it is decided again; facts that are the same give
 * the same.
 *
 *     while ((what = decide_route(book, route, &facts, &view, &d)) == DECIDE_ASK)
 *         ask(d.ask, &facts.domains[d.ask]);
 *     call(d.steps[0].model) ... */
#ifndef ROUTES_DECIDE_H
#define ROUTES_DECIDE_H

#include "base/buf.h"
#include "routes/facts.h"

enum { DECIDE_STEPS_MAX = 8, DECIDE_SKIPPED_MAX = 48 };

/* What a rule may demand. */
typedef enum route_condition {
    COND_ENDPOINT,
    COND_PATH,
    COND_API_KEY,
    COND_LANGUAGE,
    COND_WANTS,
    COND_LATENCY,
    COND_LENGTH,
    COND_DEADLINE,
    COND_HEADER,
    COND_PATTERN,
    COND_DOMAIN,
    N_CONDITIONS
} route_condition;

/* X(enum, name): why a step stands there, then why something does not. */
#define DECIDE_WHY_TABLE(X)                                                                     \
    X(DECIDE_RULE, "rule")              /* all that the rule demands holds */                   \
    X(DECIDE_FALLBACK, "fallback")      /* the route's chain, when the rules' targets cannot */ \
    X(DECIDE_RESUMES, "resumes")        /* it began the answer that is gone on with */          \
    X(DECIDE_LAST, "nothing_else")      /* it cannot well, but nobody else can at all */        \
    X(DECIDE_NO, "does_not_hold")       /* a condition, in `cond` */                            \
    X(DECIDE_GAVE_UP, "gave_up")        /* the search for a pattern was too long */             \
    X(DECIDE_UNASKED, "domain_unknown") /* the domain could not be found out */                 \
    X(DECIDE_UNKNOWN, "no_such_model")                                                          \
    X(DECIDE_UNFIT, "other_task")                                                               \
    X(DECIDE_AWAY, "nobody_there")                                                              \
    X(DECIDE_LATE, "too_late")                                                                  \
    X(DECIDE_BUSY, "too_busy")                                                                  \
    X(DECIDE_OVER, "over_budget")       /* of cost or energy, or what it takes is not known */  \
    X(DECIDE_EMPTY, "route_has_nobody") /* it leads to a route that comes to nothing */
typedef enum decide_why {
#define DECIDE_WHY_ENUM(e, name) e,
    DECIDE_WHY_TABLE(DECIDE_WHY_ENUM)
#undef DECIDE_WHY_ENUM
} decide_why;
const char *decide_why_name(decide_why w);

typedef struct decide_note {
    const config_route *route;
    size_t rule;       /* of route; from route->n_rules on: its fallbacks */
    const char *model; /* whom to call; NULL: it did not come to that */
    decide_why why;
    route_condition cond;     /* of DECIDE_NO */
    double expected_ms, load; /* of the model, when it was looked at, as are these: route_estimate's */
    bool has_cost;
    double cost, energy_j;
    energy_by energy_by;
    int share; /* of the rule's split; -1: it has none */
} decide_note;

typedef struct decision {
    const config_route *route; /* what was asked for */
    decide_note steps[DECIDE_STEPS_MAX];
    size_t n;
    decide_note skipped[DECIDE_SKIPPED_MAX];
    size_t n_skipped; /* more are not written down */
    size_t ask;       /* of DECIDE_ASK: a set's place in the book */
    double left_ms;   /* the facts' */
    bool has_deadline;
} decision;

typedef enum { DECIDE_DONE, DECIDE_ASK, DECIDE_NOBODY } decide_what;

/* *ret is always written. DECIDE_NOBODY: no step; `skipped` says why. */
decide_what decide_route(const route_book *b, const config_route *r, const route_facts *f,
                         const route_view *v, decision *ret);

/* "rule devices: domain devices (0.83)", "fallback 1", "rule big: too late: about 900 ms, 200 are left". */
void decide_put_why(buf *out, const route_book *b, const decide_note *n, const route_facts *f);
/* For a header: "auto; home-chat-s (rule devices: domain devices 0.83); home-chat-m (fallback 1)"; visible
 * ASCII. */
void decide_put_header(buf *out, const route_book *b, const decision *d, const route_facts *f);
/* {"route":...,"steps":[{"model":...,"why":...}],"skipped":[...]} without its last brace. */
void decide_put_json(buf *out, const route_book *b, const decision *d, const route_facts *f);

#endif
