/* placement.c: keep, promote, spread, fill: in passes until nothing changes. */
#include "cluster/placement_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PASSES_MAX = 16, /* each brings replicas nearer to where they stay; see the property tests */
    NOWHERE = -1,
    SITE_WEIGHT = 1 << 16, /* one replica at the site weighs more than all on a node */
};

#define NAME(e, n) n,
static const char *const why_texts[] = {PLACEMENT_WHY_TABLE(NAME)};
static const char *const no_texts[] = {PLACEMENT_NO_TABLE(NAME)};
#undef NAME

const char *placement_why_text(placement_why w)
{
    return why_texts[w];
}

const char *placement_no_text(placement_no n)
{
    return no_texts[n];
}

/* ---- rules --------------------------------------------------------------------------------------- */

uint64_t placement_budget_bytes(const node *n)
{
    return n->memory_bytes / 100 * PLACEMENT_MEMORY_PERCENT;
}

/* Of its kind of device; a replica has to fit into one of them. */
static bool has_room_on_device(const placement_model *m, const node *n, uint64_t taken_bytes, uint64_t bytes)
{
    uint64_t largest, all = node_device_bytes(n, m->device, &largest);
    uint64_t budget = all / 100 * PLACEMENT_MEMORY_PERCENT, one = largest / 100 * PLACEMENT_MEMORY_PERCENT;
    return bytes <= one && taken_bytes <= budget && bytes <= budget - taken_bytes;
}

static bool placement_has_room(const placement_model *m, const node *n, uint64_t taken_bytes, uint64_t bytes)
{
    uint64_t budget = placement_budget_bytes(n);
    if (m->device) return has_room_on_device(m, n, taken_bytes, bytes);
    return taken_bytes <= budget && bytes <= budget - taken_bytes;
}

static bool placement_is_named(const placement_model *m, const node *n)
{
    for (size_t i = 0; i < m->n_nodes; i++)
        if (strcmp(m->nodes[i], n->name) == 0) return true;
    return m->n_nodes == 0;
}

static bool has_labels(const placement_model *m, const node *n)
{
    for (size_t i = 0; i < m->n_labels; i++)
        if (!node_has_label(n, m->labels[i])) return false;
    return true;
}

placement_no placement_may_part(const placement_model *m, const node *n, uint64_t taken_bytes, uint64_t bytes,
                                bool stays)
{
    if (!placement_is_named(m, n)) return PLACEMENT_NOT_NAMED;
    if (n->draining) return PLACEMENT_DRAINING;
    if (!has_labels(m, n)) return PLACEMENT_NO_LABEL;
    if (m->device && node_device_bytes(n, m->device, NULL) == 0) return PLACEMENT_NO_DEVICE;
    if (m->max_rtt_ms > 0 && n->rtt_ms > m->max_rtt_ms * (stays ? 1.5 : 1)) return PLACEMENT_TOO_FAR;
    if (m->battery == PLACEMENT_BATTERY_NEVER && n->on_battery) return PLACEMENT_ON_BATTERY;
    return placement_has_room(m, n, taken_bytes, bytes) ? PLACEMENT_YES : PLACEMENT_NO_MEMORY;
}

placement_no placement_may(const placement_model *m, const node *n, uint64_t taken_bytes, bool stays)
{
    return placement_may_part(m, n, taken_bytes, m->memory_bytes, stays);
}

bool placement_is_cut(const placement_shards *s)
{
    return s->automatic || s->n > 0 || s->n_parts > 0;
}

/* ---- the table of a pass ------------------------------------------------------------------------- */

double placement_speed(const node *n)
{
    double speed = n->bytes_per_s > 0 ? n->bytes_per_s : 4e9 * (n->n_cores ? n->n_cores : 1);
    double busy = n->n_cores ? n->load_1m / n->n_cores : 0;
    return speed * (busy < 0.5 ? 1 : busy < 2 ? 0.5 : 0.25);
}

bool placement_runs_low(const node *n)
{
    return n->on_battery && n->battery_percent < PLACEMENT_BATTERY_LOW;
}

uint64_t placement_assignment_bytes(const placement_state *d, const placement_assignment *s)
{
    const placement_model *m = &d->models[s->model];
    return s->end > 0 ? split_memory(&m->shape, s->end - s->first, s->first == 0) : m->memory_bytes;
}

static bool same_device(const placement_model *a, const placement_model *b)
{
    return strcmp(a->device ? a->device : NODE_CPU, b->device ? b->device : NODE_CPU) == 0;
}

/* What is taken of the memory that the model's replicas would be in there. */
static uint64_t taken_beside(const placement_state *d, const placement_model *m, size_t at)
{
    uint64_t n = 0;
    if (!m->device) return d->taken[at];
    for (size_t i = 0; i < d->n_assignments; i++) {
        const assignment *x = &d->assignments[i];
        bool there = !x->out && x->s.node == at && same_device(&d->models[x->s.model], m);
        if (there) n += placement_assignment_bytes(d, &x->s);
    }
    return n;
}

