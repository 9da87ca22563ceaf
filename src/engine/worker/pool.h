/* pool.h: work on the threads of the loop (libuv's pool, of which all services of a worker share four), so
 * that long jobs leave threads to short ones.
 *
 * A job is light (a small picture, a window of sound: some milliseconds) or heavy (seconds: a large picture,
 * a long sound, many rows). Light ones go to a thread at once; of the heavy ones POOL_HEAVY run at a time,
 * and the others wait here in the order they came. A job whose client has left is taken out before it begins.
 *
 *     pool_start(&w->pool, &j->job, heavy, run, done);     // run: on a thread; done: on the loop
 *     pool_drop(&w->pool, &j->job);                        // done(job, false), now or soon, unless it runs
 *
 * Loop thread. */
#ifndef WORKER_POOL_H
#define WORKER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

enum { POOL_HEAVY = 2 };

typedef struct pool_job pool_job;
typedef struct pool pool;

struct pool_job { /* a part of the caller's job, which lives until done */
    uv_work_t work;
    pool *p;
    bool heavy;
    void (*run)(pool_job *j);
    void (*done)(pool_job *j, bool ran); /* ran false: it was dropped before it began */
    pool_job *next;                      /* of those that wait */
};

struct pool { /* zeroed but for the loop: nothing runs */
    uv_loop_t *loop;
    size_t n_heavy;        /* that have a thread or wait for libuv to give them one */
    pool_job *head, *tail; /* heavy ones that wait */
};

void pool_start(pool *p, pool_job *j, bool heavy, void (*run)(pool_job *j),
                void (*done)(pool_job *j, bool ran));
/* A job that waits in the pool ends before the call returns, one that libuv has not begun ends soon; one that
 * runs is not disturbed. */
void pool_drop(pool *p, pool_job *j);

#endif
