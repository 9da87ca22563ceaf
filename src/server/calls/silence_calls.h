/* silence_calls.h: a stream that falls silent is begun a second time elsewhere; whoever speaks first wins.
 *
 * A frozen process, a stopped machine, a half-open link and a stalled disk look the same: nothing comes.
 * Workers say something at every step (proto/worker.proto, Progress), so that silence of several steps is a
 * sign:
 *
 *     limit = max(4 · expected gap, SILENCE_MIN_MS)
 *     expected gap = the longer of what the worker measures for a step, and what came here between two events
 *
 * After the limit another replica of the same file goes on where the stream was (resume.h). As soon as the
 * first says anything the second is cancelled; when the second has the next token, the first is.
 *
 * A slow worker must not be condemned by this. Its gaps are learnt, and so is its limit; what it has said
 * lately to anybody speaks for it; and second starts are bounded: SILENCE_SHARE of all streams and one more.
 * Only where a second start has won against a worker that has said nothing to anybody since, or where it does
 * not answer the registry's question how it is either (call_place.silent), the others that wait for it need
 * no permission: then it is no slow one, and they would do nothing there. A busy machine's false alarms use
 * up the permissions, and streams must not wait for a dead worker then.
 *
 * On a busy machine a worker gets no core for many times that long, and so would the second start. Whoever
 * watches the worker's process tells the two apart (call_place_works): one that works, or would if it got a
 * core, is not silent.
 *
 * While the request itself still comes (feed.h) nobody is silent, and where its beginning is not kept nobody
 * could take over.
 *
 * Unary calls pass by. Without memory for its bookkeeping a stream does, too. */
#ifndef CALLS_SILENCE_CALLS_H
#define CALLS_SILENCE_CALLS_H

#include "time/env.h"
#include "calls/calls.h"
#include "calls/observer.h"

#define SILENCE_MIN_MS     100
#define SILENCE_UNKNOWN_MS 1000 /* where nothing has been measured */
#define SILENCE_SHARE      0.05
#define SILENCE_WORKING_MS 10000 /* of a stream, while its worker works, or waits for a core */

typedef struct silence_options {
    const call_observer *observer; /* told of moves; outlives the calls; NULL: nobody */
} silence_options;

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int silence_calls_new(calls **ret, const env *env_, calls *inner, const silence_options *opts,
                      shoal_err *err);

#endif