static void placement_count(placement_state *d, const assignment *x, int by)
{
    if (d->models[x->s.model].device) return;
    uint64_t bytes = placement_assignment_bytes(d, &x->s);
    d->taken[x->s.node] += by > 0 ? bytes : -bytes;
    if (!x->s.standby) d->work[x->s.node] += by * (double)bytes;
}

static void take_in_hand(placement_state *d, size_t model)
{
    memset(d->on_node, 0, d->n_nodes * sizeof *d->on_node);
    memset(d->on_site, 0, d->n_nodes * sizeof *d->on_site);
    for (size_t i = 0; i < d->n_assignments; i++) {
        const assignment *x = &d->assignments[i];
        if (x->out || x->s.model != model) continue;
        d->on_node[x->s.node]++;
        d->on_site[d->site[x->s.node]]++;
    }
}

void placement_assign(placement_state *d, const placement_assignment *s)
{
    if (d->n_assignments == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 64;
        assignment *p = realloc(d->assignments, cap * sizeof *p);
        if (!p) {
            d->failed = true;
            return;
        }
        d->assignments = p;
        d->cap = cap;
    }
    assignment *x = &d->assignments[d->n_assignments++];
    *x = (assignment){.s = *s};
    placement_count(d, x, 1);
    d->on_node[s->node]++;
    d->on_site[d->site[s->node]]++;
    d->changed |= s->why != PLACEMENT_STAYS;
}

static void sit(placement_state *d, size_t model, size_t at, bool standby, placement_why why)
{
    placement_assign(d, &(placement_assignment){.model = model, .node = at, .standby = standby, .why = why});
}

static void note_leaver(placement_state *d, const char *model, const char *at, placement_why why)
{
    if (d->n_leavers == d->leavers_cap) {
        size_t cap = d->leavers_cap ? 2 * d->leavers_cap : 16;
        placement_leaver *p = realloc(d->leavers, cap * sizeof *p);
        if (!p) {
            d->failed = true;
            return;
        }
        d->leavers = p;
        d->leavers_cap = cap;
    }
    d->leavers[d->n_leavers++] = (placement_leaver){model, at, why};
}

/* An assignment that began in this plan just vanishes. */
void placement_leave(placement_state *d, assignment *x, placement_why why)
{
    bool was_there = x->s.why == PLACEMENT_STAYS || x->s.why == PLACEMENT_PROMOTED;
    x->out = true;
    placement_count(d, x, -1);
    d->on_node[x->s.node]--;
    d->on_site[d->site[x->s.node]]--;
    d->changed = true;
    if (was_there) note_leaver(d, d->models[x->s.model].name, d->nodes[x->s.node].name, why);
}

/* ---- choosing a node ----------------------------------------------------------------------------- */

/* How near the model's other replicas are: less is better, and a smaller site count before a smaller node
 * count. */
static unsigned nearness(const placement_state *d, const placement_model *m, size_t at)
{
    if (m->spread == PLACEMENT_ANYHOW) return 0;
    unsigned near = d->on_node[at];
    return m->spread == PLACEMENT_BY_SITE ? d->on_site[d->site[at]] * SITE_WEIGHT + near : near;
}

typedef struct bid {
    bool failed, battery;
    unsigned near;
    double cost;
    const char *name;
} bid;

static bool has_failed(const placement_model *m, const node *n)
{
    for (size_t i = 0; i < m->n_failed; i++)
        if (strcmp(m->failed[i], n->name) == 0) return true;
    return false;
}

static bid bid_of(const placement_state *d, const placement_model *m, size_t at)
{
    const node *n = &d->nodes[at];
    return (bid){.failed = has_failed(m, n),
                 .battery = n->on_battery && m->battery == PLACEMENT_BATTERY_AVOID,
                 .near = nearness(d, m, at),
                 .cost = m->device ? (double)taken_beside(d, m, at)
                                   : (d->work[at] + (double)m->memory_bytes) / placement_speed(n),
                 .name = n->name};
}

static bool is_better(const bid *a, const bid *b)
{
    if (a->failed != b->failed) return b->failed;
    if (a->battery != b->battery) return b->battery;
    if (a->near != b->near) return a->near < b->near;
    if (a->cost != b->cost) return a->cost < b->cost;
    return strcmp(a->name, b->name) < 0;
}

static bool has_reason_to_move(const placement_state *d, const assignment *x, size_t to);

