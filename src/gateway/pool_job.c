/* pool_job.c: see pool_job.h. */
#include "gateway/pool_job.h"

#include <stddef.h>

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
