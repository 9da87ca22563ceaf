/* caches.c: see caches.h. */
#include "answers/caches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/query.h"
#include "json/json.h"
#include "json/json_put.h"
#include "logging/log.h"
#include "answers/provenance.h"
#include "request/gateway_state.h"
#include "answers/semantic.h"

/* ---- looking ------------------------------------------------------------------------------------- */

/* X(result): of METRIC_CACHE; those before MISSES are answers that cost no computation of their own. */
static const char *const RESULTS[] = {"hit", "stale", "negative", "near", "shared", "miss"};
enum { N_RESULTS = sizeof RESULTS / sizeof *RESULTS, MISSES = N_RESULTS - 1 };

static bool is_told(const metrics *m, size_t i, const char *const *l)
{
    for (size_t k = 0; k < i; k++) {
        const char *const *other = metrics_labels(m, METRIC_CACHE, k);
        if (strcmp(other[0], l[0]) == 0 && strcmp(other[1], l[1]) == 0) return true;
    }
    return false;
}

static void caches_put_name(buf *out, const metrics *m, const char *const *l)
{
    double n = 0, misses = 0;
    json_put_open(out, NULL, '{');
    json_put_text(out, "of", l[0]);
    json_put_text(out, "name", l[1]);
    for (int i = 0; i < N_RESULTS; i++) {
        double v = metrics_get(m, METRIC_CACHE, l[0], l[1], RESULTS[i]);
        buf_printf(out, ",\"%s\":%.0f", RESULTS[i], v);
        n += v;
        if (i == MISSES) misses = v;
    }
    buf_printf(out, ",\"ratio\":%.4f}", n > 0 ? (n - misses) / n : 0);
}

static void put_lookups(buf *out, const metrics *m)
{
    const char *const *l;
    if (buf_puts(out, ",\"lookups\":[") != 0) return;
    for (size_t i = 0; (l = metrics_labels(m, METRIC_CACHE, i)) && !out->failed; i++)
        if (!is_told(m, i, l)) caches_put_name(out, m, l);
    buf_putc(out, ']');
}

void caches_put(buf *out, const gateway *g)
{
    const config_cache *c = &g->config->cache;
    cache_stats s;
    cache_get_stats(g->cache, &s);
    buf_printf(out, "{\"object\":\"shoal.cache\",\"entries\":%zu,\"bytes\":%zu,\"max_bytes\":%llu",
               s.n_entries, s.n_bytes, (unsigned long long)c->bytes);
    buf_printf(out, ",\"tags\":%zu,\"in_flight\":%zu,\"evicted\":%llu,\"expired\":%llu,\"purged\":%llu",
               s.n_tags, s.n_in_flight, (unsigned long long)s.n_evicted, (unsigned long long)s.n_expired,
               (unsigned long long)s.n_purged);
    buf_printf(out, ",\"ttl_s\":%llu,\"stale_s\":%llu,\"negative_ttl_s\":%llu,\"shared\":%s",
               (unsigned long long)c->ttl_ms / 1000, (unsigned long long)c->stale_ms / 1000,
               (unsigned long long)c->negative_ttl_ms / 1000, c->shared ? "true" : "false");
    put_lookups(out, g->metrics);
    semantic_put(out, g);
    buf_putc(out, '}');
}

void caches_show(gateway_request *rq)
{
    buf out = {0};
    caches_put(&out, rq->gateway);
    request_json(rq, 200, &out);
    buf_done(&out);
}

/* ---- purging ------------------------------------------------------------------------------------- */

static const char *const CONDITIONS[] = {"model", "version", "route", "pipeline", "ensemble", "tag"};
enum { N_CONDITIONS = sizeof CONDITIONS / sizeof *CONDITIONS, VERSION = 1 };

typedef struct purge {
    char tags[N_CONDITIONS][PROVENANCE_TAG_BYTES];
    const char *names[N_CONDITIONS];
    size_t n;
    char *version; /* the tag of a version, which may be a digest */
} purge;

/* A condition that was misspelt would purge everything. */
static int check_names(const char *query, api_error *e)
{
    for (const char *p = query; *p; p += strspn(p, "&")) {
        size_t n = strcspn(p, "&"), n_name = strcspn(p, "=&"), i = 0;
        while (i < N_CONDITIONS && (strlen(CONDITIONS[i]) != n_name || memcmp(p, CONDITIONS[i], n_name) != 0))
            i++;
        if (i == N_CONDITIONS)
            return api_error_bad(e, NULL,
                                 "'%.*s' is no condition: purge by model, version, route, pipeline, ensemble "
                                 "or tag, or everything without any",
                                 n_name < 40 ? (int)n_name : 40, p);
        p += n;
    }
    return 0;
}