/* What the mover itself adds to the nearness of a place. */
static unsigned own_part(const placement_state *d, const placement_model *m, const assignment *mover,
                         size_t at)
{
    if (!mover) return 0;
    bool same_site = m->spread == PLACEMENT_BY_SITE && d->site[mover->s.node] == d->site[at];
    return (mover->s.node == at) + (same_site ? SITE_WEIGHT : 0);
}

/* The best node for one more; with a mover, of those that are reason enough for it to go there. */
static long placement_choose(const placement_state *d, size_t model, const assignment *mover,
                             placement_why *ret_why)
{
    const placement_model *m = &d->models[model];
    long best = NOWHERE;
    bid best_bid = {0};
    size_t n_may = 0;
    bool nearer = false;
    for (size_t i = 0; i < d->n_nodes; i++) {
        if (placement_may(m, &d->nodes[i], taken_beside(d, m, i), false) != PLACEMENT_YES) continue;
        bid b = bid_of(d, m, i);
        n_may++;
        nearer |= b.near > own_part(d, m, mover, i);
        if (mover && !has_reason_to_move(d, mover, i)) continue;
        if (best != NOWHERE && !is_better(&b, &best_bid)) continue;
        best = (long)i;
        best_bid = b;
    }
    *ret_why = n_may == 1                     ? PLACEMENT_ONLY
               : nearer && best_bid.near == 0 ? PLACEMENT_SPREADS
                                              : PLACEMENT_FASTEST;
    return best;
}

/* ---- the steps ----------------------------------------------------------------------------------- */

static long find_node(const placement_state *d, const char *name)
{
    for (size_t i = 0; i < d->n_nodes; i++)
        if (strcmp(d->nodes[i].name, name) == 0) return (long)i;
    return NOWHERE;
}

static long placement_find_model(const placement_state *d, const char *name)
{
    for (size_t i = 0; i < d->n_models; i++)
        if (strcmp(d->models[i].name, name) == 0) return (long)i;
    return NOWHERE;
}

/* A whole one of a model that is cut, or the other way about, is of an earlier configuration. */
static bool is_of_kind(const placement_model *m, const placement_now *x)
{
    if (x->end == 0) return m->shards.n == 0 && m->shards.n_parts == 0;
    return placement_is_cut(&m->shards) && x->first < x->end && x->end <= m->shape.n_layer;
}

static void assignment_again(placement_state *d, const placement_now *x, size_t model, size_t at)
{
    const placement_assignment s = {.model = model,
                                    .node = at,
                                    .standby = x->standby,
                                    .first = x->first,
                                    .end = x->end,
                                    .why = PLACEMENT_STAYS};
    const placement_model *m = &d->models[model];
    placement_no no =
        placement_may_part(m, &d->nodes[at], taken_beside(d, m, at), placement_assignment_bytes(d, &s), true);
    if (no == PLACEMENT_YES)
        placement_assign(d, &s);
    else
        note_leaver(d, x->model, x->node, PLACEMENT_FORBIDDEN);
}

/* What is there sits down first; what may not be there is removed. */
static void assignment_present(placement_state *d, const placement_now *x)
{
    long model = placement_find_model(d, x->model), at = find_node(d, x->node);
    if (at == NOWHERE)
        note_leaver(d, x->model, x->node, PLACEMENT_GONE);
    else if (model == NOWHERE)
        note_leaver(d, x->model, x->node, PLACEMENT_UNWANTED);
    else if (!is_of_kind(&d->models[model], x))
        note_leaver(d, x->model, x->node, PLACEMENT_REDEALT);
    else
        assignment_again(d, x, (size_t)model, (size_t)at);
}

/* Those that serve before those that wait, in case that it has become tight. */
static void assignment_all_present(placement_state *d, const placement_now *now, size_t n)
{
    for (int standby = 0; standby < 2; standby++)
        for (size_t i = 0; i < n; i++)
            if (now[i].standby == standby) assignment_present(d, &now[i]);
}

static unsigned count_assignments(const placement_state *d, size_t model, bool standby)
{
    unsigned n = 0;
    for (size_t i = 0; i < d->n_assignments; i++)
        n += !d->assignments[i].out && d->assignments[i].s.model == model &&
             d->assignments[i].s.standby == standby;
    return n;
}

/* The model's assignment that is worst placed (or best); NULL when it has none of the kind. */
static assignment *pick_assignment(placement_state *d, size_t model, bool standby, bool worst)
{
    const placement_model *m = &d->models[model];
    assignment *found = NULL;
    bid found_bid = {0};
    for (size_t i = 0; i < d->n_assignments; i++) {
        assignment *x = &d->assignments[i];
        if (x->out || x->s.model != model || x->s.standby != standby) continue;
        bid b = bid_of(d, m, x->s.node);
        if (found && is_better(&b, &found_bid) == worst) continue;
        found = x;
        found_bid = b;
    }
    return found;
}

