/* steps.h: counted work over bytes that somebody else decides, which ends early when nobody wants it any
 * more.
 *
 * A function that walks over a client's bytes adds how many it looked at. Every STEPS_PER_CHECK of them it
 * asks `cancel` (cancel.h), so that a job ends within 64 KiB of work after its client has gone or the server
 * stops. Tests read `n`: how much work a text costs, and how much was done after it was cancelled.
 *
 *     rc = steps_add(steps, n, err);
 *     if (rc != 0) return rc;          SHOAL_ECANCELLED
 *
 * The thread that works owns it. */
#ifndef BASE_STEPS_H
#define BASE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cancel.h"

enum { STEPS_PER_CHECK = 64 << 10 };

typedef struct steps {
    uint64_t n;    /* bytes looked at, each time that one is */
    uint64_t next; /* `cancel` is asked when n comes to this */
    cancel_check cancel;
} steps;

static inline bool steps_cancelled(const steps *s)
{
    return s && cancel_ask(&s->cancel, NULL) != 0;
}

/* Counts n more. s NULL: nobody counts. SHOAL_ECANCELLED. */
static inline int steps_add(steps *s, size_t n, shoal_err *err)
{
    if (!s) return 0;
    s->n += n;
    if (s->n < s->next) return 0;
    s->next = s->n + STEPS_PER_CHECK;
    return cancel_ask(&s->cancel, err);
}

#endif
