/* shared_plan.c: plans as bytes: made of assignments, read back into assignments, told to machines, and kept
 * by several gateways.
 *
 * A gateway that begins to lead takes its assignments from the plans of the one before, so that nothing moves
 * because of that; LEAD_MS after its election, when it has read what the other one wrote last. */
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "base/sha256.h"
#include "control/holders.h"
#include "control/desired_state.h"
#include "control/placement/placer.h"

enum {
    LEAD_MS = 1000,
    ALONE_MS = 5000,   /* from the start until this machine serves its own models, when no plan can be read */
    UNNAMED_MS = 3000, /* from when all plans were read, when there is none for it */
};

static bool is_past(uint64_t since_ns, uint64_t now_ns, uint64_t ms)
{
    return since_ns && now_ns - since_ns >= ms * UINT64_C(1000000);
}

/* ---- the group ------------------------------------------------------------------------------------- */

static void shared_plan_put_list(buf *out, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) buf_printf(out, "%s,", list[i]);
    buf_putc(out, ';');
}

static void put_shards(buf *out, const control_model *m)
{
    const placement_shards *s = &m->want.shards;
    if (!placement_is_cut(s)) return;
    buf_printf(out, "%d;%zu;%s;", s->automatic, s->n, m->spec.wire ? m->spec.wire : "");
    for (size_t i = 0; i < s->n_parts; i++)
        buf_printf(out, "%s=%zu,", s->parts[i].node, s->parts[i].n_layers);
}

static void shared_plan_put_model(buf *out, const control_model *m)
{
    const char *slash = strrchr(m->spec.path, '/');
    buf_printf(out, "%s;%s;%s;%u;%u;%d;%d;%g;", m->spec.model, slash ? slash + 1 : m->spec.path,
               m->spec.sha256 ? m->spec.sha256 : "", m->want.n_replicas, m->want.n_standby, m->want.spread,
               m->want.battery, m->want.max_rtt_ms);
    put_shards(out, m);
    for (size_t i = 0; i < WORKER_SPEC_ADAPTERS && m->spec.adapters[i]; i++)
        buf_printf(out, "%.*s,", (int)strcspn(m->spec.adapters[i], "="), m->spec.adapters[i]);
    shared_plan_put_list(out, m->want.labels, m->want.n_labels);
    shared_plan_put_list(out, m->want.nodes, m->want.n_nodes);
}

int placer_name_group(placer *p, shoal_err *err)
{
    buf text = {0};
    sha256_digest digest;
    char hex[65];
    for (size_t i = 0; i < p->o.n_models; i++) shared_plan_put_model(&text, &p->o.models[i]);
    if (text.failed) {
        buf_done(&text);
        return err_nomem(err);
    }
    sha256_of(text.data ? text.data : "", text.len, &digest);
    sha256_hex(&digest, hex);
    memcpy(p->group, hex, sizeof p->group - 1);
    p->group[sizeof p->group - 1] = '\0';
    buf_done(&text);
    return 0;
}

const char *control_group(const control *g)
{
    return g->placer && *g->placer->group ? g->placer->group : NULL;
}

/* ---- a plan of assignments ----------------------------------------------------------------------------- */

static void count_assignments(const placer *p, size_t model, const char *name, unsigned ret[2])
{
    ret[0] = ret[1] = 0;
    for (size_t i = 0; i < p->n_assignments; i++)
        if (p->assignments[i].model == model && p->assignments[i].end == 0 &&
            strcmp(p->assignments[i].node, name) == 0)
            ret[p->assignments[i].standby]++;
}

bool placer_is_new(last_sent *last, const ProtobufCMessage *m)
{
    size_t size = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = malloc(size + 1);
    if (!bytes) return false;
    protobuf_c_message_pack(m, bytes);
    bool same = last->bytes && last->n == size && memcmp(last->bytes, bytes, size) == 0;
    free(same ? bytes : last->bytes);
    if (same) return false;
    *last = (last_sent){bytes, size};
    return true;
}