static void drop_unwanted(placement_state *d, size_t model)
{
    const placement_model *m = &d->models[model];
    for (unsigned n = count_assignments(d, model, true);
         n > m->n_standby && count_assignments(d, model, false) >= m->n_replicas; n--)
        placement_leave(d, pick_assignment(d, model, true, true), PLACEMENT_UNWANTED);
    for (unsigned n = count_assignments(d, model, false); n > m->n_replicas; n--)
        placement_leave(d, pick_assignment(d, model, false, true), PLACEMENT_UNWANTED);
}

/* Off a node where its worker cannot start, off a battery that runs low, and off a crowded place to one that
 * is less so even with this one. */
static bool has_reason_to_move(const placement_state *d, const assignment *x, size_t to)
{
    const placement_model *m = &d->models[x->s.model];
    const node *from = &d->nodes[x->s.node];
    bool avoids = m->battery == PLACEMENT_BATTERY_AVOID, to_battery = d->nodes[to].on_battery;
    if (has_failed(m, &d->nodes[to])) return false;
    if (has_failed(m, from)) return true;
    if (avoids && placement_runs_low(from)) return !to_battery;
    if ((avoids && to_battery && !from->on_battery) || m->spread == PLACEMENT_ANYHOW) return false;
    if (m->settling) return false;
    unsigned site_here = d->on_site[d->site[x->s.node]], site_there = d->on_site[d->site[to]];
    bool same_site = d->site[x->s.node] == d->site[to];
    if (m->spread == PLACEMENT_BY_SITE && !same_site) return site_here > site_there + 1;
    return d->on_node[x->s.node] > d->on_node[to] + 1;
}

static void spread_those(placement_state *d, size_t model, bool standby)
{
    for (size_t i = 0; i < d->n_assignments && !d->failed; i++) {
        const assignment *x = &d->assignments[i];
        placement_why why;
        if (x->out || x->s.model != model || x->s.standby != standby) continue;
        long to = placement_choose(d, model, x, &why);
        if (to == NOWHERE) continue;
        bool low = placement_runs_low(&d->nodes[x->s.node]);
        bool failed = has_failed(&d->models[model], &d->nodes[x->s.node]);
        placement_leave(d, &d->assignments[i],
                        failed ? PLACEMENT_FAILED
                        : low  ? PLACEMENT_LOW
                               : PLACEMENT_CROWDED);
        sit(d, model, (size_t)to, standby, why);
    }
}

/* Of two that share a place, one that nobody asks moves sooner than one that serves. */
static void spread(placement_state *d, size_t model)
{
    spread_those(d, model, true);
    spread_those(d, model, false);
}

static void promote(placement_state *d, size_t model)
{
    assignment *x;
    for (unsigned n = count_assignments(d, model, false); n < d->models[model].n_replicas; n++) {
        if (!(x = pick_assignment(d, model, true, false))) return;
        placement_count(d, x, -1);
        x->s.standby = false;
        if (x->s.why == PLACEMENT_STAYS) x->s.why = PLACEMENT_PROMOTED;
        placement_count(d, x, 1);
        d->changed = true;
    }
}

/* Would it share a node that it will not have to share when all nodes are there? */
static bool waits_for_nodes(const placement_state *d, size_t model, size_t at)
{
    const placement_model *m = &d->models[model];
    return m->settling && m->spread != PLACEMENT_ANYHOW && d->on_node[at] > 0;
}

static void placement_fill(placement_state *d, size_t model, bool standby)
{
    const placement_model *m = &d->models[model];
    unsigned wanted = standby ? m->n_standby : m->n_replicas;
    for (unsigned n = count_assignments(d, model, standby); n < wanted && !d->failed; n++) {
        placement_why why;
        long at = placement_choose(d, model, NULL, &why);
        if (at == NOWHERE || waits_for_nodes(d, model, (size_t)at)) return;
        sit(d, model, (size_t)at, standby, why);
    }
}

static uint64_t standby_bytes(const placement_state *d, const placement_model *m, size_t at)
{
    uint64_t n = 0;
    for (size_t i = 0; i < d->n_assignments; i++) {
        const assignment *x = &d->assignments[i];
        const placement_model *o = &d->models[x->s.model];
        if (!x->out && x->s.standby && x->s.node == at && same_device(o, m)) n += o->memory_bytes;
    }
    return n;
}

