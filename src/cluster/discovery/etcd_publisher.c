/* etcd_publisher.c: the registry's replicas and machines as keys and values. */
#include "discovery/etcd_publisher.h"

#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "discovery/etcd_member.h"
#include "discovery/etcd_writer.h"

struct etcd_publisher {
    registry *g;
    etcd_writer *writer;
    char *prefix, *instance, *machine;
    node *self;
    bool leaving;
};

static void publisher_failed(void *user, const char *key, const char *why)
{
    LOG(LOG_WARN, "etcd", "not_published", LOG_S("key", key), LOG_S("reason", why));
}

size_t etcd_publisher_waiting(const etcd_publisher *p)
{
    return etcd_writer_waiting(p->writer);
}

/* The key of a kind of ours, and with an id below it; value NULL: it shall not be there. */
static int publisher_want(etcd_publisher *p, const char *kind, const char *id, const buf *value)
{
    buf key = {0};
    buf_printf(&key, "%s%s%s%s%s", p->prefix, kind, p->self->name, id ? "/" : "", id ? id : "");
    int rc = key.failed || (value && value->failed)
                 ? SHOAL_ENOMEM
                 : etcd_writer_put(p->writer, key.data, value ? value->data : NULL, value ? value->len : 0);
    if (rc != 0)
        LOG(LOG_ERROR, "etcd", "not_published", LOG_S("key", id ? id : kind),
            LOG_S("reason", "out of memory"));
    buf_done(&key);
    return rc;
}

/* ---- replicas ------------------------------------------------------------------------------------ */

/* Our own workers go with us; those of machines that are attached to us go on. */
static void publisher_put_replica(etcd_publisher *p, const replica *r)
{
    buf value = {0};
    bool leaves = p->leaving && strcmp(r->source, "agent") == 0;
    const etcd_replica out = {.model = r->model,
                              .address = r->address,
                              .machine = strncmp(r->address, "unix:", 5) == 0 ? p->machine : "",
                              .reason = r->reason,
                              .node = r->node ? r->node->name : "",
                              .generation = r->generation,
                              .standby = r->standby,
                              .state = leaves ? REPLICA_DRAINING : r->state};
    etcd_member_put_replica(&value, &out);
    publisher_want(p, ETCD_REPLICAS, r->id, &value);
    buf_done(&value);
}

/* Our agent's and those of the machines that are attached to us (control.h); lists and names are everybody's
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

static void publisher_put_machine(etcd_publisher *p, const node *facts)
{
    buf value = {0};
    node c = coarse(facts);
    c.group = p->self->group;
    etcd_member_put_node(&value, &c, p->instance);
    publisher_want(p, ETCD_MACHINES, facts->name, &value);
    buf_done(&value);
}

static bool is_attached(const registry *g, const char *name)
{
    const char *source = registry_node_source(g, name);
    return source && strcmp(source, "agents") == 0;
}

/* ---- changes --------------------------------------------------------------------------------------- */

/* One that is not ours, or not any more, has no key of ours. */
static void publisher_heard(void *user, const registry_event *e)
{
    etcd_publisher *p = user;
    if (e->what == REGISTRY_NODE && e->node && is_attached(p->g, e->name))
        publisher_put_machine(p, e->node);
    else if (e->what == REGISTRY_NODE)
        publisher_want(p, ETCD_MACHINES, e->name, NULL);
    else if (is_ours(e->replica))
        publisher_put_replica(p, e->replica);
    else
        publisher_want(p, ETCD_REPLICAS, e->replica->id, NULL);
}

static void publisher_put_all(etcd_publisher *p)
{
    size_t at = 0;
    for (const node *n; (n = registry_next_node(p->g, &at));)
        if (is_attached(p->g, n->name)) publisher_put_machine(p, n);
    for (size_t i = 0; i < registry_count(p->g); i++) {
        const replica *r = registry_at(p->g, i);
        if (is_ours(r)) publisher_put_replica(p, r);
    }
}

void etcd_publisher_leave(etcd_publisher *p)
{
    p->leaving = true;
    publisher_put_all(p);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int publisher_put_self(etcd_publisher *p, shoal_err *err)
{
    buf value = {0};
    etcd_member_put_node(&value, p->self, p->instance);
    int rc = publisher_want(p, ETCD_NODES, NULL, &value);
    buf_done(&value);
    return rc == 0 ? 0 : err_nomem(err);
}

static int publisher_copy_options(etcd_publisher *p, const etcd_publisher_options *o, shoal_err *err)
{
    p->prefix = strdup(o->prefix);
    p->instance = strdup(o->instance);
    p->machine = strdup(o->machine);
    if (!p->prefix || !p->instance || !p->machine) return err_nomem(err);
    return node_copy(&p->self, o->self, err);
}

int etcd_publisher_open(etcd_publisher **ret, etcd_session *s, registry *g, const etcd_publisher_options *o,
                        shoal_err *err)
{
    etcd_publisher *p = calloc(1, sizeof *p);
    if (!p) return err_nomem(err);
    p->g = g;
    const etcd_writer_options writer = {.user = p, .leased = true, .failed = publisher_failed};
    int rc = publisher_copy_options(p, o, err);
    if (rc == 0) rc = etcd_writer_open(&p->writer, s, &writer, err);
    if (rc == 0) rc = publisher_put_self(p, err);
    if (rc == 0) rc = registry_listen(g, publisher_heard, p, err);
    if (rc != 0) {
        etcd_publisher_close(p);
        return rc;
    }
    publisher_put_all(p);
    *ret = p;
    return 0;
}

void etcd_publisher_close(etcd_publisher *p)
{
    if (!p) return;
    registry_unlisten(p->g, publisher_heard, p);
    etcd_writer_close(p->writer);
    node_free(p->self);
    free(p->prefix);
    free(p->instance);
    free(p->machine);
    free(p);
}
