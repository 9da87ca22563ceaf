/* decide.c: a walk over rules; see decide.h. */
#include "routes/decide.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "routes/price.h"

typedef struct walking {
    const route_book *book;
    const route_facts *facts;
    const route_view *view;
    decision *d;
    bool asks;          /* a domain is missing: the walk is over */
    decide_note resort; /* the best of those that cannot well; model NULL: there is none */
} walking;

/* ---- what a rule demands ------------------------------------------------------------------------- */

static bool is_listed(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (route_matches(s, list[i])) return true;
    return n == 0;
}

static bool wants_one(unsigned wants, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (wants & route_want_of(list[i])) return true;
    return n == 0;
}

static bool is_within(double v, uint64_t least, uint64_t most)
{
    return v >= (double)least && (most == 0 || v <= (double)most);
}

/* A rule about deadlines holds for none that has no deadline, unless it only wants enough time. */
static bool deadline_holds(const config_rule *r, const route_facts *f)
{
    if (r->min_deadline_ms == 0 && r->max_deadline_ms == 0) return true;
    if (!f->has_deadline) return r->max_deadline_ms == 0;
    return is_within(f->left_ms, r->min_deadline_ms, r->max_deadline_ms);
}

typedef enum { HOLDS, FAILS, GIVES_UP, ASKS, UNASKED } verdict;

static bool is_of_domain(const config_domains *set, const char *label, const char *domain)
{
    for (size_t i = 0; i < set->n_of; i++) {
        const config_domain *of = &set->of[i];
        if (strcmp(of->name, domain) == 0)
            return of->n_labels ? is_listed(label, of->labels, of->n_labels) : strcmp(label, of->name) == 0;
    }
    return route_matches(label, domain);
}

static verdict domain_holds(walking *w, const config_route *route, const config_rule *r)
{
    const config_domains *set = route_domains(w->book, route);
    if (r->n_domain == 0) return HOLDS;
    if (!set) return FAILS;
    const domain_fact *d = &w->facts->domains[set - w->book->domains];
    if (d->state == DOMAIN_NOT_ASKED) {
        w->d->ask = (size_t)(set - w->book->domains);
        return ASKS;
    }
    if (d->state == DOMAIN_UNKNOWN) return UNASKED;
    if (!*d->label || d->score < (r->min_score ? *r->min_score : set->min_score)) return FAILS;
    for (size_t i = 0; i < r->n_domain; i++)
        if (is_of_domain(set, d->label, r->domain[i])) return HOLDS;
    return FAILS;
}

static verdict asked(const walking *w, const config_rule *r, bool demanded, route_question q)
{
    int holds = demanded ? w->view->holds(w->view->user, r, q) : 1;
    return holds > 0 ? HOLDS : holds < 0 ? GIVES_UP : FAILS;
}

static verdict of(bool holds)
{
    return holds ? HOLDS : FAILS;
}

static verdict condition_holds(walking *w, const config_route *route, const config_rule *r, route_condition c)
{
    const route_facts *f = w->facts;
    switch (c) {
    case COND_ENDPOINT: return of(is_listed(f->endpoint, r->endpoint, r->n_endpoint));
    case COND_PATH: return of(is_listed(f->path, r->path, r->n_path));
    case COND_API_KEY: return of(is_listed(f->api_key, r->api_key, r->n_api_key));
    case COND_LANGUAGE: return of(is_listed(f->language, r->language, r->n_language));
    case COND_WANTS: return of(wants_one(f->wants, r->wants, r->n_wants));
    case COND_LATENCY: return of(is_listed(route_latency_name(f->latency), r->latency, r->n_latency));
    case COND_LENGTH:
        return of(is_within((double)f->n_bytes, r->min_bytes, r->max_bytes) &&
                  is_within((double)f->n_tokens, r->min_tokens, r->max_tokens));
    case COND_DEADLINE: return of(deadline_holds(r, f));
    case COND_HEADER: return asked(w, r, r->n_header > 0, ROUTE_HEADER_HOLDS);
    case COND_PATTERN: return asked(w, r, r->matches != NULL, ROUTE_PATTERN_HOLDS);
    default: return domain_holds(w, route, r);
    }
}

/* ---- notes --------------------------------------------------------------------------------------- */

static void skip(walking *w, const decide_note *n)
{
    decision *d = w->d;
    if (d->n_skipped < DECIDE_SKIPPED_MAX) d->skipped[d->n_skipped++] = *n;
}

/* The cheap conditions come first in the table, and the question for a domain last. */
static bool rule_holds(walking *w, decide_note *n)
{
    const config_rule *r = &n->route->rules[n->rule];
    for (int c = 0; c < N_CONDITIONS; c++) {
        verdict v = condition_holds(w, n->route, r, (route_condition)c);
        if (v == HOLDS) continue;
        n->cond = (route_condition)c;
        n->why = v == GIVES_UP ? DECIDE_GAVE_UP : v == UNASKED ? DECIDE_UNASKED : DECIDE_NO;
        w->asks = v == ASKS;
        if (!w->asks) skip(w, n);
        return false;
    }
    return true;
}

