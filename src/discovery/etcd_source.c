/* etcd_source.c: keys into the registry, and those that linger. */
#include "discovery/etcd_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/strmap.h"
#include "discovery/etcd_member.h"
#include "discovery/etcd_view.h"

enum { TICK_MS = 250 };

/* A key that is gone, and whose member is kept for a while. */
typedef struct ghost {
    struct ghost *next;
    uint64_t until_ns;
    bool is_node, revived; /* revived: its key is back; freed at the next tick */
    char name[64];
    char key[]; /* behind the prefix */
} ghost;

struct etcd_source {
    registry *g;
    env e;
    source *s;
    etcd_view *view;
    arena *strings;
    const char *own, *instance, *machine;
    uint64_t linger_ns;
    ghost *ghosts;
    strmap by_key; /* those of them that are not revived */
    env_timer *tick;
    bool closing;
};

static const char *id_of(const char *key)
{
    return strchr(key, '/') + 1;
}

static bool answers(const replica *r)
{
    return r && r->state == REPLICA_READY && !r->silent;
}

/* ---- ghosts -------------------------------------------------------------------------------------- */

static void linger(etcd_source *s, const char *key, etcd_kind kind, const char *name)
{
    size_t n = strlen(key) + 1;
    ghost *x = calloc(1, sizeof *x + n);
    if (x) memcpy(x->key, key, n);
    if (!x || !strmap_put(&s->by_key, x->key, x)) { /* no memory to be kind */
        free(x);
        if (kind == ETCD_REPLICA) source_drop(s->s, id_of(key), UINT64_MAX);
        return;
    }
    x->until_ns = s->e.now_ns(s->e.user) + s->linger_ns;
    x->is_node = kind != ETCD_REPLICA;
    memcpy(x->name, name, strlen(name) + 1);
    x->next = s->ghosts;
    s->ghosts = x;
    s->e.timer_start(s->tick, TICK_MS);
}

/* True when the key had gone, and its member is still there. */
static bool revive(etcd_source *s, const char *key)
{
    ghost *x = strmap_take(&s->by_key, key);
    if (x) x->revived = true;
    return x != NULL;
}

/* A node is gone when no replica on it answers. */
static bool is_in_use(const etcd_source *s, const char *node_name)
{
    for (size_t i = 0; i < registry_count(s->g); i++) {
        const replica *r = registry_at(s->g, i);
        if (r->node && strcmp(r->node->name, node_name) == 0 && answers(r)) return true;
    }
    return false;
}

static bool is_over(const etcd_source *s, const ghost *x, uint64_t now)
{
    if (x->revived) return true;
    if (x->is_node) return !is_in_use(s, x->name);
    return now >= x->until_ns || !answers(registry_get(s->g, id_of(x->key)));
}

static void end_ghost(etcd_source *s, ghost *x)
{
    if (!x->revived) {
        strmap_take(&s->by_key, x->key);
        if (x->is_node)
            source_drop_node(s->s, x->name);
        else
            source_drop(s->s, id_of(x->key), UINT64_MAX);
    }
    free(x);
}

static void look(void *arg)
{
    etcd_source *s = arg;
    uint64_t now = s->e.now_ns(s->e.user);
    for (ghost **at = &s->ghosts, *x; (x = *at);) {
        if (!is_over(s, x, now)) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        end_ghost(s, x);
    }
    if (s->ghosts) s->e.timer_start(s->tick, TICK_MS);
}

/* ---- keys ---------------------------------------------------------------------------------------- */

static void refuse(const char *key, const shoal_err *err)
{
    LOG(LOG_WARN, "etcd", "member_refused", LOG_S("key", key), LOG_S("reason", err->message));
}

static bool is_reachable(const etcd_source *s, const etcd_replica *r)
{
    return strncmp(r->address, "unix:", 5) != 0 || strcmp(r->machine, s->machine) == 0;
}

/* On the machine that it names, if that is known. */
static const char *node_of(const etcd_source *s, const etcd_replica *r, const char *name)
{
    return *r->node && registry_node(s->g, r->node) ? r->node : name;
}

static void put_replica(etcd_source *s, const char *key, const char *name, const uint8_t *value, size_t n)
{
    etcd_replica r;
    json_t *root;
    shoal_err err = {0};
    const char *id = id_of(key);
    bool returned = revive(s, key);
    if (etcd_member_read_replica(&r, &root, value, n, &err) != 0) {
        refuse(key, &err);
        return;
    }
    const replica *known = registry_get(s->g, id);
    /* A store that was put back from a copy, or a clock that went back: what returned is the truth. */
    if (known && returned && r.generation && r.generation < known->generation)
        source_drop(s->s, id, UINT64_MAX);
    member m = {.id = id,
                .generation = r.generation,
                .model = r.model,
                .address = r.address,
                .node = node_of(s, &r, name),
                .state = r.state,
                .standby = r.standby,
                .reason = *r.reason ? r.reason : NULL};
    if (!is_reachable(s, &r)) {
        source_drop(s->s, id, UINT64_MAX);
        LOG(LOG_DEBUG, "etcd", "not_reachable", LOG_S("replica", id), LOG_S("address", r.address));
    } else if (source_put(s->s, &m, &err) != 0) {
        refuse(key, &err);
    }
    json_decref(root);
}

