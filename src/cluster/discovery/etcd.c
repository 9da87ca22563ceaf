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
    etcd_session *session;
    etcd_source *source;
    etcd_publisher *publisher;
    etcd_election *election;
    etcd_shared_plan *plan; /* NULL: of no group */
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
static int etcd_read_endpoints(const etcd_options *o, const char **ret, bool *ret_tls, shoal_err *err)
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

static int etcd_open_tls(tls_context **ret, const etcd_options *o, shoal_err *err)
{
    const tls_options t = {.cert_file = o->cert, .key_file = o->key, .ca_file = o->ca};
    return tls_context_new(ret, TLS_CLIENT, &t, err);
}

static int etcd_connect(etcd *x, uv_loop_t *loop, const etcd_options *o, shoal_err *err)
{
    const char **endpoints = calloc(o->n_endpoints + 1, sizeof *endpoints);
    bool secure = false;
    tls_context *tls = NULL;
    if (!endpoints) return err_nomem(err);
    int rc = etcd_read_endpoints(o, endpoints, &secure, err);
    if (rc == 0 && secure) rc = etcd_open_tls(&tls, o, err);
    const etcd_session_options session = {.endpoints = endpoints,
                                          .n_endpoints = o->n_endpoints,
                                          .tls = tls,
                                          .user = o->user,
                                          .password_file = o->password_file,
                                          .lease_s = o->lease_s ? o->lease_s : ETCD_LEASE_S};
    if (rc == 0) rc = etcd_session_open(&x->session, loop, &x->e, &session, err);
    tls_context_unref(tls);
    free(endpoints);
    return rc;
}

/* ---- life ---------------------------------------------------------------------------------------- */

typedef struct names {
    char prefix[ETCD_PREFIX_BYTES + 2], leader[ETCD_PREFIX_BYTES + 64], plan[ETCD_PREFIX_BYTES + 64];
    char instance[17], machine[33];
} names;

/* Behind a prefix there is one slash, however it was written. */
static int etcd_make_names(names *ret, const env *e, const char *prefix, const char *group, shoal_err *err)
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

static int etcd_open_parts(etcd *x, const etcd_options *o, const names *n, shoal_err *err)
{
    const etcd_source_options source = {
        .prefix = n->prefix, .own = o->self->name, .instance = n->instance, .machine = n->machine};
    const etcd_publisher_options publisher = {
        .prefix = n->prefix, .instance = n->instance, .machine = n->machine, .self = o->self};
    int rc = etcd_source_open(&x->source, x->session, x->g, &source, err);
    if (rc == 0) rc = etcd_publisher_open(&x->publisher, x->session, x->g, &publisher, err);
    if (rc == 0)
        rc = etcd_election_open(&x->election, x->session, n->leader, o->self->name, &o->election, err);
    if (rc == 0 && o->group)
        rc = etcd_shared_plan_open(&x->plan, x->session, x->election, n->plan, &o->plan, err);
    if (rc == 0) etcd_election_campaign(x->election);
    return rc;
}

static void etcd_tear_down(etcd *x)
{
    etcd_shared_plan_close(x->plan);
    etcd_election_close(x->election);
    etcd_publisher_close(x->publisher);
    etcd_source_close(x->source);
    etcd_session_close(x->session);
    x->e.timer_free(x->goodbye);
    free(x);
}

/* The last words have been heard, or their time is over. */
static void say_closed(void *arg)
{
    etcd *x = arg;
    void (*closed)(void *) = x->closed;
    void *user = x->closed_user;
    etcd_tear_down(x);
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
    int rc = x->goodbye ? etcd_make_names(&n, &x->e, o->prefix, o->group, err) : err_nomem(err);
    if (rc == 0) rc = etcd_connect(x, loop, o, err);
    if (rc == 0) rc = etcd_open_parts(x, o, &n, err);
    if (rc != 0) {
        etcd_tear_down(x);
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
    etcd_session_revoke(e->session, heard, e);
}

void etcd_put_plan(etcd *e, const char *node, const uint8_t *plan, size_t n)
{
    if (e->plan) etcd_shared_plan_put(e->plan, node, plan, n);
}

bool etcd_leads(etcd *e)
{
    return etcd_election_leads(e->election);
}

const char *etcd_leader(const etcd *e)
{
    return etcd_election_leader(e->election);
}
