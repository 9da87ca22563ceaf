/* routes.h: virtual models: a name that requests give, and rules that say which model answers.
 *
 * A route is rules in order, then a chain of fallbacks. A rule holds when all that it names holds of the
 * request (facts.h); the first that holds, and whose target can answer now, is taken (decide.h). A target is
 * a model, or another route; no route leads to itself, which is checked when the file is read.
 *
 *     domains:
 *       - name: topics
 *         model: home-embed                  # an embedder: the nearest centroid; a classifier: its label
 *         centroids: models/topics.json      # what `shoal route train` makes of the examples
 *         of: [{name: devices, examples: ["turn off the light", "lock the door"]}, ...]
 *     routes:
 *       - name: auto
 *         domains: topics
 *         rules:
 *           - {name: vectors, endpoint: [embeddings], model: home-embed}
 *           - {name: devices, domain: [devices], model: home-chat-s}
 *         fallback: [home-chat-m, home-chat-s]
 *
 * What is here is read-only once it is opened, and may be shared by threads. */
#ifndef ROUTES_ROUTES_H
#define ROUTES_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "router/router.h"
#include "routes/centroids.h"
#include "regex/regex.h"

/* How urgent a request is. X(enum, name): in the order of the engine's queue. */
#define ROUTE_LATENCY_TABLE(X)            \
    X(LATENCY_INTERACTIVE, "interactive") \
    X(LATENCY_REALTIME, "realtime")       \
    X(LATENCY_BATCH, "batch")
typedef enum route_latency {
#define ROUTE_LATENCY_ENUM(e, name) e,
    ROUTE_LATENCY_TABLE(ROUTE_LATENCY_ENUM)
#undef ROUTE_LATENCY_ENUM
        N_LATENCIES
} route_latency;
const char *route_latency_name(route_latency l);
/* false: it is none of them */
bool route_latency_of(const char *name, route_latency *ret);

/* What a request may ask for. X(bit, name) */
#define ROUTE_WANT_TABLE(X)           \
    X(1, WANTS_STREAM, "stream")      \
    X(2, WANTS_JSON, "json")          \
    X(4, WANTS_SCHEMA, "json_schema") \
    X(8, WANTS_TOOLS, "tools")        \
    X(16, WANTS_LOGPROBS, "logprobs")
enum {
#define ROUTE_WANT_ENUM(bit, e, name) e = bit,
    ROUTE_WANT_TABLE(ROUTE_WANT_ENUM)
#undef ROUTE_WANT_ENUM
};
unsigned route_want_of(const char *name); /* 0: none of them */

/* By what requests are held together. X(enum, name) */
#define ROUTE_KEY_TABLE(X)    \
    X(KEY_SESSION, "session") \
    X(KEY_USER, "user")       \
    X(KEY_PREFIX, "prefix")   \
    X(KEY_REQUEST, "request")
typedef enum route_key {
#define ROUTE_KEY_ENUM(e, name) e,
    ROUTE_KEY_TABLE(ROUTE_KEY_ENUM)
#undef ROUTE_KEY_ENUM
        N_ROUTE_KEYS
} route_key;

enum { ROUTE_ANY_MAX = 8 }; /* models of a rule that are all as good */

typedef struct route_header {
    const char *name, *value; /* lower case; value NULL: any, a trailing '*' is a prefix */
} route_header;

/* A part of the requests. */
typedef struct config_share {
    const char *model;
    double share; /* over the sum of all shares */
} config_share;

