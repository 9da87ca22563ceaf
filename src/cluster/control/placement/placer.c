/* placer.c: the plan, applied: who serves what, and how everybody hears of it.
 *
 * The assignments of the last plan are what the next one begins with; some of those that leave are held for
 * a while (placer_hold.h). A machine that is gone counts as there until it was not heard for GRACE_MS. Of
 * several gateways with a shared plan the one that leads plans (shared_plan.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "control/placement/placer.h"

enum { GRACE_MS = 3000, PLAN_MS = 1000 };

/* ---- files --------------------------------------------------------------------------------------- */

static void files_changed(void *user)
{
    placer *p = user;
    placer_changed(p->g);
}

bool placer_travels(const placer *p, size_t model)
{
    return bundles_of(p->bundles, model) != NULL;
}

bool placer_file(const control *g, const char *digest, char ret_path[MODEL_SEND_PATH])
{
    return g->placer && bundles_find(g->placer->bundles, digest, ret_path);
}

/* ---- machines ------------------------------------------------------------------------------------ */

placer_node *placer_find_node(const placer *p, const char *name)
{
    for (size_t i = 0; i < p->n_nodes; i++)
        if (strcmp(p->nodes[i].name, name) == 0) return &p->nodes[i];
    return NULL;
}

placer_node *placer_add_node(placer *p, const char *name)
{
    if (p->n_nodes >= PLACER_NODES_MAX) return NULL;
    if (p->n_nodes == p->cap_nodes) {
        size_t cap = p->cap_nodes ? 2 * p->cap_nodes : 8;
        placer_node *more = realloc(p->nodes, cap * sizeof *more);
        if (!more) return NULL;
        p->nodes = more;
        p->cap_nodes = cap;
    }
    placer_node *n = &p->nodes[p->n_nodes++];
    *n = (placer_node){0};
    snprintf(n->name, sizeof n->name, "%s", name);
    return n;
}

static void set_facts(placer_node *n, const node *facts)
{
    node *copy, f = *facts;
    f.name = n->name;
    f.draining = n->drains;
    f.is_gateway = n->here || facts->is_gateway;
    f.unreached = f.is_gateway;                  /* its workers have no relay */
    if (node_copy(&copy, &f, NULL) != 0) return; /* what was known before does */
    node_free(n->facts);
    n->facts = copy;
}

static void look_here(placer *p)
{
    placer_node *n = placer_find_node(p, control_name(p->g));
    node *now = NULL;
    if (!n) n = placer_add_node(p, control_name(p->g));
    if (!n || (p->o.machine ? p->o.machine : node_here)(&now, NULL) != 0) return;
    n->here = n->attached = true;
    now->site = p->o.site;
    now->bytes_per_s = p->o.bytes_per_s;
    now->multiplies_per_s = p->o.multiplies_per_s;
    set_facts(n, now);
    node_free(now);
}

bool placer_add_assignment(placer *p, const placer_assignment *s)
{
    if (p->n_assignments >= PLACER_ASSIGNMENTS_MAX) return false;
    placer_assignment *more = realloc(p->assignments, (p->n_assignments + 1) * sizeof *more);
    if (!more) return false;
    p->assignments = more;
    p->assignments[p->n_assignments++] = *s;
    return true;
}

bool placer_node_answers(const placer *p, const char *node_name, const char *model)
{
    const replica_set *set = p->g->registry ? registry_find(p->g->registry, model) : NULL;
    for (size_t i = 0; set && i < set->n_ready; i++) {
        const node *at = set->replicas[i]->node;
        if (strcmp(at ? at->name : control_name(p->g), node_name) == 0) return true;
    }
    return false;
}

static bool assignment_answers(const placer *p, const placer_assignment *s)
{
    if (s->end > 0 && s->first > 0) return true; /* the first stage answers for it */
    return placer_node_answers(p, s->node, p->o.models[s->model].spec.model);
}

