/* pulse.h: does a process of this machine do anything at all? From /proc/PID/stat (proc(5)). */
#ifndef CLUSTER_PULSE_H
#define CLUSTER_PULSE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pulse {
    char state;         /* of its first thread: R runs or wants to, D waits for a disk, S sleeps, T stopped */
    uint64_t cpu_ticks; /* that all its threads have used, ever */
} pulse;

/* False when there is no such process, or no way to know. */
bool pulse_take(int pid, pulse *ret);
/* Between two looks at it, did it run, or at least want to? */
bool pulse_is_alive(const pulse *before, const pulse *now);

#endif