/* Every key that is given must hold; of a list any one. */
typedef struct config_rule {
    const char *name; /* NULL: its number */
    const char **endpoint, **path, **api_key, **language, **wants, **latency, **domain;
    size_t n_endpoint, n_path, n_api_key, n_language, n_wants, n_latency, n_domain;
    route_header *header;
    size_t n_header;
    uint64_t min_bytes, max_bytes, min_tokens, max_tokens; /* of the text; max 0: none */
    uint64_t min_deadline_ms, max_deadline_ms;             /* that are left; max 0: none */
    double *min_score;                                     /* of the domain; NULL: its set's */
    const char *matches;  /* a regular expression that is found in the text */
    regex *pattern;       /* the same, opened */
    double max_load;      /* calls there over what it does at once; over it the rule is passed over; 0: any */
    uint64_t max_wait_ms; /* expected until the first answer; 0: any */
    double max_cost, max_energy_j; /* that the request may take of the target (price.h); 0: any */
    const char *model;   /* who answers: of the file, with ":ADAPTER" perhaps, or a route; NULL: split says */
    config_share *split; /* instead: a share of the requests to each */
    size_t n_split;
    const char **any; /* instead: models, all as good; the route's order says which is first */
    size_t n_any;
    route_key split_by;
} config_rule;

/* Time limits of replies (calls/limit_calls.h). Of a route 0 is what the server says, of the server no limit.
 */
typedef struct reply_limits {
    uint64_t first_token_ms, token_gap_ms, reply_ms;
} reply_limits;

typedef struct config_route {
    const char *name;
    const char *domains; /* the set that rules ask; NULL: none does */
    config_rule *rules;
    size_t n_rules;
    const char **fallback; /* models or routes, asked in order when no rule's target can */
    size_t n_fallback;
    router_order order; /* of the target's replicas, and of the models of `any` */
    route_key key;      /* of ROUTER_BY_HASH */
    const char *shadow; /* a model or route that is asked as well, unseen; NULL: none */
    double shadow_share;
    reply_limits limits; /* of calls that name this route */
} config_route;

typedef struct config_domain {
    const char *name;
    /* Of a classifier: which of its labels are this domain; a trailing '*' is a prefix. */
    const char **labels;
    size_t n_labels;
    const char **examples; /* of an embedder */
    size_t n_examples;
} config_domain;

/* A question that a small model answers of a text. */
typedef struct config_domains {
    const char *name, *model;
    const char *centroids_path; /* NULL: the model is a classifier */
    centroids *centroids;       /* the same, opened */
    uint64_t timeout_ms;        /* after which rules that ask do not hold */
    double min_score;           /* under it a text is of no domain */
    config_domain *of;
    size_t n_of;
} config_domains;

/* What a model's tokens are worth. */
typedef struct route_price {
    const char *model;
    const double *cost;     /* of a thousand; NULL: not known */
    const double *energy_j; /* joules of one; NULL: as measured */
} route_price;

typedef struct route_book {
    config_route *routes;
    size_t n_routes;
    config_domains *domains;
    size_t n_domains;
    route_price *prices; /* of the models that have one */
    size_t n_prices;
} route_book;

const config_route *route_find(const route_book *b, const char *name);           /* NULL: there is none */
const config_domains *route_domains(const route_book *b, const config_route *r); /* NULL: it has none */
/* "rules[2]" or its name, into out. */
const char *route_rule_name(const config_route *r, size_t rule, char out[80]);
/* s is `with`, or begins with it up to its trailing '*'. */
bool route_matches(const char *s, const char *with);

/* Calls fn for each name that the route leads to, models and routes, rule by rule, then its fallbacks. */
void route_each(const config_route *r, void (*fn)(void *user, const char *name), void *user);

/* What its rows cannot say: no loop, no name twice, targets that exist (is_model says so), domains that are
 * asked for. The sentence begins with the field's path. SHOAL_EINVALID.
 * found is given what each domain, each route and the search for loops came to; what it returns, if not 0, ends it. */
int routes_check(const route_book *b, bool (*is_model)(const void *user, const char *name),
                 int (*found)(const void *user, int rc, shoal_err *err), const void *user, shoal_err *err);
/* Compile the patterns, and read the centroids. */
int routes_open(route_book *b, shoal_err *err);
int routes_open_patterns(route_book *b, shoal_err *err);
void routes_close(route_book *b); /* accepts one that was not opened */

#endif
