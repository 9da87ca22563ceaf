/* routes.c: names, and what a file's routes name beside models: patterns and centroids. */
#include "routes/routes.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "routes/facts.h"

static const char *const latencies[] = {
#define LATENCY_NAME(e, name) [e] = name,
    ROUTE_LATENCY_TABLE(LATENCY_NAME)
#undef LATENCY_NAME
};

const char *route_latency_name(route_latency l)
{
    return (size_t)l < N_LATENCIES ? latencies[l] : "unknown";
}

bool route_latency_of(const char *name, route_latency *ret)
{
    for (int i = 0; i < N_LATENCIES; i++) {
        if (strcmp(latencies[i], name) != 0) continue;
        *ret = (route_latency)i;
        return true;
    }
    return false;
}

unsigned route_want_of(const char *name)
{
#define WANT_OF(bit, e, its) \
    if (strcmp(name, its) == 0) return bit;
    ROUTE_WANT_TABLE(WANT_OF)
#undef WANT_OF
    return 0;
}

const config_route *route_find(const route_book *b, const char *name)
{
    for (size_t i = 0; i < b->n_routes; i++)
        if (strcmp(b->routes[i].name, name) == 0) return &b->routes[i];
    return NULL;
}

const config_domains *route_domains(const route_book *b, const config_route *r)
{
    for (size_t i = 0; r->domains && i < b->n_domains; i++)
        if (strcmp(b->domains[i].name, r->domains) == 0) return &b->domains[i];
    return NULL;
}

const char *route_rule_name(const config_route *r, size_t rule, char out[80])
{
    if (r->rules[rule].name)
        snprintf(out, 80, "%s", r->rules[rule].name);
    else
        snprintf(out, 80, "%zu", rule + 1);
    return out;
}

bool route_matches(const char *s, const char *with)
{
    size_t n = strlen(with);
    return n && with[n - 1] == '*' ? strncmp(s, with, n - 1) == 0 : strcmp(s, with) == 0;
}

/* FNV-1a (Fowler, Noll, Vo), mixed once more. */
uint64_t route_hash(const char *s, size_t len)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001B3u;
    h = rng_mix(h);
    return h ? h : 1;
}

void route_each(const config_route *r, void (*fn)(void *user, const char *name), void *user)
{
    for (size_t i = 0; i < r->n_rules; i++) {
        const config_rule *rule = &r->rules[i];
        for (size_t k = 0; k < rule->n_split; k++) fn(user, rule->split[k].model);
        for (size_t k = 0; k < rule->n_any; k++) fn(user, rule->any[k]);
        if (rule->model) fn(user, rule->model);
    }
    for (size_t i = 0; i < r->n_fallback; i++) fn(user, r->fallback[i]);
}

/* ---- opening ------------------------------------------------------------------------------------- */

int routes_open_patterns(route_book *b, shoal_err *err)
{
    for (size_t i = 0; i < b->n_routes; i++)
        for (size_t k = 0; k < b->routes[i].n_rules; k++) {
            config_rule *r = &b->routes[i].rules[k];
            shoal_err why;
            int rc = r->matches && !r->pattern ? regex_compile(&r->pattern, r->matches, &why) : 0;
            if (rc == SHOAL_ENOMEM) return err_nomem(err);
            if (rc != 0)
                return err_set(err, SHOAL_EINVALID, "routes[%zu].rules[%zu].matches: %s", i, k, why.message);
        }
    return 0;
}

int routes_open(route_book *b, shoal_err *err)
{
    int rc = routes_open_patterns(b, err);
    for (size_t i = 0; rc == 0 && i < b->n_domains; i++) {
        config_domains *d = &b->domains[i];
        shoal_err why;
        rc = d->centroids_path && !d->centroids ? centroids_load(&d->centroids, d->centroids_path, &why) : 0;
        if (rc == SHOAL_ENOMEM) return err_nomem(err);
        if (rc != 0) return err_set(err, SHOAL_EINVALID, "domains[%zu].centroids: %s", i, why.message);
    }
    return rc;
}

void routes_close(route_book *b)
{
    for (size_t i = 0; i < b->n_routes; i++)
        for (size_t k = 0; k < b->routes[i].n_rules; k++) {
            regex_free(b->routes[i].rules[k].pattern);
            b->routes[i].rules[k].pattern = NULL;
        }
    for (size_t i = 0; i < b->n_domains; i++) {
        centroids_free(b->domains[i].centroids);
        b->domains[i].centroids = NULL;
    }
}
