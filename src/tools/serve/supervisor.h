/* supervisor.h: the process around `shoal serve` that starts it again after a crash.
 *
 *     shoal serve ── supervisor: holds descriptors, forwards signals, waits
 *                      ├─ gateway and agent: the same program and arguments, started again after a crash
 *                      └─ workers: started by the agent as children of the supervisor, so they outlive it
 *
 * It has one thread, no event loop and no parser; all it reads is messages of one fixed size from its own
 * child (os/handover.h). The child is executed anew, not forked from a warm image, so that each life has
 * other addresses: whoever crashes it on purpose learns nothing from the last attempt.
 *
 * A child that exits has meant to: its code is passed on. Only one that had crashed before and cannot start
 * (a configuration that was changed in the meantime, say) is tried again: its workers still live. */
#ifndef SERVE_SUPERVISOR_H
#define SERVE_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

/* How long to wait with the next start after a life of lived_ms. *backoff_ms is the memory between lives, 0
 * at first: at once, then 100 ms doubling to 10 s, but 1 s at most after a life that served; a minute of life
 * clears it. */
uint64_t supervisor_wait_ms(uint64_t *backoff_ms, uint64_t lived_ms, bool served);

/* The life that ended with this wait status. */
typedef struct supervisor_life {
    unsigned n;    /* lives before it */
    bool ready;    /* it has served */
    bool stopping; /* it was told to stop */
} supervisor_life;
bool supervisor_restarts(const supervisor_life *l, int status);

/* Does a SIGTERM or SIGINT at now_ns belong to the one before it, within 250 ms? `timeout` and some service
 * managers signal the process and then its group, which is one wish to stop and not a second one, which cuts.
 * *last_ns: when the last one came, 0 at first. */
bool supervisor_repeats(uint64_t *last_ns, uint64_t now_ns);

/* In the first process this returns with the exit code when the child has ended for good. In the child, and
 * where nothing can be supervised (no descriptors, no memory: logged), it returns -1: go on. `argv` is the
 * command's own, argv[0] its name; name is for ps, 15 characters at most. */
int supervise(int argc, char **argv, const char *name);

#endif
