/* readiness.c: see readiness.h. */
#include "observe/readiness.h"

#include <stdio.h>
#include <string.h>

#include "base/name.h"
#include "json/json.h"
#include "json/json_put.h"
#include "request/gateway_state.h"

enum { DEPTH_MAX = 8 }; /* of routes in routes; they lead to no loop */

typedef struct needed { /* what is needed: all of them, or any */
    const gateway *g;
    bool any;
    int depth;
    readiness found;
    char why[READINESS_WHY_SIZE]; /* of the first that is not ready */
} needed;

static readiness readiness_find(const gateway *g, const char *name, int depth, char why[READINESS_WHY_SIZE]);

static bool has_adapter(const replica_set *set, const char *adapter)
{
    const Shoal__V1__ModelInfo *info = set->n > 0 ? set->replicas[0]->info : NULL;
    for (size_t i = 0; info && i < info->n_adapters; i++)
        if (strcmp(info->adapters[i], adapter) == 0) return true;
    return !info; /* nobody has said yet */
}

static readiness of_model(const gateway *g, const char *name, char why[READINESS_WHY_SIZE])
{
    char model[200];
    const char *colon = strchr(name, ':');
    snprintf(model, sizeof model, "%.*s", (int)strcspn(name, ":"), name);
    const replica_set *set = registry_find(g->registry, model);
    if (!set || (colon && !has_adapter(set, colon + 1))) return READINESS_UNKNOWN;
    if (set->n_ready > 0 || (set->rests && !registry_is_missing(set))) return READINESS_READY;
    registry_say_missing(set, why, READINESS_WHY_SIZE);
    return READINESS_NOT;
}

static const config_model *config_of(const gateway *g, const char *name)
{
    size_t n = strcspn(name, ":");
    for (size_t i = 0; i < g->config->n_models; i++) {
        const char *is = g->config->models[i].name;
        if (strlen(is) == n && strncmp(is, name, n) == 0) return &g->config->models[i];
    }
    return NULL;
}

/* Itself, or a model that stands in for it. */
static readiness of_needed(const gateway *g, const char *name, int depth, char why[READINESS_WHY_SIZE])
{
    char ignored[READINESS_WHY_SIZE];
    readiness r = readiness_find(g, name, depth, why);
    const config_model *m = config_of(g, name);
    if (r == READINESS_UNKNOWN) snprintf(why, READINESS_WHY_SIZE, "no replica of it was ever here");
    for (size_t i = 0; r != READINESS_READY && m && i < m->n_fallback; i++)
        if (readiness_find(g, m->fallback[i], depth, ignored) == READINESS_READY) return READINESS_READY;
    return r == READINESS_READY ? r : READINESS_NOT;
}

static void need(void *user, const char *name)
{
    needed *l = user;
    char why[READINESS_WHY_SIZE] = "";
    bool settled = l->any ? l->found == READINESS_READY : l->found == READINESS_NOT;
    if (settled) return;
    readiness r = of_needed(l->g, name, l->depth + 1, why);
    l->found = r;
    if (r == READINESS_NOT && !*l->why) {
        int n = snprintf(l->why, sizeof l->why, "%.64s", name);
        snprintf(l->why + n, sizeof l->why - (size_t)n, "%s%.380s", *why ? ": " : "", why);
    }
}

static void end_needed(const needed *l, char why[READINESS_WHY_SIZE])
{
    if (l->found == READINESS_NOT) memcpy(why, l->why, sizeof l->why);
}

static readiness of_ensemble(const gateway *g, const config_ensemble *e, int depth,
                             char why[READINESS_WHY_SIZE])
{
    needed members = {.g = g, .any = true, .depth = depth, .found = READINESS_NOT};
    needed checks = {.g = g, .depth = depth, .found = READINESS_READY};
    for (size_t i = 0; i < e->n_members; i++) need(&members, e->members[i].model);
    for (size_t i = 0; i < e->n_checks; i++)
        if (e->checks[i].model) need(&checks, e->checks[i].model);
    const needed *l = members.found == READINESS_NOT ? &members : &checks;
    end_needed(l, why);
    return l->found;
}

static readiness of_route(const gateway *g, const config_route *r, int depth, char why[READINESS_WHY_SIZE])
{
    needed l = {.g = g, .any = true, .depth = depth, .found = READINESS_NOT};
    route_each(r, need, &l);
    end_needed(&l, why);
    return l.found;
}

static readiness of_pipeline(const gateway *g, const config_pipeline *p, int depth,
                             char why[READINESS_WHY_SIZE])
{
    needed l = {.g = g, .depth = depth, .found = READINESS_READY};
    for (size_t i = 0; i < p->n_stages; i++)
        if (p->stages[i].model && !p->stages[i].optional) need(&l, p->stages[i].model);
    end_needed(&l, why);
    return l.found;
}

static readiness readiness_find(const gateway *g, const char *name, int depth, char why[READINESS_WHY_SIZE])
{
    const gateway_config *c = g->config;
    readiness r = of_model(g, name, why);
    const config_ensemble *e = config_ensemble_find(c, name);
    const config_route *route = route_find(&c->book, name);
    if (r != READINESS_UNKNOWN || depth > DEPTH_MAX) return r;
    if (e) return of_ensemble(g, e, depth, why);
    if (route) return of_route(g, route, depth, why);
    for (size_t i = 0; i < c->n_pipelines; i++)
        if (strcmp(c->pipelines[i].name, name) == 0) return of_pipeline(g, &c->pipelines[i], depth, why);
    return READINESS_UNKNOWN;
}

readiness readiness_of(const gateway *g, const char *name, char why[READINESS_WHY_SIZE])
{
    const config_alias *alias = config_alias_find(g->config, name);
    char base[NAME_BYTES_MAX + 1], target[NAME_BYTES_MAX + 1];
    *why = '\0';
    const char *own = name_without_latest(base, alias ? alias->model : name);
    readiness r = readiness_find(g, own, 0, why);
    const json_t *made = r == READINESS_UNKNOWN && g->variants ? json_object_get(g->variants(g), own) : NULL;
    const char *from = json_string_value(json_object_get(made, "from"));
    if (!from) return r;
    alias = config_alias_find(g->config, from);
    return readiness_find(g, name_without_latest(target, alias ? alias->model : from), 0, why);
}

void readiness_put_missing(buf *out, const gateway *g)
{
    const char *between = "";
    buf_puts(out, ",\"missing\":[");
    for (size_t i = 0; i < registry_count_models(g->registry); i++) {
        const replica_set *set = registry_model_at(g->registry, i);
        char why[READINESS_WHY_SIZE];
        if (!registry_is_missing(set)) continue;
        registry_say_missing(set, why, sizeof why);
        buf_printf(out, "%s{\"model\":", between);
        json_put_string(out, set->model, strlen(set->model));
        json_put_text(out, "reason", why);
        buf_putc(out, '}');
        between = ",";
    }
    buf_putc(out, ']');
}
