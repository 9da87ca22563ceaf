/* limit_calls.h: time limits of replies: to the first token, between two tokens, and in all.
 *
 * A reply may be long, so its total time says nothing about whether it goes well; what does is whether
 * tokens come. A reply that has no token for longer than first_token_ms ends with SHOAL_EDEADLINE and a
 * sentence that names the limit. One that has begun is not thrown away: where no further token comes for
 * token_gap_ms, or it takes longer than reply_ms in all, it ends as one that max_tokens cuts, with what
 * there is and "length".
 *
 *     limit_calls_new(&c, env, inner, &(reply_limits){.first_token_ms = 600000, .token_gap_ms = 60000}, book,
 *                     err);
 *
 * A route may have limits of its own, each in place of the server's: those of the route that the request or
 * the stage of a pipeline names, whichever further routes that one leads to.
 *
 * Time counts by the clock for the silence of peers (time/env.h), so a gateway that gets no core does not
 * end healthy replies; and it does not count while the call is paused, because then the reader is slow.
 * Signs of life (Progress) are not tokens. Deadlines that a client sends are kept below (replica_calls.h).
 * Other tasks pass by. */
#ifndef CALLS_LIMIT_CALLS_H
#define CALLS_LIMIT_CALLS_H

#include "time/env.h"
#include "calls/calls.h"

/* Takes inner, and frees it with itself; on failure inner is the caller's still. book: the routes that orders
 * may name, borrowed; NULL: none. */
int limit_calls_new(calls **ret, const env *env_, calls *inner, const reply_limits *limits,
                    const route_book *book, shoal_err *err);

#endif