/* A model that nobody serves may have the memory of standbys. */
static void evict_for(placement_state *d, size_t model)
{
    const placement_model *m = &d->models[model];
    if (m->n_replicas == 0 || count_assignments(d, model, false) > 0) return;
    for (size_t at = 0; at < d->n_nodes; at++) {
        uint64_t free_bytes = standby_bytes(d, m, at);
        if (free_bytes == 0 ||
            placement_may(m, &d->nodes[at], taken_beside(d, m, at) - free_bytes, false) != PLACEMENT_YES)
            continue;
        for (size_t i = 0; i < d->n_assignments; i++) {
            assignment *x = &d->assignments[i];
            if (x->out || !x->s.standby || x->s.node != at || !same_device(&d->models[x->s.model], m))
                continue;
            placement_leave(d, x, PLACEMENT_EVICTED);
            if (placement_may(m, &d->nodes[at], taken_beside(d, m, at), false) == PLACEMENT_YES) break;
        }
        take_in_hand(d, model);
        sit(d, model, at, false, PLACEMENT_ONLY);
        return;
    }
}

static void run_pass(placement_state *d)
{
    d->changed = false;
    for (size_t i = 0; i < d->n_models && !d->failed; i++) {
        size_t model = d->order[i];
        take_in_hand(d, model);
        if (placement_deal(d, model)) continue;
        drop_unwanted(d, model);
        promote(d, model);
        placement_fill(d, model, false);
        evict_for(d, model);
        take_in_hand(d, model);
        spread(d, model);
    }
    for (size_t i = 0; i < d->n_models && !d->failed; i++) {
        take_in_hand(d, d->order[i]);
        placement_fill(d, d->order[i], true);
    }
}

/* ---- in and out ---------------------------------------------------------------------------------- */

static bool goes_first(const placement_model *a, const placement_model *b)
{
    if (a->memory_bytes != b->memory_bytes) return a->memory_bytes > b->memory_bytes;
    return strcmp(a->name, b->name) < 0;
}

static void order_models(placement_state *d)
{
    for (size_t i = 0; i < d->n_models; i++) {
        size_t k = i;
        for (; k > 0 && goes_first(&d->models[i], &d->models[d->order[k - 1]]); k--)
            d->order[k] = d->order[k - 1];
        d->order[k] = i;
    }
}

static bool same_site(const node *a, const node *b)
{
    return strcmp(a->site ? a->site : "", b->site ? b->site : "") == 0;
}

static int placement_state_open(placement_state *d, shoal_err *err)
{
    size_t n = d->n_nodes + 1;
    d->site = calloc(n, sizeof *d->site);
    d->order = calloc(d->n_models + 1, sizeof *d->order);
    d->taken = calloc(n, sizeof *d->taken);
    d->work = calloc(n, sizeof *d->work);
    d->on_node = calloc(n, sizeof *d->on_node);
    d->on_site = calloc(n, sizeof *d->on_site);
    if (!d->site || !d->order || !d->taken || !d->work || !d->on_node || !d->on_site) return err_nomem(err);
    for (size_t i = 0; i < d->n_nodes; i++)
        while (!same_site(&d->nodes[i], &d->nodes[d->site[i]])) d->site[i]++;
    order_models(d);
    return 0;
}

static void placement_state_close(placement_state *d)
{
    free(d->site);
    free(d->order);
    free(d->taken);
    free(d->work);
    free(d->on_node);
    free(d->on_site);
    free(d->assignments);
    free(d->leavers);
}

static void collect(placement_state *d, placement *p)
{
    for (size_t model = 0; model < d->n_models; model++) {
        const placement_model *m = &d->models[model];
        unsigned n[2] = {count_assignments(d, model, false), count_assignments(d, model, true)};
        if (!placement_chain_is_whole(d, model)) n[0] = 0;
        for (int standby = 0; standby < 2; standby++)
            for (size_t i = 0; i < d->n_assignments; i++) {
                const assignment *x = &d->assignments[i];
                if (!x->out && x->s.model == model && x->s.standby == standby)
                    p->assignments[p->n_assignments++] = x->s;
            }
        bool waits = m->settling && n[0] > 0;
        if (!waits && (n[0] < m->n_replicas || n[1] < m->n_standby))
            p->gaps[p->n_gaps++] = (placement_gap){
                .model = model, .n_replicas = m->n_replicas - n[0], .n_standby = m->n_standby - n[1]};
    }
    p->leavers = d->leavers;
    p->n_leavers = d->n_leavers;
    d->leavers = NULL;
}

int placement_plan(placement *ret, const node *nodes, size_t n_nodes, const placement_model *models,
                   size_t n_models, const placement_now *now, size_t n_now, shoal_err *err)
{
    placement_state d = {.nodes = nodes, .n_nodes = n_nodes, .models = models, .n_models = n_models};
    placement p = {0};
    int rc = placement_state_open(&d, err);
    if (rc == 0) {
        assignment_all_present(&d, now, n_now);
        d.changed = true;
        for (int i = 0; i < PASSES_MAX && d.changed && !d.failed; i++) run_pass(&d);
        p.assignments = calloc(d.n_assignments + 1, sizeof *p.assignments);
        p.gaps = calloc(n_models + 1, sizeof *p.gaps);
        if (d.failed || !p.assignments || !p.gaps) rc = err_nomem(err);
    }
    if (rc == 0) {
        collect(&d, &p);
        *ret = p;
    } else {
        placement_done(&p);
    }
    placement_state_close(&d);
    return rc;
}

