/* energy.c: see energy.h. */
#include "cluster/energy.h"

static double joules_of(const registry *g, const Shoal__V1__Stats *s, energy_by *ret_by)
{
    double watts = registry_watts(g);
    if (s->energy_j > 0) {
        *ret_by = ENERGY_RAPL;
        return s->energy_j;
    }
    *ret_by = watts > 0 && s->cpu_s > 0 ? ENERGY_CPU_TIME : ENERGY_UNKNOWN;
    return watts * s->cpu_s;
}

static double tokens_of(const replica *r)
{
    double n = r->stats ? (double)r->stats->n_prompt_tokens + (double)r->stats->n_generated_tokens : 0;
    return n < CLUSTER_ENERGY_TOKENS ? 0 : n;
}

energy cluster_energy_of(const registry *g, const replica *r)
{
    energy e = {0};
    double n = tokens_of(r), j = n > 0 ? joules_of(g, r->stats, &e.by) : 0;
    if (e.by != ENERGY_UNKNOWN) e.j_per_token = j / n;
    return e;
}

energy cluster_energy_of_set(const registry *g, const replica_set *set)
{
    double joules = 0, tokens = 0;
    energy all = {.by = ENERGY_RAPL};
    for (size_t i = 0; i < set->n; i++) {
        energy e = cluster_energy_of(g, set->replicas[i]);
        if (e.by == ENERGY_UNKNOWN) continue;
        joules += e.j_per_token * tokens_of(set->replicas[i]);
        tokens += tokens_of(set->replicas[i]);
        if (e.by < all.by) all.by = e.by;
    }
    all.j_per_token = tokens > 0 ? joules / tokens : 0;
    return tokens > 0 ? all : (energy){0};
}
