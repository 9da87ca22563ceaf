/* resolve.h: from a route's name to the model that answers: the decision, and the questions that it takes.
 *
 * The decision itself is pure (routes/decide.h). Here it is given a look at the models through the seam, and
 * when a rule wants to know what a text is about, the small model that knows is asked, for timeout_ms at most
 * and half of the time that is left. One that is slow, dead or of another file leaves a reason, and the rules
 * that ask do not hold: a route never waits for what it can do without.
 *
 *     resolve_start(&x, c, env, book, &ask, done, job);   // done: at once, or when the domain is known
 *
 * Loop thread only. */
#ifndef CALLS_RESOLVE_H
#define CALLS_RESOLVE_H

#include "time/env.h"
#include "calls/calls.h"
#include "routes/replay.h"

enum { RESOLVE_TEXT_BYTES = 1024 }; /* so much of a text is asked about */

typedef struct resolve resolve;

typedef struct resolve_ask {
    const config_route *route;
    route_facts facts;    /* all but left_ms and what the view is asked */
    uint64_t deadline_ns; /* 0: none */
    const char *text;     /* what the request is about; borrowed until done, as all here */
    size_t n_text;
    call_task task; /* of the call that is to be made */
    void *user;
    /* 1, 0: the rule's headers are there. NULL: it brings none. */
    int (*header_holds)(void *user, const config_rule *r);
    /* Does it do what the endpoint asks? NULL: any does. */
    bool (*fits)(void *user, const Shoal__V1__ModelInfo *info);
    /* With facts.resumes: is this the file that began? */
    bool (*began)(void *user, const Shoal__V1__ModelInfo *info);
    bool plain;       /* adapters cannot be asked for: "MODEL:ADAPTER" is as a model that is not there */
    call_context ctx; /* of the request */
} resolve_ask;

/* What a route came to; borrowed until the callback returns, but for names of models, which are the book's.
 */
typedef struct resolved {
    int status; /* 0, or SHOAL_ENOMEM: what this process lacks the memory for is not decided otherwise */
    decide_what what; /* DECIDE_DONE or DECIDE_NOBODY */
    const decision *decision;
    const route_facts *facts;
    const evidence *evidence;
    double ms;
} resolved;
typedef void (*resolve_done)(void *user, const resolved *r);

/* `done` may come inside this call; *ret is written before, and is dead after it. SHOAL_ENOMEM: none comes.
 */
int resolve_start(resolve **ret, calls *c, const env *e, const route_book *b, const resolve_ask *ask,
                  resolve_done done, void *user);
void resolve_cancel(resolve *x); /* no callback follows; accepts NULL */

#endif
