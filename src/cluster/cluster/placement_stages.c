/* placement_stages.c: assignments of models whose layers are dealt out over machines.
 *
 * A chain that is whole stays as it is, unless stages share a machine and others could be used, or nobody
 * asks the model and another deal is much faster. Where a stage has lost its machine, another one takes its
 * layers, so that the rest need not be loaded again; where none has room for these, all layers are dealt out
 * anew (split.h). */
#include <stdlib.h>
#include <string.h>

#include "cluster/placement_impl.h"

typedef struct chain {           /* a model's stages, in the order of their layers */
    size_t at[SPLIT_STAGES_MAX]; /* in placement_state.assignments */
    size_t n, n_machines;
    bool whole;
} chain;

/* ---- what is there ------------------------------------------------------------------------------- */

static void insert(const placement_state *d, chain *c, size_t i)
{
    size_t k = c->n++;
    for (; k > 0 && d->assignments[c->at[k - 1]].s.first > d->assignments[i].s.first; k--)
        c->at[k] = c->at[k - 1];
    c->at[k] = i;
}

static size_t count_machines(const placement_state *d, const chain *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        size_t k = 0;
        while (k < i && d->assignments[c->at[k]].s.node != d->assignments[c->at[i]].s.node) k++;
        n += k == i;
    }
    return n;
}

static chain chain_of(const placement_state *d, size_t model)
{
    chain c = {0};
    size_t layers = 0;
    for (size_t i = 0; i < d->n_assignments && c.n < SPLIT_STAGES_MAX; i++) {
        const assignment *x = &d->assignments[i];
        if (!x->out && x->s.model == model && x->s.end > 0) insert(d, &c, i);
    }
    for (size_t i = 0; i < c.n && d->assignments[c.at[i]].s.first == layers; i++)
        layers = d->assignments[c.at[i]].s.end;
    c.whole =
        c.n > 0 && layers == d->models[model].shape.n_layer && d->assignments[c.at[c.n - 1]].s.end == layers;
    c.n_machines = count_machines(d, &c);
    return c;
}

bool placement_chain_is_whole(const placement_state *d, size_t model)
{
    chain c = chain_of(d, model);
    return c.n == 0 || c.whole;
}

static bool has_whole_one(const placement_state *d, size_t model)
{
    for (size_t i = 0; i < d->n_assignments; i++)
        if (!d->assignments[i].out && d->assignments[i].s.model == model && d->assignments[i].s.end == 0)
            return true;
    return false;
}

static bool may_be_whole(const placement_state *d, size_t model)
{
    for (size_t i = 0; i < d->n_nodes; i++)
        if (placement_may(&d->models[model], &d->nodes[i], d->taken[i], false) == PLACEMENT_YES) return true;
    return false;
}

static void sit(placement_state *d, size_t model, size_t at, size_t first, size_t end, placement_why why)
{
    placement_assign(
        d, &(placement_assignment){.model = model, .node = at, .first = first, .end = end, .why = why});
}

static void leave_all(placement_state *d, const chain *c)
{
    for (size_t i = 0; i < c->n; i++) placement_leave(d, &d->assignments[c->at[i]], PLACEMENT_REDEALT);
}

/* ---- all layers anew ------------------------------------------------------------------------------ */

typedef struct table { /* where stages could be */
    split_place *places;
    size_t n, n_machines;
    split_part parts[SPLIT_STAGES_MAX];
    size_t n_parts, n_used; /* machines that the parts are on */
} table;

/* Memory that the model itself holds there is free for the new deal. */
static uint64_t own_bytes(const placement_state *d, const chain *c, size_t at)
{
    uint64_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const placement_assignment *s = &d->assignments[c->at[i]].s;
        if (s->node == at) n += placement_assignment_bytes(d, s);
    }
    return n;
}

