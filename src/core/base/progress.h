/* progress.h: counters that show that this process gets on, for whoever watches it from outside.
 *
 * A process that was given no core and one that hangs look alike: neither answers. A counter in shared memory
 * tells them apart without asking: one that used a core and did not advance it hangs (cluster/liveness.h). So
 * whatever computes for long says that it gets on, by progress_add at the pace of its work or by
 * progress_tick, at least every 100 ms of its own processor time on the slowest machine; a few milliseconds
 * on a fast one.
 *
 *     progress_begin();                       // from here on this thread is expected to get on
 *     for (...) { work; progress_add(n); }    // n: about a multiply and add each, or a nanosecond
 *     progress_end();                         // it waits for somebody else, who may take as long as he likes
 *
 * There is one set a process, in its own memory until progress_publish. Every function may be called by any
 * thread; none blocks. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_WORK ((size_t)1 << 20) /* of progress_add, for a tick: about 0.1 to 10 ms */

/* One process's. The watcher reads it alone. */
typedef struct progress_counts {
    _Alignas(64) _Atomic uint64_t work; /* of all threads but the loop's */
    _Atomic int32_t n_working;          /* threads between begin and end */
    _Atomic uint32_t loops;             /* the first thread runs the event loop, and counts in `loop` */
    _Alignas(64) _Atomic uint64_t loop;
} progress_counts;

/* Count in *at from now on, which must stay until this process counts elsewhere; NULL: in its own memory.
 * While no other thread runs that counts. */
void progress_publish(progress_counts *at);
/* Zeros, for the next process that counts there. */
void progress_clear(progress_counts *at);

/* This thread runs the event loop from now on: its ticks are the loop's. */
void progress_run_loop(void);

uint64_t progress_count(void); /* ticks of this process's work so far */
bool progress_works(void);     /* a thread is between begin and end */
void progress_tick(void);
void progress_begin(void);
void progress_end(void);

extern _Thread_local size_t progress_added;

static inline void progress_add(size_t work)
{
    progress_added += work;
    if (progress_added < PROGRESS_WORK) return;
    progress_added = 0;
    progress_tick();
}

#endif
