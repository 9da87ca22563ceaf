/* placer_missing.c: models that the plan has no machine for: the registry is told why, so that calls of them
 * fail at once with that sentence.
 *
 * Nothing is told for SETTLE_MS after this gateway began to plan: machines that lost it are on their way
 * back. A gateway that follows another one knows from the plans of all machines that nobody has a model, not
 * why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "control/placement/placer.h"

enum { SETTLE_MS = 10000 }; /* as long as a machine pauses at most between two tries (gateways.h) */

typedef struct placer_missing { /* of one model */
    bool reported;
    char lost[IDENTITY_NAME_SIZE]; /* the machine that had it last and is gone; "": none */
} placer_missing;

static bool is_settled(const placer *p, uint64_t now_ns)
{
    return now_ns - p->leads_ns >= SETTLE_MS * UINT64_C(1000000);
}

static bool has_assignment(const placer *p, size_t model)
{
    for (size_t i = 0; i < p->n_assignments; i++)
        if (p->assignments[i].model == model && !p->assignments[i].standby) return true;
    return false;
}

void placer_note_lost(placer *p, const placement *plan)
{
    if (!p->missing && !(p->missing = calloc(p->o.n_models + 1, sizeof *p->missing))) return;
    for (size_t i = 0; i < plan->n_leavers; i++) {
        const placement_leaver *l = &plan->leavers[i];
        for (size_t m = 0; l->why == PLACEMENT_GONE && m < p->o.n_models; m++)
            if (strcmp(p->o.models[m].spec.model, l->model) == 0)
                snprintf(p->missing[m].lost, sizeof p->missing[m].lost, "%s", l->node);
    }
}

static void found(placer *p, size_t model)
{
    placer_missing *x = &p->missing[model];
    if (x->reported && p->g->registry) registry_expect(p->g->registry, p->o.models[model].spec.model);
    *x = (placer_missing){0};
}

static void placer_missing_tell(placer *p, size_t model, const char *why, bool lasting)
{
    placer_missing *x = &p->missing[model];
    const char *name = p->o.models[model].spec.model;
    if (!x->reported) LOG(LOG_WARN, "placement", "unplaced", LOG_S("model", name), LOG_S("reason", why));
    x->reported = true;
    if (p->g->registry) registry_give_up(p->g->registry, name, why, lasting);
}

/* The plan's reason, and which machine or file is to blame where that does not say it. */
static void say_why(placer *p, const placement *plan, const node *nodes, size_t n_nodes,
                    const placement_model *models, size_t model)
{
    char part[300], why[400];
    const placer_missing *x = &p->missing[model];
    bool lasting = placement_say_missing(plan, nodes, n_nodes, models, model, part, sizeof part);
    bool away = *x->lost && !placer_find_node(p, x->lost);
    const char *stays = bundles_why(p->bundles, model);
    snprintf(why, sizeof why, "%.240s%s%.63s%s%s%.120s", part, away ? "; " : "", away ? x->lost : "",
             away ? ", which served it, is gone" : "", stays ? "; its file stays on the gateway: " : "",
             stays ? stays : "");
    placer_missing_tell(p, model, why, lasting && !away);
}

void placer_tell_missing(placer *p, const placement *plan, const node *nodes, size_t n_nodes,
                         const placement_model *models, uint64_t now_ns)
{
    for (size_t i = 0; p->missing && i < p->o.n_models; i++) {
        if (models[i].n_replicas == 0 || has_assignment(p, i))
            found(p, i);
        else if (is_settled(p, now_ns) && !bundles_pending(p->bundles, i))
            say_why(p, plan, nodes, n_nodes, models, i);
    }
}

/* ---- as another gateway has planned ------------------------------------------------------------------ */

static void count_assigned(const placer *p, const placer_node *n, bool *is_there)
{
    Shoal__V1__Plan *plan = n->plan.bytes ? shoal__v1__plan__unpack(NULL, n->plan.n, n->plan.bytes) : NULL;
    for (size_t i = 0; plan && plan->assignments && i < plan->assignments->n_models; i++) {
        const Shoal__V1__Assignment *a = plan->assignments->models[i];
        for (size_t m = 0; m < p->o.n_models; m++)
            is_there[m] |= strcmp(p->o.models[m].spec.model, a->model) == 0 && a->replicas > 0;
    }
    if (plan) shoal__v1__plan__free_unpacked(plan, NULL);
}

void placer_tell_unplanned(placer *p, const char *leader, uint64_t now_ns)
{
    char why[200];
    bool *is_there = calloc(p->o.n_models + 1, sizeof *is_there);
    if (!p->missing) p->missing = calloc(p->o.n_models + 1, sizeof *p->missing);
    for (size_t i = 0; is_there && p->missing && i < p->n_nodes; i++)
        count_assigned(p, &p->nodes[i], is_there);
    snprintf(why, sizeof why,
             "the gateway %.63s, which places models, has no machine for it; its /readyz says why", leader);
    for (size_t i = 0; is_there && p->missing && i < p->o.n_models; i++) {
        if (is_there[i] || p->alone)
            found(p, i);
        else if (is_settled(p, now_ns))
            placer_missing_tell(p, i, why, false);
    }
    free(is_there);
}
