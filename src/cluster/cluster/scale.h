/* scale.h: how many replicas a model has, by its load, as a pure function.
 *
 * One replica more: requests have waited longer than `wait_ms` at every replica for SCALE_SUSTAIN_MS, and a
 * machine has room. One step at a time: while a replica that was asked for does not answer, no further one is
 * asked for. A queue that shrinks so fast that it is empty before another replica would answer, by the time
 * that the last one took to load, calls for none.
 *
 * One replica less: for `idle_ms` nobody waited longer than half of `wait_ms`, and what ran, as the moving mean
 * over SCALE_MEAN_MS, was never more than seven tenths of what the others carry. A raise soon after a step down
 * doubles the next such time, up to SCALE_PATIENCE_MAX times of it. Down to none (`min` 0) only if there was no
 * request at all; the first one that comes then is a step up at once.
 *
 * A replica that cannot start is given up, and none is asked for during a pause of SCALE_PAUSE_MS, which
 * doubles with each failure.
 *
 *     scale s;
 *     scale_begin(&s, &range, now_ns);
 *     if (scale_is_step(scale_look(&s, &range, &view, now_ns))) serve(s.n);        each second
 *
 * No clock, no I/O, no memory: time and what is seen are arguments. */
#ifndef CLUSTER_SCALE_H
#define CLUSTER_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* X(enum, word, sentence): steps, and, from STEADY on, why there is none. */
#define SCALE_WHY_TABLE(X)                                                                  \
    X(SCALE_WAITED, "waited", "requests waited longer than wait_ms")                        \
    X(SCALE_CALLED, "called", "a request came while there was no replica")                  \
    X(SCALE_IDLE, "idle", "fewer replicas carry the load")                                  \
    X(SCALE_FAILED, "failed", "the last replica could not start")                           \
    X(SCALE_NO_MACHINE, "no_machine", "a machine is gone, and no other has room")           \
    X(SCALE_RANGE, "range", "the configuration has another range")                          \
    X(SCALE_STEADY, "steady", "the load calls for no other number")                         \
    X(SCALE_STARTING, "starting", "a replica does not answer yet")                          \
    X(SCALE_TOO_LATE, "too_late", "the queue is empty before another replica would answer") \
    X(SCALE_AT_MAX, "max", "there are max replicas")                                        \
    X(SCALE_PAUSES, "pauses", "the last replica could not start")                           \
    X(SCALE_NO_ROOM, "no_room", "no machine has room for another replica")
typedef enum scale_why {
#define SCALE_WHY_ENUM(e, w, s) e,
    SCALE_WHY_TABLE(SCALE_WHY_ENUM)
#undef SCALE_WHY_ENUM
} scale_why;
const char *scale_why_word(scale_why w);
const char *scale_why_text(scale_why w);
bool scale_is_step(scale_why w);

enum {
    SCALE_SUSTAIN_MS = 3000,
    SCALE_FAILING_MS = 5000, /* so long after a replica was first shown as failed it may be so again */
    SCALE_MEAN_MS = 30000,   /* or idle_ms, if that is less */
    SCALE_PAUSE_MS = 30000,
    SCALE_PAUSE_MAX_MS = 600000,
    SCALE_PATIENCE_MAX = 8
};

typedef struct scale_range {
    unsigned min, max; /* max 0: the number is fixed, and min is that number */
    uint64_t wait_ms;  /* what requests may wait */
    uint64_t idle_ms;  /* how long the load is low before a replica leaves */
} scale_range;

/* What is seen of a model now. */
typedef struct scale_view {
    unsigned n_ready;              /* replicas that take calls */
    unsigned n_failed;             /* replicas that could not start (replica.h) */
    unsigned n_room;               /* of the wanted ones and one more, so many have a machine */
    unsigned n_slots;              /* requests that one replica runs at once; 0: 1 */
    uint64_t n_running, n_waiting; /* requests in its replicas */
    uint64_t n_held;               /* calls that wait in the gateway for a replica */
    uint64_t n_requests;           /* any number that changes with each request */
    double queue_ms;       /* how long the oldest request has waited, at the replica where that is least */
    double p95_ms;         /* of the waits that ended lately; 0: there were too few */
    uint64_t p95_since_ns; /* when "lately" began */
} scale_view;

typedef struct scale {
    unsigned n;             /* replicas that are wanted */
    double load_ms;         /* that the last one took from step to answer; 0: not known */
    uint64_t step_ns;       /* when one was asked for that does not answer yet; 0: none, or a fixed number */
    uint64_t settled_ns;    /* when the last one answered */
    uint64_t pressed_ns;    /* since when requests wait too long; 0: they do not */
    uint64_t peak, peak_ns; /* most requests in line since then, and when that was */
    uint64_t quiet_ns;      /* since when nobody waits; 0: somebody does */
    double busy,
        busiest; /* requests in the replicas: the moving mean over SCALE_MEAN_MS, and its peak since then */
    uint64_t seen_ns;        /* the last look */
    uint64_t n_requests;     /* as of then */
    uint64_t lowered_ns;     /* the last step down; 0: there was none */
    unsigned patience;       /* idle_ms counts so many times */
    uint64_t failing_ns;     /* since when the one that was asked for fails; 0: it does not */
    uint64_t pause_until_ns; /* no step up before */
    uint64_t pause_ms;       /* the last pause; 0: there was none */
} scale;

/* With min replicas, which are being started. Of a fixed number that is all: nobody looks at it. */
void scale_begin(scale *s, const scale_range *r, uint64_t now_ns);
/* A look at the model changes s->n by one at most, but into the range. now_ns may not be 0. */
scale_why scale_look(scale *s, const scale_range *r, const scale_view *v, uint64_t now_ns);
/* Does the view's n_room matter? Else it need not be found out, and may be any number from s->n on. */
bool scale_needs_room(const scale *s, const scale_range *r, const scale_view *v);
/* By another gateway's decision there are n: taken into the range. */
void scale_follow(scale *s, const scale_range *r, unsigned n, uint64_t now_ns);

#endif
