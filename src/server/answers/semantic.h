/* semantic.h: the semantic cache: has something similar been asked before, and may its answer serve?
 *
 * What was asked becomes a vector (an embedding, in one call of a model that is waited for `timeout_ms` at
 * most), the nearest questions of the same partition are found (cache/near.h), and a verdict on words
 * (cache/near_rule.h) or a cross-encoder has the last word. Nothing of that is ever a reason to fail: a model
 * that is missing or late is passed by, and rested from for a second, unless the request itself is why.
 *
 *     look = semantic_start(rq, &ask, done, job);    // NULL: nobody can tell now
 *     done(job, value, 0.97);                        // once, later; value NULL: compute
 *     semantic_keep(look, &key);                     // the answer has its place: it can be found from now on
 *
 * Loop thread. */
#ifndef ANSWERS_SEMANTIC_H
#define ANSWERS_SEMANTIC_H

#include "cache/cache.h"
#include "cache/near_rule.h"
#include "request/request.h"

typedef struct semantic semantic;               /* the gateway's */
typedef struct semantic_lookup semantic_lookup; /* of one request */

typedef struct semantic_ask {
    const char *text; /* NULL: such a request is not compared */
    sha256_digest partition;
    near_how how;
} semantic_ask;

typedef void (*semantic_done)(void *user, const cache_value *v, double similarity); /* v borrowed */

/* *ret NULL where the configuration does not want it. */
int semantic_open(semantic **ret, struct gateway *g, shoal_err *err);
void semantic_free(semantic *l); /* no look may be left; accepts NULL */

/* Is this request's answer (rq->cache_name) one that may be found so? */
bool semantic_is_for(const gateway_request *rq, const semantic_ask *ask);
/* The ask's text is copied. `done` does not come from inside. */
semantic_lookup *semantic_start(gateway_request *rq, const semantic_ask *ask, semantic_done done, void *user);
void semantic_cancel(semantic_lookup *x); /* frees it, at any time; accepts NULL */
/* Frees x, of which `done` has come. */
void semantic_keep(semantic_lookup *x, const sha256_digest *key);

/* An answer goes out that was found: is it one of those that are made anew and compared? */
bool semantic_is_audited(semantic *l);
/* It was: a is the text that went out, b that which was computed. */
void semantic_audited(struct gateway *g, const char *name, const char *a, const char *b);

/* Appends ,"semantic":{...} to the object of GET /v1/cache. */
void semantic_put(buf *out, const struct gateway *g);

#endif
