/* exit_guard.h: a process that was told to stop ends, whatever its threads do.
 *
 * The loop that drains and tears down may itself wait: for a thread that a dead disk holds, for a name that
 * no server resolves, in a destructor. So a thread of its own counts the time from the first SIGTERM or
 * SIGINT on:
 *
 *     first    the process has `stop_ms`
 *     second   what is left is cut: it has `cut_ms`
 *     third    it exits at once, from the signal's handler
 *
 * When the time is over, one line is logged (event=exit_forced) and the process exits: with 0 after one
 * signal, as when all had gone well, else with 128 + the signal's number.
 *
 *     uv_signal_start(&term, signalled, SIGTERM);
 *     exit_guard_start(&(exit_guard){.component = "serve", .stop_ms = 30000, .cut_ms = 8000});
 *
 * There is one in a process. The handlers that were there before (the loop's) are called as well. */
#ifndef OS_EXIT_GUARD_H
#define OS_EXIT_GUARD_H

#include <stdint.h>

typedef struct exit_guard {
    const char *component; /* literal, for the log */
    uint64_t stop_ms, cut_ms;
} exit_guard;

/* Once, by the main thread, after the loop's handlers of SIGTERM and SIGINT are there. Without memory for a
 * thread, and on a second call, nothing happens. */
void exit_guard_start(const exit_guard *g);
/* Signals that it has heard so far. */
int exit_guard_signals(void);
/* The last signal only announced the stop: it does not count, and the process has stop_ms from now on. */
void exit_guard_announced(uint64_t stop_ms);
/* The process stops: it has stop_ms from now on, unless it has less already. Also without a signal. code: its
 * exit status when the time is over before a second signal. Any thread. */
void exit_guard_stopping(uint64_t stop_ms, int code);

#endif
