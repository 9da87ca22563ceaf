/* etcd.c: the parts together, from options to goodbye. */
#include "discovery/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "discovery/etcd_member.h"
#include "discovery/etcd_publisher.h"
#include "discovery/etcd_source.h"
#include "trust/identity.h"
#include "wire/address.h"

struct etcd {
    registry *g;
    env e;
    etcd_client *client;
    etcd_lease *lease;
    etcd_source *source;
    etcd_publisher *publisher;
    etcd_election *election;
    etcd_board *board; /* NULL: of no group */
    env_timer *goodbye;
    void (*closed)(void *user);
    void *closed_user;
};

/* ---- options ------------------------------------------------------------------------------------- */

int etcd_endpoint_parse(const char *text, const char **ret_address, int *ret_tls, shoal_err *err)
{
    static const char CLEAR[] = "http://", SECURE[] = "https://";
    const char *at = text;
    int tls = -1;
    address a;
    if (strncmp(text, CLEAR, sizeof CLEAR - 1) == 0) {
        at += sizeof CLEAR - 1;
        tls = 0;
    } else if (strncmp(text, SECURE, sizeof SECURE - 1) == 0) {
        at += sizeof SECURE - 1;
        tls = 1;
    }
    if (address_parse(&a, at, NULL) != 0 || a.is_unix || !*a.host || a.port == 0)
        return err_set(err, SHOAL_EINVALID, "'%.100s' is no endpoint of etcd (example: 10.0.0.1:2379)", text);
    *ret_address = at;
    *ret_tls = tls;
    return 0;
}

/* All of one kind, and in clear only where no file speaks of TLS. */
static int read_endpoints(const etcd_options *o, const char **ret, bool *ret_tls, shoal_err *err)
{
    bool files = o->ca || o->cert || o->key, clear = false, secure = files;
    for (size_t i = 0; i < o->n_endpoints; i++) {
        int tls;
        int rc = etcd_endpoint_parse(o->endpoints[i], &ret[i], &tls, err);
        if (rc != 0) return rc;
        clear = clear || tls == 0;
        secure = secure || tls == 1;
    }
    *ret_tls = secure;
    if (!clear || !secure) return 0;
    return err_set(err, SHOAL_EINVALID, "an endpoint of etcd is http://, and TLS is asked for as well");
}

static int open_tls(tls_context **ret, const etcd_options *o, shoal_err *err)
{
    const tls_options t = {.cert_file = o->cert, .key_file = o->key, .ca_file = o->ca};
    return tls_context_new(ret, TLS_CLIENT, &t, err);
}

static int open_client(etcd *x, uv_loop_t *loop, const etcd_options *o, shoal_err *err)
{
    const char **endpoints = calloc(o->n_endpoints + 1, sizeof *endpoints);
    bool secure = false;
    tls_context *tls = NULL;
    if (!endpoints) return err_nomem(err);
    int rc = read_endpoints(o, endpoints, &secure, err);
    if (rc == 0 && secure) rc = open_tls(&tls, o, err);
    const etcd_client_options c = {.endpoints = endpoints,
                                   .n_endpoints = o->n_endpoints,
                                   .tls = tls,
                                   .user = o->user,
                                   .password_file = o->password_file};
    if (rc == 0) rc = etcd_client_open(&x->client, loop, &x->e, &c, err);
    tls_context_unref(tls);
    free(endpoints);
    return rc;
}

/* ---- the lease is everybody's -------------------------------------------------------------------- */

static void granted(void *user)
{
    etcd *x = user;
    etcd_publisher_granted(x->publisher);
    etcd_election_granted(x->election);
}

static void confirmed(void *user)
{
    etcd *x = user;
    etcd_election_confirmed(x->election);
}

static void lost(void *user)
{
    etcd *x = user;
    etcd_election_lost(x->election);
}

/* ---- life ---------------------------------------------------------------------------------------- */

typedef struct names {
    char prefix[ETCD_PREFIX_BYTES + 2], leader[ETCD_PREFIX_BYTES + 64], plan[ETCD_PREFIX_BYTES + 64];
    char instance[17], machine[33];
} names;

