/* placer_failed.c: machines on which a model's worker could not start, so that another machine has it
 * meanwhile.
 *
 * What the registry shows as failed counts against that machine for FAILED_MIN_MS, doubling to FAILED_MAX_MS
 * each time that it fails again; a worker that gets ready there ends it. Where no other machine may have the
 * model it stays, and is tried again there by the machine's own agent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "control/placement/placer.h"

enum { FAILED_MIN_MS = 30000, FAILED_MAX_MS = 600000, FAILURES_MAX = 256 };

typedef struct placer_failure {
    size_t model;
    char node[IDENTITY_NAME_SIZE];
    uint64_t until_ns;
    unsigned n;
    bool is_now; /* it is still shown as failed */
} placer_failure;

static placer_failure *placer_failed_find(placer *p, size_t model, const char *node)
{
    for (size_t i = 0; i < p->n_failures; i++)
        if (p->failures[i].model == model && strcmp(p->failures[i].node, node) == 0) return &p->failures[i];
    return NULL;
}

static placer_failure *placer_failed_add(placer *p, size_t model, const char *node)
{
    if (p->n_failures == FAILURES_MAX) return NULL;
    if (!p->failures && !(p->failures = calloc(FAILURES_MAX, sizeof *p->failures))) return NULL;
    placer_failure *f = &p->failures[p->n_failures++];
    *f = (placer_failure){.model = model};
    snprintf(f->node, sizeof f->node, "%s", node);
    return f;
}

static void note_failed(placer *p, size_t model, const char *node, const char *reason, uint64_t now_ns)
{
    placer_failure *f = placer_failed_find(p, model, node);
    if (f && f->is_now && now_ns < f->until_ns) return;
    if (!f && !(f = placer_failed_add(p, model, node))) return;
    uint64_t ms = (uint64_t)FAILED_MIN_MS << (f->n < 5 ? f->n : 5);
    if (!f->is_now) {
        f->n++;
        LOG(LOG_WARN, "placement", "failed", LOG_S("model", p->o.models[model].spec.model),
            LOG_S("node", node), LOG_S("reason", reason));
    }
    f->is_now = true;
    f->until_ns = now_ns + (ms < FAILED_MAX_MS ? ms : FAILED_MAX_MS) * UINT64_C(1000000);
}

/* What its replicas say of one model. */
static void placer_failed_look(placer *p, size_t model, uint64_t now_ns)
{
    const replica_set *set = registry_find(p->g->registry, p->o.models[model].spec.model);
    for (size_t i = 0; set && i < set->n; i++) {
        const replica *r = set->replicas[i];
        const char *node = r->node ? r->node->name : control_name(p->g);
        placer_failure *f = placer_failed_find(p, model, node);
        if (r->state == REPLICA_FAILED)
            note_failed(p, model, node, r->reason, now_ns);
        else if (f && r->state == REPLICA_READY)
            *f = p->failures[--p->n_failures];
    }
}

static bool is_shown(const placer *p, const placer_failure *f)
{
    const replica_set *set = registry_find(p->g->registry, p->o.models[f->model].spec.model);
    for (size_t i = 0; set && i < set->n; i++) {
        const replica *r = set->replicas[i];
        if (r->state == REPLICA_FAILED && strcmp(r->node ? r->node->name : control_name(p->g), f->node) == 0)
            return true;
    }
    return false;
}

void placer_look_at_failures(placer *p, uint64_t now_ns)
{
    if (!p->g->registry) return;
    for (size_t i = 0; i < p->o.n_models; i++) placer_failed_look(p, i, now_ns);
    for (size_t i = p->n_failures; i-- > 0;) p->failures[i].is_now = is_shown(p, &p->failures[i]);
}

size_t placer_failed_nodes(const placer *p, size_t model, uint64_t now_ns, const char **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_failures; i++) {
        const placer_failure *f = &p->failures[i];
        if (f->model == model && (f->is_now || now_ns < f->until_ns)) ret[n++] = f->node;
    }
    return n;
}
