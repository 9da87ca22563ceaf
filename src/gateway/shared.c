/* shared.c: one computation for identical requests; see shared.h. A job may be gone when one of its functions
 * returns, so nothing touches it afterwards; its ticket is taken out before it is freed. */
#include "gateway/shared.h"

#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"

cache_ticket *shared_detach(shared_job *s)
{
    cache_ticket *t = s->ticket;
    s->ticket = NULL;
    if (!t || !*s->rq->degraded.wanted) return t;
    cache_leave(t); /* another model's answer is nobody else's: the next one asks for itself */
    return NULL;
}

void shared_publish(cache_ticket *t, const buf *packed)
{
    if (packed->failed)
        cache_leave(t);
    else
        cache_fill(t, packed->data, packed->len, clock_ns());
}

/* Another request has its own deadline, and may find memory. */
static bool is_ours_alone(const api_error *e)
{
    return e->status == 504 || (e->code && strcmp(e->code, "out_of_memory") == 0);
}

void shared_fail(shared_job *s, const api_error *e)
{
    cache_ticket *t = shared_detach(s);
    gateway_request *rq = s->rq;
    s->ops->free(s);
    request_error(rq, e);
    if (is_ours_alone(e))
        cache_leave(t);
    else
        cache_fail(t, e->status, e, sizeof *e);
}

void shared_fail_nomem(shared_job *s)
{
    api_error e;
    api_error_nomem(&e);
    shared_fail(s, &e);
}

/* The client has left. Whoever waits for the same answer takes over; our calls stop at once. */
static void on_gone(void *work)
{
    shared_job *s = work;
    cache_ticket *t = shared_detach(s);
    s->ops->free(s);
    cache_leave(t);
}

/* A waiter that its deadline reached first: the computation goes on for the others. */
static void on_deadline(void *work)
{
    call_result late = {.status = SHOAL_EDEADLINE,
                        .message = "the deadline passed while an identical request was computed"};
    api_error e;
    api_error_from_call(&e, &late);
    shared_fail(work, &e);
}

static void compute(shared_job *s, const char *state)
{
    s->rq->cache_state = state;
    s->ops->compute(s);
}

static void answer(shared_job *s, const cache_value *v, const char *state)
{
    s->rq->cache_state = state;
    s->ops->answer(s, v);
}

/* The leader's error: v holds its api_error, or is NULL when there was no memory to keep it. */
static void fail_as_leader(shared_job *s, const cache_value *v)
{
    api_error e;
    if (v && v->len == sizeof e)
        memcpy(&e, v->data, sizeof e);
    else
        api_error_set(&e, 503, "service_unavailable", "worker_unavailable", NULL,
                      "the computation failed; send it again");
    s->rq->cache_state = "shared";
    shared_fail(s, &e);
}

static void on_turn(void *user, cache_outcome outcome, const cache_value *v)
{
    shared_job *s = user;
    request_on_deadline(s->rq, NULL);
    if (outcome == CACHE_LEAD) { /* the ticket stays ours */
        compute(s, "miss");
        return;
    }
    s->ticket = NULL; /* the cache has freed it */
    if (outcome == CACHE_HIT)
        answer(s, v, "shared");
    else
        fail_as_leader(s, v);
}

void shared_start(shared_job *s, const shared_ops *ops, gateway_request *rq, const sha256_digest *key)
{
    *s = (shared_job){.ops = ops, .rq = rq};
    request_watch(rq, on_gone, s);
    if (!key || request_wants_fresh(rq)) {
        compute(s, NULL);
        return;
    }
    const cache_value *v = NULL;
    switch (cache_lookup(rq->cache, key, clock_ns(), on_turn, s, &s->ticket, &v)) {
    case CACHE_HIT:
        answer(s, v, "hit");
        cache_value_unref(v);
        break;
    case CACHE_LEAD: compute(s, "miss"); break;
    default: request_on_deadline(rq, on_deadline); break;
    }
}
