/* job_queue.h: requests that wait for the engine, the one that is due first in front.
 *
 * A job is due at its deadline, or when it has waited as long as its class may, whichever comes first:
 * earliest deadline first (Liu and Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time
 * Environment", 1973), with ageing built in. When it is due is settled as it comes and does not change, so
 * that whoever has waited for the patience of its class stands before all that come after it, however urgent
 * they are: nobody starves. Equals stand in the order they came.
 *
 *     class         patience_ms
 *     realtime              100
 *     interactive         1,000
 *     batch              30,000
 *
 * A job is the head of a generation (session.h) or of an input to encode. The owner's lock guards the queue;
 * n may be read by anyone. */
#ifndef INFER_JOB_QUEUE_H
#define INFER_JOB_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { JOB_GENERATE, JOB_ENCODE } job_kind;

/* How urgent a request is, as worker.proto's Latency numbers it. X(enum, patience_ms) */
#define JOB_CLASS_TABLE(X)   \
    X(JOB_INTERACTIVE, 1000) \
    X(JOB_REALTIME, 100)     \
    X(JOB_BATCH, 30000)
typedef enum job_class {
#define JOB_CLASS_ENUM(e, patience_ms) e,
    JOB_CLASS_TABLE(JOB_CLASS_ENUM)
#undef JOB_CLASS_ENUM
        JOB_N_CLASSES
} job_class;
/* What is none of them is interactive. */
job_class job_class_of(int number);

typedef struct job {
    struct job *next;
    job_kind kind;
    uint64_t id;
    uint64_t group;                  /* of the request it is a part of: slots are shared between groups */
    uint64_t submit_ns, deadline_ns; /* deadline 0: none */
    uint64_t due_ns;                 /* job_queue_due_ns */
    job_class class;
    size_t n_tokens;               /* of input */
    atomic_bool cancelled, paused; /* set by any thread */
    bool over;                     /* nothing is left to compute: it ends without a slot */
    uint64_t queued_ns, waited_ns; /* when it came into the queue last, and how long it was there before */
    /* Of a request whose worker died: its prompt, and what came of its reply, are computed again first
     * (batch.h) */
    bool replays;
    unsigned n_deaths; /* workers that died on it lately */
    size_t n_left;     /* tokens that it may still get */
} job;

typedef struct job_queue {
    job *head, *tail;
    atomic_size_t n;
    size_t n_tokens; /* of their input */
} job_queue;

/* When a job is due that comes at submit_ns; deadline_ns 0: it has none. */
uint64_t job_queue_due_ns(uint64_t submit_ns, uint64_t deadline_ns, job_class c);
/* Behind all that are due before it, or with it. */
void job_queue_push(job_queue *q, job *j);
/* One that was in it before: at the end, because it has had its turn, resp. at the head. */
void job_queue_push_back(job_queue *q, job *j);
void job_queue_push_front(job_queue *q, job *j);
/* Tokens of the input of those that a job due then would stand behind. */
size_t job_queue_tokens_before(const job_queue *q, uint64_t due_ns);
/* How long the one has been in the queue in all, of those that wait for a slot and are not paused, that was there
 * the longest; 0: there is none. Slots are shared by turns (batch.h), so who waits now may have run before. */
uint64_t job_queue_longest_ns(const job_queue *q, uint64_t now_ns);
/* The first; NULL when there is none. */
job *job_queue_pop(job_queue *q);
/* The first of a kind, which stays in; NULL when there is none. */
job *job_queue_first(const job_queue *q, job_kind kind);
/* Take out one that is in the queue. */
void job_queue_take(job_queue *q, job *j);
bool job_queue_is_dead(const job *j, uint64_t now_ns); /* cancelled, late or over */
/* Take out what is dead; a list by `next`. */
job *job_queue_reap(job_queue *q, uint64_t now_ns);

#endif
