/* hedge_calls.h: a unary call that takes longer than nearly all such calls is made a second time elsewhere,
 * when there is room for it; the first answer counts (Dean and Barroso, "The Tail at Scale", 2013).
 *
 * How long is long is learnt for each model and task: the 95th percentile of the time that calls took over
 * the time that the cost model expected of them, so that long texts are not taken for slow ones. A second
 * call is made only where another replica is less than half busy, and of HEDGE_SHARE of all calls and one
 * more.
 *
 * Streams pass by (silence_calls.h), and so does everything where a model has one replica, or not been
 * measured. The second replica has the identity of the first (base/bit_identity.h), so that both give equal
 * answers and it does not matter who is first. */
#ifndef CALLS_HEDGE_CALLS_H
#define CALLS_HEDGE_CALLS_H

#include "time/env.h"
#include "calls/calls.h"
#include "calls/observer.h"

#define HEDGE_QUANTILE    0.95
#define HEDGE_SHARE       0.05
#define HEDGE_MIN_MS      5
#define HEDGE_SAMPLES_MIN 20 /* calls that are watched before one is hedged */

typedef struct hedge_options {
    const call_observer *observer; /* told of second calls; outlives the calls; NULL: nobody */
} hedge_options;

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int hedge_calls_new(calls **ret, const env *env_, calls *inner, const hedge_options *opts, shoal_err *err);

#endif