static bool add_model(const placer *p, desired_state *all, const placer_node *n, size_t model)
{
    const bundle *t = bundles_of(p->bundles, model);
    const worker_spec *s = &p->o.models[model].spec;
    unsigned k[2];
    count_assignments(p, model, n->name, k);
    if (k[0] + k[1] == 0) return true;
    if (n->facts->is_gateway) return desired_state_add(all, s, NULL, k[0], k[1], NULL);
    return !t || desired_state_add(all, s, t, k[0], k[1], NULL);
}

static void write_one(placer *p, placer_node *n)
{
    Shoal__V1__Plan plan = SHOAL__V1__PLAN__INIT;
    desired_state all;
    if (!desired_state_open(&all, p->o.n_models + p->n_assignments)) return; /* the next plan says it */
    bool ok = true;
    for (size_t i = 0; ok && i < p->o.n_models; i++) ok = add_model(p, &all, n, i);
    for (size_t i = 0; ok && i < p->n_assignments; i++)
        if (placer_stage_is_on(&p->assignments[i], n->name))
            ok = placer_stage_order(p, &p->assignments[i], n->facts->is_gateway, &all);
    plan.assignments = &all.message;
    plan.drains = n->drains;
    if (ok && placer_is_new(&n->plan, &plan.base) && p->o.shared_plan)
        p->o.shared_plan->post(p->o.shared_plan->user, n->name, n->plan.bytes, n->plan.n);
    desired_state_close(&all);
}

void placer_write(placer *p)
{
    for (size_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].facts) write_one(p, &p->nodes[i]);
}

void placer_unwrite(placer *p, placer_node *n)
{
    if (n->plan.bytes && p->leads && p->o.shared_plan)
        p->o.shared_plan->post(p->o.shared_plan->user, n->name, NULL, 0);
    free(n->plan.bytes);
    n->plan = (last_sent){0};
}

/* ---- telling ------------------------------------------------------------------------------------- */

static size_t model_of(const placer *p, const char *name)
{
    size_t m = 0;
    while (m < p->o.n_models && strcmp(p->o.models[m].spec.model, name) != 0) m++;
    return m;
}

static bool shared_plan_spec_of(const placer *p, const Shoal__V1__Assignment *a, worker_spec *ret)
{
    size_t m = model_of(p, a->model);
    if (m == p->o.n_models) return false;
    if (a->end_layer > 0) return placer_stage_ordered(p, m, a, ret);
    if (a->replicas > PLACER_ASSIGNMENTS_MAX || a->standby > PLACER_ASSIGNMENTS_MAX) return false;
    if (a->replicas + a->standby == 0) return false;
    *ret = p->o.models[m].spec;
    ret->n_standby = (int)a->standby;
    ret->n_replicas = (int)(a->replicas + a->standby);
    return true;
}

static void serve_here(const placer *p, const Shoal__V1__Assignments *all)
{
    size_t n_assigned = all ? all->n_models : 0, n = 0;
    worker_spec *list = n_assigned <= PLACER_ASSIGNMENTS_MAX ? calloc(n_assigned + 1, sizeof *list) : NULL;
    if (!list) return; /* the next time does it */
    for (size_t i = 0; i < n_assigned; i++) n += shared_plan_spec_of(p, all->models[i], &list[n]);
    p->o.here(p->o.user, list, n);
    free(list);
}

/* What must be known of one file, resp. of a folder's files. */
static bool add_holders(const placer *p, holders_list *l, const member_entry *e, const bundle *t)
{
    bool ok = true;
    for (size_t k = 0; ok && t && k < t->n_parts; k++) {
        const artifact *x = &t->parts[k].artifact;
        for (size_t f = 0; ok && f < x->n_files; f++)
            ok = holders_add(l, p->g->member_table, e, x->files[f].digest, control_replicas_address);
        if (ok && x->n_files == 0)
            ok = holders_add(l, p->g->member_table, e, x->digest, control_replicas_address);
    }
    return ok;
}

