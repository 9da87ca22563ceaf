/* replay.h: a decision in one line of JSON, and the same decision again from that line.
 *
 * A line holds what went into a decision: the facts, which hold no text, and what the view was asked and
 * said. So a decision of last night can be made again with today's rules, or with those of then to see that
 * nothing else went into it:
 *
 *     {"route":"auto","endpoint":"chat_completions","language":"en","bytes":31,...,
 *      "domains":[{"set":"topics","label":"devices","score":0.83}],
 *      "holds":[["auto",1,"matches",0]],"models":[{"model":"home-chat-s","known":1,...}],
 *      "steps":["home-chat-s","home-chat-m"]} */
#ifndef ROUTES_REPLAY_H
#define ROUTES_REPLAY_H

#include <jansson.h>

#include "routes/decide.h"

enum { EVIDENCE_MAX = 64 };

/* What a view was asked and what it said: stands between a decision and its view. */
typedef struct evidence {
    const route_view *inner; /* NULL: what is not written down is not known */
    const route_book *book;
    struct evidence_estimate {
        char model[136];
        route_estimate said;
    } looks[EVIDENCE_MAX];
    struct evidence_hold {
        const config_rule *rule;
        route_question question;
        int said;
    } holds[EVIDENCE_MAX];
    size_t n_looks, n_holds;
} evidence;

/* Of a zeroed evidence with `inner`: ask it, and remember. */
route_view evidence_view(evidence *e);

/* One object; the route's name is d's. */
void replay_put(buf *out, const route_book *b, const route_facts *f, const evidence *e, const decision *d);

typedef struct replay {
    const config_route *route;
    route_facts facts; /* strings are the JSON's */
    evidence evidence;
    char steps[DECIDE_STEPS_MAX][136]; /* what it came to */
    size_t n_steps;
} replay;

/* SHOAL_EINVALID: no such line, or its route is not in the book. */
int replay_read(replay *ret, const route_book *b, const json_t *line, shoal_err *err);
/* Decide again; *ret_same: it came to the same models in the same order. */
decide_what replay_decide(replay *r, const route_book *b, decision *ret, bool *ret_same);

#endif
