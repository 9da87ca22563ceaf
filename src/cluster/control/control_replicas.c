/* control_replicas.c: what attached machines say of their replicas, told to the registry.
 *
 * A machine has an address of its own (NodeFacts.address), or a port alone, and then the host that it came
 * from. Its replicas are "NODE/ID" in the registry: ids are the machine's own, and two machines may have the
 * same ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "cluster/stage_name.h"
#include "control/control_impl.h"

static replica_state control_replicas_state_of(const char *name)
{
    for (int s = REPLICA_STARTING; s <= REPLICA_FAILED; s++)
        if (strcmp(replica_state_name((replica_state)s), name) == 0) return (replica_state)s;
    return REPLICA_DOWN; /* of a later version */
}

static bool address_of(char *out, size_t n, const char *said, const char *from)
{
    if (!*said) return false;
    bool v6 = strchr(from, ':') != NULL;
    int len = *said != ':' ? snprintf(out, n, "%s", said)
                           : snprintf(out, n, "%s%s%s%s", v6 ? "[" : "", from, v6 ? "]" : "", said);
    return len > 0 && (size_t)len < n;
}

/* A machine that drains gets no calls, and its streams move: as long as somebody else has the model. */
static bool is_spared(const control *g, const char *node_name, const char *model)
{
    const replica_set *set = control_node_drains(g, node_name) ? registry_find(g->registry, model) : NULL;
    for (size_t i = 0; set && i < set->n_ready; i++) {
        const node *at = set->replicas[i]->node;
        if (!at || strcmp(at->name, node_name) != 0) return true;
    }
    return false;
}

static void control_replicas_put_one(control *g, const char *node, const char *at,
                                     const Shoal__V1__ReplicaReport *r)
{
    char id[IDENTITY_NAME_SIZE + MEMBER_TABLE_TEXT_MAX + 2], address[CONNECTOR_ADDRESS_SIZE + sizeof id + 8];
    shoal_err err;
    snprintf(id, sizeof id, "%s/%s", node, r->id);
    snprintf(address, sizeof address, "relay:%s/%s/%s", at, node, r->id);
    member m = {.id = id,
                .generation = r->generation,
                .model = r->model,
                .address = address,
                .node = node,
                .state = control_replicas_state_of(r->state),
                .standby = r->standby,
                .reason = r->reason};
    if (control_replicas_state_of(r->state) <= REPLICA_READY && is_spared(g, node, r->model)) {
        m.state = REPLICA_DRAINING;
        m.reason = "its machine drains";
    }
    if (source_put(g->members, &m, &err) != 0)
        LOG(LOG_ERROR, "control", "replica_untold", LOG_S("replica", id), LOG_S("reason", err.message));
}

/* Once a machine has served a model, calls of it wait for one that comes back, and are not told that there is
 * no such model. */
static void control_replicas_remember(control *g, const char *node, const Shoal__V1__ReplicaReport *r)
{
    shoal_err err;
    if (control_replicas_state_of(r->state) != REPLICA_READY) return;
    if (residency_served(&g->residency, g->registry, r->model, node, &err) != 0)
        LOG(LOG_ERROR, "control", "model_untold", LOG_S("model", r->model), LOG_S("reason", err.message));
}

static bool control_replicas_has(const Shoal__V1__Replicas *all, const char *id)
{
    for (size_t i = 0; all && i < all->n_replicas; i++)
        if (strcmp(all->replicas[i]->id, id) == 0) return true;
    return false;
}

bool control_replicas_address(const member_entry *e, char *ret, size_t size)
{
    return e->facts && address_of(ret, size, e->facts->address, control_attach_from(e));
}

void control_replicas_tell(control *g, const member_entry *e, const char *from)
{
    char at[CONNECTOR_ADDRESS_SIZE];
    if (!g->members || !g->far || !e->replicas || !address_of(at, sizeof at, e->facts->address, from)) return;
    for (size_t i = 0; i < e->replicas->n_replicas; i++) {
        const Shoal__V1__ReplicaReport *r = e->replicas->replicas[i];
        control_replicas_put_one(g, e->name, at, r);
        if (!r->standby && !stage_name_parse(r->model, NULL, NULL, NULL))
            control_replicas_remember(g, e->name, r);
    }
}

static bool has_model(const void *all, const char *model)
{
    const Shoal__V1__Replicas *is = all;
    for (size_t i = 0; i < is->n_replicas; i++)
        if (strcmp(is->replicas[i]->model, model) == 0) return true;
    return false;
}

void control_replicas_drop(control *g, const char *node, const Shoal__V1__Replicas *was,
                           const Shoal__V1__Replicas *is)
{
    char id[IDENTITY_NAME_SIZE + MEMBER_TABLE_TEXT_MAX + 2];
    if (!was) residency_lacks_others(&g->residency, node, has_model, is);
    for (size_t i = 0; g->members && was && i < was->n_replicas; i++) {
        if (control_replicas_has(is, was->replicas[i]->id)) continue;
        if (!has_model(is, was->replicas[i]->model))
            residency_lacks(&g->residency, was->replicas[i]->model, node);
        snprintf(id, sizeof id, "%s/%s", node, was->replicas[i]->id);
        source_drop(g->members, id, was->replicas[i]->generation);
    }
}
