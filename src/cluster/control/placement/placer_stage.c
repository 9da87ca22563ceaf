/* placer_stage.c: the stages of models whose layers are dealt out, from the plan to the machines.
 *
 * A model may have two chains of stages: the one that is used, and the one that is planned. They are one as
 * long as the plan does not change. When it does, the planned stages but the first are started where they are
 * not there yet, and loaded, which may take as long as a file's way to a machine; then the first one is told
 * of them, and what only the old chain had is dropped. What was being answered is computed again by the new
 * chain, to the same bytes (calls/failover_calls.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/stage_name.h"
#include "control/placement/placer.h"
#include "agent/stage_spec.h"

enum { RETURN_MS = 3000 }; /* for machines to find a gateway that has started again */

typedef enum { USED, PLANNED } chain_kind;

static bool is_of(const placer_assignment *s, size_t model, chain_kind kind)
{
    return s->model == model && s->end > 0 && (kind == USED ? s->in_use : !s->held);
}

static bool same_stage(const placer_assignment *a, const placer_assignment *b)
{
    return a->model == b->model && a->first == b->first && a->end == b->end && strcmp(a->node, b->node) == 0;
}

static bool has_stage(const placer_assignment *assignments, size_t n, const placer_assignment *s,
                      chain_kind kind)
{
    for (size_t i = 0; i < n; i++)
        if (is_of(&assignments[i], s->model, kind) && same_stage(&assignments[i], s)) return true;
    return false;
}

/* ---- which chain ----------------------------------------------------------------------------------- */

/* Those of another gateway are known to it alone: its first stage waits for them. */
static bool is_loaded(const placer *p, const placer_assignment *s)
{
    char name[IDENTITY_NAME_SIZE + MEMBER_TABLE_TEXT_MAX];
    const placer_node *n = placer_find_node(p, s->node);
    if (n && !n->here && n->facts && n->facts->is_gateway) return true;
    return stage_name_put(name, sizeof name, p->o.models[s->model].spec.model, s->first, s->end) &&
           placer_node_answers(p, s->node, name);
}

/* Do the planned stages cover all layers, and are all but the first one loaded? */
static bool is_prepared(const placer *p, const placer_assignment *assignments, size_t n, size_t model)
{
    size_t n_layers = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_of(&assignments[i], model, PLANNED)) continue;
        n_layers += assignments[i].end - assignments[i].first;
        if (assignments[i].first > 0 && !is_loaded(p, &assignments[i])) return false;
    }
    return n_layers > 0 && n_layers == p->o.models[model].want.shape.n_layer;
}

/* Is the model planned in one piece, and answers there? Then no chain of it is needed. */
static bool is_whole_now(const placer *p, const placer_assignment *assignments, size_t n, size_t model)
{
    bool planned = false;
    for (size_t i = 0; i < n; i++) planned |= assignments[i].model == model && assignments[i].end == 0;
    const char *name = p->o.models[model].spec.model;
    const replica_set *set = planned && p->g->registry ? registry_find(p->g->registry, name) : NULL;
    for (size_t i = 0; set && i < set->n_ready; i++)
        if (!strchr(set->replicas[i]->id, '@')) return true;
    return false;
}

static size_t keep_model(const placer *p, placer_assignment *assignments, size_t n, size_t model)
{
    size_t n_planned = n;
    bool changes = is_prepared(p, assignments, n, model) || is_whole_now(p, assignments, n, model);
    for (size_t i = 0; i < n_planned; i++)
        if (is_of(&assignments[i], model, PLANNED))
            assignments[i].in_use =
                changes || has_stage(p->assignments, p->n_assignments, &assignments[i], USED);
    for (size_t i = 0; !changes && i < p->n_assignments; i++) {
        placer_assignment s = p->assignments[i];
        if (!is_of(&s, model, USED) || has_stage(assignments, n_planned, &s, PLANNED)) continue;
        s.held = true;
        assignments[n++] = s;
    }
    return n;
}

size_t placer_stage_keep(const placer *p, placer_assignment *assignments, size_t n)
{
    for (size_t i = 0; i < p->o.n_models; i++)
        if (placement_is_cut(&p->o.models[i].want.shards)) n = keep_model(p, assignments, n, i);
    return n;
}

/* ---- what is told ---------------------------------------------------------------------------------- */