/* In the order of their names, so that the order of the lists does not matter. */
static void add_machine(const placement_state *d, const chain *c, size_t model, size_t at, bool battery,
                        table *t)
{
    const placement_model *m = &d->models[model];
    const node *n = &d->nodes[at];
    uint64_t taken = d->taken[at] - own_bytes(d, c, at), least = split_memory(&m->shape, 1, false);
    if (n->on_battery && m->battery == PLACEMENT_BATTERY_AVOID && !battery) return;
    if (placement_may_part(m, n, taken, least, false) != PLACEMENT_YES) return;
    size_t k = t->n_machines++;
    for (; k > 0 && strcmp(d->nodes[t->places[k - 1].machine].name, n->name) > 0; k--)
        t->places[k] = t->places[k - 1];
    t->n = t->n_machines;
    t->places[k] = (split_place){.machine = at,
                                 .free_bytes = placement_budget_bytes(n) - taken,
                                 .bytes_per_s = placement_speed(n),
                                 .multiplies_per_s = n->multiplies_per_s,
                                 .rtt_ms = n->rtt_ms,
                                 .unreached = n->unreached};
}

static size_t fastest(const table *t, const bool *taken)
{
    size_t best = t->n_machines;
    for (size_t i = 0; i < t->n_machines; i++) {
        if (taken[i]) continue;
        if (best == t->n_machines || t->places[i].bytes_per_s > t->places[best].bytes_per_s) best = i;
    }
    return best;
}

/* Fewer machines than stages: each has some, the fastest one more, and they share its memory and speed. */
static void share_machines(table *t, size_t n_stages)
{
    bool taken[SPLIT_STAGES_MAX] = {0};
    size_t each = n_stages / t->n_machines, more = n_stages % t->n_machines;
    for (; more > 0; more--) taken[fastest(t, taken)] = true;
    for (size_t i = 0; i < t->n_machines; i++) {
        size_t n = each + taken[i];
        split_place *p = &t->places[i];
        p->free_bytes /= n;
        p->bytes_per_s /= (double)n;
        p->multiplies_per_s /= (double)n;
        for (size_t k = 1; k < n; k++) t->places[t->n++] = *p;
    }
}

static size_t count_used(const table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_parts; i++) {
        size_t k = 0;
        while (k < i && t->places[t->parts[k].place].machine != t->places[t->parts[i].place].machine) k++;
        n += k == i;
    }
    return n;
}

static bool deal_over(placement_state *d, const chain *c, size_t model, size_t n_stages, bool battery,
                      table *t)
{
    t->n = t->n_machines = 0;
    for (size_t i = 0; i < d->n_nodes; i++) add_machine(d, c, model, i, battery, t);
    if (t->n_machines == 0) return false;
    if (t->n_machines < n_stages && d->models[model].shards.automatic) return false;
    if (t->n_machines < n_stages) share_machines(t, n_stages);
    int rc = split_deal(&d->models[model].shape, t->places, t->n, n_stages, t->parts);
    d->failed |= rc == SHOAL_ENOMEM;
    t->n_parts = n_stages;
    t->n_used = rc == 0 ? count_used(t) : 0;
    return rc == 0;
}

/* In so many stages, or in as few as there is memory for; on batteries only where nothing else does. */
static bool propose(placement_state *d, const chain *c, size_t model, table *t)
{
    const placement_shards *s = &d->models[model].shards;
    size_t from = s->n ? s->n : 2, to = s->n ? s->n : SPLIT_STAGES_MAX;
    t->places = calloc(d->n_nodes + SPLIT_STAGES_MAX, sizeof *t->places);
    if (!t->places) {
        d->failed = true;
        return false;
    }
    for (int battery = 0; battery < 2; battery++)
        for (size_t n = from; n <= to && n <= d->models[model].shape.n_layer; n++)
            if (deal_over(d, c, model, n, battery, t)) return true;
    return false;
}

enum { FASTER = 3, THAN = 2 }; /* a deal is much faster when 3 of its slowest stages take what 2 took */

/* The slowest stage of the chain that is there, as its machines are now. */
static double slowest_ms(const placement_state *d, const chain *c, size_t model)
{
    double most = 0;
    for (size_t i = 0; i < c->n; i++) {
        const placement_assignment *s = &d->assignments[c->at[i]].s;
        split_place at = placement_place_of(&d->nodes[s->node]);
        double ms = split_stage_ms(&d->models[model].shape, &at, s->end - s->first, s->first == 0);
        if (ms > most) most = ms;
    }
    return most;
}

