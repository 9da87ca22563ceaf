/* step.c: what the loops of decoders and encoders do around each step: which team, which deadline, and what
 * the step teaches. */
#include "base/clock.h"
#include "infer/engine_impl.h"
#include "os/crash.h"

static const char *const KINDS[STEP_KINDS] = {
    [STEP_DECODE] = "decode", [STEP_PREFILL] = "prefill", [STEP_ENCODE] = "encode"};

team *step_team(engine *e, step_kind k, size_t n_tokens)
{
    crash_step_begin(KINDS[k], atomic_load_explicit(&e->stats.n_running, memory_order_relaxed), n_tokens);
    team_use(e->team, core_lease_members(&e->lease, &e->step_cost, k, n_tokens));
    return e->team;
}

void step_note_team(engine *e, step_kind k, size_t n_tokens, uint64_t took_ns)
{
    crash_step_end();
    step_cost_note(&e->step_cost, k, n_tokens, team_size(e->team), took_ns);
}

uint64_t step_deadline(uint64_t earliest_ns, uint64_t soon_ns)
{
    uint64_t soon = clock_ns() + soon_ns;
    return earliest_ns && earliest_ns < soon ? earliest_ns : soon;
}

void step_learn(learnt_cost *c, size_t size, double took_ms)
{
    linear_cost_learn(&c->cost, (double)size, took_ms, clock_ns());
    linear_cost_line l = linear_cost_line_of(&c->cost);
    atomic_store_explicit(&c->fixed_ms, l.fixed_ms, memory_order_relaxed);
    atomic_store_explicit(&c->unit_ms, l.unit_ms, memory_order_relaxed);
    atomic_store_explicit(&c->reach, l.reach, memory_order_relaxed);
}

linear_cost_line learnt_cost_line(const learnt_cost *c)
{
    return (linear_cost_line){.fixed_ms = atomic_load_explicit(&c->fixed_ms, memory_order_relaxed),
                              .unit_ms = atomic_load_explicit(&c->unit_ms, memory_order_relaxed),
                              .reach = atomic_load_explicit(&c->reach, memory_order_relaxed)};
}

void step_average(_Atomic double *avg, double newest)
{
    double old = atomic_load_explicit(avg, memory_order_relaxed);
    atomic_store_explicit(avg, old > 0 ? old + 0.1 * (newest - old) : newest, memory_order_relaxed);
}
