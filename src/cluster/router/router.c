/* router.c: those that may be asked, in order; see router.h. */
#include "router/router.h"

#include <math.h>
#include <stdio.h>
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

static const char *const order_names[] = {
#define ORDER_NAME(e, n) [e] = n,
    ROUTER_ORDER_TABLE(ORDER_NAME)
#undef ORDER_NAME
};

const char *router_order_name(router_order o)
{
    return (size_t)o < sizeof order_names / sizeof *order_names ? order_names[o] : "unknown";
}

void router_capabilities_put(char *out, size_t n, unsigned bits)
{
    size_t at = 0;
    *out = '\0';
#define CAPABILITY_PUT(e, name, what) \
    if ((bits & e) && at < n)         \
        at += (size_t)snprintf(out + at, n - at, "%s%s (%s)", at ? ", " : "", #name, what);
    ROUTER_CAPABILITY_TABLE(CAPABILITY_PUT)
#undef CAPABILITY_PUT
}

void router_peek_array(const void *set, size_t place, router_replica *ret)
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

/* What it takes even if inputs beyond reach cost no more than those within. */
static double least_ms(const router_replica *r, const router_request *req)
{
    router_replica known = *r;
    router_request q = *req;
    if (r->reach > 0) {
        known.n_tokens_in_flight = (unsigned)fmin(r->n_tokens_in_flight, r->reach * r->n_in_flight);
        q.n_tokens = (unsigned)fmin(req->n_tokens, r->reach);
    }
    return router_expected_ms(&known, &q);
}

double router_reply_ms(const router_replica *r, const router_request *req)
{
    unsigned width = r->n_parallel ? r->n_parallel : 1;
    unsigned n_beside = r->n_in_flight < width ? r->n_in_flight : width - 1;
    double n_rounds = 1 + (double)(r->n_in_flight - n_beside) / width;
    double step_ms = r->ms_per_step + r->ms_per_stream * (1 + n_beside);
    return trust(r, req->now_ns) * ROUTER_REPLY_TOKENS * step_ms * n_rounds;
}

static bool is_the_one(const char *has, const char *wanted)
{
    return !wanted || (has && strcmp(has, wanted) == 0);
}

static bool is_usable(const router_replica *r, const router_request *req)
{
    return r->ready && is_the_one(r->identity, req->identity) &&
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

/* One that may be asked. */
typedef struct candidate {
    size_t place;
    double ms, whole_ms; /* expected: till it answers; till it has answered */
    double least_ms;     /* till it answers, as far as that is certain */
    bool late, hopeless; /* the deadline is missed by the estimate; and nothing speaks for a try */
    bool busy;
    unsigned n_in_flight;
    uint64_t sent_ns, weight;
    energy energy;
} candidate;

/* The best of those looked at so far, in order, among the n places behind `from`. */
typedef struct hunt {
    const router_view *view;
    const router_request *req;
    router_choice choice;
    size_t from, n;
    bool away;     /* these places are at other sites */
    bool has_room; /* one of the candidates is not full */
    unsigned
        lacks; /* as router_decision has it, of those that would be usable otherwise; 0: there are none */
    size_t n_looked, n_usable, n_candidates, n_best;
    uint64_t heaviest; /* weight of the key's own, be it busy */
    candidate best[ROUTER_STEPS_MAX];
} hunt;

/* The most of all: it holds the request's pages. */
static uint64_t weight_of(const router_request *req, uint64_t name, uint64_t pages)
{
    if (req->pages && pages == req->pages) return UINT64_MAX;
    uint64_t w = rng_mix(req->key ^ rng_mix(name));
    return w < UINT64_MAX ? w : UINT64_MAX - 1;
}

static uint64_t router_name_of(const router_replica *r)
{
    return r->name ? r->name : r->life;
}

static void judge_time(candidate *c, const router_replica *r, const router_request *req)
{
    bool passed = req->deadline_ns && req->now_ns >= req->deadline_ns;
    double left_ms = passed ? 0 : (double)(req->deadline_ns - req->now_ns) / 1e6;
    c->late = passed || (req->deadline_ns && c->ms > left_ms);
    if (!c->late) return;
    bool probe_due = req->now_ns - r->sent_ns >= ROUTER_PROBE_MS * 1000000ull;
    bool may_not_fit = r->n_ctx && req->n_tokens_max > r->n_ctx; /* then the worker's own words are better */
    bool waits = r->n_in_flight > 0 && !probe_due && !may_not_fit;
    c->hopeless = passed || (waits && c->least_ms > left_ms);
}

static candidate candidate_of(const hunt *h, const router_replica *r, size_t place)
{
    unsigned width = r->n_parallel ? r->n_parallel : 1;
    candidate c = {.place = place,
                   .ms = router_expected_ms(r, h->req) + (h->away ? r->rtt_ms : 0),
                   .least_ms = least_ms(r, h->req) + (h->away ? r->rtt_ms : 0),
                   .busy = r->n_in_flight >= ROUTER_KEPT_LOAD * width,
                   .n_in_flight = r->n_in_flight,
                   .sent_ns = r->sent_ns,
                   .energy = r->energy};
    if (h->choice.order == ROUTER_BY_HASH) c.weight = weight_of(h->req, router_name_of(r), r->pages);
    c.whole_ms = c.ms + router_reply_ms(r, h->req);
    judge_time(&c, r, h->req);
    return c;
}

/* Without measurements times tie at zero, and the load itself decides; then who was looked at first. */
static bool is_sooner(const candidate *a, const candidate *b)
{
    if (a->whole_ms != b->whole_ms) return a->whole_ms < b->whole_ms;
    return a->n_in_flight < b->n_in_flight;
}

static bool is_thriftier(const candidate *a, const candidate *b)
{
    bool known = a->energy.by != ENERGY_UNKNOWN, knows = b->energy.by != ENERGY_UNKNOWN;
    return known && (!knows || a->energy.j_per_token < b->energy.j_per_token);
}

static bool is_before(const hunt *h, const candidate *a, const candidate *b)
{
    if (a->late != b->late) return b->late;
    if (a->late || h->choice.order == ROUTER_BY_TIME || h->choice.order == ROUTER_BY_COST)
        return is_sooner(a, b);
    if (h->choice.order == ROUTER_BY_ENERGY)
        return is_thriftier(a, b) || (!is_thriftier(b, a) && is_sooner(a, b));
    if (h->choice.order == ROUTER_BY_TURN)
        return a->sent_ns != b->sent_ns ? a->sent_ns < b->sent_ns : a->place < b->place;
    if (a->busy != b->busy) return b->busy;
    return a->weight != b->weight ? a->weight > b->weight : a->place < b->place;
}

static void router_keep(hunt *h, const candidate *c)
{
    size_t at = 0;
    for (size_t i = 0; i < h->n_best; i++)
        if (h->best[i].place == c->place) return; /* drawn a second time */
    while (at < h->n_best && !is_before(h, c, &h->best[at])) at++;
    if (at == h->choice.n_steps) return;
    size_t n_behind = h->n_best - at - (h->n_best == h->choice.n_steps);
    memmove(&h->best[at + 1], &h->best[at], n_behind * sizeof *h->best);
    h->best[at] = *c;
    h->n_best = at + 1 + n_behind;
}

static bool is_too_far(const hunt *h, const router_replica *r)
{
    double most = h->view->spill.max_rtt_ms;
    return h->away && most > 0 && r->rtt_ms > most;
}

static bool router_has_room(const hunt *h, const router_replica *r)
{
    unsigned width = r->n_parallel ? r->n_parallel : 1;
    return r->n_in_flight < width || r->n_in_flight - width < h->view->spill.queue;
}

/* Something that all lack, if there is such a thing. */
static unsigned lacking(unsigned some, unsigned others)
{
    return some & others ? some & others : some | others;
}

static void router_consider(hunt *h, size_t place)
{
    router_replica r;
    h->view->peek(h->view->set, place, &r);
    h->n_looked++;
    if (!is_usable(&r, h->req) || is_too_far(h, &r)) return;
    if (r.lacks & h->req->needs) {
        h->lacks = lacking(h->lacks, r.lacks & h->req->needs);
        return;
    }
    h->n_usable++;
    if (is_excluded(h->req, &r)) return;
    candidate c = candidate_of(h, &r, place);
    h->n_candidates++;
    h->has_room = h->has_room || router_has_room(h, &r);
    if (c.weight > h->heaviest) h->heaviest = c.weight;
    router_keep(h, &c);
}

static void look_at_all(hunt *h)
{
    for (size_t i = 0; i < h->n; i++) router_consider(h, h->from + i);
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
        router_consider(h, h->from + (places[i] + turn) % h->n);
    }
}

static uint64_t weight_at(const hunt *h, size_t place)
{
    const router_view *v = h->view;
    uint64_t name, pages;
    router_replica r;
    if (v->names) {
        v->names(v->set, place, &name, &pages);
        return weight_of(h->req, name, pages);
    }
    v->peek(v->set, place, &r);
    return weight_of(h->req, router_name_of(&r), r.pages);
}

/* Look at the n places that weigh most for the key. */
static void look_at_heaviest(hunt *h, size_t n)
{
    struct {
        uint64_t weight;
        size_t place;
    } top[ROUTER_EXACT];
    size_t n_top = 0;
    for (size_t i = h->from; i < h->from + h->n; i++) {
        uint64_t w = weight_at(h, i);
        if (n_top == n && w <= top[n - 1].weight) continue;
        size_t at = n_top < n ? n_top++ : n - 1;
        for (; at > 0 && top[at - 1].weight < w; at--) top[at] = top[at - 1];
        top[at].weight = w;
        top[at].place = i;
    }
    for (size_t i = 0; i < n_top; i++) router_consider(h, top[i].place);
}

static bool is_too_late(const hunt *h)
{
    return h->best[0].hopeless;
}

/* Nothing speaks for looking further. */
static bool is_content(const hunt *h)
{
    if (h->n_candidates == 0 || is_too_late(h)) return false;
    return h->has_room || h->away || h->view->n_away == 0;
}

static void look_around(hunt *h)
{
    size_t n_few = ROUTER_SAMPLE + n_excluded(h->req);
    if (h->n <= ROUTER_EXACT) {
        look_at_all(h);
        return;
    }
    if (h->choice.order == ROUTER_BY_HASH)
        look_at_heaviest(h, n_few);
    else
        look_at_some(h, n_few, h->req->random);
    if (is_content(h)) return;
    look_at_some(h, ROUTER_EXACT, rng_mix(h->req->random)); /* before saying no, a wider look */
    bool is_choosy = h->req->identity || h->req->adapter_digest || h->req->needs;
    if (h->n_candidates == 0 && is_choosy) look_at_all(h);
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
    return is_sooner(&away->best[0], &home->best[0]);
}

/* ---- the plan ------------------------------------------------------------------------------------ */

static int router_refuse(router_decision *d, const hunt *home, const hunt *away, router_why why, int code)
{
    *d = (router_decision){.why = why, .n_looked = home->n_looked + away->n_looked};
    if (why == ROUTER_DEADLINE)
        d->expected_ms = home->n_candidates ? home->best[0].least_ms : away->best[0].least_ms;
    return code;
}

/* Nobody can take it: why? */
static int refuse_none(router_decision *d, const hunt *home, const hunt *away)
{
    unsigned lacks = lacking(home->lacks, away->lacks);
    bool usable = home->n_usable + away->n_usable > 0;
    router_why why = usable               ? ROUTER_ALL_EXCLUDED
                     : lacks              ? ROUTER_INCAPABLE
                     : home->view->n_away ? ROUTER_KEPT_HOME
                                          : ROUTER_NONE_READY;
    int rc =
        router_refuse(d, home, away, why, why == ROUTER_INCAPABLE ? SHOAL_EUNSUPPORTED : SHOAL_EUNAVAILABLE);
    d->lacks = lacks;
    return rc;
}

static router_why why_of(const hunt *h, const candidate *c)
{
    if (h->away) return ROUTER_SPILLED;
    if (h->n_candidates == 1) return ROUTER_ONLY_ONE;
    if (c->late) return ROUTER_LATE;
    if (h->choice.order == ROUTER_BY_ENERGY && c->energy.by != ENERGY_UNKNOWN) return ROUTER_FRUGAL;
    if (h->choice.order != ROUTER_BY_TURN && h->choice.order != ROUTER_BY_HASH) return ROUTER_LEAST_TIME;
    if (h->choice.order == ROUTER_BY_TURN) return ROUTER_TURN;
    if (c->weight < h->heaviest) return ROUTER_STEPS_IN;
    return c->weight == UINT64_MAX ? ROUTER_WARM : ROUTER_KEPT;
}

/* As many of them as there is room for, best first. */
static void add_steps(router_decision *d, const hunt *h)
{
    for (size_t i = 0; i < h->n_best && d->n < h->choice.n_steps; i++) {
        const candidate *c = &h->best[i];
        if (c->hopeless) continue;
        router_step *s = &d->steps[d->n++];
        s->place = c->place;
        s->why = why_of(h, c);
        s->expected_ms = c->ms;
    }
}

static router_choice choice_of(const router_choice *given)
{
    router_choice c = given ? *given : (router_choice){0};
    if (c.n_steps == 0) c.n_steps = 1;
    if (c.n_steps > ROUTER_STEPS_MAX) c.n_steps = ROUTER_STEPS_MAX;
    return c;
}

int router_plan(const router_view *view, const router_request *req, const router_choice *choice,
                router_decision *ret)
{
    size_t n_home = view->n_ready - view->n_away;
    hunt home = {.view = view, .req = req, .choice = choice_of(choice), .n = n_home};
    hunt away = home;
    away.n = view->n_away;
    away.from = n_home;
    away.away = true;
    if (!view->known) return router_refuse(ret, &home, &away, ROUTER_UNKNOWN_MODEL, SHOAL_ENOTFOUND);
    look_around(&home);
    if (may_spill(&home)) look_around(&away);
    bool spills = is_better_away(&home, &away);
    const hunt *first = spills ? &away : &home, *then = spills ? &home : &away;
    if (!first->n_candidates) return refuse_none(ret, &home, &away);
    if (is_too_late(first)) return router_refuse(ret, &home, &away, ROUTER_DEADLINE, SHOAL_EDEADLINE);
    *ret = (router_decision){.n_looked = home.n_looked + away.n_looked};
    add_steps(ret, first);
    add_steps(ret, then);
    ret->why = ret->steps[0].why;
    ret->expected_ms = ret->steps[0].expected_ms;
    return 0;
}
