/* router.c: the least expected time among those that may be asked. */
#include "router/router.h"

#include <string.h>

#include "base/err.h"

static const char *const why_names[] = {
#define WHY_NAME(e, n) [e] = n,
    ROUTER_WHY_TABLE(WHY_NAME)
#undef WHY_NAME
};

const char *router_why_name(router_why w)
{
    return (size_t)w < sizeof why_names / sizeof *why_names ? why_names[w] : "unknown";
}

double router_expected_ms(const router_replica *r, const router_request *req)
{
    unsigned width = r->n_parallel ? r->n_parallel : 1;
    double ahead = r->ms_per_call * r->n_in_flight / width + r->ms_per_token * r->n_tokens_in_flight;
    double left = ahead > r->worked_ms ? ahead - r->worked_ms : 0;
    return left + r->ms_per_call + r->ms_per_token * req->n_tokens;
}

static bool is_model(const router_replica *r, const router_request *req)
{
    return r->model && strcmp(r->model, req->model) == 0;
}

static bool is_usable(const router_replica *r, const router_request *req)
{
    if (!r->ready || r->draining) return false;
    return !req->digest || (r->digest && strcmp(r->digest, req->digest) == 0);
}

static bool is_excluded(const router_request *req, size_t i)
{
    return i < ROUTER_EXCLUDE_MAX && (req->exclude >> i & 1);
}

static int refuse(router_decision *d, router_why why, double ms, int code)
{
    *d = (router_decision){.index = -1, .why = why, .expected_ms = ms};
    return code;
}

/* Is the candidate better than the best so far? Without measurements times tie at zero, and the load
 * itself decides. */
static bool is_better(const router_replica *r, double ms, const router_replica *best, double best_ms)
{
    if (!best || ms < best_ms) return true;
    return ms == best_ms && r->n_in_flight < best->n_in_flight;
}

static bool is_too_late(const router_replica *r, const router_request *req, double ms)
{
    if (!req->deadline_ns) return false;
    if (req->now_ns >= req->deadline_ns) return true;
    if (ms <= (double)(req->deadline_ns - req->now_ns) / 1e6) return false;
    bool probe_due = req->now_ns - r->sent_ns >= ROUTER_PROBE_MS * 1000000ull;
    bool may_not_fit = r->n_ctx && req->n_tokens_max > r->n_ctx; /* then the worker's own words are better */
    return r->n_in_flight > 0 && !probe_due && !may_not_fit;
}

int router_pick(const router_view *view, const router_request *req, router_decision *ret)
{
    size_t n_known = 0, n_usable = 0, n_candidates = 0, best_i = 0;
    const router_replica *best = NULL;
    double best_ms = 0;
    for (size_t i = 0; i < view->n_replicas; i++) {
        const router_replica *r = &view->replicas[i];
        if (!is_model(r, req)) continue;
        n_known++;
        if (!is_usable(r, req)) continue;
        n_usable++;
        if (is_excluded(req, i)) continue;
        n_candidates++;
        double ms = router_expected_ms(r, req);
        if (is_better(r, ms, best, best_ms)) best = r, best_ms = ms, best_i = i;
    }
    if (!n_known) return refuse(ret, ROUTER_UNKNOWN_MODEL, 0, SHOAL_ENOTFOUND);
    if (!n_usable) return refuse(ret, ROUTER_NONE_READY, 0, SHOAL_EUNAVAILABLE);
    if (!best) return refuse(ret, ROUTER_ALL_EXCLUDED, 0, SHOAL_EUNAVAILABLE);
    if (is_too_late(best, req, best_ms)) return refuse(ret, ROUTER_DEADLINE, best_ms, SHOAL_EDEADLINE);
    *ret = (router_decision){.index = (int)best_i,
                             .why = n_candidates == 1 ? ROUTER_ONLY_ONE : ROUTER_LEAST_TIME,
                             .expected_ms = best_ms};
    return 0;
}
