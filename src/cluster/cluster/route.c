/* route.c: replicas as router_replica. */
#include "cluster/route.h"

#include <string.h>

#include "cluster/energy.h"

typedef struct looking {
    const registry *g;
    const replica_set *set;
    const char *adapter;
    uint64_t now_ns;
} looking;

#define NEW_STREAM_MS 1.0 /* what a stream adds to a step where nobody has measured one */

/* What a call costs on r: unary ones as this gateway saw it, generations as the worker's engine did. */
static void add_cost(router_replica *ret, const replica *r, bool generates)
{
    const Shoal__V1__Stats *s = r->stats;
    if (!generates) {
        linear_cost_line line = linear_cost_line_of(&r->load.cost);
        ret->ms_per_call = line.fixed_ms;
        ret->ms_per_token = line.unit_ms;
        ret->reach = line.reach;
        return;
    }
    ret->ms_per_stream = s && s->decode_stream_ms > 0 ? s->decode_stream_ms : NEW_STREAM_MS;
    if (!s) return;
    ret->ms_per_step = s->decode_fixed_ms;
    ret->ms_per_call = s->prefill_fixed_ms + s->decode_fixed_ms + s->decode_stream_ms;
    ret->ms_per_token = s->prefill_token_ms;
    ret->reach = s->prefill_reach;
}

static bool takes_calls(const registry *g, const replica *r)
{
    return r->state == REPLICA_READY && !r->silent && (!r->standby || r->stands_in) && !r->dropped &&
           r->channel && registry_connector(g)->is_connected(r->channel);
}

unsigned route_lacks(const Shoal__V1__ModelInfo *info)
{
    const Shoal__V1__Capabilities *can = info ? info->capabilities : NULL;
    if (!can) return 0;
    unsigned lacks = 0;
#define LACKS_BIT(e, name, what) lacks |= can->name ? 0u : e;
    ROUTER_CAPABILITY_TABLE(LACKS_BIT)
#undef LACKS_BIT
    bool writes = strcmp(info->task, "generate") == 0 || strcmp(info->task, "seq2seq") == 0;
    return writes ? lacks : lacks & ROUTER_ADAPTERS;
}

router_replica route_peek(const registry *g, const replica *r, uint64_t now_ns)
{
    const Shoal__V1__ModelInfo *info = r->info;
    router_replica ret = {
        .life = r->life,
        .name = r->name,
        .pages = r->pages,
        .identity = info ? info->identity : NULL,
        .ready = takes_calls(g, r),
        .lacks = route_lacks(info),
        .n_in_flight = r->load.n_in_flight,
        .n_tokens_in_flight = r->load.n_tokens_in_flight,
        .n_parallel = info ? info->n_parallel : 0,
        .n_ctx = info ? info->n_ctx : 0,
        .worked_ms = load_worked_ms(&r->load, now_ns),
        .sent_ns = r->load.sent_ns,
        .energy = cluster_energy_of(g, r),
        .rtt_ms = r->rtt_ms,
    };
    add_cost(&ret, r, info && info->task && strcmp(info->task, "generate") == 0);
    return ret;
}

const char *route_adapter_digest(const Shoal__V1__ModelInfo *info, const char *adapter)
{
    for (size_t i = 0; info && *adapter && i < info->n_adapters && i < info->n_adapter_digests; i++)
        if (strcmp(info->adapters[i], adapter) == 0) return info->adapter_digests[i];
    return "";
}

static void peek_route(const void *set, size_t place, router_replica *ret)
{
    const looking *l = set;
    const replica *r = l->set->replicas[place];
    *ret = route_peek(l->g, r, l->now_ns);
    ret->adapter_digest = route_adapter_digest(r->info, l->adapter);
}

static void names(const void *set, size_t place, uint64_t *ret_name, uint64_t *ret_pages)
{
    const replica *r = ((const looking *)set)->set->replicas[place];
    *ret_name = r->name;
    *ret_pages = r->pages;
}

int route_pick(const registry *g, const char *model, const char *adapter, router_request *req,
               const router_choice *choice, router_decision *ret_decision, replica **ret)
{
    const env *e = registry_env(g);
    looking l = {.g = g, .set = registry_find(g, model), .adapter = adapter, .now_ns = e->now_ns(e->user)};
    router_view v = {
        .known = l.set, .spill = *registry_spill(g), .set = &l, .peek = peek_route, .names = names};
    if (l.set) v.n_ready = l.set->n_ready;
    if (l.set) v.n_away = l.set->n_away;
    req->now_ns = l.now_ns;
    req->random = v.n_ready > ROUTER_EXACT ? e->random(e->user) : 0;
    int rc = router_plan(&v, req, choice, ret_decision);
    *ret = rc == 0 ? l.set->replicas[ret_decision->steps[0].place] : NULL;
    return rc;
}

static bool is_one_of(uint64_t life, const uint64_t *lives, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lives[i] == life) return true;
    return false;
}

bool route_may_return(const registry *g, const char *model, const char *identity, unsigned needs,
                      const uint64_t *lives, size_t n_lives)
{
    const replica_set *set = registry_find(g, model);
    if (set && set->n == 0) return !set->absent; /* declared */
    for (size_t i = 0; set && i < set->n; i++) {
        const replica *r = set->replicas[i];
        if (r->state == REPLICA_FAILED || r->state == REPLICA_DRAINING) continue;
        if (identity && r->info && strcmp(r->info->identity, identity) != 0) continue;
        if (route_lacks(r->info) & needs) continue;
        if (!takes_calls(g, r) || !is_one_of(r->life, lives, n_lives)) return true;
    }
    return false;
}
