/* cancel.h: lets long work on foreign bytes (decoding, scoring) end early.
 *
 * The worker asks between blocks, rows or scans, so that neither a client that left nor a deadline that
 * passed keeps a thread busy.
 *
 *     static int ask(void *user, shoal_err *err) { return gone ? err_set(err, SHOAL_ECANCELLED, ...) : 0; }
 *     cancel_check c = {ask, user};                 or cancel_by_flag(&flag)
 *     if ((rc = cancel_ask(&c, err)) != 0) return rc;
 *
 * Work that is counted byte by byte asks through steps.h. */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/progress.h"

/* Zeroed: never cancelled. */
typedef struct cancel_check {
    int (*ask)(void *user, shoal_err *err); /* 0: go on; else the error to end with. On the working thread */
    void *user;
} cancel_check;

static inline int cancel_ask(const cancel_check *c, shoal_err *err)
{
    progress_tick(); /* who asks gets on */
    return c->ask ? c->ask(c->user, err) : 0;
}

static inline int cancel_ask_flag(void *flag, shoal_err *err)
{
    bool is_set = atomic_load_explicit((atomic_bool *)flag, memory_order_relaxed);
    return is_set ? err_set(err, SHOAL_ECANCELLED, "the work was cancelled") : 0;
}

/* Ends with SHOAL_ECANCELLED once *flag is set, by any thread. */
static inline cancel_check cancel_by_flag(atomic_bool *flag)
{
    return (cancel_check){cancel_ask_flag, flag};
}

#endif
