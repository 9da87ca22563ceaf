/* spend.c: see spend.h. */
#include "request/spend.h"

#include "cluster/energy.h"
#include "request/gateway_state.h"
#include "request/routed.h"
#include "routes/price.h"

void spend_note(const gateway_request *rq)
{
    double n = (double)(rq->n_prompt_tokens + rq->n_generated_tokens);
    const route_price *p = price_find(&rq->config->book, rq->model);
    const replica_set *set = registry_find(rq->registry, rq->model);
    const char *route = rq->routed ? rq->routed->route->name : "";
    if (n == 0) return;
    energy e = price_energy(p, set ? cluster_energy_of_set(rq->registry, set) : (energy){0});
    if (p && p->cost) metrics_add(rq->metrics, METRIC_COST, *p->cost * n / 1000, rq->model, route, NULL);
    if (e.by != ENERGY_UNKNOWN)
        metrics_add(rq->metrics, METRIC_ENERGY, e.j_per_token * n, rq->model, route, energy_name(e.by));
}
