/* threads.h: what the kernel says of a process's threads: who runs, who waits for a core, who sleeps.
 *
 * From /proc/PID/task/TID/stat and schedstat (proc(5), Documentation/scheduler/sched-stats.rst). A kernel
 * without scheduler statistics shows states and ticks alone. About 20 us for each thread. `root` is put
 * before the paths, so that a test brings processes of its own. */
#ifndef CLUSTER_THREADS_H
#define CLUSTER_THREADS_H

#include <stddef.h>

#include "cluster/liveness.h"

enum { THREADS_MAX = 96 };

typedef struct thread_facts {
    int tid;
    char state;                /* R runs or wants to, D waits for a disk, S sleeps, T and t stopped */
    uint64_t cpu_ns, delay_ns; /* in its life: on a core; wanting one */
    uint64_t major_faults;     /* pages that were read from a disk for it */
} thread_facts;

typedef struct threads {
    int pid;
    size_t n;
    thread_facts at[THREADS_MAX];
} threads;

/* False when there is no such process, or no way to know. */
bool threads_read(threads *ret, const char *root, int pid);

typedef enum threads_group { THREADS_FIRST, THREADS_OTHERS, THREADS_ALL } threads_group;

/* What of a sample the threads of the group are good for; before NULL: the states of now alone, and it is not
 * known. */
void threads_compare(liveness_sample *ret, const threads *before, const threads *now, threads_group g);

#endif