/* Do as many replicas of the model answer as are wanted, wherever they are? */
static bool placer_is_served(const placer *p, size_t model)
{
    unsigned n = 0;
    for (size_t i = 0; i < p->n_assignments; i++) {
        const placer_assignment *s = &p->assignments[i];
        n += s->model == model && !s->standby && !s->held && s->end == 0 && assignment_answers(p, s);
    }
    return n >= p->o.models[model].want.n_replicas;
}

/* By the word of a gateway before this one, or of this one before it was gone. What others serve by now they
 * keep: a machine that comes back moves nothing. */
bool placer_adopt(placer *p, const member_entry *e)
{
    for (size_t i = 0; i < e->replicas->n_replicas; i++) {
        const Shoal__V1__ReplicaReport *r = e->replicas->replicas[i];
        size_t m = 0, first = 0, end = 0;
        while (m < p->o.n_models && !placer_stage_reported(p, m, r, &first, &end)) m++;
        if (m == p->o.n_models) m = 0;
        while (m < p->o.n_models && end == 0 && strcmp(p->o.models[m].spec.model, r->model) != 0) m++;
        if (!r->assigned || m == p->o.n_models || (end == 0 && placer_is_served(p, m))) continue;
        placer_assignment s = {
            .model = m, .standby = r->standby, .first = first, .end = end, .in_use = end > 0};
        memcpy(s.node, e->name, sizeof s.node);
        (void)control_replicas_address(e, s.at, sizeof s.at); /* "" without one */
        if (!placer_add_assignment(p, &s)) return false;
    }
    return true;
}

/* A machine counts when it has said how it is, and what it serves. */
static bool counts(const member_entry *e)
{
    return e->role == ROLE_NODE && e->facts && e->load && e->replicas && *e->facts->address;
}

static void look_at_attached(placer *p, const member_entry *e, uint64_t now_ns)
{
    const node *facts = p->g->registry ? registry_node(p->g->registry, e->name) : NULL;
    placer_node *n = placer_find_node(p, e->name);
    if (!facts || (n && (n->here || n->removed))) return;
    bool is_new = !n;
    if (!n) n = placer_add_node(p, e->name);
    if (is_new && n) join_burst_note(&p->burst, now_ns / 1000000);
    if (!n || (p->leads && !n->facts && !placer_adopt(p, e))) return; /* it was not there until now */
    n->attached = true;
    n->gone_ns = 0;
    if (!control_replicas_address(e, n->at, sizeof n->at)) *n->at = '\0';
    set_facts(n, facts);
}

/* Through etcd: attached to another gateway of the group, or one. */
static void look_at_others(placer *p)
{
    size_t at = 0;
    for (const node *f; p->g->registry && (f = registry_next_node(p->g->registry, &at));) {
        const char *source = registry_node_source(p->g->registry, f->name);
        if (!source || strcmp(source, "etcd") != 0 || !f->group || strcmp(f->group, p->group) != 0) continue;
        placer_node *n = placer_find_node(p, f->name);
        if (!n) n = placer_add_node(p, f->name);
        if (!n || n->here || n->removed || n->attached) continue;
        n->attached = true;
        n->gone_ns = 0;
        snprintf(n->at, sizeof n->at, "%s", f->address ? f->address : "");
        set_facts(n, f);
    }
}

/* An operator's command outlives the connection, and a plan that another one made is not ours to forget. */
static bool is_kept(const placer *p, const placer_node *n)
{
    return n->drains || (!p->leads && n->plan.bytes);
}

static void forget_last_sent(placer_node *n)
{
    free(n->assigned.bytes);
    free(n->holders.bytes);
    n->assigned = n->holders = (last_sent){0};
}

static void forget_node(placer *p, placer_node *n)
{
    placer_unwrite(p, n);
    node_free(n->facts);
    forget_last_sent(n);
    *n = p->nodes[--p->n_nodes];
}

