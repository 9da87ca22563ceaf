/* call_notes.c: see call_notes.h. */
#include "request/call_notes.h"

#include "base/clock.h"
#include "base/number.h"
#include "request/confidence_watch.h"

enum { CPU_DIGITS = 4 }; /* of milliseconds in a span */

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
static void add_phases(gateway_request *rq, const span *of, const call_attempt *a)
{
    uint64_t end_ns = a->end_ns;
    for (size_t i = a->n_phases; i-- > 0;) {
        uint64_t ns = a->phases[i].ms > 0 ? (uint64_t)(a->phases[i].ms * 1e6) : 0;
        uint64_t start_ns = ns < end_ns - a->start_ns ? end_ns - ns : a->start_ns;
        span s = {
            .kind = SPAN_PHASE, .id = draw_id(), .parent = of->id, .start_ns = start_ns, .end_ns = end_ns};
        span_name(&s, a->phases[i].name);
        span_list_add(&rq->spans, &s);
        end_ns = start_ns;
    }
}

static void set_count(span *s, const char *key, uint64_t n)
{
    char digits[NUMBER_SIZE];
    number_write_u64(digits, n);
    span_set(s, key, digits);
}

static void set_usage(span *s, const call_usage *u)
{
    if (!u->known) return;
    set_count(s, "prompt_tokens", u->n_prompt);
    set_count(s, "completion_tokens", u->n_generated);
    span_set(s, "finish", u->finish);
}

static void add_attempt(gateway_request *rq, const call_order *o, const call_attempt *a)
{
    char cpu[NUMBER_SIZE];
    span s = {.kind = SPAN_CALL,
              .id = draw_id(),
              .parent = o->spans.parent,
              .start_ns = a->start_ns,
              .end_ns = a->end_ns};
    span_name(&s, CALL_TASKS[o->task].name);
    span_set(&s, "model", o->model);
    span_set(&s, "replica", a->replica_id);
    span_set(&s, "why", o->why);
    if (a->status) span_set(&s, "error", shoal_err_name(a->status));
    span_set(&s, "fault", call_fault_name(a->fault));
    number_write(cpu, a->cpu_ms, CPU_DIGITS);
    span_set(&s, "cpu_ms", a->cpu_ms > 0 ? cpu : "");
    set_usage(&s, &a->usage);
    span_list_add(&rq->spans, &s);
    add_phases(rq, &s, a);
}

static void on_attempt(void *user, const call_order *o, const call_attempt *a)
{
    gateway *g = user;
    gateway_request *rq = *call_notes_place_of(g, o->request);
    if (a->cpu_ms > 0)
        metrics_add(g->metrics, METRIC_CALL_CPU_S, a->cpu_ms / 1e3, o->model, CALL_TASKS[o->task].name, NULL);
    if (a->confidences) confidence_watch_add(g->confidences, o->model, a->identity, a->confidences);
    if (rq && o->spans.parent) add_attempt(rq, o, a);
}

static void on_span(void *user, uint64_t request, const span *s)
{
    gateway_request *rq = *call_notes_place_of(user, request);
    if (rq) span_list_add(&rq->spans, s);
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

static void on_held(void *user, const call_order *o, bool held)
{
    gateway *g = user;
    metrics_add(g->metrics, METRIC_HELD, held ? 1 : -1, o->model, NULL, NULL);
}

void call_notes_open(gateway *g)
{
    g->observer = (call_observer){.user = g,
                                  .attempt = on_attempt,
                                  .moved = on_moved,
                                  .hedged = on_hedged,
                                  .degraded = on_degraded,
                                  .span = on_span,
                                  .held = on_held};
}