/* The stage of the used chain that begins with this layer. */
static const placer_assignment *used_from(const placer *p, size_t model, size_t first)
{
    for (size_t i = 0; i < p->n_assignments; i++)
        if (is_of(&p->assignments[i], model, USED) && p->assignments[i].first == first)
            return &p->assignments[i];
    return NULL;
}

/* How the first stage, at `from`, reaches that one; NULL: it cannot. */
static const char *address_of(const placer *p, const placer_assignment *from, const placer_assignment *to,
                              arena *strings)
{
    char name[IDENTITY_NAME_SIZE + MEMBER_TABLE_TEXT_MAX];
    if (!stage_name_put(name, sizeof name, p->o.models[to->model].spec.model, to->first, to->end))
        return NULL;
    if (strcmp(from->node, to->node) == 0) return arena_printf(strings, "%s/0", name);
    return *to->at ? arena_printf(strings, "relay:%s/%s/%s/0", to->at, to->node, name) : NULL;
}

/* The worker of that assignment; false: it is not to run yet. `strings` owns what is new in it. */
static bool placer_stage_spec_of(const placer *p, const placer_assignment *s, arena *strings,
                                 worker_spec *ret)
{
    const control_model *m = &p->o.models[s->model];
    size_t at = s->end, n = 0;
    *ret = stage_spec(&m->spec, m->want.shape.n_layer, s->first, s->end);
    if (s->first > 0) return true;
    if (!s->in_use) return false;
    while (at < m->want.shape.n_layer) {
        const placer_assignment *next = used_from(p, s->model, at);
        if (!next || n == WORKER_SPEC_STAGES) return false;
        ret->stages[n] = address_of(p, s, next, strings);
        if (!ret->stages[n++]) return false;
        at = next->end;
    }
    return n > 0;
}

static const char *first_node(const placer *p, const worker_spec *of, chain_kind kind)
{
    const char *at = NULL;
    bool is_in = false;
    for (size_t i = 0; i < p->n_assignments; i++) {
        const placer_assignment *x = &p->assignments[i];
        if (!is_of(x, x->model, kind) || strcmp(p->o.models[x->model].spec.model, of->model) != 0) continue;
        if (x->first == 0) at = x->node;
        is_in |= x->first == of->first_layer && x->end == of->end_layer;
    }
    return is_in ? at : NULL;
}

/* The machines with first stages of the chains that it is in, which alone may call it. */
static void find_first_nodes(const placer *p, const worker_spec *s, const char *ret[2])
{
    size_t n = 0;
    for (int kind = USED; kind <= PLANNED; kind++) {
        const char *at = first_node(p, s, (chain_kind)kind);
        if (at && (n == 0 || strcmp(at, ret[0]) != 0)) ret[n++] = at;
    }
}

bool placer_stage_order(const placer *p, const placer_assignment *s, bool bare, desired_state *to)
{
    const char *first_nodes[2] = {NULL, NULL};
    const bundle *t = bundles_of(p->bundles, s->model);
    worker_spec spec;
    if ((!t && !bare) || !placer_stage_spec_of(p, s, to->memory, &spec)) return true;
    find_first_nodes(p, &spec, first_nodes);
    return desired_state_add(to, &spec, bare ? NULL : t, 1, 0, first_nodes);
}

bool placer_stage_is_on(const placer_assignment *s, const char *node)
{
    return s->end > 0 && strcmp(s->node, node) == 0;
}

/* ---- what is heard --------------------------------------------------------------------------------- */

static bool has_layers(const control_model *m, const Shoal__V1__Assignment *a)
{
    for (size_t i = 0; i < a->n_stages; i++)
        if (!*a->stages[i] || !member_table_text_ok(a->stages[i])) return false;
    return placement_is_cut(&m->want.shards) && a->first_layer < a->end_layer &&
           a->end_layer <= m->want.shape.n_layer && a->n_stages <= WORKER_SPEC_STAGES &&
           (a->first_layer == 0) == (a->n_stages > 0);
}

bool placer_stage_ordered(const placer *p, size_t model, const Shoal__V1__Assignment *a, worker_spec *ret)
{
    const control_model *m = &p->o.models[model];
    if (!has_layers(m, a)) return false;
    *ret = stage_spec(&m->spec, m->want.shape.n_layer, a->first_layer, a->end_layer);
    for (size_t i = 0; i < a->n_stages; i++) ret->stages[i] = a->stages[i];
    return true;
}

