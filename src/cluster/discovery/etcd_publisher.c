/* etcd_publisher.c: a list of keys, each with what etcd shall have there, and one call at a time. */
#include "discovery/etcd_publisher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "discovery/etcd_member.h"
#include "etcd/rpc.pb-c.h"

enum { RETRY_MS = 1000 };

typedef struct record {
    struct record *next;
    char *key, *value; /* value NULL: to be deleted */
    bool dirty;
} record;

struct etcd_publisher {
    etcd_client *c;
    etcd_lease *lease;
    registry *g;
    etcd_listener listener;
    char *prefix, *instance, *machine;
    node *self;
    record *records; /* the node first */
    record *sending; /* what the call is about */
    etcd_call *call;
    env_timer *retry;
    bool leaving;
};

static const env *env_of(const etcd_publisher *p)
{
    return etcd_client_env(p->c);
}

/* ---- sending ------------------------------------------------------------------------------------- */

static void pump(void *arg);

static record *next_dirty(const etcd_publisher *p)
{
    record *r = p->records;
    while (r && !r->dirty) r = r->next;
    return r;
}

size_t etcd_publisher_waiting(const etcd_publisher *p)
{
    size_t n = p->call != NULL;
    for (const record *r = p->records; r; r = r->next) n += r->dirty;
    return n;
}

static void record_free(record *r)
{
    free(r->key);
    free(r->value);
    free(r);
}

/* Deleted, and not wanted again meanwhile. */
static void forget(etcd_publisher *p, record *r)
{
    record **at = &p->records;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    record_free(r);
}

static void on_sent(void *user, const etcd_answer *a)
{
    etcd_publisher *p = user;
    record *r = p->sending;
    p->call = NULL;
    p->sending = NULL;
    if (a->status == GRPC_OK) {
        if (!r->value && !r->dirty) forget(p, r);
        pump(p);
        return;
    }
    r->dirty = true;
    if (!etcd_client_is_up(p->c)) return; /* goes on at up */
    LOG(LOG_WARN, "etcd", "not_published", LOG_S("key", r->key), LOG_S("reason", a->message));
    env_of(p)->timer_start(p->retry, RETRY_MS);
    if (a->status == GRPC_NOT_FOUND) etcd_lease_doubt(p->lease);
}

static etcd_call *send_put(etcd_publisher *p, const record *r)
{
    Etcdserverpb__PutRequest m = ETCDSERVERPB__PUT_REQUEST__INIT;
    m.key = (ProtobufCBinaryData){.data = (uint8_t *)r->key, .len = strlen(r->key)};
    m.value = (ProtobufCBinaryData){.data = (uint8_t *)r->value, .len = strlen(r->value)};
    m.lease = etcd_lease_id(p->lease);
    return etcd_client_call(p->c, ETCD_PUT, &m.base, on_sent, p);
}

static etcd_call *send_delete(etcd_publisher *p, const record *r)
{
    Etcdserverpb__DeleteRangeRequest m = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
    m.key = (ProtobufCBinaryData){.data = (uint8_t *)r->key, .len = strlen(r->key)};
    return etcd_client_call(p->c, ETCD_DELETE_RANGE, &m.base, on_sent, p);
}

static void pump(void *arg)
{
    etcd_publisher *p = arg;
    record *r = next_dirty(p);
    if (!r || p->call || !etcd_lease_id(p->lease)) return;
    p->call = r->value ? send_put(p, r) : send_delete(p, r);
    if (!p->call) {
        env_of(p)->timer_start(p->retry, RETRY_MS);
        return;
    }
    p->sending = r;
    r->dirty = false;
}

/* ---- what is to be there ------------------------------------------------------------------------- */

static record *find(const etcd_publisher *p, const char *key)
{
    record *r = p->records;
    while (r && strcmp(r->key, key) != 0) r = r->next;
    return r;
}

static record *add(etcd_publisher *p, const char *key)
{
    record *r = calloc(1, sizeof *r), **at = &p->records;
    if (r) r->key = strdup(key);
    if (!r || !r->key) {
        free(r);
        return NULL;
    }
    while (*at) at = &(*at)->next;
    *at = r;
    return r;
}

/* Takes the value; NULL: it shall not be there. False: out of memory. */
static bool want(etcd_publisher *p, const char *key, char *value)
{
    record *r = find(p, key);
    if (!r && !value) return true;
    if (!r) r = add(p, key);
    if (!r) {
        free(value);
        return false;
    }
    if (value && r->value && strcmp(value, r->value) == 0) {
        free(value);
        return true;
    }
    free(r->value);
    r->value = value;
    r->dirty = true;
    pump(p);
    return true;
}

static char *key_of(const etcd_publisher *p, const char *kind, const char *id)
{
    buf key = {0};
    buf_printf(&key, "%s%s%s%s%s", p->prefix, kind, p->self->name, id ? "/" : "", id ? id : "");
    return buf_take(&key);
}

/* Our own workers go with us; those of machines that are attached to us go on. */
static char *value_of(const etcd_publisher *p, const replica *r)
{
    buf value = {0};
    bool leaves = p->leaving && strcmp(r->source, "agent") == 0;
    etcd_replica out = {.model = r->model,
                        .address = r->address,
                        .machine = strncmp(r->address, "unix:", 5) == 0 ? p->machine : "",
                        .reason = r->reason,
                        .node = r->node ? r->node->name : "",
                        .generation = r->generation,
                        .standby = r->standby,
                        .state = leaves ? REPLICA_DRAINING : r->state};
    etcd_member_put_replica(&value, &out);
    return buf_take(&value);
}

