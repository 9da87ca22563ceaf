/* gate_relief.c: replicas that move for balance.
 *
 * Nothing moves for balance by itself: only when a machine has joined that was never here, for models that
 * say `place.rebalance`, or by a person's word, for all. Then one replica after the other moves, each when
 * the one before has left the node that it was on, as long as it is worth it (placement_relieve). A model
 * that is missing for good (no machine has its label, say) does not keep the others from moving. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "join/gate_placer.h"

void gate_place_enrolled(gate *g, const char *name)
{
    gate_placer *p = g->placer;
    if (!p || p->n_newcomers == PLACE_NEWCOMERS_MAX) return;
    snprintf(p->newcomers[p->n_newcomers++], IDENTITY_NAME_SIZE, "%s", name);
}

/* Those that are there now ask for relief of the others. */
static void look_for_newcomers(gate_placer *p)
{
    for (size_t i = p->n_newcomers; i-- > 0;) {
        const place_node *n = place_find_node(p, p->newcomers[i]);
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

/* All is where it should be: nothing comes, goes or drains. */
static bool is_calm(const gate_placer *p, const placement *plan)
{
    bool calm = plan->n_leavers == 0;
    for (size_t i = 0; i < plan->n_seats; i++) calm &= plan->seats[i].why == PLACEMENT_STAYS;
    for (size_t i = 0; i < p->n_seats; i++) calm &= !p->seats[i].held;
    for (size_t i = 0; i < p->n_nodes; i++) calm &= !p->nodes[i].drains && p->nodes[i].attached;
    return calm;
}

void place_relieve(gate_placer *p, placement *plan, const node *nodes, size_t n_nodes,
                   const placement_model *models)
{
    look_for_newcomers(p);
    if (p->relief == RELIEF_NONE || !is_calm(p, plan) || awaits_one(plan, nodes, n_nodes, models)) return;
    if (placement_relieve(plan, nodes, n_nodes, models, p->o.n_models, p->relief == RELIEF_ALL)) return;
    LOG(LOG_INFO, "placement", "balanced");
    p->relief = RELIEF_NONE;
}

int gate_rebalance(gate *g, shoal_err *err)
{
    if (!g->placer)
        return err_set(err, SHOAL_EINVALID, "this gateway places no models: ask the one that has the CA");
    if (!g->placer->leads)
        return err_set(err, SHOAL_EINVALID, "another gateway places models now: ask that one");
    g->placer->relief = RELIEF_ALL;
    gate_place_changed(g);
    return 0;
}

void gate_place_speeds(gate *g, double bytes_per_s, double multiplies_per_s)
{
    if (!g->placer) return;
    g->placer->o.bytes_per_s = bytes_per_s;
    g->placer->o.multiplies_per_s = multiplies_per_s;
    gate_place_changed(g);
}

void gate_place_again(gate *g)
{
    gate_place_changed(g);
}
