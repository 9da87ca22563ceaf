/* executor.h: threads that do what blocks (the store, the scan, splitting documents) for a loop that must not.
 *
 * Jobs go through four queues, each with threads of its own, so that none waits for work of another kind:
 *
 *     EXECUTOR_READS      searches and lists
 *     EXECUTOR_WRITES     one writer of the store, in short transactions
 *     EXECUTOR_INDEXING   documents parsed and split
 *     EXECUTOR_SPOOL      uploads into nameless files
 *
 * Within a queue the owner (an API key) who was served longest ago is next, and no owner has more than the
 * queue's `most_each` threads, so that one key cannot take them all. A job is a struct of its owner's: `work`
 * runs in a thread, then `done` on the loop, always and once.
 *
 *     typedef struct count_job { executor_job job; int n; } count_job;
 *     static int work(executor_job *j, const executor_tools *t, shoal_err *err)
 *     {
 *         return store_each(t->store, NULL, 100, count, j, err);
 *     }
 *     ...
 *     c->job = (executor_job){.work = work, .done = done, .queue = EXECUTOR_READS};
 *     executor_submit(d, &c->job);
 *
 * Each thread has a connection to the store of its own; SQLite's write-ahead log lets readers go on while
 * somebody writes. Threads start with the first job, and a file is made with the first that comes. Loop
 * thread, but for `work`. */
#ifndef RETRIEVE_EXECUTOR_H
#define RETRIEVE_EXECUTOR_H

#include <uv.h>

#include "retrieve/store.h"

typedef struct executor executor;
typedef struct vector_cache vector_cache; /* vector_cache.h */
typedef struct executor_job executor_job;

typedef struct executor_tools { /* what a job's thread has */
    store *store;
    vector_cache *vectors;
} executor_tools;

/* X(enum, threads, most of them for one owner) */
#define EXECUTOR_QUEUE_TABLE(X) \
    X(EXECUTOR_READS, 3, 2)     \
    X(EXECUTOR_WRITES, 1, 1)    \
    X(EXECUTOR_INDEXING, 2, 1)  \
    X(EXECUTOR_SPOOL, 1, 1)
typedef enum executor_queue {
#define EXECUTOR_QUEUE_ENUM(e, n_threads, most_each) e,
    EXECUTOR_QUEUE_TABLE(EXECUTOR_QUEUE_ENUM)
#undef EXECUTOR_QUEUE_ENUM
        EXECUTOR_N_QUEUES
} executor_queue;

struct executor_job {
    int (*work)(executor_job *j, const executor_tools *t, shoal_err *err);
    void (*done)(executor_job *j); /* with rc and err; frees the job, or submits it again */
    executor_queue queue;
    const char *owner; /* whose it is: the digest of an API key, lives as long as the job; NULL: nobody's */
    int rc;            /* what work returned; or why it did not run */
    shoal_err err;
    steps steps; /* what work counts; zeroed by executor_submit */
    atomic_bool
        cancelled;     /* by executor_cancel, or when the executor goes: read by `steps` and by the store */
    uint64_t owner_id; /* the executor's, as is what follows: the owner as a number */
    bool waits;        /* it is in a queue */
    executor_job *next;
};

/* The file is looked at when the first job runs. path is copied; NULL: there is no place for one, which every
 * job hears. */
int executor_new(executor **ret, uv_loop_t *loop, const char *path, size_t memory_bytes, int n_threads,
                 shoal_err *err);
void executor_submit(executor *d, executor_job *j);
/* Nobody wants its result: a job that waits does not run, one that runs ends within STEPS_PER_CHECK of work.
 * `done` comes from the loop as always, with SHOAL_ECANCELLED unless it was done already. */
void executor_cancel(executor *d, executor_job *j);
/* Places for model calls that embed documents, of all ingestions together: so many texts at once fill a
 * worker's queue, and searches that embed their question would be refused. Taken in turns: */
enum { EXECUTOR_EMBEDS = 4 };
typedef struct executor_turn {
    void (*fn)(struct executor_turn *t); /* from the loop, when it may try again */
    bool waits;
    struct executor_turn *next;
} executor_turn;
/* A place is taken, or t waits for one and false is returned. */
bool executor_embed_begin(executor *d, executor_turn *t);
void executor_embed_end(executor *d,
                        size_t n); /* n places are free: those who wait may be called before it returns */
void executor_embed_leave(executor *d, executor_turn *t); /* t waits no more */

/* Cancels all jobs and waits for those that run; run the loop once more afterwards. Accepts NULL. */
void executor_free(executor *d);

#endif