static bool is_much_faster(const placement_state *d, const chain *c, size_t model, const table *t)
{
    double most = 0;
    for (size_t i = 0; i < t->n_parts; i++) {
        const split_part *p = &t->parts[i];
        double ms =
            split_stage_ms(&d->models[model].shape, &t->places[p->place], p->end - p->first, p->first == 0);
        if (ms > most) most = ms;
    }
    return FASTER * most <= THAN * slowest_ms(d, c, model);
}

static void redeal(placement_state *d, const chain *c, size_t model)
{
    table t = {0};
    bool found = propose(d, c, model, &t);
    bool faster = found && c->whole && d->models[model].idle && is_much_faster(d, c, model, &t);
    if (found && (!c->whole || t.n_used > c->n_machines || faster)) {
        leave_all(d, c);
        for (size_t i = 0; i < t.n_parts; i++)
            sit(d, model, t.places[t.parts[i].place].machine, t.parts[i].first, t.parts[i].end,
                PLACEMENT_DEALT);
    }
    free(t.places);
}

/* ---- one stage anew -------------------------------------------------------------------------------- */

static bool shares_machine(const placement_state *d, const chain *c, size_t at)
{
    for (size_t i = 0; i < c->n; i++)
        if (d->assignments[c->at[i]].s.node == at) return true;
    return false;
}

/* Later stages are reached by the first one. */
static bool is_reached(const placement_state *d, const chain *c, size_t first, size_t at)
{
    if (first > 0) return !d->nodes[at].unreached || d->assignments[c->at[0]].s.node == at;
    for (size_t i = 0; i < c->n; i++) {
        size_t to = d->assignments[c->at[i]].s.node;
        if (d->nodes[to].unreached && to != at) return false;
    }
    return true;
}

typedef struct gap {
    size_t first, end;
} gap;

/* The best machine for these layers that has none of the others, or else any; n_nodes: there is none. */
static size_t reliever(const placement_state *d, const chain *c, size_t model, gap g)
{
    const placement_model *m = &d->models[model];
    uint64_t bytes = split_memory(&m->shape, g.end - g.first, g.first == 0);
    size_t best = d->n_nodes;
    for (size_t i = 0; i < d->n_nodes; i++) {
        const node *n = &d->nodes[i], *than = &d->nodes[best < d->n_nodes ? best : i];
        if (placement_may_part(m, n, d->taken[i], bytes, false) != PLACEMENT_YES) continue;
        if (m->battery == PLACEMENT_BATTERY_AVOID && n->on_battery) continue;
        if (!is_reached(d, c, g.first, i)) continue;
        double gain = placement_speed(n) - placement_speed(than);
        int shares = shares_machine(d, c, i) - (best < d->n_nodes && shares_machine(d, c, best));
        bool better = shares != 0 ? shares < 0 : gain != 0 ? gain > 0 : strcmp(n->name, than->name) < 0;
        if (best == d->n_nodes || better) best = i;
    }
    return best;
}

/* The first layers that no stage has; false: all have one. Stages that overlap make an empty gap. */
static bool first_gap(const placement_state *d, const chain *c, size_t n_layer, gap *ret)
{
    size_t at = 0;
    for (size_t i = 0; i < c->n; i++) {
        const placement_assignment *s = &d->assignments[c->at[i]].s;
        *ret = (gap){at, s->first};
        if (s->first != at) return true;
        at = s->end;
    }
    *ret = (gap){at, n_layer};
    return at != n_layer;
}

/* False when the layers that are missing have nowhere to go; then nothing has changed but assignments that
 * have just been taken, which the new deal takes away again. */
static bool relieve(placement_state *d, chain *c, size_t model)
{
    gap g;
    while (!d->failed && first_gap(d, c, d->models[model].shape.n_layer, &g)) {
        if (g.end <= g.first || c->n == SPLIT_STAGES_MAX) return false;
        size_t at = reliever(d, c, model, g);
        if (at == d->n_nodes) return false;
        sit(d, model, at, g.first, g.end, PLACEMENT_RELIEVES);
        *c = chain_of(d, model);
    }
    return true;
}

/* ---- as the model says ----------------------------------------------------------------------------- */

static size_t find_node(const placement_state *d, const char *name)
{
    size_t i = 0;
    while (i < d->n_nodes && strcmp(d->nodes[i].name, name) != 0) i++;
    return i;
}

