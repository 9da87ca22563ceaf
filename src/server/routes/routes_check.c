/* routes_check.c: what no row of the schema can say of routes; see routes.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "routes/facts.h"
#include "routes/language.h"
#include "routes/routes.h"
#include "tasks/task.h"

typedef struct checking {
    const route_book *book;
    bool (*is_model)(const void *user, const char *name);
    const void *user;
    shoal_err *err;
    char where[64]; /* "routes[1]." */
} checking;

static bool is_one_of(const char *s, const char *const *list)
{
    for (size_t i = 0; list[i]; i++)
        if (strcmp(list[i], s) == 0) return true;
    return false;
}

static int none_of(const checking *c, const char *where, const char *key, size_t i, const char *s,
                   const char *const *list)
{
    char all[256] = "";
    for (size_t k = 0; list[k]; k++) {
        size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s%s", k ? ", " : "", list[k]);
    }
    return err_set(c->err, SHOAL_EINVALID, "%s%s[%zu]: '%.64s' is none of %s", where, key, i, s, all);
}

static int check_words(const checking *c, const char *where, const char *key, const char *const *given,
                       size_t n, const char *const *list)
{
    for (size_t i = 0; i < n; i++)
        if (!is_one_of(given[i], list)) return none_of(c, where, key, i, given[i], list);
    return 0;
}

/* ---- targets ------------------------------------------------------------------------------------- */

static int check_target(const checking *c, const char *where, const char *key, const char *name)
{
    if (c->is_model(c->user, name) || route_find(c->book, name)) return 0;
    return err_set(c->err, SHOAL_EINVALID, "%s%s: '%.64s' is neither a model of this file nor a route", where,
                   key, name);
}

static int check_split(const checking *c, const char *where, const config_rule *r)
{
    double sum = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->n_split; i++) {
        char key[40];
        snprintf(key, sizeof key, "split[%zu].model", i);
        rc = check_target(c, where, key, r->split[i].model);
        sum += r->split[i].share;
    }
    if (rc != 0 || r->n_split == 0 || sum > 0) return rc;
    return err_set(c->err, SHOAL_EINVALID, "%ssplit: nobody has a share", where);
}

/* Routes decide for themselves, so that they cannot be compared. */
static int check_any(const checking *c, const char *where, const config_rule *r)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->n_any; i++) {
        char key[40];
        snprintf(key, sizeof key, "any[%zu]", i);
        if (!c->is_model(c->user, r->any[i]))
            rc = err_set(c->err, SHOAL_EINVALID, "%s%s: '%.64s' is no model of this file", where, key,
                         r->any[i]);
    }
    return rc;
}

static int check_use(const checking *c, const char *where, const config_rule *r)
{
    int n = (r->model != NULL) + (r->n_split > 0) + (r->n_any > 0);
    if (n != 1)
        return err_set(c->err, SHOAL_EINVALID, "%smodel: a rule needs %s", where,
                       n ? "either 'model', 'split' or 'any', and one of them"
                         : "a 'model', a 'split' over several, or 'any' of several");
    if (r->n_any) return check_any(c, where, r);
    return r->model ? check_target(c, where, "model", r->model) : check_split(c, where, r);
}

/* ---- rules --------------------------------------------------------------------------------------- */

static int check_range(const checking *c, const char *where, const char *key, uint64_t least, uint64_t most)
{
    if (most == 0 || least <= most) return 0;
    return err_set(c->err, SHOAL_EINVALID, "%smin_%s: is more than max_%s", where, key, key);
}

static int check_headers(const checking *c, const char *where, const config_rule *r)
{
    for (size_t i = 0; i < r->n_header; i++)
        for (const char *s = r->header[i].name; *s; s++)
            if (!(isalnum((unsigned char)*s) || *s == '-' || *s == '_') || isupper((unsigned char)*s))
                return err_set(c->err, SHOAL_EINVALID,
                               "%sheader[%zu].name: '%.64s' must be a header's name in lower case", where, i,
                               r->header[i].name);
    return 0;
}