static int read_conditions(purge *p, const char *query, api_error *e)
{
    int rc = check_names(query, e);
    for (size_t i = 0; rc == 0 && i < N_CONDITIONS; i++) {
        char *value = NULL;
        rc = query_value(query, CONDITIONS[i], &value, e);
        if (rc == 0 && value && (!*value || strlen(value) > 90))
            rc = api_error_bad(e, CONDITIONS[i], "\"%s\" must be 1 to 90 bytes long", CONDITIONS[i]);
        if (rc == 0 && value) {
            snprintf(p->tags[p->n], sizeof p->tags[0], "%s:%s", CONDITIONS[i], value);
            if (i == VERSION) p->version = p->tags[p->n];
            p->names[p->n] = p->tags[p->n];
            p->n++;
        }
        free(value);
    }
    return rc;
}

void caches_purge(gateway_request *rq)
{
    api_error e;
    purge p = {0};
    buf out = {0};
    if (read_conditions(&p, request_query(rq), &e) != 0) {
        request_error(rq, &e);
        return;
    }
    size_t n = cache_purge(rq->cache, p.names, p.n);
    if (p.version) { /* or the file's digest */
        char digest[PROVENANCE_TAG_BYTES];
        snprintf(digest, sizeof digest, "digest%s", strchr(p.version, ':'));
        memcpy(p.version, digest, sizeof digest);
        n += cache_purge(rq->cache, p.names, p.n);
    }
    LOG(LOG_INFO, "cache", "purged", LOG_I("entries", n), LOG_S("request_id", rq->id));
    buf_printf(&out, "{\"object\":\"shoal.cache.purged\",\"purged\":%zu}", n);
    request_json(rq, 200, &out);
    buf_done(&out);
}

/* ---- new versions -------------------------------------------------------------------------------- */

typedef struct served { /* what answers, or did, under a model's name */
    struct served *next;
    char *model;
    char digest[65], identity[BIT_IDENTITY_BYTES];
} served;

struct served_list {
    served *first;
};

static bool is_served(const registry *g, const served *s, bool *ret_other)
{
    const replica_set *set = registry_find(g, s->model);
    *ret_other = false;
    for (size_t i = 0; set && i < set->n; i++) {
        const Shoal__V1__ModelInfo *info = set->replicas[i]->info;
        if (info && strcmp(info->identity, s->identity) == 0) return true;
        if (info && i < set->n_ready) *ret_other = true;
    }
    return false;
}

/* Nobody serves it any more, and somebody another: what it answered goes. */
static void drop_replaced(gateway *g, const char *model)
{
    for (served **at = &g->served->first, *s; (s = *at);) {
        bool other;
        if (strcmp(s->model, model) != 0 || is_served(g->registry, s, &other) || !other) {
            at = &s->next;
            continue;
        }
        char names[2][PROVENANCE_TAG_BYTES];
        snprintf(names[0], sizeof names[0], "model:%.90s", s->model);
        snprintf(names[1], sizeof names[1], "digest:%s", s->digest);
        size_t n = cache_purge(g->cache, (const char *const[]){names[0], names[1]}, 2);
        LOG(LOG_INFO, "cache", "replaced", LOG_S("model", s->model), LOG_I("entries", n));
        *at = s->next;
        free(s->model);
        free(s);
    }
}

/* Without memory the file is not known: what it answered lives until its time is over. */
static void add_served(gateway *g, const char *model, const Shoal__V1__ModelInfo *info)
{
    for (served *s = g->served->first; s; s = s->next)
        if (strcmp(s->model, model) == 0 && strcmp(s->identity, info->identity) == 0) return;
    g->n_rolls++;
    served *s = calloc(1, sizeof *s);
    char *name = strdup(model);
    if (!s || !name) {
        free(s);
        free(name);
        return;
    }
    *s = (served){.next = g->served->first, .model = name};
    snprintf(s->digest, sizeof s->digest, "%s", info->digest);
    snprintf(s->identity, sizeof s->identity, "%s", info->identity);
    g->served->first = s;
}

static void caches_on_event(void *user, const registry_event *e)
{
    gateway *g = user;
    if (!e->replica) return;
    const replica *r = e->replica;
    if (e->what != REGISTRY_DROP && r->state == REPLICA_READY && r->info && *r->info->digest)
        add_served(g, r->model, r->info);
    drop_replaced(g, r->model);
}

int caches_open(gateway *g, shoal_err *err)
{
    g->served = calloc(1, sizeof *g->served);
    if (!g->served) return err_nomem(err);
    for (size_t i = 0; i < registry_count(g->registry); i++) {
        const replica *r = registry_at(g->registry, i);
        if (r->state == REPLICA_READY && r->info) add_served(g, r->model, r->info);
    }
    return registry_listen(g->registry, caches_on_event, g, err);
}

void caches_close(gateway *g)
{
    if (!g->served) return;
    registry_unlisten(g->registry, caches_on_event, g);
    for (served *s = g->served->first, *next; s; s = next) {
        next = s->next;
        free(s->model);
        free(s);
    }
    free(g->served);
    g->served = NULL;
}