void placer_look_around(placer *p, uint64_t now_ns)
{
    for (size_t i = 0; i < p->n_nodes; i++) p->nodes[i].attached = false;
    look_here(p);
    for (size_t i = 0; i < member_table_count(p->g->member_table); i++)
        if (counts(member_table_at(p->g->member_table, i)))
            look_at_attached(p, member_table_at(p->g->member_table, i), now_ns);
    if (p->o.shared_plan) look_at_others(p);
    for (size_t i = p->n_nodes; i-- > 0;) {
        placer_node *n = &p->nodes[i];
        if (n->attached) continue;
        if (!n->gone_ns) n->gone_ns = now_ns;
        bool over = now_ns - n->gone_ns >= GRACE_MS * UINT64_C(1000000);
        if (over && n->facts) LOG(LOG_WARN, "placement", "node_gone", LOG_S("node", n->name));
        if (over && !is_kept(p, n)) {
            forget_node(p, n);
        } else if (over) {
            node_free(n->facts);
            n->facts = NULL;
        }
    }
}

/* ---- the plan ------------------------------------------------------------------------------------ */

typedef struct holding {
    const placer *p;
    const placement *plan;
} holding;

static bool holding_answers(const void *user, const placer_assignment *s)
{
    return assignment_answers(((const holding *)user)->p, s);
}

static bool holding_may_stay(const void *user, const placer_assignment *s)
{
    const placer *p = ((const holding *)user)->p;
    const placement *plan = ((const holding *)user)->plan;
    const placer_node *n = placer_find_node(p, s->node);
    if (!n || !n->attached || n->removed || s->standby) return false;
    for (size_t i = 0; i < plan->n_leavers; i++) {
        const placement_leaver *l = &plan->leavers[i];
        bool is_it = strcmp(l->model, p->o.models[s->model].spec.model) == 0 && strcmp(l->node, s->node) == 0;
        if (is_it && (l->why == PLACEMENT_UNWANTED || l->why == PLACEMENT_EVICTED)) return false;
    }
    return true;
}

/* The new assignments, and those of the old ones that are held. */
static bool take_assignments(placer *p, const placement *plan, const node *nodes)
{
    placer_assignment *assignments = calloc(plan->n_assignments + p->n_assignments + 1, sizeof *assignments);
    size_t n = 0;
    if (!assignments) return false;
    for (size_t i = 0; i < plan->n_assignments; i++) {
        const placement_assignment *from = &plan->assignments[i];
        const placer_node *at = placer_find_node(p, nodes[from->node].name);
        assignments[n] = (placer_assignment){
            .model = from->model, .standby = from->standby, .first = from->first, .end = from->end};
        snprintf(assignments[n].node, IDENTITY_NAME_SIZE, "%s", nodes[from->node].name);
        if (at) memcpy(assignments[n].at, at->at, sizeof at->at);
        n++;
    }
    const holding h = {p, plan};
    const placer_hold_rules rules = {&h, holding_answers, holding_may_stay};
    size_t n_planned = n;
    n = placer_stage_keep(p, assignments, n);
    n = placer_hold(assignments, n_planned, n, p->assignments, p->n_assignments, &rules);
    free(p->assignments);
    p->assignments = assignments;
    p->n_assignments = n;
    return true;
}

static void placer_say(const placer *p, const placement *plan, const node *nodes)
{
    for (size_t i = 0; i < plan->n_assignments; i++) {
        const placement_assignment *s = &plan->assignments[i];
        if (s->why != PLACEMENT_STAYS)
            LOG(LOG_INFO, "placement", "placed", LOG_S("model", p->o.models[s->model].spec.model),
                LOG_S("node", nodes[s->node].name), LOG_I("first", s->first), LOG_I("end", s->end),
                LOG_S("why", placement_why_text(s->why)));
    }
    for (size_t i = 0; i < plan->n_leavers; i++)
        LOG(LOG_INFO, "placement", "leaves", LOG_S("model", plan->leavers[i].model),
            LOG_S("node", plan->leavers[i].node), LOG_S("why", placement_why_text(plan->leavers[i].why)));
    if (plan->n_gaps == p->n_missing) return;
    for (size_t i = 0; i < plan->n_gaps; i++)
        LOG(LOG_WARN, "placement", "missing", LOG_S("model", p->o.models[plan->gaps[i].model].spec.model),
            LOG_I("replicas", plan->gaps[i].n_replicas), LOG_I("standby", plan->gaps[i].n_standby));
}

