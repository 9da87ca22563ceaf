/* request_base.c: a request as its transport tells it, and the context of its calls. No policy: admission.c, routed.c and
 * watch.c need nothing of request.c. */
#include "request/request.h"

#include <string.h>

#include "request/gateway_state.h"
#include "request/routed.h"

const char *request_method(const gateway_request *rq)
{
    return rq->ingress->ops->method(rq->ingress);
}

const char *request_path(const gateway_request *rq)
{
    return rq->ingress->ops->path(rq->ingress);
}

uint64_t request_now_ns(const gateway_request *rq)
{
    return env_now_ns(&rq->gateway->time);
}

double request_ms(const gateway_request *rq)
{
    return (double)(request_now_ns(rq) - rq->start_ns) / 1e6;
}

int64_t request_date_s(const gateway_request *rq)
{
    return env_wall_s(&rq->gateway->time);
}

const char *request_query(const gateway_request *rq)
{
    return rq->ingress->ops->query(rq->ingress);
}

const char *request_header(const gateway_request *rq, const char *lower_name)
{
    return rq->ingress->ops->header(rq->ingress, lower_name);
}

const char *request_body(const gateway_request *rq, size_t *ret_len)
{
    return rq->ingress->ops->body(rq->ingress, ret_len);
}

void request_pause(gateway_request *rq, bool paused)
{
    rq->ingress->ops->pause(rq->ingress, paused);
}

size_t request_unsent(const gateway_request *rq)
{
    return rq->ingress->ops->unsent(rq->ingress);
}

bool request_is_computed(const gateway_request *rq)
{
    return !rq->cache_state || strcmp(rq->cache_state, "miss") == 0;
}

call_context request_context(const gateway_request *rq, const char *why)
{
    call_context ctx = {.request_id = rq->id,
                        .request = rq->number,
                        .traceparent = *rq->trace ? rq->trace : NULL,
                        .deadline_ns = rq->deadline_ns,
                        .latency = (Shoal__V1__Latency)rq->latency,
                        .why = why};
    const routed *r = rq->routed;
    if (rq->is_recorded) ctx.spans = (call_spans){&rq->gateway->observer, trace_span(rq->trace)};
    if (!r) return ctx;
    if (rq->is_recorded && r->span) ctx.spans.parent = r->span;
    ctx.order = r->order;
    ctx.key = r->key;
    ctx.stand_ins = r->stand_ins;
    ctx.n_stand_ins = r->n_stand_ins;
    ctx.limits = r->route->limits;
    return ctx;
}

void request_watch(gateway_request *rq, void (*on_gone)(void *work), void *work)
{
    rq->on_gone = on_gone;
    rq->work = work;
}
