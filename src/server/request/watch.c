/* watch.c: a walk over the requests every few milliseconds, while one of them waits. */
#include "request/watch.h"

#include "request/gateway_state.h"

enum { LOOK_MS = 5 };

typedef void (*work_fn)(void *work);

/* What is due for rq now, taken out of it; NULL for nothing. */
static work_fn take_due(gateway_request *rq, uint64_t now)
{
    work_fn *at = rq->on_deadline && now >= rq->deadline_ns             ? &rq->on_deadline
                  : rq->on_room && request_unsent(rq) <= rq->room_bytes ? &rq->on_room
                                                                        : NULL;
    work_fn fn = at ? *at : NULL;
    if (at) *at = NULL;
    return fn;
}

/* Its callback may end any request, so the list is walked anew after each. */
static gateway_request *next_due(gateway *g, uint64_t now, work_fn *ret_fn, bool *ret_more)
{
    *ret_more = false;
    for (gateway_request *rq = g->requests; rq; rq = rq->next) {
        if ((*ret_fn = take_due(rq, now))) return rq;
        if (rq->on_deadline || rq->on_room) *ret_more = true;
    }
    return NULL;
}

static void tick(void *user)
{
    gateway *g = user;
    uint64_t now = env_now_ns(&g->time);
    bool more;
    work_fn fn;
    for (gateway_request *rq; (rq = next_due(g, now, &fn, &more));) fn(rq->work);
    settings_sweep(g);
    g->watching = false;
    if (more) watch_requests(g);
}

void watch_requests(gateway *g)
{
    if (!g->watching) g->time.timer_start(g->watch, LOOK_MS);
    g->watching = true;
}

int watch_open(gateway *g, shoal_err *err)
{
    g->watch = g->time.timer_new(g->time.user, tick, g);
    return g->watch ? 0 : err_nomem(err);
}

void watch_close(gateway *g)
{
    g->time.timer_free(g->watch);
    g->watch = NULL;
}