/* ---- relief --------------------------------------------------------------------------------------- */

/* With it, the node that it comes to has at most seven tenths of what the one that it leaves had: so none
 * comes back. Of three equal replicas on a node one goes to another that has one. */
enum { WAS_AT_LEAST = 10, IS_AT_MOST = 7 };

typedef struct loads { /* of one node */
    uint64_t taken;
    double work;
    unsigned n_assignments;
} loads;

static void count_loads(const placement *p, const placement_model *models, loads *ret)
{
    const placement_state d = {.models = models};
    for (size_t i = 0; i < p->n_assignments; i++) {
        const placement_assignment *s = &p->assignments[i];
        uint64_t bytes = placement_assignment_bytes(&d, s);
        if (models[s->model].device) continue;
        ret[s->node].taken += bytes;
        if (s->standby) continue;
        ret[s->node].work += (double)bytes;
        ret[s->node].n_assignments++;
    }
}

/* Would the model's replicas be as far apart there as they are now? */
static bool stays_apart(const placement *p, const node *nodes, const placement_model *models,
                        const placement_assignment *s, size_t to)
{
    placement_spread by = models[s->model].spread;
    for (size_t i = 0; by != PLACEMENT_ANYHOW && i < p->n_assignments; i++) {
        const placement_assignment *o = &p->assignments[i];
        if (o == s || o->model != s->model) continue;
        if (o->node == to) return false;
        if (by == PLACEMENT_BY_SITE && same_site(&nodes[o->node], &nodes[to]) &&
            !same_site(&nodes[s->node], &nodes[to]))
            return false;
    }
    return true;
}

/* How much less the busier of both has to do; 0: it is not worth it, or may not be. */
static double gain_of(const placement *p, const node *nodes, const placement_model *models, const loads *l,
                      const placement_assignment *s, size_t to)
{
    const placement_model *m = &models[s->model];
    const node *a = &nodes[s->node], *b = &nodes[to];
    bool to_battery = m->battery == PLACEMENT_BATTERY_AVOID && b->on_battery && !a->on_battery;
    if (to == s->node || to_battery || has_failed(m, b) || !stays_apart(p, nodes, models, s, to)) return 0;
    if (placement_may(m, b, l[to].taken, false) != PLACEMENT_YES) return 0;
    double bytes = (double)m->memory_bytes, from_s = placement_speed(a), to_s = placement_speed(b);
    double was = l[s->node].work / from_s, left = was - bytes / from_s, is = (l[to].work + bytes) / to_s;
    if (WAS_AT_LEAST * is > IS_AT_MOST * was) return 0;
    return was - (left > is ? left : is);
}

bool placement_relieve(placement *p, const node *nodes, size_t n_nodes, const placement_model *models,
                       size_t n_models, bool all)
{
    loads *l = calloc(n_nodes + 1, sizeof *l);
    placement_assignment *best = NULL;
    double best_gain = 0;
    size_t best_to = 0;
    if (!l) return false;
    count_loads(p, models, l);
    for (size_t i = 0; i < p->n_assignments; i++) {
        placement_assignment *s = &p->assignments[i];
        bool moves = !s->standby && s->end == 0 && !models[s->model].device;
        if (!moves || l[s->node].n_assignments < 2 || !(all || models[s->model].rebalance)) continue;
        for (size_t to = 0; to < n_nodes; to++) {
            double gain = gain_of(p, nodes, models, l, s, to);
            if (gain <= best_gain) continue;
            best = s;
            best_to = to;
            best_gain = gain;
        }
    }
    if (best) {
        best->node = best_to;
        best->why = PLACEMENT_RELIEVED;
    }
    free(l);
    return best != NULL;
}

/* ---- a cluster that grows ------------------------------------------------------------------------ */

/* Gateways first; returns how many there are. */
static size_t order_nodes(const node *nodes, size_t n_nodes, node *ret)
{
    size_t n = 0, n_gateways;
    for (size_t i = 0; i < n_nodes; i++)
        if (nodes[i].is_gateway) ret[n++] = nodes[i];
    n_gateways = n;
    for (size_t i = 0; i < n_nodes; i++)
        if (!nodes[i].is_gateway) ret[n++] = nodes[i];
    return n_gateways;
}

static placement_now *now_of(const placement *p, const node *nodes, const placement_model *models)
{
    placement_now *now = calloc(p->n_assignments + 1, sizeof *now);
    for (size_t i = 0; now && i < p->n_assignments; i++)
        now[i] = (placement_now){.model = models[p->assignments[i].model].name,
                                 .node = nodes[p->assignments[i].node].name,
                                 .standby = p->assignments[i].standby,
                                 .first = p->assignments[i].first,
                                 .end = p->assignments[i].end};
    return now;
}

