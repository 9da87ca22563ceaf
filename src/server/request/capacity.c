/* capacity.c: see capacity.h. */
#include "request/capacity.h"

#include "access/auth.h"
#include "request/gateway_state.h"

enum { RESERVE_SHARE = 4, FREE_SHARE = 4, SHARED_FROM = RESERVE_SHARE * FREE_SHARE };

const void *capacity_client(const gateway_request *rq)
{
    const ingress_request *in = rq->ingress;
    if (rq->key && auth_count(rq->settings->auth) > 1) return rq->key->use;
    while (in->of) in = in->of->ingress;
    return in->connection;
}

static size_t held_by(const gateway *g, const void *client)
{
    size_t n = 0;
    for (const gateway_request *rq = g->requests; rq; rq = rq->next)
        if (rq->n_counted && capacity_client(rq) == client) n += rq->n_counted;
    return n;
}

static int capacity_refuse(api_error *e)
{
    e->retry_after_s = 1;
    return e->status;
}

int capacity_check(const gateway_request *rq, size_t n, api_error *e)
{
    const gateway *g = rq->gateway;
    const void *client = capacity_client(rq);
    size_t most = g->config->max_requests;
    if (!most) return 0;
    if (g->n_admitted + n > most) {
        api_error_set(
            e, 429, "rate_limit_error", "too_many_requests", NULL,
            "%zu requests are being answered, and limits.max_requests is %zu; try again in a second%s",
            g->n_admitted, most, n > 1 ? ", or ask for fewer choices" : "");
        return capacity_refuse(e);
    }
    if (!client || most < SHARED_FROM || g->n_admitted + n <= most - most / RESERVE_SHARE) return 0;
    size_t held = held_by(g, client), share = (most - g->n_admitted) / FREE_SHARE;
    if (held + n <= (share ? share : 1)) return 0;
    api_error_set(
        e, 429, "rate_limit_error", "too_many_requests", NULL,
        "%zu of the %zu requests that may be answered at once are of this %s, and what is left is kept "
        "for others; try again when one has ended",
        held, most, rq->key && client == rq->key->use ? "API key" : "connection");
    return capacity_refuse(e);
}

void capacity_take(gateway_request *rq, size_t n)
{
    rq->n_counted += n;
    rq->gateway->n_admitted += n;
}