static void put_node(etcd_source *s, const char *key, const char *name, const uint8_t *value, size_t n)
{
    etcd_node x;
    json_t *root;
    shoal_err err = {0};
    revive(s, key);
    if (etcd_member_read_node(&x, &root, value, n, &err) != 0) {
        refuse(key, &err);
        return;
    }
    x.facts.name = name;
    x.facts.is_gateway = true;
    if (s->own && strcmp(name, s->own) == 0) {
        if (s->instance && strcmp(x.instance, s->instance) != 0)
            LOG(LOG_ERROR, "etcd", "name_taken", LOG_S("name", name),
                LOG_S("reason", "another process writes under this name; give each its own (cluster.name)"));
    } else if (source_put_node(s->s, &x.facts, &err) != 0) {
        refuse(key, &err);
    }
    json_decref(root);
}

/* What is attached here as well is known better than by another's word. */
static bool is_known_here(const etcd_source *s, const char *name)
{
    const char *source = registry_node_source(s->g, name);
    return source && strcmp(source, source_name(s->s)) != 0;
}

static const char *machine_of(const char *id)
{
    return strchr(id, '/') + 1;
}

static void put_machine(etcd_source *s, const char *key, const char *name, const uint8_t *value, size_t n)
{
    etcd_node x;
    json_t *root;
    shoal_err err = {0};
    revive(s, key);
    if (etcd_member_read_node(&x, &root, value, n, &err) != 0) {
        refuse(key, &err);
        return;
    }
    x.facts.name = name;
    if (!is_known_here(s, name) && source_put_node(s->s, &x.facts, &err) != 0) refuse(key, &err);
    json_decref(root);
}

static void on_put(void *user, etcd_key *k, const uint8_t *value, size_t n)
{
    etcd_source *s = user;
    etcd_kind kind;
    char name[64];
    const char *id;
    shoal_err err = {0};
    if (etcd_member_key(k->name, &kind, name, &id, &err) != 0)
        refuse(k->name, &err);
    else if (kind == ETCD_NODE)
        put_node(s, k->name, name, value, n);
    else if (kind == ETCD_MACHINE && !(s->own && strcmp(name, s->own) == 0))
        put_machine(s, k->name, machine_of(id), value, n);
    else if (kind == ETCD_REPLICA && !(s->own && strcmp(name, s->own) == 0))
        put_replica(s, k->name, name, value, n);
}

static void on_drop(void *user, etcd_key *k)
{
    etcd_source *s = user;
    etcd_kind kind;
    char name[64];
    const char *id;
    if (s->closing || etcd_member_key(k->name, &kind, name, &id, NULL) != 0) return;
    if (s->own && strcmp(name, s->own) == 0) return;
    const char *node = kind == ETCD_MACHINE ? machine_of(id) : name;
    if (kind != ETCD_REPLICA && registry_node(s->g, node)) linger(s, k->name, kind, node);
    if (kind != ETCD_REPLICA) return;
    if (answers(registry_get(s->g, id)))
        linger(s, k->name, kind, name);
    else
        source_drop(s->s, id, UINT64_MAX);
}

static void on_synced(void *user)
{
    etcd_source *s = user;
    source_synced(s->s);
}

static void on_away(void *user, const char *why)
{
    etcd_source *s = user;
    source_away(s->s, why);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int copy_options(etcd_source *s, const etcd_source_options *o, shoal_err *err)
{
    s->linger_ns = (uint64_t)(o->linger_ms ? o->linger_ms : ETCD_LINGER_MS) * 1000000;
    bool ok = (s->strings = arena_new(0)) != NULL;
    if (ok && o->own) ok = (s->own = arena_strdup(s->strings, o->own)) != NULL;
    if (ok && o->instance) ok = (s->instance = arena_strdup(s->strings, o->instance)) != NULL;
    ok = ok && (s->machine = arena_strdup(s->strings, o->machine ? o->machine : "")) != NULL;
    return ok ? 0 : err_nomem(err);
}

int etcd_source_open(etcd_source **ret, etcd_client *c, registry *g, const etcd_source_options *o,
                     shoal_err *err)
{
    etcd_source *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->g = g;
    s->e = *registry_env(g);
    s->tick = s->e.timer_new(s->e.user, look, s);
    int rc = s->tick ? copy_options(s, o, err) : err_nomem(err);
    const etcd_view_options view = {.prefix = o->prefix,
                                    .keys = {.user = s, .put = on_put, .drop = on_drop},
                                    .synced = on_synced,
                                    .away = on_away};
    if (rc == 0) rc = source_open(&s->s, g, "etcd", err);
    if (rc == 0) rc = etcd_view_open(&s->view, c, &view, err);
    if (rc != 0) {
        etcd_source_close(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void etcd_source_close(etcd_source *s)
{
    if (!s) return;
    s->closing = true;
    etcd_view_close(s->view);
    source_close(s->s);
    for (ghost *x; (x = s->ghosts);) {
        s->ghosts = x->next;
        free(x);
    }
    strmap_done(&s->by_key);
    s->e.timer_free(s->tick);
    arena_free(s->strings);
    free(s);
}
