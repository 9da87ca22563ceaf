/* pool_job.h: work on a client's bytes that the event loop leaves to a thread of libuv's pool.
 *
 *     struct mine { pool_job job; ... } *m = ...;          // job first
 *     pool_job_start(&m->job, loop, false, run, done);
 *
 * run(m) is called on a thread of the pool and touches m alone; done(m) follows on the loop, always, and frees m. Who
 * has no use for the result any more (the client has left) calls pool_job_leave: `left` is set for done, and a job
 * that has not begun is not run. Loop thread, but for run. */
#ifndef INGRESS_POOL_JOB_H
#define INGRESS_POOL_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

typedef struct pool_job pool_job;
struct pool_job {
    uv_work_t req;
    void (*run)(pool_job *j);
    void (*done)(pool_job *j);
    bool left, in_turn;
    pool_job *next; /* of those in turn */
};

/* A text as long as this may become forty times as much memory (json.h): one at a time is read. */
enum { POOL_TURN_BYTES = 256 << 10 };

/* in_turn: its run needs much memory. Of such jobs one at a time runs or waits for its done; the others wait for
 * their turn. 0, or SHOAL_ENOMEM: neither run nor done comes. */
int pool_job_start(pool_job *j, uv_loop_t *loop, bool in_turn, void (*run)(pool_job *j),
                   void (*done)(pool_job *j));
void pool_job_leave(pool_job *j); /* j may be NULL */

/* Frees v in the pool; at once if there is no memory for a job. For json_set_drop_large, with a uv_loop_t. */
void pool_job_drop_json(void *loop, json_t *v);

#endif
