/* etcd_source.c: keys, what they are about, and that into the registry. */
#include "discovery/etcd_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "logging/log.h"
#include "base/strmap.h"
#include "discovery/etcd_member.h"
#include "discovery/etcd_view.h"

enum { TICK_MS = 250 };

/* What keys are about: a machine, or a replica. Several gateways may have a key for one that is attached to
 * them, the one after the other; it goes with the last of them, and lingers then. */
typedef struct subject {
    struct subject *next; /* of those that linger */
    size_t n_keys;
    uint64_t until_ns;
    bool is_node, lingers; /* lingers: it is in that list, until the next tick at least */
    char id[];             /* of the replica, resp. the machine's name */
} subject;

struct etcd_source {
    registry *g;
    env e;
    source *s;
    etcd_view *view;
    arena *strings;
    const char *own, *instance, *machine;
    uint64_t linger_ns;
    strmap nodes, replicas; /* subjects */
    subject *lingering;
    env_timer *tick;
    bool closing;
};

/* "NAME/ID", "NAME/NODE" */
static const char *id_of(const char *key)
{
    return strchr(key, '/') + 1;
}

static const char *behind_name(const char *id)
{
    return strchr(id, '/') + 1;
}

static bool answers(const replica *r)
{
    return r && r->state == REPLICA_READY && !r->silent;
}

/* ---- subjects ------------------------------------------------------------------------------------ */