/* Holders first, so that a machine that is assigned a file knows whom to ask. */
static void tell_holders(const placer *p, placer_node *n, const member_entry *e,
                         const Shoal__V1__Assignments *all)
{
    holders_list l = {0};
    Shoal__V1__ServerMessage m = SHOAL__V1__SERVER_MESSAGE__INIT;
    bool ok = true;
    for (size_t i = 0; ok && i < all->n_models; i++) {
        size_t model = model_of(p, all->models[i]->model);
        if (model < p->o.n_models) ok = add_holders(p, &l, e, bundles_of(p->bundles, model));
    }
    m.holders = ok ? holders_message(&l) : NULL;
    if (m.holders && (n->holders.bytes || l.n > 0) && placer_is_new(&n->holders, &m.holders->base))
        control_attach_send(e, &m);
    holders_done(&l);
}

static void tell_node(const placer *p, placer_node *n, const member_entry *e, Shoal__V1__Assignments *all)
{
    Shoal__V1__ServerMessage m = SHOAL__V1__SERVER_MESSAGE__INIT;
    tell_holders(p, n, e, all);
    m.assign = all;
    if (placer_is_new(&n->assigned, &all->base)) control_attach_send(e, &m);
}

static void shared_plan_deliver(placer *p, placer_node *n)
{
    const member_entry *e = n->here ? NULL : member_table_find(p->g->member_table, n->name);
    if (!n->plan.bytes || (!n->here && (!e || e->role != ROLE_NODE || !n->attached))) return;
    Shoal__V1__Plan *plan = shoal__v1__plan__unpack(NULL, n->plan.n, n->plan.bytes);
    if (!plan) return; /* no memory: the next time does it */
    if (n->here)
        serve_here(p, plan->assignments);
    else if (plan->assignments)
        tell_node(p, n, e, plan->assignments);
    shoal__v1__plan__free_unpacked(plan, NULL);
}

void placer_deliver(placer *p)
{
    for (size_t i = 0; i < p->n_nodes; i++) shared_plan_deliver(p, &p->nodes[i]);
}

/* ---- leading and following ------------------------------------------------------------------------- */

static bool add_assignments(placer *p, size_t model, const char *node, unsigned n, bool standby)
{
    placer_assignment s = {.model = model, .standby = standby};
    memcpy(s.node, node, strlen(node) + 1);
    for (unsigned i = 0; i < n; i++)
        if (!placer_add_assignment(p, &s)) return false;
    return true;
}

static bool assignments_of_plan(placer *p, const placer_node *n)
{
    Shoal__V1__Plan *plan = shoal__v1__plan__unpack(NULL, n->plan.n, n->plan.bytes);
    if (!plan) return false;
    bool ok = true;
    for (size_t i = 0; ok && plan->assignments && i < plan->assignments->n_models; i++) {
        const Shoal__V1__Assignment *a = plan->assignments->models[i];
        size_t m = model_of(p, a->model);
        if (m == p->o.n_models) continue;
        ok = a->end_layer > 0 ? placer_stage_add(p, m, n, a)
                              : add_assignments(p, m, n->name, a->replicas, false) &&
                                    add_assignments(p, m, n->name, a->standby, true);
    }
    shoal__v1__plan__free_unpacked(plan, NULL);
    return ok;
}

/* Behind the assignments of all plans. */
static bool drop_uncalled(placer *p, const placer_node *n)
{
    Shoal__V1__Plan *plan = n->plan.bytes ? shoal__v1__plan__unpack(NULL, n->plan.n, n->plan.bytes) : NULL;
    if (!plan) return !n->plan.bytes;
    for (size_t i = 0; plan->assignments && i < plan->assignments->n_models; i++) {
        const Shoal__V1__Assignment *a = plan->assignments->models[i];
        size_t m = model_of(p, a->model);
        if (m < p->o.n_models && a->n_stages > 0) placer_stage_drop_uncalled(p, m, n, a);
    }
    shoal__v1__plan__free_unpacked(plan, NULL);
    return true;
}

static bool assignments_alone(placer *p, const placer_node *n)
{
    bool ok = true;
    for (size_t i = 0; ok && i < p->o.n_alone; i++) {
        const worker_spec *s = &p->o.alone[i];
        size_t m = model_of(p, s->model);
        placer_assignment stage = {.model = m, .first = s->first_layer, .end = s->end_layer, .in_use = true};
        if (m == p->o.n_models) continue;
        memcpy(stage.node, n->name, sizeof stage.node);
        ok = s->end_layer > 0
                 ? placer_add_assignment(p, &stage)
                 : add_assignments(p, m, n->name, s->n_replicas > 0 ? (unsigned)s->n_replicas : 1, false);
    }
    return ok;
}

