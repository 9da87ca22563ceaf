/* queue.h: requests that wait for the engine, in the order they came.
 *
 * A job is the head of a generation (session.h) or of an input to encode. The owner's lock guards the queue;
 * n may be read by anyone. */
#ifndef INFER_QUEUE_H
#define INFER_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { JOB_GENERATE, JOB_ENCODE } job_kind;

typedef struct job {
    struct job *next;
    job_kind kind;
    uint64_t id;
    uint64_t group;                  /* of the request it is a part of: places are shared between groups */
    uint64_t submit_ns, deadline_ns; /* deadline 0: none */
    size_t n_tokens;                 /* of input */
    atomic_bool cancelled, paused;   /* set by any thread */
    bool over;                       /* nothing is left to compute: it ends without a place */
} job;

typedef struct job_queue {
    job *head, *tail;
    atomic_size_t n;
    size_t n_tokens; /* of their input */
} job_queue;

/* At the end, resp. (one that was in it before) at the head. */
void queue_push(job_queue *q, job *j);
void queue_push_front(job_queue *q, job *j);
/* The first; NULL when there is none. */
job *queue_pop(job_queue *q);
/* The first of a kind, which stays in; NULL when there is none. */
job *queue_first(const job_queue *q, job_kind kind);
/* Take out one that is in the queue. */
void queue_take(job_queue *q, job *j);
bool queue_is_dead(const job *j, uint64_t now_ns); /* cancelled, late or over */
/* Take out what is dead; a list by `next`. */
job *queue_reap(job_queue *q, uint64_t now_ns);

#endif