static bool is_domain(const config_domains *set, const char *name)
{
    for (size_t i = 0; i < set->n_of; i++)
        if (strcmp(set->of[i].name, name) == 0) return true;
    return set->n_of == 0;
}

static int check_domain(const checking *c, const char *where, const config_route *route, const config_rule *r)
{
    const config_domains *set = route_domains(c->book, route);
    if (r->n_domain == 0 && r->min_score)
        return err_set(c->err, SHOAL_EINVALID, "%smin_score: is about a 'domain', and the rule names none",
                       where);
    if (r->n_domain > 0 && !set)
        return err_set(c->err, SHOAL_EINVALID, "%sdomain: the route needs 'domains', the set that is asked",
                       where);
    for (size_t i = 0; i < r->n_domain; i++)
        if (!is_domain(set, r->domain[i]))
            return err_set(c->err, SHOAL_EINVALID, "%sdomain[%zu]: '%.64s' is not in the domains '%s'", where,
                           i, r->domain[i], set->name);
    return 0;
}

static int check_rule(const checking *c, const config_route *route, size_t i)
{
#define NAME_OF(e, name)        name,
#define WANT_NAME(bit, e, name) name,
    static const char *const latencies[] = {ROUTE_LATENCY_TABLE(NAME_OF) NULL};
    static const char *const wants[] = {ROUTE_WANT_TABLE(WANT_NAME) NULL};
#undef NAME_OF
#undef WANT_NAME
    const config_rule *r = &route->rules[i];
    const char *endpoints[N_ASKS + 1] = {0};
    char where[96];
    for (size_t k = 0, n = 0; k < N_ASKS; k++)
        if (TASK_ENDPOINTS[k].routed) endpoints[n++] = TASK_ENDPOINTS[k].name;
    snprintf(where, sizeof where, "%srules[%zu].", c->where, i);
    int rc = r->name && !name_is_fine(r->name, strlen(r->name))
                 ? err_set(c->err, SHOAL_EINVALID, "%sname: '%.64s' " NAME_RULE, where, r->name)
                 : 0;
    if (!rc) rc = check_words(c, where, "endpoint", r->endpoint, r->n_endpoint, endpoints);
    if (!rc) rc = check_words(c, where, "language", r->language, r->n_language, LANGUAGE_CODES);
    if (!rc) rc = check_words(c, where, "wants", r->wants, r->n_wants, wants);
    if (!rc) rc = check_words(c, where, "latency", r->latency, r->n_latency, latencies);
    if (!rc) rc = check_range(c, where, "bytes", r->min_bytes, r->max_bytes);
    if (!rc) rc = check_range(c, where, "tokens", r->min_tokens, r->max_tokens);
    if (!rc) rc = check_range(c, where, "deadline_ms", r->min_deadline_ms, r->max_deadline_ms);
    if (!rc) rc = check_headers(c, where, r);
    if (!rc) rc = check_domain(c, where, route, r);
    return rc ? rc : check_use(c, where, r);
}

/* ---- routes -------------------------------------------------------------------------------------- */

static int check_name(const checking *c, size_t i)
{
    const char *name = c->book->routes[i].name;
    if (!name_is_fine(name, strlen(name)))
        return err_set(c->err, SHOAL_EINVALID, "%sname: '%.64s' " NAME_RULE, c->where, name);
    if (c->is_model(c->user, name))
        return err_set(c->err, SHOAL_EINVALID, "%sname: '%s' is already the name of a model", c->where, name);
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->book->routes[k].name, name) == 0)
            return err_set(c->err, SHOAL_EINVALID, "%sname: '%s' is already the name of routes[%zu]",
                           c->where, name, k);
    return 0;
}

