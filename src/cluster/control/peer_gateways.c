/* peer_gateways.c: who follows this gateway, whom it follows, and of whom that one has told. */
#include "control/peer_gateways.h"

#include <stdio.h>
#include <string.h>

#include "wire/address.h"

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
}

static bool is_said(const peer_gateways *o, const char *name)
{
    for (size_t i = 0; i < o->message.n_others; i++)
        if (strcmp(o->names[i], name) == 0) return true;
    return false;
}

/* Where gateways place models together, a machine is sent to none that would place others on it: those that
 * etcd shows in the same group. */
static bool is_of_ours(const control *g, const char *name)
{
    const char *group = control_group(g);
    const node *n = group && g->registry ? registry_node(g->registry, name) : NULL;
    return !group || (n && n->group && strcmp(n->group, group) == 0);
}

/* Gateways hear of all: each chooses for its own machines. */
static bool is_told(const control *g, const member_entry *to, const char *name)
{
    return to->role == ROLE_GATEWAY || is_of_ours(g, name);
}

static void peer_gateways_add(peer_gateways *o, const control *g, const member_entry *to, const char *from,
                              const char *name, const char *where)
{
    address a;
    size_t i = o->message.n_others;
    if (i == GATEWAYS_MAX || !*name || strcmp(name, to->name) == 0 || is_said(o, name)) return;
    if (strcmp(name, control_name(g)) == 0 || !is_told(g, to, name)) return;
    if (!gateways_address_ok(where) || address_parse(&a, where, NULL) != 0) return;
    if (is_loopback(a.host) && !is_loopback(from)) return;
    snprintf(o->names[i], sizeof o->names[i], "%s", name);
    snprintf(o->addresses[i], sizeof o->addresses[i], "%s", where);
    shoal__v1__gateway__init(&o->list[i]);
    o->list[i].name = o->names[i];
    o->list[i].address = o->addresses[i];
    o->pointers[i] = &o->list[i];
    o->message.n_others++;
}

/* Does anything of this gateway's clients run on that machine? */
static bool is_asked(const control *g, const char *node_name)
{
    for (size_t i = 0; g->registry && i < registry_count(g->registry); i++) {
        const replica *r = registry_at(g->registry, i);
        if (r->node && strcmp(r->node->name, node_name) == 0 && r->load.n_in_flight > 0) return true;
    }
    return false;
}

/* Without etcd who has no CA places nothing: its machines belong to the one that has it. */
static bool may_go_home(const control *g, const member_entry *e)
{
    return e->role == ROLE_NODE && !g->placer && g->follow && attach_is_up(g->follow) &&
           !is_asked(g, e->name);
}

void peer_gateways_list(peer_gateways *ret, const control *g, const member_entry *to, const char *from)
{
    char at[CONNECTOR_ADDRESS_SIZE];
    memset(ret, 0, sizeof *ret);
    shoal__v1__gateways__init(&ret->message);
    ret->message.others = ret->pointers;
    const gateways *known = g->follow ? attach_gateways(g->follow) : NULL;
    for (size_t i = 0; known && i < known->n; i++)
        peer_gateways_add(ret, g, to, from, known->list[i].name, known->list[i].address);
    for (size_t i = 0; i < member_table_count(g->member_table); i++) {
        const member_entry *e = member_table_at(g->member_table, i);
        if (e->role == ROLE_GATEWAY && control_replicas_address(e, at, sizeof at))
            peer_gateways_add(ret, g, to, from, e->name, at);
    }
    ret->message.home = may_go_home(g, to);
}

static uint64_t mix(uint64_t h, const char *s)
{
    for (; *s; s++) h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211); /* FNV-1a */
    return (h ^ '\n') * UINT64_C(1099511628211);
}

uint64_t peer_gateways_digest(const peer_gateways *o)
{
    uint64_t h = UINT64_C(14695981039346656037) + o->message.home;
    for (size_t i = 0; i < o->message.n_others; i++) h = mix(mix(h, o->names[i]), o->addresses[i]);
    return h ? h : 1;
}

void peer_gateways_own(char *ret, size_t size, const char *listen, int port)
{
    address a;
    bool anywhere = address_parse(&a, listen, NULL) != 0 || !*a.host || strcmp(a.host, "0.0.0.0") == 0 ||
                    strcmp(a.host, "::") == 0;
    bool v6 = !anywhere && strchr(a.host, ':');
    snprintf(ret, size, "%s%s%s:%d", v6 ? "[" : "", anywhere ? "" : a.host, v6 ? "]" : "", port);
}
