/* placer_relief.c: replicas that move for balance.
 *
 * Nothing moves for balance by itself: only when a machine has joined that was never here, for models that
 * say `place.rebalance`, or by an operator's command, for all. Then one replica after the other moves, each
 * when the one before has left the node that it was on, as long as it is worth it (placement_relieve). A
 * model that is missing for good (no machine has its label, say) does not keep the others from moving. */
#include <stdio.h>
#include <string.h>

#include "logging/log.h"
#include "control/placement/placer.h"

void placer_enrolled(control *g, const char *name)
{
    placer *p = g->placer;
    if (!p || p->n_newcomers == PLACER_NEWCOMERS_MAX) return;
    snprintf(p->newcomers[p->n_newcomers++], IDENTITY_NAME_SIZE, "%s", name);
}

/* Those that are there now ask for relief of the others. */
static void look_for_newcomers(placer *p)
{
    for (size_t i = p->n_newcomers; i-- > 0;) {
        const placer_node *n = placer_find_node(p, p->newcomers[i]);
        if (!n || !n->facts) continue;
        memmove(p->newcomers[i], p->newcomers[--p->n_newcomers], IDENTITY_NAME_SIZE);
        if (p->relief == RELIEF_NONE) p->relief = RELIEF_MARKED;
    }
}

/* Is a replica missing that may come without anybody's help, when a machine returns or has power again? */
static bool awaits_one(const placement *plan, const node *nodes, size_t n_nodes,
                       const placement_model *models)
{
    char why[300];
    for (size_t i = 0; i < plan->n_gaps; i++) {
        const placement_gap *g = &plan->gaps[i];
        if (g->n_replicas > 0 &&
            !placement_say_missing(plan, nodes, n_nodes, models, g->model, why, sizeof why))
            return true;
    }
    return false;
}

static bool has_assignment(const placer *p, const char *node)
{
    for (size_t i = 0; i < p->n_assignments; i++)
        if (strcmp(p->assignments[i].node, node) == 0) return true;
    return false;
}

/* One that drains, or is away, and has no replica any more keeps nobody waiting: it may be so for good. */
static const char *waits_for_node(const placer *p)
{
    const char *why = NULL;
    for (size_t i = 0; i < p->n_nodes; i++) {
        const placer_node *n = &p->nodes[i];
        if ((n->attached && !n->drains) || !has_assignment(p, n->name)) continue;
        why = n->drains ? "a machine drains and has replicas left" : "a machine with replicas is away";
    }
    return why;
}

static bool has_gap(const placement *plan, size_t model)
{
    for (size_t i = 0; i < plan->n_gaps; i++)
        if (plan->gaps[i].model == model && plan->gaps[i].n_replicas > 0) return true;
    return false;
}

/* Does anything come or go? A replica that waits for a successor which no machine may have is there for good.
 */
static bool moves(const placer *p, const placement *plan)
{
    for (size_t i = 0; i < plan->n_assignments; i++)
        if (plan->assignments[i].why != PLACEMENT_STAYS) return true;
    for (size_t i = 0; i < p->n_assignments; i++)
        if (p->assignments[i].held && !has_gap(plan, p->assignments[i].model)) return true;
    for (size_t i = 0; i < plan->n_leavers; i++)
        for (size_t m = 0; m < p->o.n_models; m++)
            if (strcmp(p->o.models[m].spec.model, plan->leavers[i].model) == 0 && !has_gap(plan, m))
                return true;
    return false;
}

/* What must end before a replica moves for balance; NULL: nothing, all is where it should be. */
static const char *waits_for(const placer *p, const placement *plan, const node *nodes, size_t n_nodes,
                             const placement_model *models)
{
    if (moves(p, plan)) return "replicas come or go";
    if (p->relief == RELIEF_MARKED && awaits_one(plan, nodes, n_nodes, models)) /* a person need not wait */
        return "a model has fewer replicas than configured until a machine can take one (event=missing)";
    return waits_for_node(p);
}

static void say_why_it_waits(placer *p, const char *why)
{
    if (p->relief_waits == why) return;
    p->relief_waits = why;
    if (why) LOG(LOG_INFO, "placement", "rebalance_waits", LOG_S("until", why));
}

void placer_relieve(placer *p, placement *plan, const node *nodes, size_t n_nodes,
                    const placement_model *models)
{
    look_for_newcomers(p);
    if (p->relief == RELIEF_NONE) return;
    const char *why = waits_for(p, plan, nodes, n_nodes, models);
    say_why_it_waits(p, why);
    if (why || placement_relieve(plan, nodes, n_nodes, models, p->o.n_models, p->relief == RELIEF_ALL))
        return;
    LOG(LOG_INFO, "placement", "balanced");
    p->relief = RELIEF_NONE;
}

int control_rebalance(control *g, shoal_err *err)
{
    if (!g->placer)
        return err_set(err, SHOAL_EINVALID, "this gateway places no models: ask the one that has the CA");
    if (!g->placer->leads)
        return err_set(err, SHOAL_EINVALID, "another gateway places models now: ask that one");
    g->placer->relief = RELIEF_ALL;
    g->placer->relief_waits = NULL; /* whoever asks again is told again */
    placer_changed(g);
    return 0;
}

void control_place_speeds(control *g, double bytes_per_s, double multiplies_per_s)
{
    if (!g->placer) return;
    g->placer->o.bytes_per_s = bytes_per_s;
    g->placer->o.multiplies_per_s = multiplies_per_s;
    placer_changed(g);
}

void control_place_again(control *g)
{
    placer_changed(g);
}