static void etcd_source_drop(etcd_source *s, subject *x)
{
    strmap_take(x->is_node ? &s->nodes : &s->replicas, x->id);
    if (x->is_node)
        source_drop_node(s->s, x->id);
    else
        source_drop(s->s, x->id, UINT64_MAX);
    free(x);
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

static bool etcd_source_is_over(const etcd_source *s, const subject *x, uint64_t now)
{
    if (x->is_node) return !is_in_use(s, x->id);
    return now >= x->until_ns || !answers(registry_get(s->g, x->id));
}

static void etcd_source_look(void *arg)
{
    etcd_source *s = arg;
    uint64_t now = s->e.now_ns(s->e.user);
    for (subject **at = &s->lingering, *x; (x = *at);) {
        if (x->n_keys == 0 && !etcd_source_is_over(s, x, now)) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        x->lingers = false;
        if (x->n_keys == 0) etcd_source_drop(s, x);
    }
    if (s->lingering) s->e.timer_start(s->tick, TICK_MS);
}

static void linger(etcd_source *s, subject *x)
{
    x->until_ns = s->e.now_ns(s->e.user) + s->linger_ns;
    if (!x->lingers) {
        x->lingers = true;
        x->next = s->lingering;
        s->lingering = x;
    }
    s->e.timer_start(s->tick, TICK_MS);
}

static subject *subject_of(etcd_source *s, bool is_node, const char *id)
{
    strmap *all = is_node ? &s->nodes : &s->replicas;
    subject *x = strmap_get(all, id);
    size_t n = strlen(id) + 1;
    if (x) return x;
    x = calloc(1, sizeof *x + n);
    if (!x) return NULL;
    memcpy(x->id, id, n);
    x->is_node = is_node;
    if (strmap_put(all, x->id, x)) return x;
    free(x);
    return NULL;
}

/* That key says no more of it. What still answers may have been there for longer than etcd was away. */
static void etcd_source_leave(etcd_source *s, subject *x)
{
    if (!x || --x->n_keys > 0) return;
    bool stays = x->is_node ? registry_node(s->g, x->id) != NULL : answers(registry_get(s->g, x->id));
    if (stays)
        linger(s, x);
    else if (!x->lingers)
        etcd_source_drop(s, x);
}

/* The key is about this from now on. NULL: no memory. *ret_returned: it had gone with its last key. */
static subject *etcd_source_enter(etcd_source *s, etcd_key *k, bool is_node, const char *id,
                                  bool *ret_returned)
{
    subject *x = subject_of(s, is_node, id);
    *ret_returned = x && x->n_keys == 0 && x->lingers;
    if (!x || x == k->data) return x;
    x->n_keys++;
    subject *before = k->data;
    k->data = x;
    etcd_source_leave(s, before);
    return x;
}

/* ---- keys ---------------------------------------------------------------------------------------- */

static void etcd_source_refuse(const char *key, const shoal_err *err)
{
    LOG(LOG_WARN, "etcd", "member_refused", LOG_S("key", key), LOG_S("reason", err->message));
}

static bool is_reachable(const etcd_source *s, const etcd_replica *r)
{
    return strncmp(r->address, "unix:", 5) != 0 || strcmp(r->machine, s->machine) == 0;
}

/* Is it on a machine that has joined, which is known, and of which its id says the name? Then that is its id
 * here as well, whichever gateway the machine is attached to. */
static bool is_on_machine(const etcd_source *s, const etcd_replica *r, const char *id)
{
    size_t n = strlen(r->node);
    return n > 0 && strncmp(behind_name(id), r->node, n) == 0 && behind_name(id)[n] == '/' &&
           registry_node(s->g, r->node);
}

static void tell_replica(etcd_source *s, const char *key, const subject *x, const etcd_replica *r,
                         const char *node, bool returned)
{
    shoal_err err = {0};
    const replica *known = registry_get(s->g, x->id);
    /* A store that was put back from a copy, or a clock that went back: what returned is the truth. */
    if (known && returned && r->generation && r->generation < known->generation)
        source_drop(s->s, x->id, UINT64_MAX);
    member m = {.id = x->id,
                .generation = r->generation,
                .model = r->model,
                .address = r->address,
                .node = node,
                .state = r->state,
                .standby = r->standby,
                .reason = *r->reason ? r->reason : NULL};
    if (!is_reachable(s, r)) {
        source_drop(s->s, x->id, UINT64_MAX);
        LOG(LOG_DEBUG, "etcd", "not_reachable", LOG_S("replica", x->id), LOG_S("address", r->address));
    } else if (source_put(s->s, &m, &err) != 0) {
        etcd_source_refuse(key, &err);
    }
}

static void put_replica(etcd_source *s, etcd_key *k, const char *name, const uint8_t *value, size_t n)
{
    etcd_replica r;
    json_t *root;
    shoal_err err = {0};
    const char *id = id_of(k->name);
    bool returned;
    if (etcd_member_read_replica(&r, &root, value, n, &err) != 0) {
        etcd_source_refuse(k->name, &err);
        return;
    }
    bool on_machine = is_on_machine(s, &r, id);
    const subject *x = etcd_source_enter(s, k, false, on_machine ? behind_name(id) : id, &returned);
    const char *node = *r.node && registry_node(s->g, r.node) ? r.node : name;
    if (x)
        tell_replica(s, k->name, x, &r, node, returned);
    else
        etcd_source_refuse(k->name, (err_nomem(&err), &err));
    json_decref(root);
}

static void say_taken(const etcd_source *s, const char *name, const char *instance)
{
    if (s->instance && strcmp(instance, s->instance) != 0)
        LOG(LOG_ERROR, "etcd", "name_taken", LOG_S("name", name),
            LOG_S("reason", "another process writes under this name; give each its own (cluster.name)"));
}

/* A gateway, or a machine that is attached to one. */
static void put_node(etcd_source *s, etcd_key *k, const char *name, bool is_gateway, const uint8_t *value,
                     size_t n)
{
    etcd_node x;
    json_t *root;
    shoal_err err = {0};
    bool returned;
    if (etcd_member_read_node(&x, &root, value, n, &err) != 0) {
        etcd_source_refuse(k->name, &err);
        return;
    }
    x.facts.name = name;
    x.facts.is_gateway = is_gateway;
    if (is_gateway && s->own && strcmp(name, s->own) == 0)
        say_taken(s, name, x.instance);
    else if (!etcd_source_enter(s, k, true, name, &returned))
        etcd_source_refuse(k->name, (err_nomem(&err), &err));
    else if (source_put_node(s->s, &x.facts, &err) != 0)
        etcd_source_refuse(k->name, &err);
    json_decref(root);
}

static void on_put(void *user, etcd_key *k, const uint8_t *value, size_t n)
{
    etcd_source *s = user;
    etcd_kind kind;
    char name[64];
    const char *id;
    shoal_err err = {0};
    int rc = etcd_member_key(k->name, &kind, name, &id, &err);
    bool own = rc == 0 && s->own && strcmp(name, s->own) == 0;
    if (rc != 0)
        etcd_source_refuse(k->name, &err);
    else if (kind == ETCD_NODE)
        put_node(s, k, name, true, value, n);
    else if (kind == ETCD_MACHINE && !own)
        put_node(s, k, behind_name(id), false, value, n);
    else if (kind == ETCD_REPLICA && !own)
        put_replica(s, k, name, value, n);
}

static void on_drop(void *user, etcd_key *k)
{
    etcd_source *s = user;
    subject *x = k->data;
    k->data = NULL;
    if (!s->closing) etcd_source_leave(s, x);
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

int etcd_source_open(etcd_source **ret, etcd_session *session, registry *g, const etcd_source_options *o,
                     shoal_err *err)
{
    etcd_source *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->g = g;
    s->e = *registry_env(g);
    s->tick = s->e.timer_new(s->e.user, etcd_source_look, s);
    int rc = s->tick ? copy_options(s, o, err) : err_nomem(err);
    const etcd_view_options view = {.prefix = o->prefix,
                                    .keys = {.user = s, .put = on_put, .drop = on_drop},
                                    .synced = on_synced,
                                    .away = on_away};
    if (rc == 0) rc = source_open(&s->s, g, "etcd", err);
    if (rc == 0) rc = etcd_view_open(&s->view, session, &view, err);
    if (rc != 0) {
        etcd_source_close(s);
        return rc;
    }
    *ret = s;
    return 0;
}

static void free_subjects(strmap *all)
{
    size_t at = 0;
    for (subject *x; (x = strmap_next(all, &at));) free(x);
    strmap_done(all);
}

void etcd_source_close(etcd_source *s)
{
    if (!s) return;
    s->closing = true;
    etcd_view_close(s->view);
    source_close(s->s);
    free_subjects(&s->nodes);
    free_subjects(&s->replicas);
    s->e.timer_free(s->tick);
    arena_free(s->strings);
    free(s);
}
