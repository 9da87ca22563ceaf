/* poison_list.h: requests that made workers die, by digest, each for a while.
 *
 * The digest leaves out what differs when the same request is sent again: the time of day that templates are
 * told, and the seed, since most seeds are drawn.
 *
 * A bounded table: four places for each of 64 remainders of the digest; a full one forgets what would have
 * been let go next. Empty, it costs nothing to ask. A request that still comes (feed.h) is not known, neither
 * held nor added: ask again at its end. */
#ifndef CALLS_POISON_LIST_H
#define CALLS_POISON_LIST_H

#include "base/sha256.h"
#include "calls/calls.h"

enum { POISON_LIST_SETS = 64, POISON_LIST_WAYS = 4 };

typedef struct poison_list_place {
    sha256_digest digest;
    uint64_t until_ns; /* 0: free */
} poison_list_place;

typedef struct poison_list { /* zeroed: empty */
    uint64_t until_ns;       /* the latest */
    poison_list_place places[POISON_LIST_SETS][POISON_LIST_WAYS];
} poison_list;

void poison_list_add(poison_list *q, const call_order *o, uint64_t until_ns);
/* Until when it is held, 0: it is not. Without memory for the digest nothing is held, and nothing added. */
uint64_t poison_list_until(const poison_list *q, const call_order *o, uint64_t now_ns);

#endif
