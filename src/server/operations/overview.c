/* overview.c: see overview.h. */
#include "operations/overview.h"

#include "answers/caches.h"
#include "observe/describe.h"
#include "request/gateway_state.h"

static bool is_new(const registry *g, const node *n, size_t before)
{
    for (size_t i = 0; i < before; i++)
        if (registry_at(g, i)->node == n) return false;
    return n != NULL;
}

void overview_handle(gateway_request *rq)
{
    const registry *g = rq->registry;
    buf out = {0};
    describe_gateway(&out, rq->gateway);
    buf_puts(&out, ",\"cache\":");
    caches_put(&out, rq->gateway);
    buf_puts(&out, ",\"nodes\":[");
    for (size_t i = 0; i < registry_count(g); i++) {
        const node *n = registry_at(g, i)->node;
        if (!is_new(g, n, i)) continue;
        describe_node(&out, n);
    }
    buf_puts(&out, "],\"replicas\":[");
    for (size_t i = 0; i < registry_count(g); i++) describe_replica(&out, rq->gateway, registry_at(g, i));
    buf_puts(&out, "]}");
    request_json(rq, 200, &out);
    buf_done(&out);
}
