/* desk.h: threads that do what blocks (the store, the scan, splitting documents) for a loop that must not.
 *
 * Jobs go through four queues, each with threads of its own, so that none waits for work of another kind:
 *
 *     DESK_READS      searches and lists
 *     DESK_WRITES     one writer of the store, in short transactions
 *     DESK_INDEXING   documents parsed and split
 *     DESK_SPOOL      uploads into nameless files
 *
 * Within a queue the owner (an API key) who was served longest ago is next, and no owner has more than the
 * queue's `most_each` threads, so that one key cannot take them all. A job is a struct of its owner's: `work`
 * runs in a thread, then `done` on the loop, always and once.
 *
 *     typedef struct count_job { desk_job job; int n; } count_job;
 *     static int work(desk_job *j, const desk_tools *t, shoal_err *err)
 *     {
 *         return store_each(t->store, NULL, 100, count, j, err);
 *     }
 *     ...
 *     c->job = (desk_job){.work = work, .done = done, .queue = DESK_READS};
 *     desk_submit(d, &c->job);
 *
 * Each thread has a connection to the store of its own; SQLite's write-ahead log lets readers go on while
 * somebody writes. Threads start with the first job, and a file is made with the first that comes. Loop
 * thread, but for `work`. */
#ifndef RETRIEVE_DESK_H
#define RETRIEVE_DESK_H

#include <uv.h>

#include "retrieve/store.h"

typedef struct desk desk;
typedef struct shelf shelf; /* shelf.h */
typedef struct desk_job desk_job;

typedef struct desk_tools { /* what a job's thread has */
    store *store;
    shelf *shelf;
} desk_tools;

/* X(enum, threads, most of them for one owner) */
#define DESK_QUEUE_TABLE(X) \
    X(DESK_READS, 3, 2)     \
    X(DESK_WRITES, 1, 1)    \
    X(DESK_INDEXING, 2, 1)  \
    X(DESK_SPOOL, 1, 1)
typedef enum desk_queue {
#define DESK_QUEUE_ENUM(e, n_threads, most_each) e,
    DESK_QUEUE_TABLE(DESK_QUEUE_ENUM)
#undef DESK_QUEUE_ENUM
        DESK_N_QUEUES
} desk_queue;

struct desk_job {
    int (*work)(desk_job *j, const desk_tools *t, shoal_err *err);
    void (*done)(desk_job *j); /* with rc and err; frees the job, or submits it again */
    desk_queue queue;
    const char *owner; /* whose it is: the digest of an API key, lives as long as the job; NULL: nobody's */
    int rc;            /* what work returned; or why it did not run */
    shoal_err err;
    steps steps;           /* what work counts; zeroed by desk_submit */
    atomic_bool cancelled; /* by desk_cancel, or when the desk goes: read by `steps` and by the store */
    uint64_t owner_id;     /* the desk's, as is what follows: the owner as a number */
    bool waits;            /* it is in a queue */
    desk_job *next;
};

/* The file is looked at when the first job runs. path is copied; NULL: there is no place for one, which every
 * job hears. */
int desk_new(desk **ret, uv_loop_t *loop, const char *path, size_t memory_bytes, int n_threads,
             shoal_err *err);
void desk_submit(desk *d, desk_job *j);
/* Nobody wants its result: a job that waits does not run, one that runs ends within STEPS_PER_CHECK of work.
 * `done` comes from the loop as always, with SHOAL_ECANCELLED unless it was done already. */
void desk_cancel(desk *d, desk_job *j);
/* Places for model calls that embed documents, of all ingestions together: so many texts at once fill a
 * worker's queue, and searches that embed their question would be refused. Taken in turns: */
enum { DESK_EMBEDS = 4 };
typedef struct desk_turn {
    void (*fn)(struct desk_turn *t); /* from the loop, when it may try again */
    bool waits;
    struct desk_turn *next;
} desk_turn;
/* A place is taken, or t waits for one and false is returned. */
bool desk_embed_begin(desk *d, desk_turn *t);
void desk_embed_end(desk *d,
                    size_t n); /* n places are free: those who wait may be called before it returns */
void desk_embed_leave(desk *d, desk_turn *t); /* t waits no more */

/* Cancels all jobs and waits for those that run; run the loop once more afterwards. Accepts NULL. */
void desk_free(desk *d);

#endif