typedef struct placement_input { /* what placement_plan looks at */
    node *nodes;
    placement_model *models;
    placement_now *now;
    size_t n_nodes, n_now, n_gateways;
    const char **gateways; /* they have the same files */
    const char **failed;   /* of all models, one behind the other */
} placement_input;

static bool set_input(placement_input *d, const placer *p, uint64_t now_ns)
{
    d->nodes = calloc(p->n_nodes + 1, sizeof *d->nodes);
    d->models = calloc(p->o.n_models + 1, sizeof *d->models);
    d->now = calloc(p->n_assignments + 1, sizeof *d->now);
    d->gateways = calloc(p->n_nodes + 1, sizeof *d->gateways);
    d->failed = calloc(p->n_failures + 1, sizeof *d->failed);
    if (!d->nodes || !d->models || !d->now || !d->gateways || !d->failed) return false;
    size_t n_failed = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        const placer_node *n = &p->nodes[i];
        if (!n->facts || n->removed) continue;
        d->nodes[d->n_nodes++] = *n->facts;
        if (n->facts->is_gateway) d->gateways[d->n_gateways++] = n->name;
    }
    for (size_t i = 0; i < p->o.n_models; i++) {
        d->models[i] = p->o.models[i].want;
        d->models[i].waits = placer_stage_waits(p, i);
        d->models[i].settling = p->settling;
        d->models[i].idle = placer_stage_is_idle(p, i);
        d->models[i].failed = &d->failed[n_failed];
        d->models[i].n_failed = placer_failed_nodes(p, i, now_ns, &d->failed[n_failed]);
        n_failed += d->models[i].n_failed;
        if (placer_travels(p, i)) continue;
        d->models[i].nodes = d->gateways;
        d->models[i].n_nodes = d->n_gateways;
    }
    for (size_t i = 0; i < p->n_assignments; i++)
        if (!p->assignments[i].held)
            d->now[d->n_now++] = (placement_now){.model = p->o.models[p->assignments[i].model].spec.model,
                                                 .node = p->assignments[i].node,
                                                 .standby = p->assignments[i].standby,
                                                 .first = p->assignments[i].first,
                                                 .end = p->assignments[i].end};
    return true;
}

static void input_done(placement_input *d)
{
    free(d->nodes);
    free(d->models);
    free(d->now);
    free(d->gateways);
    free(d->failed);
}

unsigned control_room(const control *g, const char *model, unsigned n, char *ret_why, size_t size)
{
    const placer *p = g->placer;
    placement_input d = {0};
    shoal_err err;
    size_t at = 0;
    unsigned room = 0;
    while (at < p->o.n_models && strcmp(p->o.models[at].spec.model, model) != 0) at++;
    int rc = set_input(&d, p, control_now_ns(g)) ? 0 : err_nomem(&err);
    if (rc == 0 && at < p->o.n_models)
        rc = placement_room(&room, ret_why, size, d.nodes, d.n_nodes, d.models, p->o.n_models, at, n, d.now,
                            d.n_now, &err);
    if (rc != 0) snprintf(ret_why, size, "%s", err.message);
    if (rc != 0) room = p->o.models[at].want.n_replicas; /* no memory: none more now */
    input_done(&d);
    return room;
}

bool control_plans(const control *g)
{
    return g->placer && g->placer->leads;
}

