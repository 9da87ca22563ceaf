/* revalidate.h: background revalidation: a request once more, without its client.
 *
 * Two things want an answer that no client waits for: an entry of the cache that is past its time and was
 * served all the same (BACKGROUND_REFRESH: stale-while-revalidate), and an answer that was served for a question
 * that was only similar to its own (BACKGROUND_AUDIT). The request enters again by a transport of its own, which
 * repeats what the first one said and drops the answer. It is batch work with its own deadline, at most
 * REVALIDATIONS_MAX at a time, and none while the gateway drains or has as many requests as it takes.
 *
 *     revalidate_start(rq, BACKGROUND_REFRESH, NULL);      // before rq is answered
 *
 * Loop thread only. */
#ifndef ANSWERS_REVALIDATE_H
#define ANSWERS_REVALIDATE_H

#include "request/request.h"

enum { REVALIDATIONS_MAX = 8 };

struct cache_value;

/* The answer that a BACKGROUND_AUDIT compares with; the reference becomes the caller's. NULL: taken, or no audit. */
const struct cache_value *revalidate_take_audited(gateway_request *rq);

/* Can it be repeated: is its body here as a whole, and does it change nothing but caches? */
bool revalidate_can(const gateway_request *rq);
/* audited: of BACKGROUND_AUDIT, what went out; a reference is taken. False: not now. */
bool revalidate_start(gateway_request *rq, background_kind kind, const struct cache_value *audited);
/* End all of them. */
void revalidate_cancel_all(struct gateway *g);

#endif
