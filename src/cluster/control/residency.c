/* residency.c: lists of machines by model; see residency.h. */
#include "control/residency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"

struct residency_model {
    char *name;
    char nodes[RESIDENCY_NODES_MAX][IDENTITY_NAME_SIZE]; /* the newest last */
    size_t n;
    uint64_t since_ns; /* when it was first seen without a replica; 0: it has one */
    bool away;         /* calls have been told not to wait */
};

static residency_model *residency_add(residency *r, registry *g, const char *model, shoal_err *err)
{
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 8;
        residency_model **more = realloc(r->models, cap * sizeof(residency_model *));
        if (!more) return NULL;
        r->models = more;
        r->cap = cap;
    }
    residency_model *m = calloc(1, sizeof *m);
    if (m) m->name = strdup(model);
    if (!m || !m->name || !strmap_put(&r->by_name, m->name, m)) {
        free(m ? m->name : NULL);
        free(m);
        return NULL;
    }
    if (registry_declare(g, model, err) != 0) {
        strmap_take(&r->by_name, m->name);
        free(m->name);
        free(m);
        return NULL;
    }
    return r->models[r->n++] = m;
}

static size_t residency_find(const residency_model *m, const char *node)
{
    size_t i = 0;
    while (i < m->n && strcmp(m->nodes[i], node) != 0) i++;
    return i;
}

static void residency_drop(residency_model *m, size_t i)
{
    memmove(m->nodes[i], m->nodes[i + 1], (--m->n - i) * sizeof m->nodes[0]);
}

int residency_served(residency *r, registry *g, const char *model, const char *node, shoal_err *err)
{
    residency_model *m = strmap_get(&r->by_name, model);
    if (!m && r->n >= RESIDENCY_MODELS_MAX) return 0;
    if (!m && !(m = residency_add(r, g, model, err))) return err_nomem(err);
    if (residency_find(m, node) < m->n) return 0;
    if (m->n == RESIDENCY_NODES_MAX) residency_drop(m, 0);
    snprintf(m->nodes[m->n++], sizeof m->nodes[0], "%s", node);
    return 0;
}

void residency_lacks(residency *r, const char *model, const char *node)
{
    residency_model *m = strmap_get(&r->by_name, model);
    size_t i = m ? residency_find(m, node) : 0;
    if (m && i < m->n) residency_drop(m, i);
}

void residency_lacks_others(residency *r, const char *node, bool (*has)(const void *user, const char *model),
                            const void *user)
{
    for (size_t i = 0; i < r->n; i++)
        if (!has || !has(user, r->models[i]->name)) residency_lacks(r, r->models[i]->name, node);
}

static void model_free(residency_model *m)
{
    free(m->name);
    free(m);
}

static void retire(residency *r, registry *g, size_t i)
{
    residency_model *m = r->models[i];
    LOG(LOG_INFO, "control", "model_retired", LOG_S("model", m->name));
    registry_undeclare(g, m->name);
    strmap_take(&r->by_name, m->name);
    r->models[i] = r->models[--r->n];
    model_free(m);
}

static void tell_away(residency_model *m, registry *g)
{
    char why[200];
    snprintf(why, sizeof why, "%.63s, which served it, has been away for over %d minutes", m->nodes[m->n - 1],
             RESIDENCY_AWAY_MS / 60000);
    LOG(LOG_WARN, "control", "model_away", LOG_S("model", m->name), LOG_S("node", m->nodes[m->n - 1]));
    registry_give_up(g, m->name, why, false);
    m->away = true;
}

void residency_look(residency *r, registry *g, uint64_t now_ns)
{
    for (size_t i = r->n; i-- > 0;) {
        residency_model *m = r->models[i];
        const replica_set *set = registry_find(g, m->name);
        if (!set || set->n > 0) {
            m->since_ns = 0;
            m->away = false; /* the first replica ended that */
            continue;
        }
        if (!m->since_ns) m->since_ns = now_ns;
        uint64_t ms = (now_ns - m->since_ns) / 1000000;
        if (m->n == 0 && ms >= RESIDENCY_RETIRE_MS)
            retire(r, g, i);
        else if (m->n > 0 && ms >= RESIDENCY_AWAY_MS && !m->away)
            tell_away(m, g);
    }
}

void residency_done(residency *r)
{
    for (size_t i = 0; i < r->n; i++) model_free(r->models[i]);
    free(r->models);
    strmap_done(&r->by_name);
    *r = (residency){0};
}
