/* pool.c: see pool.h. */
#include "worker/pool.h"

#include "base/progress.h"
#include "base/signal_stack.h"

static void pool_submit(pool *p, pool_job *j);

static void next_heavy(pool *p)
{
    while (p->n_heavy < POOL_HEAVY && p->head) {
        pool_job *j = p->head;
        p->head = j->next;
        if (!p->head) p->tail = NULL;
        pool_submit(p, j);
    }
}

static void on_thread(uv_work_t *work)
{
    signal_stack_open();
    pool_job *j = work->data;
    progress_begin();
    j->run(j);
    progress_end();
}

static void on_loop(uv_work_t *work, int status)
{
    pool_job *j = work->data;
    pool *p = j->p;
    p->n_heavy -= j->heavy;
    next_heavy(p);
    j->done(j, status == 0); /* may free the worker, and p with it */
}

static void pool_submit(pool *p, pool_job *j)
{
    p->n_heavy += j->heavy;
    j->work.data = j;
    uv_queue_work(p->loop, &j->work, on_thread, on_loop); /* fails without a callback only */
}

void pool_start(pool *p, pool_job *j, bool heavy, void (*run)(pool_job *j),
                void (*done)(pool_job *j, bool ran))
{
    j->p = p;
    j->heavy = heavy;
    j->run = run;
    j->done = done;
    j->next = NULL;
    if (!heavy || p->n_heavy < POOL_HEAVY) {
        pool_submit(p, j);
        return;
    }
    *(p->tail ? &p->tail->next : &p->head) = j;
    p->tail = j;
}

void pool_drop(pool *p, pool_job *j)
{
    pool_job *before = NULL, *k = p->head;
    while (k && k != j) {
        before = k;
        k = k->next;
    }
    if (!k) {
        uv_cancel((uv_req_t *)&j->work); /* UV_EBUSY: a thread has it */
        return;
    }
    *(before ? &before->next : &p->head) = j->next;
    if (p->tail == j) p->tail = before;
    j->done(j, false);
}
