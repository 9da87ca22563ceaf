/* accounting.c: see accounting.h. */
#include "observe/accounting.h"

#include "cluster/energy.h"
#include "request/gateway_state.h"
#include "request/routed.h"
#include "routes/price.h"

static void count_price(const gateway_request *rq)
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

static void count_drafts(const gateway_request *rq)
{
    if (rq->n_drafted_tokens == 0) return;
    double hits = (double)rq->n_accepted_tokens, misses = (double)rq->n_drafted_tokens - hits;
    metrics_add(rq->metrics, METRIC_DRAFTS, hits, rq->model, "accepted", NULL);
    metrics_add(rq->metrics, METRIC_DRAFTS, misses, rq->model, "rejected", NULL);
}

static void count_cost(gateway_request *rq, int status, const char *error_code)
{
    if (!rq->background && !request_is_computed(rq)) return;
    if (rq->n_prompt_tokens)
        metrics_add(rq->metrics, METRIC_TOKENS, (double)rq->n_prompt_tokens, rq->model, "prompt", NULL);
    if (rq->n_generated_tokens)
        metrics_add(rq->metrics, METRIC_TOKENS, (double)rq->n_generated_tokens, rq->model, "generated", NULL);
    count_drafts(rq);
    count_price(rq);
}

const request_sink ACCOUNTING_SINK = {.name = "accounting", .finish = count_cost};
