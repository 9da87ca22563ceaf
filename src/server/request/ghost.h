/* ghost.h: a request once more, without its client.
 *
 * Two things want an answer that nobody waits for: an entry of the cache that is over its time and went out
 * all the same (GHOST_REFRESH), and an answer that went out for a question that was only near to its own
 * (GHOST_AUDIT). The request comes in anew by a door of its own (door.h), which says what the first one said
 * and drops what is answered: batch work, with a deadline of its own, at most GHOSTS_MAX at a time, none
 * while the gateway drains or has as many requests as it takes.
 *
 *     ghost_start(rq, GHOST_REFRESH, NULL);      // before rq is answered
 *
 * Loop thread only. */
#ifndef REQUEST_GHOST_H
#define REQUEST_GHOST_H

#include "request/request.h"

enum { GHOSTS_MAX = 8 };

typedef enum { GHOST_NONE, GHOST_REFRESH, GHOST_AUDIT } ghost_kind;

struct cache_value;

ghost_kind ghost_kind_of(const gateway_request *rq); /* GHOST_NONE: it has a client */
/* Of GHOST_AUDIT what went out, once: the reference is the caller's. Else NULL. */
const struct cache_value *ghost_take_audited(gateway_request *rq);

/* Can it be asked again: has it a whole body, and does it change nothing but caches? */
bool ghost_can(const gateway_request *rq);
/* audited: of GHOST_AUDIT, what went out; a reference is taken. False: not now. */
bool ghost_start(gateway_request *rq, ghost_kind kind, const struct cache_value *audited);
/* None is left. */
void ghost_cancel_all(struct gateway *g);

#endif