static void put_replica(etcd_publisher *p, const replica *r, bool there)
{
    char *key = key_of(p, ETCD_REPLICAS, r->id), *value = key && there ? value_of(p, r) : NULL;
    bool ok = key && (value || !there) && want(p, key, value);
    if (!ok)
        LOG(LOG_ERROR, "etcd", "not_published", LOG_S("replica", r->id), LOG_S("reason", "out of memory"));
    free(key);
}

/* Our agent's and those of the machines that are attached to us (gate.h); lists and names are everybody's
 * own. */
static bool is_ours(const replica *r)
{
    return !r->dropped && (strcmp(r->source, "agent") == 0 || strcmp(r->source, "agents") == 0);
}

/* ---- machines that are attached to us -------------------------------------------------------------- */

/* Such numbers change with every second; what others decide by them does not. */
static node coarse(const node *n)
{
    uint64_t step = n->memory_bytes / 16;
    node c = *n;
    if (step) c.memory_free_bytes -= c.memory_free_bytes % step;
    c.load_1m = (double)(unsigned)(c.load_1m + 0.5);
    c.battery_percent -= c.battery_percent % 10;
    return c;
}

static void put_machine(etcd_publisher *p, const char *name, const node *facts)
{
    buf value = {0};
    char *key = key_of(p, ETCD_MACHINES, name), *text = NULL;
    if (facts) {
        node c = coarse(facts);
        c.group = p->self->group;
        etcd_member_put_node(&value, &c, p->instance);
        text = buf_take(&value);
    }
    bool ok = key && (text || !facts) && want(p, key, text);
    if (!ok && !key) free(text);
    if (!ok) LOG(LOG_ERROR, "etcd", "not_published", LOG_S("node", name), LOG_S("reason", "out of memory"));
    free(key);
}

static bool is_attached(const registry *g, const char *name)
{
    const char *source = registry_node_source(g, name);
    return source && strcmp(source, "agents") == 0;
}

/* ---- changes --------------------------------------------------------------------------------------- */

/* One that is not ours, or not any more, has no key of ours. */
static void on_event(void *user, const registry_event *e)
{
    etcd_publisher *p = user;
    if (e->what == REGISTRY_NODE)
        put_machine(p, e->name, is_attached(p->g, e->name) ? e->node : NULL);
    else
        put_replica(p, e->replica, is_ours(e->replica));
}

static void put_all(etcd_publisher *p)
{
    size_t at = 0;
    for (const node *n; (n = registry_next_node(p->g, &at));)
        if (is_attached(p->g, n->name)) put_machine(p, n->name, n);
    for (size_t i = 0; i < registry_count(p->g); i++) {
        const replica *r = registry_at(p->g, i);
        if (is_ours(r)) put_replica(p, r, true);
    }
}

void etcd_publisher_leave(etcd_publisher *p)
{
    p->leaving = true;
    put_all(p);
}

void etcd_publisher_granted(etcd_publisher *p)
{
    for (record *r = p->records; r; r = r->next) r->dirty = true;
    pump(p);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void on_up(void *user)
{
    pump(user);
}

static void on_down(void *user, const char *why)
{
    etcd_publisher *p = user;
    env_of(p)->timer_stop(p->retry);
}

static int put_self(etcd_publisher *p, shoal_err *err)
{
    buf value = {0};
    etcd_member_put_node(&value, p->self, p->instance);
    char *key = key_of(p, ETCD_NODES, NULL), *text = buf_take(&value);
    bool ok = key && text && want(p, key, text);
    if (!ok && !key) free(text);
    free(key);
    return ok ? 0 : err_nomem(err);
}

static int copy_options(etcd_publisher *p, const etcd_publisher_options *o, shoal_err *err)
{
    p->prefix = strdup(o->prefix);
    p->instance = strdup(o->instance);
    p->machine = strdup(o->machine);
    if (!p->prefix || !p->instance || !p->machine) return err_nomem(err);
    return node_copy(&p->self, o->self, err);
}

int etcd_publisher_open(etcd_publisher **ret, etcd_client *c, etcd_lease *lease, registry *g,
                        const etcd_publisher_options *o, shoal_err *err)
{
    etcd_publisher *p = calloc(1, sizeof *p);
    if (!p) return err_nomem(err);
    *p = (etcd_publisher){.c = c, .lease = lease, .g = g};
    p->listener = (etcd_listener){.user = p, .up = on_up, .down = on_down};
    p->retry = env_of(p)->timer_new(env_of(p)->user, pump, p);
    int rc = p->retry ? copy_options(p, o, err) : err_nomem(err);
    if (rc == 0) rc = put_self(p, err);
    if (rc == 0) rc = registry_listen(g, on_event, p, err);
    if (rc != 0) {
        etcd_publisher_close(p);
        return rc;
    }
    put_all(p);
    etcd_client_listen(c, &p->listener);
    *ret = p;
    return 0;
}

void etcd_publisher_close(etcd_publisher *p)
{
    if (!p) return;
    registry_unlisten(p->g, on_event, p);
    etcd_client_unlisten(p->c, &p->listener);
    etcd_call_cancel(p->call);
    env_of(p)->timer_free(p->retry);
    for (record *r; (r = p->records);) {
        p->records = r->next;
        record_free(r);
    }
    node_free(p->self);
    free(p->prefix);
    free(p->instance);
    free(p->machine);
    free(p);
}