static int check_route(checking *c, size_t i)
{
    const config_route *r = &c->book->routes[i];
    snprintf(c->where, sizeof c->where, "routes[%zu].", i);
    int rc = check_name(c, i);
    if (!rc && r->n_rules + r->n_fallback == 0)
        rc = err_set(c->err, SHOAL_EINVALID, "%srules: '%s' needs rules or a fallback", c->where, r->name);
    if (!rc && r->domains && !route_domains(c->book, r))
        rc = err_set(c->err, SHOAL_EINVALID, "%sdomains: there are no domains '%.64s'", c->where, r->domains);
    for (size_t k = 0; !rc && k < r->n_rules; k++) rc = check_rule(c, r, k);
    for (size_t k = 0; !rc && k < r->n_fallback; k++) {
        char key[40];
        snprintf(key, sizeof key, "fallback[%zu]", k);
        rc = check_target(c, c->where, key, r->fallback[k]);
    }
    if (!rc && r->shadow) rc = check_target(c, c->where, "shadow", r->shadow);
    return rc;
}

/* ---- no loops ------------------------------------------------------------------------------------ */

typedef struct tracing {
    const route_book *book;
    unsigned char *state; /* by route: 0 not seen, 1 on the way, 2 done */
    const char *loop;     /* a route that leads to itself */
} tracing;

static void trace(void *user, const char *name)
{
    tracing *t = user;
    const config_route *r = route_find(t->book, name);
    if (!r || t->loop) return;
    unsigned char *state = &t->state[r - t->book->routes];
    if (*state == 1) t->loop = r->name;
    if (*state != 0) return;
    *state = 1;
    route_each(r, trace, t);
    *state = 2;
}

static int check_loops(const checking *c)
{
    tracing t = {.book = c->book, .state = calloc(c->book->n_routes + 1, 1)};
    if (!t.state) return err_nomem(c->err);
    int rc = 0;
    for (size_t i = 0; i < c->book->n_routes && !rc; i++) {
        trace(&t, c->book->routes[i].name);
        if (t.loop)
            rc = err_set(c->err, SHOAL_EINVALID, "routes[%zu].rules: the route '%s' leads to itself",
                         (size_t)(route_find(c->book, t.loop) - c->book->routes), t.loop);
    }
    free(t.state);
    return rc;
}

/* ---- domains ------------------------------------------------------------------------------------- */

static int check_set(checking *c, size_t i)
{
    const config_domains *d = &c->book->domains[i];
    snprintf(c->where, sizeof c->where, "domains[%zu].", i);
    if (!name_is_fine(d->name, strlen(d->name)))
        return err_set(c->err, SHOAL_EINVALID, "%sname: '%.64s' " NAME_RULE, c->where, d->name);
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->book->domains[k].name, d->name) == 0)
            return err_set(c->err, SHOAL_EINVALID, "%sname: '%s' is already the name of domains[%zu]",
                           c->where, d->name, k);
    if (!c->is_model(c->user, d->model) || strchr(d->model, ':'))
        return err_set(c->err, SHOAL_EINVALID, "%smodel: '%.64s' is not among the models of this file",
                       c->where, d->model);
    for (size_t k = 0; k < d->n_of; k++) {
        if (d->centroids_path && d->of[k].n_labels)
            return err_set(c->err, SHOAL_EINVALID,
                           "%sof[%zu].labels: are a classifier's, and these domains have 'centroids'",
                           c->where, k);
        for (size_t n = 0; n < k; n++)
            if (strcmp(d->of[n].name, d->of[k].name) == 0)
                return err_set(c->err, SHOAL_EINVALID, "%sof[%zu].name: '%s' is already that of of[%zu]",
                               c->where, k, d->of[k].name, n);
    }
    return 0;
}

int routes_check(const route_book *b, bool (*is_model)(const void *user, const char *name),
                 int (*found)(const void *user, int rc, shoal_err *err), const void *user, shoal_err *err)
{
    checking c = {.book = b, .is_model = is_model, .user = user, .err = err};
    int rc = 0;
    for (size_t i = 0; !rc && i < b->n_domains; i++) rc = found(user, check_set(&c, i), err);
    for (size_t i = 0; !rc && i < b->n_routes; i++) rc = found(user, check_route(&c, i), err);
    return rc ? rc : found(user, check_loops(&c), err);
}