/* Where nobody has planned: what is there. */
static bool assignments_that_are(placer *p, const placer_node *n)
{
    const member_entry *e = member_table_find(p->g->member_table, n->name);
    if (e && e->role == ROLE_NODE && e->replicas) return placer_adopt(p, e);
    return !n->here || !p->alone || assignments_alone(p, n);
}

static void begin_to_lead(placer *p)
{
    p->n_assignments = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        const placer_node *n = &p->nodes[i];
        if (!(n->plan.bytes ? assignments_of_plan(p, n) : assignments_that_are(p, n)))
            return; /* tried again with the next look */
    }
    for (size_t i = 0; i < p->n_nodes; i++)
        if (!drop_uncalled(p, &p->nodes[i])) return;
    p->leads = true;
    p->leads_ns = control_now_ns(p->g);
    p->alone = false;
    LOG(LOG_INFO, "placement", "leads", LOG_S("group", p->group), LOG_I("seats", p->n_assignments));
}

static void serve_alone(placer *p, uint64_t now_ns)
{
    const placer_node *own = placer_find_node(p, control_name(p->g));
    if (own && own->plan.bytes) {
        p->alone = false;
        return;
    }
    if (p->alone ||
        !(p->synced_ns ? is_past(p->synced_ns, now_ns, UNNAMED_MS) : is_past(p->opened_ns, now_ns, ALONE_MS)))
        return;
    LOG(LOG_WARN, "placement", "alone",
        LOG_S("reason", p->synced_ns ? "no gateway has planned for this one" : "etcd does not answer"));
    p->alone = true;
    p->o.here(p->o.user, p->o.alone, p->o.n_alone);
}

bool placer_leads(placer *p, uint64_t now_ns)
{
    const control_shared_plan *b = p->o.shared_plan;
    if (!b) return true;
    bool elected = p->synced_ns && b->leads(b->user);
    if (!elected) p->elected_ns = 0;
    if (elected && !p->elected_ns) p->elected_ns = now_ns;
    if (p->leads && !elected) LOG(LOG_WARN, "placement", "follows", LOG_S("group", p->group));
    p->leads = p->leads && elected;
    if (p->leads) return true;
    placer_look_around(p, now_ns);
    if (elected && is_past(p->elected_ns, now_ns, LEAD_MS)) begin_to_lead(p);
    if (p->leads) return true;
    placer_deliver(p);
    serve_alone(p, now_ns);
    const char *leader = b->leader ? b->leader(b->user) : NULL;
    if (p->synced_ns && leader) placer_tell_unplanned(p, leader, now_ns);
    return false;
}

/* ---- what the shared plan says ------------------------------------------------------------------------- */

static void take_drained(placer *p, placer_node *n, bool drains)
{
    if (n->drains == drains) return;
    n->drains = drains;
    placer_keep_drained(p);
    member_entry *e = member_table_find(p->g->member_table, n->name);
    if (!e) return;
    e->drains = drains;
    control_attach_retell(e);
}

void control_plan_read(control *g, const char *name, const uint8_t *bytes, size_t size)
{
    placer *p = g->placer;
    if (!p || p->leads || g->closing) return; /* who leads has written it */
    placer_node *n = placer_find_node(p, name);
    if (!bytes) {
        if (n) free(n->plan.bytes);
        if (n) n->plan = (last_sent){0};
        return;
    }
    Shoal__V1__Plan *plan = shoal__v1__plan__unpack(NULL, size, bytes);
    if (plan && !n) n = placer_add_node(p, name);
    if (plan && n) {
        placer_is_new(&n->plan, &plan->base);
        take_drained(p, n, plan->drains);
        placer_changed(g);
    } else {
        LOG(LOG_WARN, "placement", "plan_unread", LOG_S("node", name));
    }
    if (plan) shoal__v1__plan__free_unpacked(plan, NULL);
}

void control_plans_synced(control *g)
{
    if (g->placer) g->placer->synced_ns = control_now_ns(g);
    placer_changed(g);
}

void control_leader_changed(control *g)
{
    placer_changed(g);
}
