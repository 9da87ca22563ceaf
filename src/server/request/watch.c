/* watch.c: a walk over the requests every few milliseconds, while one of them waits. */
#include "request/watch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "request/gateway_state.h"

#define LOOK_MS 5

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

static void tick(uv_timer_t *t)
{
    gateway *g = t->data;
    uint64_t now = clock_ns();
    bool more;
    work_fn fn;
    for (gateway_request *rq; (rq = next_due(g, now, &fn, &more));) fn(rq->work);
    settings_sweep(g);
    if (!more) uv_timer_stop(t);
}

void watch_requests(gateway *g)
{
    if (!uv_is_active((uv_handle_t *)g->watch)) uv_timer_start(g->watch, tick, LOOK_MS, LOOK_MS);
}

int watch_open(gateway *g, shoal_err *err)
{
    g->watch = malloc(sizeof *g->watch);
    if (!g->watch) return err_nomem(err);
    uv_timer_init(g->loop, g->watch);
    g->watch->data = g;
    return 0;
}

static void free_handle(uv_handle_t *h)
{
    free(h);
}

void watch_close(gateway *g)
{
    if (g->watch) uv_close((uv_handle_t *)g->watch, free_handle);
    g->watch = NULL;
}