/* Behind a prefix there is one slash, however it was written. */
static int make_names(names *ret, const env *e, const char *prefix, const char *group, shoal_err *err)
{
    const char *p = prefix ? prefix : ETCD_PREFIX;
    size_t n = strlen(p);
    while (n > 0 && p[n - 1] == '/') n--;
    if (n == 0 || n > ETCD_PREFIX_BYTES)
        return err_set(err, SHOAL_EINVALID, "a prefix in etcd has 1 to %d bytes", ETCD_PREFIX_BYTES);
    snprintf(ret->prefix, sizeof ret->prefix, "%.*s/", (int)n, p);
    if (group && !identity_name_ok(group, strlen(group)))
        return err_set(err, SHOAL_EINVALID, "'%.64s' cannot be the name of a group", group);
    if (group)
        snprintf(ret->leader, sizeof ret->leader, "%.*s/" ETCD_LEADERS "%.40s/", (int)n, p, group);
    else
        snprintf(ret->leader, sizeof ret->leader, "%.*s/" ETCD_LEADER, (int)n, p);
    snprintf(ret->plan, sizeof ret->plan, "%.*s/" ETCD_PLAN "%.40s/", (int)n, p, group ? group : "");
    snprintf(ret->instance, sizeof ret->instance, "%016llx", (unsigned long long)e->random(e->user));
    etcd_member_machine(ret->machine);
    return 0;
}

static int open_parts(etcd *x, const etcd_options *o, const names *n, shoal_err *err)
{
    const etcd_source_options source = {
        .prefix = n->prefix, .own = o->self->name, .instance = n->instance, .machine = n->machine};
    const etcd_publisher_options publisher = {
        .prefix = n->prefix, .instance = n->instance, .machine = n->machine, .self = o->self};
    const etcd_lease_events lease = {.user = x, .granted = granted, .confirmed = confirmed, .lost = lost};
    int rc = etcd_source_open(&x->source, x->client, x->g, &source, err);
    if (rc == 0)
        rc = etcd_lease_open(&x->lease, x->client, o->lease_s ? o->lease_s : ETCD_LEASE_S, &lease, err);
    if (rc == 0) rc = etcd_publisher_open(&x->publisher, x->client, x->lease, x->g, &publisher, err);
    if (rc == 0)
        rc = etcd_election_open(&x->election, x->client, x->lease, n->leader, o->self->name, &o->election,
                                err);
    if (rc == 0 && o->group) rc = etcd_board_open(&x->board, x->client, x->election, n->plan, &o->board, err);
    if (rc == 0) etcd_election_campaign(x->election);
    return rc;
}

static void tear_down(etcd *x)
{
    etcd_board_close(x->board);
    etcd_election_close(x->election);
    etcd_publisher_close(x->publisher);
    etcd_lease_close(x->lease);
    etcd_source_close(x->source);
    etcd_client_close(x->client);
    x->e.timer_free(x->goodbye);
    free(x);
}

/* The last words have been heard, or their time is over. */
static void say_closed(void *arg)
{
    etcd *x = arg;
    void (*closed)(void *) = x->closed;
    void *user = x->closed_user;
    tear_down(x);
    if (closed) closed(user);
}

int etcd_open(etcd **ret, uv_loop_t *loop, registry *g, const etcd_options *o, shoal_err *err)
{
    names n;
    etcd *x = calloc(1, sizeof *x);
    if (!x) return err_nomem(err);
    x->g = g;
    x->e = *registry_env(g);
    x->goodbye = x->e.timer_new(x->e.user, say_closed, x);
    int rc = x->goodbye ? make_names(&n, &x->e, o->prefix, o->group, err) : err_nomem(err);
    if (rc == 0) rc = open_client(x, loop, o, err);
    if (rc == 0) rc = open_parts(x, o, &n, err);
    if (rc != 0) {
        tear_down(x);
        return rc;
    }
    *ret = x;
    return 0;
}

/* Not from inside the answer: what it came from is freed. */
static void heard(void *user)
{
    etcd *x = user;
    x->e.timer_start(x->goodbye, 0);
}

void etcd_drain(etcd *e)
{
    if (!e) return;
    etcd_election_resign(e->election);
    etcd_publisher_leave(e->publisher);
}

void etcd_close(etcd *e, void (*closed)(void *user), void *user)
{
    if (!e) {
        if (closed) closed(user);
        return;
    }
    e->closed = closed;
    e->closed_user = user;
    e->e.timer_start(e->goodbye, ETCD_GOODBYE_MS);
    etcd_election_resign(e->election);
    etcd_publisher_close(e->publisher);
    e->publisher = NULL;
    etcd_lease_revoke(e->lease, heard, e);
}

void etcd_post(etcd *e, const char *node, const uint8_t *plan, size_t n)
{
    if (e->board) etcd_board_post(e->board, node, plan, n);
}

bool etcd_leads(etcd *e)
{
    return etcd_election_leads(e->election);
}

const char *etcd_leader(const etcd *e)
{
    return etcd_election_leader(e->election);
}
