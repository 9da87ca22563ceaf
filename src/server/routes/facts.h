/* facts.h: what is known of a request when a route is to be decided, and nothing of the request itself.
 *
 * Facts hold no text: they can be logged, and the same decision can be made of them again. What costs
 * something to find out (is a pattern in the text? what would this model meet now?) is asked through a
 * route_view when a rule wants it. Strings are borrowed. */
#ifndef ROUTES_FACTS_H
#define ROUTES_FACTS_H

#include "routes/routes.h"

enum { ROUTE_DOMAINS_MAX = 8 }; /* sets of a file */

/* What a set of domains said. */
typedef struct domain_fact {
    enum { DOMAIN_NOT_ASKED, DOMAIN_KNOWN, DOMAIN_UNKNOWN } state;
    char label[64]; /* of DOMAIN_KNOWN: "" when the text is of none */
    double score;   /* cosine, or the label's probability */
    double ms;      /* the question took */
    char why[160];  /* of DOMAIN_UNKNOWN */
} domain_fact;

typedef struct route_facts {
    const char *endpoint;     /* "chat_completions" */
    const char *path;         /* "/v1/chat/completions" */
    const char *api_key;      /* its name; "": none */
    const char *language;     /* language.h; "": not known */
    size_t n_bytes, n_tokens; /* of the text; tokens: a quarter of the bytes */
    unsigned wants;           /* WANTS_... */
    route_latency latency;
    bool has_deadline;
    double left_ms;                         /* until the deadline, when it is decided */
    size_t n_reply;                         /* tokens that the reply may have at most; 0: not said */
    double max_cost, max_energy_j;          /* that it may take; 0: not said */
    uint64_t keys[N_ROUTE_KEYS];            /* hashes; 0: none of it */
    bool resumes;                           /* it goes on with an answer that some model's file has begun */
    domain_fact domains[ROUTE_DOMAINS_MAX]; /* by the set's place in the book */
} route_facts;

/* What a call of a model would meet now. */
typedef struct route_estimate {
    bool known;         /* there is such a model */
    bool fits;          /* as far as is known it does what the endpoint asks */
    bool ready;         /* somebody would take the call */
    bool may_return;    /* nobody would, but somebody is starting */
    bool late;          /* those who are ready refuse, for the deadline */
    bool began;         /* it is the file that began the answer that is resumed */
    double expected_ms; /* until the first answer; 0: not known */
    double load;        /* calls there over what it does at once */
    bool has_cost;      /* it is known what the request would cost, */
    double cost;        /* so much */
    double energy_j;    /* and take; see energy_by */
    energy_by energy_by;
} route_estimate;

typedef enum { ROUTE_HEADER_HOLDS, ROUTE_PATTERN_HOLDS } route_question;

typedef struct route_view {
    void *user;
    /* 1: it holds; 0: it does not; -1: the search gave up */
    int (*holds)(void *user, const config_rule *r, route_question q);
    void (*estimate)(void *user, const char *model, route_estimate *ret);
} route_view;

/* A key's hash, never 0. */
uint64_t route_hash(const char *s, size_t len);

#endif