static void plan(placer *p, uint64_t now_ns)
{
    placement_input d = {0};
    placement plan = {0};
    shoal_err err;
    p->changed = false;
    p->planned_ns = now_ns;
    if (!placer_leads(p, now_ns)) return;
    placer_look_around(p, now_ns);
    p->settling = join_burst_is_on(&p->burst, now_ns / 1000000);
    placer_look_at_failures(p, now_ns);
    bundles_look(p->bundles);
    placer_stage_look(p, now_ns);
    int rc = set_input(&d, p, now_ns)
                 ? placement_plan(&plan, d.nodes, d.n_nodes, d.models, p->o.n_models, d.now, d.n_now, &err)
                 : err_nomem(&err);
    if (rc == 0) {
        placer_relieve(p, &plan, d.nodes, d.n_nodes, d.models);
        placer_say(p, &plan, d.nodes);
        p->n_missing = plan.n_gaps;
        placer_stage_dealt(p, &plan, now_ns);
        placer_note_lost(p, &plan);
        if (take_assignments(p, &plan, d.nodes)) placer_write(p);
        placer_deliver(p);
        placer_tell_missing(p, &plan, d.nodes, d.n_nodes, d.models, now_ns);
    } else {
        LOG(LOG_ERROR, "placement", "no_plan", LOG_S("reason", err.message));
    }
    placement_done(&plan);
    input_done(&d);
}

/* ---- when ---------------------------------------------------------------------------------------- */

static void on_soon(void *user)
{
    placer *p = user;
    if (!p->g->closing) plan(p, control_now_ns(p->g));
}

void placer_changed(control *g)
{
    placer *p = g->placer;
    if (!p || p->changed || g->closing) return;
    uint64_t past = (control_now_ns(g) - p->planned_ns) / 1000000;
    p->changed = true;
    g->e->timer_start(p->soon, past >= PLAN_MS ? 0 : PLAN_MS - past);
}

void placer_lost(control *g, const char *name, uint64_t silent_ns)
{
    placer_node *n = g->placer ? placer_find_node(g->placer, name) : NULL;
    if (n) n->gone_ns = control_now_ns(g) - silent_ns;
}

void placer_greet(control *g, const char *name)
{
    placer_node *n = g->placer ? placer_find_node(g->placer, name) : NULL;
    if (!n) return;
    forget_last_sent(n);
    member_entry *e = member_table_find(g->member_table, name);
    if (e) e->drains = n->drains;
    n->removed = false; /* it has another certificate */
}

void placer_tick(control *g, uint64_t now_ns)
{
    placer *p = g->placer;
    if (!p || now_ns - p->planned_ns < PLAN_MS * UINT64_C(1000000) / 2) return;
    g->e->timer_stop(p->soon);
    plan(p, now_ns);
}

/* ---- life ---------------------------------------------------------------------------------------- */

/* Files that are still read free themselves. */
void placer_free(placer *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n_nodes; i++) {
        node_free(p->nodes[i].facts);
        forget_last_sent(&p->nodes[i]);
        free(p->nodes[i].plan.bytes);
    }
    bundles_close(p->bundles);
    free(p->nodes);
    free(p->assignments);
    free(p->missing);
    free(p->failures);
    free(p->calm);
    p->g->e->timer_free(p->soon);
    free(p);
}

int control_place(control *g, const control_place_options *o, shoal_err *err)
{
    if (!g->credential.ca && !o->shared_plan)
        return err_set(err, SHOAL_EINVALID, "only the gateway that has the CA places models");
    placer *p = calloc(1, sizeof *p);
    if (!p) return err_nomem(err);
    p->g = g;
    p->o = *o;
    p->leads = !o->shared_plan;
    p->opened_ns = p->leads_ns = control_now_ns(g);
    g->placer = p;
    p->soon = g->e->timer_new(g->e->user, on_soon, p);
    int rc = p->soon ? 0 : err_nomem(err);
    if (rc == 0) rc = bundles_open(&p->bundles, g->loop, o->models, o->n_models, files_changed, p, err);
    for (size_t i = 0; rc == 0 && g->registry && i < o->n_models; i++)
        rc = registry_declare(g->registry, o->models[i].spec.model, err);
    if (rc == 0 && o->shared_plan) rc = placer_name_group(p, err);
    if (rc == 0) rc = placer_read_drained(p, err);
    if (rc == 0) plan(p, p->opened_ns);
    return rc;
}