/* ---- targets ------------------------------------------------------------------------------------- */

/* Whose share the request falls into: the same key always into the same. */
static const char *decide_choose(const config_rule *r, const route_facts *f, const char *salt, int *ret_share)
{
    uint64_t key = f->keys[r->split_by] ? f->keys[r->split_by] : f->keys[KEY_REQUEST];
    double sum = 0, at = rng_uniform(key, route_hash(salt, strlen(salt)));
    *ret_share = -1;
    if (r->n_split == 0) return r->model;
    for (size_t i = 0; i < r->n_split; i++) sum += r->split[i].share;
    at *= sum;
    for (*ret_share = 0; (size_t)*ret_share + 1 < r->n_split; ++*ret_share) {
        at -= r->split[*ret_share].share;
        if (at < 0) break;
    }
    return r->split[*ret_share].model;
}

static bool is_step(const decision *d, const char *model)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->steps[i].model, model) == 0) return true;
    return false;
}

static bool is_busy(const config_rule *r, const route_estimate *o)
{
    if (!r) return false;
    return (r->max_load > 0 && o->load > r->max_load) ||
           (r->max_wait_ms && o->expected_ms > (double)r->max_wait_ms);
}

/* Why a model cannot be taken, DECIDE_RULE when it can. */
static decide_why decide_judge(const walking *w, const config_rule *r, const route_estimate *o)
{
    const route_facts *f = w->facts;
    if (!o->known) return DECIDE_UNKNOWN;
    if (!o->fits) return DECIDE_UNFIT;
    if (price_is_over(r, f, o)) return DECIDE_OVER;
    if (o->late || (o->ready && f->has_deadline && o->expected_ms > f->left_ms)) return DECIDE_LATE;
    if (!o->ready) return DECIDE_AWAY;
    return is_busy(r, o) ? DECIDE_BUSY : DECIDE_RULE;
}

/* Of those that cannot well: who is only busy, then the least late, then who is away; earlier ones first. */
static bool is_better_resort(const decide_note *n, const decide_note *than)
{
    static const int rank[] = {[DECIDE_BUSY] = 3, [DECIDE_LATE] = 2, [DECIDE_AWAY] = 1};
    if (!than->model || rank[n->why] != rank[than->why])
        return !than->model || rank[n->why] > rank[than->why];
    return n->why == DECIDE_LATE && n->expected_ms < than->expected_ms;
}

static void look_at(const walking *w, decide_note *n)
{
    bool is_rule = n->rule < n->route->n_rules;
    route_estimate o = {0};
    w->view->estimate(w->view->user, n->model, &o);
    n->expected_ms = o.expected_ms;
    n->load = o.load;
    n->has_cost = o.has_cost;
    n->cost = o.cost;
    n->energy_j = o.energy_j;
    n->energy_by = o.energy_by;
    n->why = decide_judge(w, is_rule ? &n->route->rules[n->rule] : NULL, &o);
}

/* One that was looked at. */
static bool take_note(walking *w, decide_note *n)
{
    decision *d = w->d;
    if (d->n == DECIDE_STEPS_MAX || is_step(d, n->model)) return false;
    if (n->why == DECIDE_RULE) {
        if (n->rule >= n->route->n_rules) n->why = DECIDE_FALLBACK;
        d->steps[d->n++] = *n;
        return true;
    }
    skip(w, n);
    bool may = n->why == DECIDE_BUSY || n->why == DECIDE_LATE || n->why == DECIDE_AWAY;
    if (may && is_better_resort(n, &w->resort)) w->resort = *n;
    return false;
}

static bool take_model(walking *w, decide_note *n)
{
    if (w->d->n == DECIDE_STEPS_MAX || is_step(w->d, n->model)) return false;
    look_at(w, n);
    return take_note(w, n);
}

/* ---- models that are all as good ----------------------------------------------------------------- */

/* What a model is worth in the route's order: less is better. */
static double worth(const walking *w, const decide_note *n, size_t at)
{
    const route_facts *f = w->facts;
    uint64_t key = f->keys[n->route->key] ? f->keys[n->route->key] : f->keys[KEY_REQUEST];
    size_t n_any = n->route->rules[n->rule].n_any;
    switch (n->route->order) {
    case ROUTER_BY_ENERGY: return n->energy_by == ENERGY_UNKNOWN ? INFINITY : n->energy_j;
    case ROUTER_BY_COST: return n->has_cost ? n->cost : INFINITY;
    case ROUTER_BY_HASH: return rng_uniform(key, route_hash(n->model, strlen(n->model)));
    case ROUTER_BY_TURN: return (double)((at + f->keys[KEY_REQUEST] % n_any) % n_any);
    default: return n->expected_ms;
    }
}