static assignment *find_stage(const placement_state *d, const chain *c, size_t first, size_t end, size_t at)
{
    for (size_t i = 0; i < c->n; i++) {
        assignment *x = &d->assignments[c->at[i]];
        if (!x->out && x->s.first == first && x->s.end == end && x->s.node == at) return x;
    }
    return NULL;
}

static bool placement_stages_is_named(const placement_state *d, const placement_shards *s,
                                      const placement_assignment *x)
{
    size_t at = 0;
    for (size_t i = 0; i < s->n_parts; at += s->parts[i++].n_layers)
        if (x->first == at && x->end == at + s->parts[i].n_layers)
            return strcmp(d->nodes[x->node].name, s->parts[i].node) == 0;
    return false;
}

static void deal_as_named(placement_state *d, chain *c, size_t model)
{
    const placement_model *m = &d->models[model];
    const placement_shards *s = &m->shards;
    for (size_t i = 0; i < c->n; i++) {
        assignment *x = &d->assignments[c->at[i]];
        if (!placement_stages_is_named(d, s, &x->s)) placement_leave(d, x, PLACEMENT_REDEALT);
    }
    size_t first = 0;
    for (size_t i = 0; i < s->n_parts; first += s->parts[i++].n_layers) {
        size_t at = find_node(d, s->parts[i].node), end = first + s->parts[i].n_layers;
        if (at == d->n_nodes || find_stage(d, c, first, end, at)) continue;
        uint64_t bytes = split_memory(&m->shape, s->parts[i].n_layers, first == 0);
        if (placement_may_part(m, &d->nodes[at], d->taken[at], bytes, false) == PLACEMENT_YES)
            sit(d, model, at, first, end, PLACEMENT_NAMED);
    }
}

/* ---- the model in hand ----------------------------------------------------------------------------- */

bool placement_deal(placement_state *d, size_t model)
{
    const placement_shards *s = &d->models[model].shards;
    if (!placement_is_cut(s) || d->models[model].n_replicas == 0) return false;
    if (d->models[model].waits) return true;
    chain c = chain_of(d, model);
    if (s->n_parts > 0) {
        deal_as_named(d, &c, model);
        return true;
    }
    if (s->automatic && (has_whole_one(d, model) || (c.n == 0 && may_be_whole(d, model)))) {
        leave_all(d, &c);
        return false;
    }
    if (c.whole && c.n_machines == c.n && !d->models[model].idle) return true;
    if (c.n > 0 && !c.whole && relieve(d, &c, model)) return true;
    redeal(d, &c, model);
    return true;
}

/* ---- what it costs --------------------------------------------------------------------------------- */

split_place placement_place_of(const node *n)
{
    return (split_place){.free_bytes = placement_budget_bytes(n),
                         .bytes_per_s = placement_speed(n),
                         .multiplies_per_s = n->multiplies_per_s,
                         .rtt_ms = n->rtt_ms,
                         .unreached = n->unreached};
}

bool placement_price(const placement *p, const node *nodes, const placement_model *models, size_t model,
                     uint64_t row_bytes, split_cost *ret)
{
    split_place places[SPLIT_STAGES_MAX];
    split_part parts[SPLIT_STAGES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < p->n_assignments && n < SPLIT_STAGES_MAX; i++) {
        const placement_assignment *s = &p->assignments[i];
        if (s->model != model || s->end == 0) continue;
        size_t k = n;
        for (; k > 0 && parts[k - 1].first > s->first; k--) parts[k] = parts[k - 1];
        parts[k] = (split_part){.place = n, .first = s->first, .end = s->end};
        places[n] = placement_place_of(&nodes[s->node]);
        places[n++].machine = s->node;
    }
    if (n == 0) return false;
    *ret = split_price(&models[model].shape, places, parts, n, row_bytes);
    for (size_t i = 0; i < n; i++) {
        double ms = 0;
        for (size_t k = 0; k < n; k++) {
            const split_place *at = &places[parts[k].place];
            if (at->machine == places[parts[i].place].machine)
                ms += split_stage_ms(&models[model].shape, at, parts[k].end - parts[k].first, k == 0);
        }
        if (ms > ret->slowest_ms) ret->slowest_ms = ms;
    }
    return true;
}
