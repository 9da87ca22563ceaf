/* liveness.h: does a process get on, wait for a core, or hang? Pure: from looks at it in the order of time.
 *
 * A process that was given no core answers nobody, and neither does one that hangs. What tells them apart is
 * a counter that it advances as it works (base/progress.h) beside what the kernel says of its threads
 * (cluster/threads.h). While the counter stands still although something is expected of the process, the
 * looks add up
 *
 *     the processor time of the thread that used most    it computes, and gets on with nothing
 *     the time in which all its threads slept            they wait for each other, or for nothing
 *     the time in which it was stopped
 *     the time in which it waited for a disk or swap
 *
 * and time in which it waited for a core adds to none of them. So a hung process is found as soon as on an
 * idle machine, and a starved one never is.
 *
 *     liveness l = {.limits = LIVENESS_WORK};
 *     liveness_look(&l, &look);      // several times a second, while anything is expected of it
 *     if (l.verdict == LIVENESS_HUNG) kill(...);
 *
 * LIVENESS_STARVED: it would work if it could. LIVENESS_SILENT: it does not show that it works; nobody should
 * wait for it who can have the answer elsewhere. */
#ifndef CLUSTER_LIVENESS_H
#define CLUSTER_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

/* X(enum, name) */
#define LIVENESS_TABLE(X)          \
    X(LIVENESS_OK, "ok")           \
    X(LIVENESS_STARVED, "starved") \
    X(LIVENESS_SILENT, "silent")   \
    X(LIVENESS_HUNG, "hung")
typedef enum liveness_verdict {
#define LIVENESS_ENUM(e, n) e,
    LIVENESS_TABLE(LIVENESS_ENUM)
#undef LIVENESS_ENUM
} liveness_verdict;
const char *liveness_name(liveness_verdict v);

typedef struct liveness_sample {
    uint64_t now_ns;
    uint64_t progress;
    bool busy;              /* something is expected of it: requests run, or an answer is owed */
    bool runnable, stopped; /* a thread wants a core now; it is stopped by a signal or a debugger */
    bool queued;            /* it waits in the arbiter's queue now, which is a queue for cores */
    /* Since the look before: */
    bool known;                /* it was read, then and now */
    uint64_t cpu_ns, delay_ns; /* of the thread that used a core most, and that waited for one for longest */
    bool on_disk;              /* a thread waited for a disk, or had pages read from one */
    uint64_t others_ns;        /* a thread that is not looked at used a core so long, or waited for one; */
    bool others_run;           /* or does now */
} liveness_sample;

typedef struct liveness_limits { /* of each sum, to be taken for hung */
    unsigned cpu_ms, asleep_ms, stopped_ms, disk_ms;
    unsigned beside_ms; /* asleep while other threads of the process run */
} liveness_limits;

/* A worker's threads that compute, which advance the counter after 100 ms of their own time at the latest. */
#define LIVENESS_WORK   \
    ((liveness_limits){ \
        .cpu_ms = 500, .asleep_ms = 2000, .stopped_ms = 150, .disk_ms = 30000, .beside_ms = 10000})
/* Its event loop, when an answer is owed: a request may be large, and its memory slow. */
#define LIVENESS_LOOP   \
    ((liveness_limits){ \
        .cpu_ms = 2000, .asleep_ms = 500, .stopped_ms = 150, .disk_ms = 30000, .beside_ms = 10000})
/* A start: one call of the system or of a library may read or convert a whole file. */
#define LIVENESS_START  \
    ((liveness_limits){ \
        .cpu_ms = 60000, .asleep_ms = 60000, .stopped_ms = 5000, .disk_ms = 600000, .beside_ms = 60000})
/* The arbiter's lock: all others wait for it. */
#define LIVENESS_LOCK   \
    ((liveness_limits){ \
        .cpu_ms = 500, .asleep_ms = 500, .stopped_ms = 150, .disk_ms = 30000, .beside_ms = 5000})

/* Nobody condemns a process for less; but who can ask another does not wait. */
enum { LIVENESS_DOUBT_MS = 150 };

typedef struct liveness {
    liveness_limits limits;
    liveness_verdict verdict;
    const char *why; /* of LIVENESS_HUNG: "it computes, and gets on with nothing" */
    uint64_t progress, last_ns;
    bool was_stopped;
    uint64_t cpu_ns, asleep_ns, stopped_ns, disk_ns, beside_ns;
} liveness;

void liveness_look(liveness *l, const liveness_sample *s);

#endif
