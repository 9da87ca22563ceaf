/* supervised.h: what a supervised process hears from its supervisor (os/handover.h).
 *
 * SIGTERM, SIGINT and SIGHUP count only as the supervisor passes them on, in HANDOVER_SIGNAL: a terminal or
 * systemd sends them to the whole group as well, and counted twice they would cut a drain. (Sent on as they
 * are, one could merge with its twin, and nobody could tell whose it was.) */
#ifndef SERVE_SUPERVISED_H
#define SERVE_SUPERVISED_H

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"

typedef struct supervised_events {
    void (*exited)(void *user, int pid, int status); /* a child of the supervisor: a worker */
    void *user;
} supervised_events;

typedef struct supervised supervised;

/* *ret stays NULL where nobody supervises. After the process's own handlers of signals are there, and before
 * threads that count (base/progress.h). The supervisor's log lines look as this process's from now on, and it
 * watches whether the loop turns (turn_watch.h). */
int supervised_open(supervised **ret, uv_loop_t *loop, const supervised_events *ev, bool json_log, int level,
                    shoal_err *err);
/* Run the loop once more; NULL is fine. */
void supervised_close(supervised *s);

#endif
