/* source.c: what sources say, into the registry. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "cluster/registry_impl.h"

/* ---- sources ------------------------------------------------------------------------------------- */

static uint32_t free_bit(const registry *g)
{
    uint32_t taken = 0;
    for (const source *s = g->sources; s; s = s->next) taken |= s->bit;
    return ~taken & (taken + 1); /* the lowest that is free */
}

int source_open(source **ret, registry *g, const char *name, shoal_err *err)
{
    source *s = calloc(1, sizeof *s), **at = &g->sources;
    if (!s) return err_nomem(err);
    s->g = g;
    s->name = name;
    s->bit = free_bit(g);
    while (*at) at = &(*at)->next;
    *at = s;
    *ret = s;
    return 0;
}

/* Somebody else who has said it; NULL: nobody. */
static source *other_of(const source *s, uint32_t said)
{
    source *other = s->g->sources;
    while (other && (other == s || !(said & other->bit))) other = other->next;
    return other;
}

static void set_owner(health_poller *l, source *s)
{
    l->owner = s;
    l->r.process.is_at_work = NULL; /* the other one's, who may free its worker; the new one says its own */
    l->r.process.worker = NULL;
    l->r.source = s->name;
    registry_tell(l->g, &(registry_event){.what = REGISTRY_CHANGE, .replica = &l->r});
}

/* Its owner says no more of it. */
static void source_give_up(health_poller *l)
{
    source *next = other_of(l->owner, l->said);
    l->said &= ~l->owner->bit;
    if (next)
        set_owner(l, next);
    else
        registry_remove(l->g, l);
}

/* Any of its replicas; callbacks may have dropped the others. */
static health_poller *any_of(const registry *g, const source *s)
{
    for (size_t i = g->n; i-- > 0;)
        if (g->pollers[i]->owner == s) return g->pollers[i];
    return NULL;
}

static node_entry *any_node_of(const registry *g, const source *s)
{
    size_t at = 0;
    for (node_entry *n; (n = strmap_next(&g->nodes, &at));)
        if (n->owner == s) return n;
    return NULL;
}

void source_close(source *s)
{
    if (!s) return;
    registry *g = s->g;
    size_t pos = 0;
    for (health_poller *l; (l = any_of(g, s));) source_give_up(l);
    for (node_entry *n; (n = any_node_of(g, s));) source_drop_node(s, n->name);
    for (size_t i = 0; i < g->n; i++) g->pollers[i]->said &= ~s->bit;
    for (node_entry *n; (n = strmap_next(&g->nodes, &pos));) n->said &= ~s->bit;
    source **at = &g->sources;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    free(s);
}

void registry_free_sources(registry *g)
{
    size_t at = 0;
    for (node_entry *n; (n = strmap_next(&g->nodes, &at));) node_unref(n);
    strmap_done(&g->nodes);
    for (source *s = g->sources, *next; s; s = next) {
        next = s->next;
        free(s);
    }
}

void source_synced(source *s)
{
    if (!s->synced || *s->trouble) LOG(LOG_INFO, "source", "synced", LOG_S("source", s->name));
    s->synced = true;
    *s->trouble = '\0';
}

void source_away(source *s, const char *why)
{
    if (strcmp(s->trouble, why) == 0) return;
    snprintf(s->trouble, sizeof s->trouble, "%s", why);
    LOG(LOG_WARN, "source", "away", LOG_S("source", s->name), LOG_S("reason", why));
}

const char *source_name(const source *s)
{
    return s->name;
}

bool source_is_synced(const source *s)
{
    return s->synced;
}

const char *source_trouble(const source *s)
{
    return s->trouble;
}

size_t registry_count_sources(const registry *g)
{
    size_t n = 0;
    for (const source *s = g->sources; s; s = s->next) n++;
    return n;
}

const source *registry_source_at(const registry *g, size_t i)
{
    const source *s = g->sources;
    while (i-- > 0) s = s->next;
    return s;
}

/* ---- nodes --------------------------------------------------------------------------------------- */

void node_unref(node_entry *n)
{
    if (!n || --n->n_refs > 0) return;
    node_free(n->copy);
    free(n->name);
    free(n);
}

static node_entry *node_entry_new(registry *g, const char *name)
{
    node_entry *n = calloc(1, sizeof *n);
    char *own = n ? strdup(name) : NULL;
    if (!own || !strmap_put(&g->nodes, own, n)) {
        free(own);
        free(n);
        return NULL;
    }
    n->name = own;
    n->n_refs = 1;
    return n;
}

/* What is on it may be at another site now. */
static void sort_all_on(registry *g, const node_entry *n)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->pollers[i]->node == n) registry_sort(g->pollers[i]);
}

static bool same_site(const node *a, const node *b)
{
    return strcmp(a && a->site ? a->site : "", b && b->site ? b->site : "") == 0;
}

int source_put_node(source *s, const node *n, shoal_err *err)
{
    registry *g = s->g;
    node *copy;
    int rc = node_copy(&copy, n, err);
    if (rc != 0) return rc;
    node_entry *e = strmap_get(&g->nodes, n->name);
    if (!e) e = node_entry_new(g, n->name);
    if (!e) {
        node_free(copy);
        return err_nomem(err);
    }
    e->said |= s->bit;
    if (e->owner && e->owner != s && n->epoch <= e->facts.epoch) {
        node_free(copy);
        return 0;
    }
    node *old = e->copy;
    bool moved = !same_site(old, copy);
    e->copy = copy;
    e->facts = *copy;
    e->owner = s;
    if (moved) sort_all_on(g, e);
    node_free(old);
    registry_tell(g, &(registry_event){.what = REGISTRY_NODE, .node = &e->facts, .name = e->name});
    return 0;
}