/* A step for each that would do, the best first; of equals the first named. */
static bool take_any(walking *w, const config_route *route, size_t rule)
{
    const config_rule *r = &route->rules[rule];
    decide_note notes[ROUTE_ANY_MAX];
    double is[ROUTE_ANY_MAX];
    size_t n = 0, before = w->d->n;
    for (size_t i = 0; i < r->n_any && i < ROUTE_ANY_MAX; i++) {
        decide_note note = {.route = route, .rule = rule, .model = r->any[i], .share = -1};
        look_at(w, &note);
        double v = worth(w, &note, i);
        size_t at = n++;
        for (; at > 0 && v < is[at - 1]; at--) notes[at] = notes[at - 1], is[at] = is[at - 1];
        notes[at] = note;
        is[at] = v;
    }
    for (size_t i = 0; i < n; i++) take_note(w, &notes[i]);
    return w->d->n > before;
}

static void walk(walking *w, const config_route *r, size_t depth);

/* The target of n, a model or a route; true when it gave a step. */
static bool decide_take(walking *w, decide_note *n, size_t depth)
{
    const config_route *next = route_find(w->book, n->model);
    size_t before = w->d->n;
    if (!next) return take_model(w, n);
    if (depth < w->book->n_routes) walk(w, next, depth + 1);
    if (w->asks || w->d->n > before) return w->d->n > before;
    n->why = DECIDE_EMPTY;
    skip(w, n);
    return false;
}

static void walk(walking *w, const config_route *r, size_t depth)
{
    bool taken = false;
    for (size_t i = 0; !taken && i < r->n_rules; i++) {
        decide_note n = {.route = r, .rule = i, .share = -1};
        char salt[80];
        bool holds = rule_holds(w, &n);
        if (w->asks) return;
        if (!holds) continue;
        if (r->rules[i].n_any) {
            taken = take_any(w, r, i);
            continue;
        }
        n.model = decide_choose(&r->rules[i], w->facts, route_rule_name(r, i, salt), &n.share);
        taken = decide_take(w, &n, depth);
        if (w->asks) return;
    }
    for (size_t i = 0; !w->asks && i < r->n_fallback; i++) {
        decide_note n = {.route = r, .rule = r->n_rules + i, .model = r->fallback[i], .share = -1};
        decide_take(w, &n, depth);
    }
}

/* ---- an answer that is gone on with -------------------------------------------------------------- */

static const char *target_at(const config_route *r, size_t rule, size_t share)
{
    if (rule >= r->n_rules) return share == 0 ? r->fallback[rule - r->n_rules] : NULL;
    const config_rule *at = &r->rules[rule];
    if (at->n_split) return share < at->n_split ? at->split[share].model : NULL;
    if (at->n_any) return share < at->n_any ? at->any[share] : NULL;
    return share == 0 ? at->model : NULL;
}

/* Whatever the rules say now, only the file that began an answer can go on with it. */
static bool find_beginner(walking *w, const config_route *r, size_t depth)
{
    for (size_t i = 0; i < r->n_rules + r->n_fallback; i++) {
        const char *name;
        for (size_t k = 0; (name = target_at(r, i, k)); k++) {
            const config_route *next = route_find(w->book, name);
            route_estimate o = {0};
            if (next && depth < w->book->n_routes && find_beginner(w, next, depth + 1)) return true;
            if (next) continue;
            w->view->estimate(w->view->user, name, &o);
            if (!o.known || !o.fits || !o.began) continue;
            w->d->steps[w->d->n++] = (decide_note){.route = r,
                                                   .rule = i,
                                                   .model = name,
                                                   .why = DECIDE_RESUMES,
                                                   .expected_ms = o.expected_ms,
                                                   .load = o.load,
                                                   .share = -1};
            return true;
        }
    }
    return false;
}

decide_what decide_route(const route_book *b, const config_route *r, const route_facts *f,
                         const route_view *v, decision *ret)
{
    walking w = {.book = b, .facts = f, .view = v, .d = ret};
    memset(ret, 0, sizeof *ret);
    ret->route = r;
    ret->left_ms = f->left_ms;
    ret->has_deadline = f->has_deadline;
    if (f->resumes && find_beginner(&w, r, 0)) return DECIDE_DONE;
    walk(&w, r, 0);
    if (w.asks) return DECIDE_ASK;
    if (ret->n > 0) return DECIDE_DONE;
    if (!w.resort.model) return DECIDE_NOBODY;
    ret->steps[ret->n++] = w.resort;
    ret->steps[0].why = DECIDE_LAST;
    return DECIDE_DONE;
}
