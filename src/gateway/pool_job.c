/* pool_job.c: see pool_job.h. */
#include "gateway/pool_job.h"

#include <stddef.h>
#include <stdlib.h>

#include "shoal.h"

static void on_run(uv_work_t *req)
{
    pool_job *j = (pool_job *)((char *)req - offsetof(pool_job, req));
    j->run(j);
}

static void on_done(uv_work_t *req, int status)
{
    pool_job *j = (pool_job *)((char *)req - offsetof(pool_job, req));
    j->done(j);
}

int pool_job_start(pool_job *j, uv_loop_t *loop, void (*run)(pool_job *j), void (*done)(pool_job *j))
{
    j->run = run;
    j->done = done;
    j->left = false;
    return uv_queue_work(loop, &j->req, on_run, on_done) == 0 ? 0 : SHOAL_ENOMEM;
}

void pool_job_leave(pool_job *j)
{
    if (!j) return;
    j->left = true;
    uv_cancel((uv_req_t *)&j->req); /* fails for one that runs: its done comes when it is over */
}

typedef struct drop {
    pool_job job; /* first */
    json_t *v;
} drop;

static void drop_run(pool_job *j)
{
    json_decref(((drop *)j)->v);
}

static void drop_done(pool_job *j)
{
    free(j);
}

void pool_job_drop_json(void *loop, json_t *v)
{
    drop *d = calloc(1, sizeof *d);
    if (d) d->v = v;
    if (d && pool_job_start(&d->job, loop, drop_run, drop_done) == 0) return;
    free(d);
    json_decref(v);
}
