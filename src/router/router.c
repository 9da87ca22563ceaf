/* router.c: the least expected time among those that may be asked. */
#include "router/router.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
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

static const char *const policy_names[] = {
#define POLICY_NAME(e, n) [e] = n,
    ROUTER_POLICY_TABLE(POLICY_NAME)
#undef POLICY_NAME
};

const char *router_policy_name(router_policy p)
{
    return policy_names[p];
}

void router_look_at_array(const void *set, size_t place, router_replica *ret)
{
    *ret = ((const router_replica *)set)[place];
}

/* How much of what was learnt still counts. */
static double trust(const router_replica *r, uint64_t now_ns)
{
    bool idles = r->n_in_flight == 0 && r->sent_ns && now_ns > r->sent_ns;
    return idles ? exp2(-(double)(now_ns - r->sent_ns) / (1e9 * ROUTER_FADE_S)) : 1;
}

double router_expected_ms(const router_replica *r, const router_request *req)
{
    unsigned width = r->n_parallel ? r->n_parallel : 1;
    double ahead = r->ms_per_call * r->n_in_flight / width + r->ms_per_token * r->n_tokens_in_flight;
    double left = ahead > r->worked_ms ? ahead - r->worked_ms : 0;
    return left + trust(r, req->now_ns) * (r->ms_per_call + r->ms_per_token * req->n_tokens);
}

static bool is_the_one(const char *digest, const char *wanted)
{
    return !wanted || (digest && strcmp(digest, wanted) == 0);
}

static bool is_usable(const router_replica *r, const router_request *req)
{
    return r->ready && is_the_one(r->digest, req->digest) &&
           is_the_one(r->adapter_digest, req->adapter_digest);
}

static size_t n_excluded(const router_request *req)
{
    return req->n_exclude < ROUTER_EXCLUDE_MAX ? req->n_exclude : ROUTER_EXCLUDE_MAX;
}

static bool is_excluded(const router_request *req, const router_replica *r)
{
    for (size_t i = 0; i < n_excluded(req); i++)
        if (req->exclude[i] == r->life) return true;
    return false;
}

/* The best of those looked at so far, among the n places behind `from`. */
typedef struct hunt {
    const router_view *view;
    const router_request *req;
    size_t from, n;
    bool away;     /* these places are at other sites */
    bool has_room; /* one of the candidates is not full */
    size_t n_looked, n_usable, n_candidates;
    router_replica best;
    size_t best_place;
    double best_ms;
} hunt;

/* Without measurements times tie at zero, and the load itself decides; then who was looked at first. */
static bool is_better(const hunt *h, const router_replica *r, double ms)
{
    if (h->n_candidates == 0 || ms < h->best_ms) return true;
    return ms == h->best_ms && r->n_in_flight < h->best.n_in_flight;
}

static bool is_too_far(const hunt *h, const router_replica *r)
{
    double most = h->view->spill.max_rtt_ms;
    return h->away && most > 0 && r->rtt_ms > most;
}

static void look(hunt *h, size_t place)
{
    router_replica r;
    h->view->look(h->view->set, place, &r);
    h->n_looked++;
    if (!is_usable(&r, h->req) || is_too_far(h, &r)) return;
    h->n_usable++;
    if (is_excluded(h->req, &r)) return;
    double ms = router_expected_ms(&r, h->req) + (h->away ? r.rtt_ms : 0);
    if (is_better(h, &r, ms)) {
        h->best = r;
        h->best_ms = ms;
        h->best_place = place;
    }
    unsigned width = r.n_parallel ? r.n_parallel : 1;
    if (r.n_in_flight < width || r.n_in_flight - width < h->view->spill.queue) h->has_room = true;
    h->n_candidates++;
}

static void look_at_all(hunt *h)
{
    for (size_t i = 0; i < h->n; i++) look(h, h->from + i);
}

/* Look at k different places of many more (Floyd's way: Bentley, "Programming Pearls", 1987). He does not
 * begin with the last ones, so that the line is turned first: among idle ones the first wins. */
static void look_at_some(hunt *h, size_t k, uint64_t random)
{
    size_t places[ROUTER_EXACT], turn = rng_mix(~random) % h->n;
    for (size_t i = 0; i < k; i++) {
        size_t top = h->n - k + i, j = 0, place = rng_mix(random + i) % (top + 1);
        while (j < i && places[j] != place) j++;
        places[i] = j < i ? top : place;
        look(h, h->from + (places[i] + turn) % h->n);
    }
}

