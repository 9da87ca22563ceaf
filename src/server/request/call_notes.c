/* call_notes.c: see call_notes.h. */
#include "request/call_notes.h"

static gateway_request **place_of(gateway *g, uint64_t number)
{
    gateway_request **at = &g->numbered[number % GATEWAY_NUMBERED];
    while (*at && (*at)->number != number) at = &(*at)->next_numbered;
    return at;
}

void call_notes_add(gateway_request *rq)
{
    rq->number = ++rq->gateway->last_number;
    *place_of(rq->gateway, rq->number) = rq;
}

void call_notes_remove(gateway_request *rq)
{
    *place_of(rq->gateway, rq->number) = rq->next_numbered;
}

static void on_moved(void *user, const call_order *o, const call_move *m)
{
    gateway *g = user;
    gateway_request *rq = *place_of(g, o->request);
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
    g->observer = (call_observer){.user = g, .moved = on_moved, .hedged = on_hedged, .degraded = on_degraded};
}
