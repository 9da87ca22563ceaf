/* retry_calls.h: another try, while nothing has come back.
 *
 * A call that its replica did not take (queue full, shutting down, nonsense) goes to another one, each asked
 * once. A call for which nobody is there waits until somebody is: a worker that died is back within a second
 * or so, and whoever asks meanwhile is answered rather than refused. It waits until its deadline, or for
 * hold_ms when it has none, and not at all when nobody will come (the model has failed, or is unknown)
 * or when RETRY_HELD_MAX calls wait already; terms that name an end of the wait go before these rules. All who
 * waited come to the returned worker at once; those for whom its queue is too short wait on as long. A call
 * that was lost with its worker is failover's (failover_calls.h). */
#ifndef CALLS_RETRY_CALLS_H
#define CALLS_RETRY_CALLS_H

#include "time/env.h"
#include "calls/calls.h"
#include "calls/observer.h"

#define RETRY_HOLD_MS  2000
#define RETRY_HELD_MAX 512

/* hold_ms: how long a call without a deadline waits for a replica; 0: RETRY_HOLD_MS. observer: outlives the
 * calls; NULL: nobody is told which calls wait. Takes inner, and frees it
 * with itself; on failure inner is the caller's still. */
int retry_calls_new(calls **ret, const env *env_, calls *inner, uint64_t hold_ms,
                    const call_observer *observer, shoal_err *err);

#endif