/* Assignments of ordered[] become assignments of nodes[]. */
static void number_nodes(placement *p, const node *ordered, const node *nodes, size_t n_nodes)
{
    const placement_state d = {.nodes = nodes, .n_nodes = n_nodes};
    for (size_t i = 0; i < p->n_assignments; i++)
        p->assignments[i].node = (size_t)find_node(&d, ordered[p->assignments[i].node].name);
}

/* What stays is told with the reason for which it came. */
static void keep_reasons(placement *next, const placement *was)
{
    for (size_t i = 0; i < next->n_assignments; i++) {
        placement_assignment *s = &next->assignments[i];
        for (size_t k = 0; k < was->n_assignments && s->why == PLACEMENT_STAYS; k++) {
            const placement_assignment *o = &was->assignments[k];
            bool same = o->model == s->model && o->node == s->node && o->standby == s->standby &&
                        o->first == s->first && o->end == s->end;
            if (same) s->why = o->why;
        }
    }
}

/* One step: what is there stays, and the plan of that takes its place. */
static int grow_placement(placement *p, const node *nodes, size_t n_nodes, const placement_model *models,
                          size_t n_models, shoal_err *err)
{
    placement next = {0};
    placement_now *now = now_of(p, nodes, models);
    int rc = now ? placement_plan(&next, nodes, n_nodes, models, n_models, now, p->n_assignments, err)
                 : err_nomem(err);
    keep_reasons(&next, p);
    next.n_leavers = 0; /* nothing of it ran */
    placement_done(p);
    *p = next;
    free(now);
    return rc;
}

/* What a gateway does at its start: layers are not dealt out before machines had time to come. */
static int grow_waiting(placement *p, const node *nodes, size_t n_nodes, const placement_model *models,
                        size_t n_models, shoal_err *err)
{
    placement_model *waiting = calloc(n_models + 1, sizeof *waiting);
    if (!waiting) return err_nomem(err);
    if (n_models) memcpy(waiting, models, n_models * sizeof *waiting);
    for (size_t i = 0; i < n_models; i++) waiting[i].waits = placement_is_cut(&models[i].shards);
    int rc = grow_placement(p, nodes, n_nodes, waiting, n_models, err);
    free(waiting);
    return rc;
}

int placement_grow(placement *ret, const node *nodes, size_t n_nodes, const placement_model *models,
                   size_t n_models, shoal_err *err)
{
    node *ordered = calloc(n_nodes + 1, sizeof *ordered);
    placement p = {0};
    int rc = ordered ? 0 : err_nomem(err);
    size_t n = rc == 0 ? order_nodes(nodes, n_nodes, ordered) : 0;
    if (n > 0) rc = grow_waiting(&p, ordered, n, models, n_models, err);
    for (n = n == 0 ? n_nodes : n; rc == 0 && n <= n_nodes; n++)
        rc = grow_placement(&p, ordered, n, models, n_models, err);
    if (rc == 0) {
        number_nodes(&p, ordered, nodes, n_nodes);
        *ret = p;
    } else {
        placement_done(&p);
    }
    free(ordered);
    return rc;
}

/* ---- what there is no place for ------------------------------------------------------------------- */

enum { NODES_NAMED = 3 }; /* of those that have one reason in common, in a sentence */

static uint64_t taken_like(const placement *p, const placement_model *models, const placement_model *m,
                           size_t at)
{
    const placement_state d = {.models = models};
    uint64_t n = 0;
    for (size_t i = 0; i < p->n_assignments; i++) {
        const placement_assignment *s = &p->assignments[i];
        if (s->node == at && same_device(&models[s->model], m)) n += placement_assignment_bytes(&d, s);
    }
    return n;
}

uint64_t placement_taken_bytes(const placement *p, const placement_model *models, size_t node)
{
    return taken_like(p, models, &(placement_model){0}, node);
}

placement_no placement_refusal(const placement *p, const node *nodes, const placement_model *models,
                               size_t model, size_t node)
{
    const placement_model *m = &models[model];
    return placement_may(m, &nodes[node], taken_like(p, models, m, node), false);
}

typedef struct sentence {
    char *text;
    size_t size, len;
    size_t n_parts, n_names; /* n_names: of the part in hand */
} sentence;

static void add_text(sentence *s, const char *text)
{
    int n = snprintf(s->text + s->len, s->size - s->len, "%s", text);
    if (n > 0) s->len = s->len + (size_t)n < s->size ? s->len + (size_t)n : s->size - 1;
}