static bool is_too_late(const hunt *h)
{
    const router_request *req = h->req;
    const router_replica *r = &h->best;
    if (!req->deadline_ns) return false;
    if (req->now_ns >= req->deadline_ns) return true;
    if (h->best_ms <= (double)(req->deadline_ns - req->now_ns) / 1e6) return false;
    bool probe_due = req->now_ns - r->sent_ns >= ROUTER_PROBE_MS * 1000000ull;
    bool may_not_fit = r->n_ctx && req->n_tokens_max > r->n_ctx; /* then the worker's own words are better */
    return r->n_in_flight > 0 && !probe_due && !may_not_fit;
}

/* Nothing speaks for looking further. */
static bool is_content(const hunt *h)
{
    if (h->n_candidates == 0 || is_too_late(h)) return false;
    return h->has_room || h->away || h->view->n_away == 0;
}

static void look_around(hunt *h)
{
    if (h->n <= ROUTER_EXACT) {
        look_at_all(h);
        return;
    }
    look_at_some(h, ROUTER_SAMPLE + n_excluded(h->req), h->req->random);
    if (is_content(h)) return;
    look_at_some(h, ROUTER_EXACT, rng_mix(h->req->random)); /* before saying no, a wider look */
    if (h->n_candidates == 0 && (h->req->digest || h->req->adapter_digest)) look_at_all(h);
}

/* ---- sites --------------------------------------------------------------------------------------- */

static bool may_spill(const hunt *home)
{
    const router_view *v = home->view;
    if (v->n_away == 0 || v->spill.policy == ROUTER_NEVER) return false;
    if (home->n_candidates == 0) return true;
    return v->spill.policy == ROUTER_WHEN_FULL && (!home->has_room || is_too_late(home));
}

static bool is_better_away(const hunt *home, const hunt *away)
{
    if (away->n_candidates == 0) return false;
    if (home->n_candidates == 0) return true;
    if (is_too_late(home)) return !is_too_late(away);
    return is_better(home, &away->best, away->best_ms);
}

/* ---- the decision -------------------------------------------------------------------------------- */

static int refuse(router_decision *d, const hunt *home, const hunt *away, router_why why, int code)
{
    double ms = 0;
    if (why == ROUTER_DEADLINE) ms = home->n_candidates ? home->best_ms : away->best_ms;
    *d = (router_decision){
        .index = -1, .why = why, .expected_ms = ms, .n_looked = home->n_looked + away->n_looked};
    return code;
}

/* Nobody can take it: why? */
static int refuse_none(router_decision *d, const hunt *home, const hunt *away)
{
    router_why why = home->n_usable + away->n_usable ? ROUTER_ALL_EXCLUDED
                     : home->view->n_away            ? ROUTER_KEPT_HOME
                                                     : ROUTER_NONE_READY;
    return refuse(d, home, away, why, SHOAL_EUNAVAILABLE);
}

int router_pick(const router_view *view, const router_request *req, router_decision *ret)
{
    size_t n_home = view->n_ready - view->n_away;
    hunt home = {.view = view, .req = req, .n = n_home};
    hunt away = {.view = view, .req = req, .n = view->n_away, .from = n_home, .away = true};
    if (!view->known) return refuse(ret, &home, &away, ROUTER_UNKNOWN_MODEL, SHOAL_ENOTFOUND);
    look_around(&home);
    if (may_spill(&home)) look_around(&away);
    bool spills = is_better_away(&home, &away);
    const hunt *h = spills ? &away : &home;
    if (!h->n_candidates) return refuse_none(ret, &home, &away);
    if (is_too_late(h)) return refuse(ret, &home, &away, ROUTER_DEADLINE, SHOAL_EDEADLINE);
    *ret = (router_decision){.index = (int)h->best_place,
                             .why = spills                 ? ROUTER_SPILLED
                                    : h->n_candidates == 1 ? ROUTER_ONLY_ONE
                                                           : ROUTER_LEAST_TIME,
                             .expected_ms = h->best_ms,
                             .n_looked = home.n_looked + away.n_looked};
    return 0;
}
