/* routed.h: a request whose "model" is a route.
 *
 * Its endpoint says what the request is about, and goes on when it is known who answers: at once, or when a
 * small model has said what the text is about (calls/resolve.h). The decision goes into the answer's header
 * x-shoal-route, a log line that `shoal route replay` reads, and the metrics; the plan's further steps stand
 * in when the first one's replicas are gone by then.
 *
 *     const config_route *route = routed_find(rq, spec->model);
 *     if (route) routed_start(rq, route, &about, go_on, drop, job); else go_on...
 *
 * Loop thread only. */
#ifndef REQUEST_ROUTED_H
#define REQUEST_ROUTED_H

#include "calls/resolve.h"
#include "request/request.h"

/* What a request is about; borrowed until the end. */
typedef struct routed_about {
    const char *text; /* what is asked last: rules' patterns, language and domains look at it; "" for none */
    size_t n_text;
    size_t n_bytes;     /* of all that is asked */
    unsigned wants;     /* WANTS_... */
    const char *prefix; /* how the prompt begins; NULL: as the text */
    size_t n_prefix;
    const char *session, *user; /* the body's, NULL: none */
    const char *does;           /* the task, as model_resolve has it */
    call_task task;
    const char *endpoint, *path; /* NULL: the request's own */
    bool streams;                /* an answer that may be gone on with */
    size_t n_reply;              /* tokens that it may have at most; 0: not said */
} routed_about;

/* NULL: the name is none of a route. */
const config_route *routed_find(const gateway_request *rq, const char *model);

/* model: who answers, as the book names it; NULL: nobody, and e says why. The request is the caller's again.
 */
typedef void (*routed_done)(void *work, const char *model, const api_error *e);
/* `done` may come inside this call. While it waits, a client that leaves ends it with drop(work) instead. */
void routed_start(gateway_request *rq, const config_route *route, const routed_about *about, routed_done done,
                  void (*drop)(void *work), void *work);

/* What an answer's header and its calls need of the decision. */
typedef struct routed {
    const config_route *route;
    char *header;
    const char *stand_ins[DECIDE_STEPS_MAX];
    size_t n_stand_ins;
    router_order order;
    uint64_t key;
    /* Of a recorded request: the span under which its calls stand, since when; else 0. */
    uint64_t span, start_ns;
    double ms; /* that the decision took */
    const char *why;
    char model[96]; /* who answers */
} routed;
/* Where its request is recorded, the span of the route ends: with its request. */
void routed_tell_span(gateway_request *rq);
void routed_free(routed *r); /* accepts NULL */

/* A route that no endpoint resolved, but a stage of a pipeline: counted and logged. `user` is the settings.
 */
void routed_heard(void *user, const call_order *o, const config_route *route, const resolved *r);

/* The decision alone: `done` gets it, maybe inside this call. 0, or an HTTP status: then neither comes. */
int routed_resolve(gateway_request *rq, const config_route *route, const routed_about *about,
                   resolve_done done, void (*drop)(void *work), void *work, api_error *e);

/* POST /v1/route: what a route would come to, and why. */
void routed_explain(gateway_request *rq);
/* Routes as models of GET /v1/models, each behind a comma when *first is false; and of GET /v1/models/NAME.
 */
void routed_put_models(buf *out, const gateway_request *rq, bool *first);
void routed_put_model(buf *out, const config_route *r);

#endif