static void add_node(sentence *s, const char *why, const char *name)
{
    if (s->n_names == 0) {
        add_text(s, s->n_parts++ ? "; " : "no machine may have it: ");
        add_text(s, why);
    }
    if (s->n_names <= NODES_NAMED) add_text(s, s->n_names == 0 ? " (" : ", ");
    if (s->n_names < NODES_NAMED) add_text(s, name);
    if (s->n_names++ == NODES_NAMED) add_text(s, "and others");
}

static void end_part(sentence *s)
{
    if (s->n_names > 0) add_text(s, ")");
    s->n_names = 0;
}

/* Nodes that the model names and that are in no list. */
static bool add_unattached(sentence *s, const placement_model *m, const node *nodes, size_t n_nodes)
{
    const placement_state d = {.nodes = nodes, .n_nodes = n_nodes};
    for (size_t i = 0; i < m->n_nodes; i++)
        if (find_node(&d, m->nodes[i]) == NOWHERE) add_node(s, "it is not attached", m->nodes[i]);
    bool any = s->n_names > 0;
    end_part(s);
    return any;
}

bool placement_say_missing(const placement *p, const node *nodes, size_t n_nodes,
                           const placement_model *models, size_t model, char *ret, size_t size)
{
    sentence s = {.text = ret, .size = size};
    bool lasting = true;
    for (int why = PLACEMENT_YES + 1; why <= PLACEMENT_NO_MEMORY; why++) {
        for (size_t at = 0; at < n_nodes; at++)
            if ((int)placement_refusal(p, nodes, models, model, at) == why)
                add_node(&s, placement_no_text((placement_no)why), nodes[at].name);
        lasting &= s.n_names == 0 || (why != PLACEMENT_TOO_FAR && why != PLACEMENT_ON_BATTERY);
        end_part(&s);
    }
    if (add_unattached(&s, &models[model], nodes, n_nodes)) lasting = false;
    if (s.n_parts == 0) add_text(&s, "the machines that are there have no room for all of its layers");
    return lasting;
}

/* ---- room for more -------------------------------------------------------------------------------- */

typedef struct room_case {
    const node *nodes;
    const placement_model *models;
    const placement_now *now;
    size_t n_nodes, n_models, n_now, model;
    char *why;
    size_t size;
} room_case;

static placement_gap gap_of(const placement *p, size_t model)
{
    for (size_t i = 0; i < p->n_gaps; i++)
        if (p->gaps[i].model == model) return p->gaps[i];
    return (placement_gap){.model = model};
}

static unsigned lacks(const placement *p, size_t model)
{
    placement_gap g = gap_of(p, model);
    return g.n_replicas + g.n_standby;
}

static bool takes_from_others(const room_case *x, const placement *without, const placement *with)
{
    for (size_t i = 0; i < x->n_models; i++)
        if (i != x->model && lacks(with, i) > lacks(without, i)) return true;
    return false;
}

/* How many fewer the next try is to have; 0: there is room. */
static int try_room(const room_case *x, const placement *without, unsigned *ret_fewer, shoal_err *err)
{
    placement with = {0};
    int rc = placement_plan(&with, x->nodes, x->n_nodes, x->models, x->n_models, x->now, x->n_now, err);
    if (rc != 0) return rc;
    bool takes = takes_from_others(x, without, &with), told = *x->why != '\0';
    *ret_fewer = lacks(&with, x->model);
    if (*ret_fewer > 0 && !told)
        placement_say_missing(&with, x->nodes, x->n_nodes, x->models, x->model, x->why, x->size);
    else if (takes && !told)
        snprintf(x->why, x->size, "another model needs the memory");
    if (takes && *ret_fewer == 0) *ret_fewer = 1;
    placement_done(&with);
    return 0;
}

int placement_room(unsigned *ret, char *why, size_t size, const node *nodes, size_t n_nodes,
                   const placement_model *models, size_t n_models, size_t model, unsigned n,
                   const placement_now *now, size_t n_now, shoal_err *err)
{
    placement_model *more = calloc(n_models + 1, sizeof *more);
    placement without = {0};
    const room_case x = {nodes, more, now, n_nodes, n_models, n_now, model, why, size};
    unsigned least = models[model].n_replicas, fewer = 1;
    int rc =
        more ? placement_plan(&without, nodes, n_nodes, models, n_models, now, n_now, err) : err_nomem(err);
    *why = '\0';
    if (rc == 0) memcpy(more, models, n_models * sizeof *more);
    while (rc == 0 && n > least && fewer > 0) {
        more[model].n_replicas = n;
        rc = try_room(&x, &without, &fewer, err);
        n = n - least > fewer ? n - fewer : least;
    }
    if (rc == 0) *ret = n > least ? n : least - gap_of(&without, model).n_replicas;
    placement_done(&without);
    free(more);
    return rc;
}

void placement_done(placement *p)
{
    free(p->assignments);
    free(p->leavers);
    free(p->gaps);
    *p = (placement){0};
}
