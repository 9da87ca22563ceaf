/* service_items.c: the items of one call on their way through the engine. */
#include "worker/service_items.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"

call_item *items_at(const items_call *c, size_t i)
{
    return (call_item *)((char *)c->items + i * c->ops->item_size);
}

static void items_call_free(items_call *c)
{
    c->ops->free(c);
    buf_done(&c->message);
    free(c->items);
    free(c);
}

static void items_finish(items_call *c)
{
    grpc_call *call = c->call;
    if (c->ops->reply(c) != 0) {
        shoal_err err;
        c->call = NULL;
        err_nomem(&err);
        service_call_refuse(c->w, call, &c->trace, &err);
        return;
    }
    c->call = NULL;
    LOG(LOG_INFO, "worker", "call_done", LOG_S("request_id", c->trace.request_id),
        LOG_S("trace_id", c->trace.trace_id), LOG_S("method", c->trace.method), LOG_S("model", c->w->name),
        LOG_S("version", c->w->backend.about.version),
        LOG_S("quantisation", c->w->backend.about.quantisation), LOG_I("inputs", c->n),
        LOG_I(c->ops->tokens, c->n_tokens), LOG_F("queue_ms", c->queue_ms),
        LOG_F("compute_ms", c->compute_ms), LOG_F("ms", clock_ms_since(c->trace.start_ns)));
    grpc_call_end(call, GRPC_OK, NULL);
}

static void cancel_running(items_call *c)
{
    for (size_t i = 0; i < c->n_started; i++)
        if (items_at(c, i)->running) c->w->backend.ops->cancel(c->w->backend.state, items_at(c, i)->id);
}

static void items_fail(items_call *c, const shoal_err *err)
{
    grpc_call *call = c->call;
    c->call = NULL;
    service_call_refuse(c->w, call, &c->trace, err);
    cancel_running(c);
}

/* A full queue is a refusal only when nothing of this call is running: else its own results make room. */
static void submit_more(items_call *c)
{
    while (c->call && c->n_started < c->n && c->n_running < c->together) {
        call_item *it = items_at(c, c->n_started);
        shoal_err err;
        int rc = c->ops->submit(c, it, &err);
        if (rc == SHOAL_EFULL && c->n_running > 0) return;
        if (rc != 0) {
            items_fail(c, &err);
            return;
        }
        it->running = true;
        c->n_started++;
        c->n_running++;
    }
}

static void item_done(bridge_job *j)
{
    call_item *it = (call_item *)j;
    items_call *c = it->owner;
    it->running = false;
    c->n_running--;
    c->n_done++;
    c->ops->took(c, it);
    if (c->call && j->status != 0) {
        shoal_err err;
        bool ours = j->status == SHOAL_ECANCELLED; /* nobody but a closing engine cancels a live call */
        err_set(&err, ours ? SHOAL_EUNAVAILABLE : j->status, "%s",
                ours ? "the worker is shutting down" : j->message);
        items_fail(c, &err);
    }
    submit_more(c);
    if (c->call && c->n_done == c->n) items_finish(c);
    if (c->n_running == 0 && !c->call) items_call_free(c);
}

static void items_call_gone(void *user, grpc_call *call)
{
    items_call *c = user;
    c->call = NULL;
    LOG(LOG_INFO, "worker", "call_cancelled", LOG_S("request_id", c->trace.request_id),
        LOG_S("trace_id", c->trace.trace_id), LOG_S("method", c->trace.method), LOG_S("model", c->w->name));
    cancel_running(c);
}

items_call *items_begin(const items_ops *ops, size_t size, worker *w, grpc_call *call, const char *method)
{
    items_call *c = calloc(1, size);
    if (!c) {
        grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return NULL;
    }
    c->ops = ops;
    c->w = w;
    c->call = call;
    c->deadline_ns = grpc_call_deadline_ns(call);
    service_call_begin(w, call, method, &c->trace);
    return c;
}

int items_make(items_call *c, size_t n, shoal_err *err)
{
    c->items = calloc(n, c->ops->item_size);
    if (!c->items) return err_nomem(err);
    c->n = n;
    for (size_t i = 0; i < n; i++) {
        call_item *it = items_at(c, i);
        it->owner = c;
        it->job.b = c->w->bridge;
        it->job.on_token = c->ops->judged;
        it->job.on_done = item_done;
    }
    return 0;
}

static void items_go(items_call *c, int rc, const shoal_err *err)
{
    if (rc != 0) {
        service_call_refuse(c->w, c->call, &c->trace, err);
        items_call_free(c);
        return;
    }
    grpc_call_on_cancel(c->call, items_call_gone, c);
    submit_more(c);
    if (c->n_running == 0) items_call_free(c);
}

/* ---- long messages --------------------------------------------------------------------------------- */

static items_call *items_call_of(pool_job *work)
{
    return (items_call *)((char *)work - offsetof(items_call, work));
}

static void prepare_run(pool_job *work)
{
    items_call *c = items_call_of(work);
    c->rc = c->prepare(c, (const uint8_t *)c->message.data, c->message.len, &c->err);
}

static void prepare_done(pool_job *work, bool ran)
{
    items_call *c = items_call_of(work);
    worker *w = c->w;
    if (c->call)
        items_go(c, c->rc, &c->err);
    else
        items_call_free(c);
    service_blocking_ended(w);
}

static void unprepared_gone(void *user, grpc_call *call)
{
    items_call *c = user;
    c->call = NULL;
    pool_drop(&c->w->pool, &c->work); /* may free it */
}

static int prepare_later(items_call *c, const uint8_t *msg, size_t n, shoal_err *err)
{
    int rc = service_check_blocking(c->w, err);
    if (rc == 0 && buf_append(&c->message, msg, n) != 0) rc = err_nomem(err);
    if (rc != 0) return rc;
    c->w->blocking.n++;
    grpc_call_on_cancel(c->call, unprepared_gone, c);
    pool_start(&c->w->pool, &c->work, true, prepare_run, prepare_done);
    return 0;
}

void items_run(items_call *c, model_task task, items_prepare_fn prepare, const uint8_t *msg, size_t n)
{
    shoal_err err;
    c->prepare = prepare;
    int rc = service_call_admit(c->w, task, &err);
    if (rc == 0 && n > SERVICE_LONG_BYTES) {
        rc = prepare_later(c, msg, n, &err);
        if (rc == 0) return;
    } else if (rc == 0) {
        rc = prepare(c, msg, n, &err);
    }
    items_go(c, rc, &err);
}
