/* turn_watch.h: does a supervised process still turn its event loop?
 *
 * Its loop counts its turns in a page that the supervisor shares with it (base/progress.h). A turn that uses
 * the processor for cpu_ms hangs in a loop of its own. One that waits, for a core, a disk, a debugger or
 * SIGCONT, does not, however long that takes (cluster/liveness.h).
 *
 *     turn_watch_new(&w, TURN_CPU_MS, &fd, err); // fd goes to the process, as HANDOVER_TURNS
 *     turn_watch_begin(w);                       // a process is about to be started
 *     if (turn_watch_hangs(w, pid)) kill(...);   // every TURN_LOOK_MS
 *
 * In the process: turn_watch_count(loop). One thread each. */
#ifndef SERVE_TURN_WATCH_H
#define SERVE_TURN_WATCH_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "base/progress.h"

#define HANDOVER_TURNS "turns" /* the name under which the page is kept */

enum { TURN_LOOK_MS = 500, TURN_CPU_MS = 10000 };

/* ---- the supervisor ----------------------------------------------------------------------------------- */

typedef struct turn_watch turn_watch;

/* *ret_fd, close-on-exec, is the caller's. SHOAL_ENOMEM, SHOAL_EIO. */
int turn_watch_new(turn_watch **ret, unsigned cpu_ms, int *ret_fd, shoal_err *err);
void turn_watch_free(turn_watch *w); /* NULL is fine */
/* Another process counts there from now on. */
void turn_watch_begin(turn_watch *w);
/* Look at it. False, too, while it has not begun to count, or a debugger has it. */
bool turn_watch_hangs(turn_watch *w, pid_t pid);

/* ---- the supervised process --------------------------------------------------------------------------- */

/* Count this thread's turns of the loop in the page that the supervisor keeps, by `check`, which the caller
 * closes. NULL and no handle: there is none. Before there are other threads. */
progress_counts *turn_watch_count(uv_loop_t *loop, uv_check_t *check);

#endif
