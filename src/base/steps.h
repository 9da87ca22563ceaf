/* steps.h: counted work over bytes that somebody else decides, which ends early when nobody wants it any more.
 *
 * A function that walks over a client's bytes adds how many it looked at. Every STEPS_PER_CHECK of them the
 * cancel flag is read, so that a job ends within 64 KiB of work after its client has gone or the server stops.
 * Tests read `n`: how much work a text costs, and how much was done after the flag was set.
 *
 *     rc = steps_add(steps, n, err);
 *     if (rc != 0) return rc;          SHOAL_ECANCELLED
 *
 * The thread that works owns it; any thread may set *cancelled. Pure. */
#ifndef BASE_STEPS_H
#define BASE_STEPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { STEPS_PER_CHECK = 64 << 10 };

typedef struct steps {
    uint64_t n;                   /* bytes looked at, each time that one is */
    uint64_t next;                /* the flag is read when n comes to this */
    const atomic_bool *cancelled; /* NULL: never */
} steps;

static inline bool steps_cancelled(const steps *s)
{
    return s && s->cancelled && atomic_load_explicit(s->cancelled, memory_order_relaxed);
}

/* Counts n more. s NULL: nobody counts. SHOAL_ECANCELLED. */
static inline int steps_add(steps *s, size_t n, shoal_err *err)
{
    if (!s) return 0;
    s->n += n;
    if (s->n < s->next) return 0;
    s->next = s->n + STEPS_PER_CHECK;
    return steps_cancelled(s) ? err_set(err, SHOAL_ECANCELLED, "the work was cancelled") : 0;
}

#endif
