/* cancel.h: lets long work on foreign bytes (decoding, scoring) end early.
 *
 * The worker asks between blocks, rows or scans, so that neither a client that left nor a deadline that
 * passed keeps a thread busy.
 *
 *     static int ask(void *user, shoal_err *err) { return gone ? err_set(err, SHOAL_ECANCELLED, ...) : 0; }
 *     cancel_check c = {ask, user};
 *     if ((rc = cancel_ask(&c, err)) != 0) return rc; */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

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

#endif
