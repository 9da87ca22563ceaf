/* shared.h: a request whose answer may come from the cache, or from an identical request in flight.
 *
 * An endpoint's job has a shared_job as its first member and says in three functions what is its own:
 * how it computes, how it answers from a cached value, and how it is freed. Everything between (the
 * lookup, the place in line, the deadline while waiting, the client that leaves, the error that all
 * waiters get, the answer that is stale and made anew) is here, once.
 *
 *     shared_start(&j->shared, &OPS, rq, known ? &terms : NULL); // compute or answer, now or later
 *     ...
 *     shared_heard(&j->shared, r->identity);                     // of each call that had a part in it
 *     shared_end end = shared_detach(&j->shared);                // in compute's end
 *     answer the request, free the job
 *     shared_publish(&end, &packed);                             // the others' turn
 *
 * What one API key was answered is no other's, unless the configuration says that keys share: the key that a
 * request came with is part of what it is looked up by. Loop thread only. */
#ifndef ANSWERS_SHARED_H
#define ANSWERS_SHARED_H

#include "base/sha256.h"
#include "cache/cache.h"
#include "answers/provenance.h"
#include "answers/semantic.h"
#include "request/request.h"

typedef struct shared_job shared_job;

typedef struct shared_ops { /* each gets the job itself */
    void (*compute)(void *job);
    /* Answers with what was packed (borrowed, NUL behind it) and frees the job; rq->cache_state is set. */
    void (*answer)(void *job, const char *packed, size_t len);
    void (*free)(void *job); /* cancels what the job still runs; the ticket is not its business */
    /* Appends what an answer that was packed says, for comparing two. NULL: the bytes say it. */
    void (*text)(buf *out, const char *packed, size_t len);
} shared_ops;

typedef struct shared_terms { /* on which an answer is kept; borrowed */
    sha256_digest key;        /* what decides it */
    const provenance *by;     /* and who */
    semantic_ask near;        /* by what likeness it may be found; zeroed: by none */
} shared_terms;

struct shared_job {
    const shared_ops *ops;
    gateway_request *rq;
    cache_ticket *ticket; /* NULL: not sharing */
    sha256_digest key;
    semantic_ask near;                 /* its text is owned; NULL: it is not looked up by semantic */
    semantic_lookup *lookup;           /* that goes on, or has come to nothing */
    char identity[BIT_IDENTITY_BYTES]; /* the model that it is kept as an answer of; "": of several */
    bool strange;                      /* another one answered */
    bool cut;                          /* a time limit ended the answer (call_result) */
    uint64_t n_rolls; /* the gateway's when it was looked up: files that came up since then may answer */
};

/* Watches rq, then answers from the cache, waits, or computes. terms NULL, or a client that wants it fresh:
 * computes for this request alone. The job may be dead when this returns. */
void shared_start(shared_job *s, const shared_ops *ops, gateway_request *rq, const shared_terms *terms);
/* A replica of this identity answered; NULL or "": nobody knows. What another one than the key's says is not
 * kept. */
void shared_heard(shared_job *s, const char *identity);
/* Answers with e and frees the job. Those who wait get e too, unless it is about this request alone (its
 * deadline, memory): then the first of them computes. A refusal that is the same each time may be kept. */
void shared_fail(shared_job *s, const api_error *e);
void shared_fail_nomem(shared_job *s);

typedef struct shared_end { /* what is left to do when the job is gone */
    struct gateway *gateway;
    cache_ticket *ticket;
    sha256_digest key;
    semantic_lookup *lookup;    /* by which the answer will be found */
    const cache_value *audited; /* what went out, in place of the answer that there is now */
    void (*text)(buf *out, const char *packed, size_t len);
    char name[96];
    bool passes; /* the answer is for those who wait, and not to be kept */
    char trace[sizeof(((gateway_request *)NULL)->ensemble)]; /* how several models came to it: kept with it */
} shared_end;
/* Takes the ticket out of the job, which may then be freed. Of an answer of a stand-in (degraded.h) nothing
 * is left: the first of those who wait computes. */
shared_end shared_detach(shared_job *s);
bool shared_wants(const shared_end *end); /* does anybody want the answer packed? */
/* Stores a detached leader's answer and gives it to those who wait; a failed buf leaves the work to the
 * first of them. */
void shared_publish(shared_end *end, const buf *packed);
void shared_leave(shared_end *end); /* there is no answer: the first of them computes */

#endif
