/* shared.h: a request whose answer may come from the cache, or from an identical request in flight.
 *
 * An endpoint's job has a shared_job as its first member and says in three functions what is its own:
 * how it computes, how it answers from a cached value, and how it is freed. Everything between (the
 * lookup, the place in line, the deadline while waiting, the client that leaves, the error that all
 * waiters get) is here, once.
 *
 *     shared_start(&j->shared, &OPS, rq, known ? &key : NULL);   // compute or answer, now or later
 *     ...
 *     cache_ticket *t = shared_detach(&j->shared);               // in compute's end
 *     answer the request, free the job
 *     shared_publish(t, &packed);                                // the others' turn
 *
 * Loop thread only. */
#ifndef GATEWAY_SHARED_H
#define GATEWAY_SHARED_H

#include "cache/cache.h"
#include "base/sha256.h"
#include "gateway/request.h"

typedef struct shared_job shared_job;

typedef struct shared_ops { /* each gets the job itself */
    void (*compute)(void *job);
    /* Answers with v (borrowed) and frees the job; rq->cache_state is set. */
    void (*answer)(void *job, const cache_value *v);
    void (*free)(void *job); /* cancels what the job still runs; the ticket is not its business */
} shared_ops;

struct shared_job {
    const shared_ops *ops;
    gateway_request *rq;
    cache_ticket *ticket; /* NULL: not sharing */
};

/* Watches rq, then answers from the cache, waits, or computes. key NULL, or a client that wants it fresh:
 * computes for this request alone. The job may be dead when this returns. */
void shared_start(shared_job *s, const shared_ops *ops, gateway_request *rq, const sha256_digest *key);
/* Answers with e and frees the job. Those who wait get e too, unless it is about this request alone (its
 * deadline, memory): then the first of them computes. */
void shared_fail(shared_job *s, const api_error *e);
void shared_fail_nomem(shared_job *s);
/* Takes the ticket out of the job, which may then be freed. NULL for an answer of a stand-in (degraded.h):
 * the first of those who wait computes. */
cache_ticket *shared_detach(shared_job *s);
/* Stores a detached leader's answer and gives it to those who wait; a failed buf leaves the work to the
 * first of them. Accepts a NULL ticket. */
void shared_publish(cache_ticket *t, const buf *packed);

#endif
