/* call_notes.c: see call_notes.h. */
#include "request/call_notes.h"

#include "base/clock.h"

static gateway_request **call_notes_place_of(gateway *g, uint64_t number)
{
    gateway_request **at = &g->numbered[number % GATEWAY_NUMBERED];
    while (*at && (*at)->number != number) at = &(*at)->next_numbered;
    return at;
}

void call_notes_add(gateway_request *rq)
{
    rq->number = ++rq->gateway->last_number;
    *call_notes_place_of(rq->gateway, rq->number) = rq;
}

void call_notes_remove(gateway_request *rq)
{
    *call_notes_place_of(rq->gateway, rq->number) = rq->next_numbered;
}

static uint64_t draw_id(void)
{
    uint64_t id;
    rng_draw(&id, sizeof id);
    return id ? id : 1;
}

/* A worker says how long each phase took, not when: they follow each other up to the attempt's end. */
static void add_phases(gateway *g, const span *of, const call_attempt *a)
{
    uint64_t end_ns = a->end_ns;
    for (size_t i = a->n_phases; i-- > 0;) {
        uint64_t ns = a->phases[i].ms > 0 ? (uint64_t)(a->phases[i].ms * 1e6) : 0;
        uint64_t start_ns = ns < end_ns - a->start_ns ? end_ns - ns : a->start_ns;
        span s = {
            .group = of->group, .id = draw_id(), .parent = of->id, .start_ns = start_ns, .end_ns = end_ns};
        span_name(&s, a->phases[i].name);
        span_ring_add(g->spans, &s);
        end_ns = start_ns;
    }
}

static void on_attempt(void *user, const call_order *o, const call_attempt *a)
{
    gateway *g = user;
    gateway_request *rq = *call_notes_place_of(g, o->request);
    if (!rq || !trace_is_sampled(rq->trace)) return;
    span s = {.group = rq->number,
              .id = draw_id(),
              .parent = trace_span(rq->trace),
              .start_ns = a->start_ns,
              .end_ns = a->end_ns};
    span_name(&s, CALL_TASKS[o->task].name);
    span_set(&s, "replica", a->replica_id);
    span_set(&s, "why", o->why);
    span_set(&s, "error", a->status ? shoal_err_name(a->status) : "");
    span_set(&s, "fault", call_fault_name(a->fault));
    span_ring_add(g->spans, &s);
    add_phases(g, &s, a);
}

static void on_moved(void *user, const call_order *o, const call_move *m)
{
    gateway *g = user;
    gateway_request *rq = *call_notes_place_of(g, o->request);
    if (rq) request_note_move(rq, m);
    metrics_add(g->metrics, METRIC_MOVES, 1, m->cause, NULL, NULL);
    if (m->restarted) metrics_add(g->metrics, METRIC_ANSWER_RESTARTS, 1, m->cause, NULL, NULL);
    metrics_observe_s(g->metrics, METRIC_MOVE_S, m->gap_ms / 1000, m->cause, NULL);
}

static void on_hedged(void *user, const call_order *o, bool won)
{
    gateway *g = user;
    metrics_add(g->metrics, METRIC_HEDGES, 1, CALL_TASKS[o->task].name, won ? "won" : "lost", NULL);
}

static void on_degraded(void *user, const call_order *o, const char *to)
{
    gateway *g = user;
    metrics_add(g->metrics, METRIC_DEGRADED, 1, o->model, to, NULL);
}

void call_notes_open(gateway *g)
{
    g->observer = (call_observer){
        .user = g, .attempt = on_attempt, .moved = on_moved, .hedged = on_hedged, .degraded = on_degraded};
}
