/* bridge.h: brings the engine thread's events to the loop thread.
 *
 * The engine thread packs each event into one byte queue under a lock; the first one, or the end of the step
 * that it belongs to, wakes the loop (an eventfd), which swaps the queue for an empty one and replays
 * everything that came meanwhile. Per job: on_token for each token, then on_flush once, so that tokens that
 * were waiting together can go out as one message, and on_done last. Memory grows to the largest burst and
 * stays: nothing is allocated per token. DONE lives in the job itself, so it arrives even when memory is out.
 *
 *   engine thread                    loop thread
 *   bridge_event ──► [rec][rec].. ──► on_token, on_token, on_flush, on_done
 */
#ifndef WORKER_BRIDGE_H
#define WORKER_BRIDGE_H

#include <uv.h>

#include "base/err.h"
#include "infer/engine.h"

typedef struct bridge bridge;
typedef struct bridge_job bridge_job;

/* One request in the engine. Embed it as the first member; it must live until on_done, which comes
 * exactly once for each job the engine accepted, and may free it. The callbacks run on the loop. */
struct bridge_job {
    bridge *b;
    /* EVENT_TOKEN, whose id is -1 for text held back till the end of a reply that is whole; and those that
     * the request asked for: EVENT_RESUMED, EVENT_PROGRESS (id -1, too) */
    void (*on_token)(bridge_job *j, const gen_event *ev);
    void (*on_flush)(bridge_job *j); /* NULL: not wanted */
    void (*on_done)(bridge_job *j);
    /* On the engine thread: an event found no memory, and none follows but the end. Whoever may wait for an
     * answer to that event has to be ended. NULL: not wanted */
    void (*on_overflow)(bridge_job *j);

    /* Valid in on_done. */
    int status;
    char message[256];
    finish_reason finish;
    size_t n_stop; /* as gen_event has it */
    gen_timings timings;
    double queue_ms, compute_ms, cpu_ms; /* encoders */
    float *values;                       /* encoders: the job's room for the result, set before submitting */
    size_t n_values;                     /* ... floats of room; on_done: floats there */

    /* The bridge's own. */
    bridge_job *next_done, *next_touched;
    bool touched, overflow;
};

/* Loop thread. */
int bridge_new(bridge **ret, uv_loop_t *loop, shoal_err *err);
/* Frees it once the loop has closed its handle; no job may be in the engine any more. */
void bridge_close(bridge *b, void (*closed)(void *user), void *user);

/* The engine's callbacks (gen_event_fn, enc_result_fn): user is the bridge_job. Any thread. */
void bridge_event(void *job, const gen_event *ev);
void bridge_result(void *job, const enc_result *r);

/* The engine's, too (engine_options.burst): user is the bridge. What comes within a burst wakes the loop at
 * its end. */
void bridge_burst(void *user, bool begins);

/* Replay what is queued now (the loop does so by itself). Loop thread; not from a callback. */
void bridge_deliver(bridge *b);

#endif
