/* pool_job.c: see pool_job.h. */
#include "ingress/pool_job.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/signal_stack.h"
#include "shoal.h"

/* Values that wait to be freed: the next job of any kind frees them before it makes more. */
typedef struct drop {
    pool_job job; /* first */
    json_t *v;    /* NULL: freed */
    struct drop *next;
} drop;

static pthread_mutex_t dropped_lock = PTHREAD_MUTEX_INITIALIZER;
static drop *dropped;

static json_t *take_dropped(void)
{
    json_t *v = NULL;
    pthread_mutex_lock(&dropped_lock);
    if (dropped) {
        v = dropped->v;
        dropped->v = NULL;
        dropped = dropped->next;
    }
    pthread_mutex_unlock(&dropped_lock);
    return v;
}

static void free_dropped(void)
{
    for (json_t *v; (v = take_dropped());) json_decref(v);
}

static void on_run(uv_work_t *req)
{
    signal_stack_open();
    pool_job *j = (pool_job *)((char *)req - offsetof(pool_job, req));
    free_dropped();
    j->run(j);
}

/* Of this thread's loop: those that wait for their turn, and whether somebody has it. */
static _Thread_local struct {
    pool_job *head, *tail;
    bool taken;
} turns;

static void begin_next(uv_loop_t *loop);

static void on_done(uv_work_t *req, int status)
{
    pool_job *j = (pool_job *)((char *)req - offsetof(pool_job, req));
    uv_loop_t *loop = req->loop;
    bool in_turn = j->in_turn;
    j->done(j);
    if (!in_turn) return;
    turns.taken = false;
    begin_next(loop);
}

static int pool_job_begin(pool_job *j, uv_loop_t *loop)
{
    return uv_queue_work(loop, &j->req, on_run, on_done) == 0 ? 0 : SHOAL_ENOMEM;
}

/* Those that were left are over without a run. */
static void begin_next(uv_loop_t *loop)
{
    while (turns.head && !turns.taken) {
        pool_job *j = turns.head;
        turns.head = j->next;
        turns.taken = !j->left && pool_job_begin(j, loop) == 0;
        if (turns.taken) continue;
        j->left = true;
        j->done(j);
    }
}

int pool_job_start(pool_job *j, uv_loop_t *loop, bool in_turn, void (*run)(pool_job *j),
                   void (*done)(pool_job *j))
{
    j->run = run;
    j->done = done;
    j->left = false;
    j->in_turn = in_turn;
    j->next = NULL;
    if (in_turn && turns.taken) {
        *(turns.head ? &turns.tail->next : &turns.head) = j;
        turns.tail = j;
        return 0;
    }
    int rc = pool_job_begin(j, loop);
    turns.taken |= in_turn && rc == 0;
    return rc;
}

void pool_job_leave(pool_job *j)
{
    if (!j) return;
    j->left = true;
    uv_cancel(
        (uv_req_t *)&j->req); /* fails for one that runs: its done comes when it is over; or has not begun */
}

static void drop_run(pool_job *j) {}

static void drop_done(pool_job *j)
{
    free(j);
}

void pool_job_drop_json(void *loop, json_t *v)
{
    drop *d = calloc(1, sizeof *d);
    if (!d) {
        json_decref(v);
        return;
    }
    d->v = v;
    pthread_mutex_lock(&dropped_lock);
    d->next = dropped;
    dropped = d;
    pthread_mutex_unlock(&dropped_lock);
    if (pool_job_start(&d->job, loop, false, drop_run, drop_done) == 0) return;
    free_dropped();
    free(d);
}