const char *registry_node_source(const registry *g, const char *name)
{
    const node_entry *e = strmap_get(&g->nodes, name);
    return e && e->owner ? e->owner->name : NULL;
}

const node *registry_next_node(const registry *g, size_t *at)
{
    const node_entry *e = strmap_next(&g->nodes, at);
    return e ? &e->facts : NULL;
}

/* owner NULL: whosever. */
static health_poller *any_on(const registry *g, const node_entry *n, const source *owner)
{
    for (size_t i = g->n; i-- > 0;)
        if (g->pollers[i]->node == n && (!owner || g->pollers[i]->owner == owner)) return g->pollers[i];
    return NULL;
}

void source_drop_node(source *s, const char *name)
{
    registry *g = s->g;
    node_entry *n = strmap_get(&g->nodes, name);
    if (!n) return;
    n->n_refs++; /* listeners may drop it */
    n->said &= ~s->bit;
    for (health_poller *l; (l = any_on(g, n, s));) source_give_up(l);
    source *next = other_of(s, n->said);
    if (n->owner == s && next) {
        n->owner = next;
        registry_tell(g, &(registry_event){.what = REGISTRY_NODE, .node = &n->facts, .name = n->name});
    } else if (n->owner == s) {
        strmap_take(&g->nodes, n->name);
        n->owner = NULL;
        for (health_poller *l; (l = any_on(g, n, NULL));) registry_remove(g, l);
        registry_tell(g, &(registry_event){.what = REGISTRY_NODE, .name = n->name});
        node_unref(n);
    }
    node_unref(n);
}

/* ---- members ------------------------------------------------------------------------------------- */

static void set_node(health_poller *l, const member *m)
{
    node_entry *n = m->node ? strmap_get(&l->g->nodes, m->node) : NULL;
    if (n) n->n_refs++;
    node_unref(l->node);
    l->node = n;
    l->r.node = n ? &n->facts : NULL;
    registry_sort(l);
}

/* One that comes back elsewhere is another replica; what this gateway learnt of it goes with it. */
static int source_add(source *s, const member *m, health_poller *before, shoal_err *err)
{
    registry *g = s->g;
    health_poller *l = health_poller_new(g, m);
    if (!l) return err_nomem(err);
    int rc = registry_insert(g, l, err);
    if (rc != 0) {
        health_poller_free(l);
        return rc;
    }
    l->owner = s;
    l->said = s->bit | (before ? before->said : 0);
    l->r.source = s->name;
    set_node(l, m);
    replica_ref(&l->r); /* listeners may drop it */
    if (before) {
        l->r.load.cost = before->r.load.cost;
        registry_remove(g, before);
    }
    if (!l->r.dropped) registry_tell(g, &(registry_event){.what = REGISTRY_ADD, .replica = &l->r});
    if (!l->r.dropped) health_poller_hear(l, m);
    replica_unref(&l->r);
    return 0;
}

static int source_check(const member *m, shoal_err *err)
{
    if (m->id && *m->id && m->model && *m->model && m->address && *m->address) return 0;
    return err_set(err, SHOAL_EINVALID, "a member needs an id, a model and an address");
}

/* Sources may know of one replica; a machine that is called as a model here takes none of its replicas. */
static bool is_on(const health_poller *l, const char *node)
{
    return l->r.node ? node && strcmp(l->r.node->name, node) == 0 : !node;
}

static bool speaks_for(const source *s, const health_poller *l)
{
    return l->node && l->node->owner == s;
}

static void take_source(source *s, health_poller *l, const member *m)
{
    bool was_anothers = l->owner != s;
    replica_ref(&l->r); /* listeners may drop it */
    l->uncounted = m->generation == 0;
    set_node(l, m);
    if (was_anothers) set_owner(l, s);
    if (!l->r.dropped) health_poller_hear(l, m);
    replica_unref(&l->r);
}

int source_put(source *s, const member *m, shoal_err *err)
{
    int rc = source_check(m, err);
    if (rc != 0) return rc;
    health_poller *l = strmap_get(&s->g->by_id, m->id);
    if (!l) return source_add(s, m, NULL, err);
    if (l->owner != s && !is_on(l, m->node))
        return err_set(err, SHOAL_EINVALID, "%s is another machine's", m->id);
    bool newer = m->generation > l->r.generation, knows = m->generation != 0;
    if (m->generation < l->r.generation && (knows || l->owner != s)) return 0;
    l->said |= s->bit;
    if (l->owner != s && !newer && !speaks_for(s, l)) return 0;
    if (strcmp(m->address, l->r.address) != 0 || strcmp(m->model, l->r.model) != 0)
        return source_add(s, m, l, err);
    take_source(s, l, m);
    return 0;
}

void source_drop(source *s, const char *id, uint64_t generation)
{
    health_poller *l = strmap_get(&s->g->by_id, id);
    if (l && l->owner != s) l->said &= ~s->bit;
    if (!l || l->owner != s || (!l->uncounted && generation < l->r.generation)) return;
    source_give_up(l);
}