bool placer_stage_add(placer *p, size_t model, const placer_node *n, const Shoal__V1__Assignment *a)
{
    placer_assignment s = {.model = model, .first = a->first_layer, .end = a->end_layer, .in_use = true};
    if (!has_layers(&p->o.models[model], a)) return true;
    memcpy(s.node, n->name, sizeof s.node);
    memcpy(s.at, n->at, sizeof s.at);
    return placer_add_assignment(p, &s);
}

/* Does this first stage call that one? Its way there ends as the names of stages do. */
static bool calls(const placer *p, const placer_node *from, const Shoal__V1__Assignment *first,
                  const placer_assignment *s)
{
    char name[IDENTITY_NAME_SIZE + MEMBER_TABLE_TEXT_MAX], way[2 * sizeof name];
    if (!stage_name_put(name, sizeof name, p->o.models[s->model].spec.model, s->first, s->end)) return false;
    bool near = strcmp(from->name, s->node) == 0;
    snprintf(way, sizeof way, "%s%s%s%s/0", near ? "" : "/", near ? "" : s->node, near ? "" : "/", name);
    for (size_t i = 0; i < first->n_stages; i++) {
        size_t n = strlen(first->stages[i]), k = strlen(way);
        if (n >= k && strcmp(first->stages[i] + n - k, way) == 0) return true;
    }
    return false;
}

void placer_stage_drop_uncalled(placer *p, size_t model, const placer_node *from,
                                const Shoal__V1__Assignment *first)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_assignments; i++) {
        const placer_assignment *s = &p->assignments[i];
        bool other = s->model == model && s->end > 0 && s->first > 0 && !calls(p, from, first, s);
        if (!other) p->assignments[n++] = *s;
    }
    p->n_assignments = n;
}

bool placer_stage_reported(const placer *p, size_t model, const Shoal__V1__ReplicaReport *r,
                           size_t *ret_first, size_t *ret_end)
{
    const control_model *m = &p->o.models[model];
    size_t n, first, end;
    if (!placement_is_cut(&m->want.shards) || !stage_name_parse(r->id, &n, &first, &end)) return false;
    if (strlen(m->spec.model) != n || strncmp(m->spec.model, r->id, n) != 0) return false;
    if (end > m->want.shape.n_layer) return false;
    *ret_first = first;
    *ret_end = end;
    return true;
}

bool placer_stage_waits(const placer *p, size_t model)
{
    return placement_is_cut(&p->o.models[model].want.shards) &&
           control_now_ns(p->g) - p->leads_ns < RETURN_MS * UINT64_C(1000000);
}

/* ---- when layers may be dealt out anew --------------------------------------------------------------- */

enum { IDLE_MS = 30000, SETTLED_MS = 600000 };

typedef struct placer_calm { /* of one model */
    uint64_t asked_ns, dealt_ns;
    bool idle;
} placer_calm;

static bool is_asked(const placer *p, size_t model)
{
    const replica_set *set =
        p->g->registry ? registry_find(p->g->registry, p->o.models[model].spec.model) : NULL;
    for (size_t i = 0; set && i < set->n; i++) {
        const replica *r = set->replicas[i];
        if (r->load.n_in_flight > 0 || (r->stats && r->stats->n_running + r->stats->n_waiting > 0))
            return true;
    }
    return false;
}

void placer_stage_look(placer *p, uint64_t now_ns)
{
    if (!p->calm && !(p->calm = calloc(p->o.n_models + 1, sizeof *p->calm))) return;
    for (size_t i = 0; i < p->o.n_models; i++) {
        placer_calm *c = &p->calm[i];
        if (!c->dealt_ns) c->dealt_ns = now_ns; /* before this gateway */
        if (is_asked(p, i) || !c->asked_ns) c->asked_ns = now_ns;
        c->idle = placement_is_cut(&p->o.models[i].want.shards) &&
                  now_ns - c->asked_ns >= IDLE_MS * UINT64_C(1000000) &&
                  now_ns - c->dealt_ns >= SETTLED_MS * UINT64_C(1000000);
    }
}

bool placer_stage_is_idle(const placer *p, size_t model)
{
    return p->calm && p->calm[model].idle;
}

void placer_stage_dealt(placer *p, const placement *plan, uint64_t now_ns)
{
    for (size_t i = 0; p->calm && i < plan->n_assignments; i++)
        if (plan->assignments[i].why == PLACEMENT_DEALT || plan->assignments[i].why == PLACEMENT_RELIEVES)
            p->calm[plan->assignments[i].model] = (placer_calm){.dealt_ns = now_ns, .asked_ns = now_ns};
}
