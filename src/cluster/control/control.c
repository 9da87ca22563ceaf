/* control.c: the port, whom TLS lets in, and the look around once a second. */
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "logging/log.h"
#include "control/control_impl.h"
#include "control/peer_gateways.h"
#include "join/join.h"
#include "wire/env_uv.h"

static const grpc_method methods[] = {
    {"/shoal.v1.Join/Enrol", control_on_enrol},
    {"/shoal.v1.Join/Renew", control_on_renew},
    {"/shoal.v1.Models/Fetch", control_on_fetch},
};

int64_t control_now(void)
{
    return (int64_t)time(NULL);
}

uint64_t control_now_ns(const control *g)
{
    return g->e->now_ns(g->e->user);
}

const tls_context *control_tls(const control *g)
{
    return g->tls;
}

int control_port(const control *g)
{
    return grpc_server_port(g->server);
}

const char *control_name(const control *g)
{
    return g->credential.own.id.name;
}

const char *control_state(const control *g)
{
    return g->credential.dir.path;
}

bool control_has_ca(const control *g)
{
    return g->credential.ca != NULL;
}

const member_table *control_member_table(const control *g)
{
    return g->member_table;
}

/* ---- whom TLS lets in ---------------------------------------------------------------------------- */

/* Chain, dates and list are right by now, but a list may be newer than the one that TLS has read. */
static bool control_admit(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    const control *g = user;
    role r;
    if (!role_parse(&r, who->unit, strlen(who->unit)))
        snprintf(why, TLS_WHY_BYTES, "its certificate says no role");
    else if (trust_serial_is_revoked(g->credential.own.trust, who->serial))
        snprintf(why, TLS_WHY_BYTES, "its certificate was revoked");
    else
        return true;
    return false;
}

bool control_may_log(control *g, const char *from)
{
    return log_limit_take(&g->lines, from, control_now_ns(g) / 1000000);
}

static void on_refused(void *user, const char *from, const char *why)
{
    if (!control_may_log(user, from)) return;
    LOG(LOG_WARN, "control", "connection_refused", LOG_S("from", from), LOG_S("reason", why));
}

/* ---- once a second ------------------------------------------------------------------------------- */

static void read_files_again(control *g, unsigned changed)
{
    shoal_err err;
    if (tls_context_reload(g->tls, &err) != 0 || tls_context_reload(g->as_client, &err) != 0) {
        LOG(LOG_ERROR, "control", "certificates_unread", LOG_S("reason", err.message));
        return;
    }
    LOG(LOG_INFO, "control", "certificates_read",
        LOG_S("own", changed & NODE_CREDENTIAL_CERT ? "renewed" : "as it was"),
        LOG_I("crl", trust_crl_number(g->credential.own.trust)));
}

static void control_on_tick(void *user)
{
    control *g = user;
    uint64_t now_ns = control_now_ns(g);
    unsigned changed = 0;
    shoal_err err;
    g->e->timer_start(g->tick, CONTROL_REPORT_MS);
    if (g->recheck) grpc_server_recheck(g->server);
    g->recheck = false;
    /* While the CA works for somebody it is not looked at: it belongs to that thread. */
    if (!g->jobs && node_credential_tick(&g->credential, control_now(), &changed, &err) != 0)
        LOG(LOG_ERROR, "control", "state_unread", LOG_S("reason", err.message));
    if (changed) read_files_again(g, changed);
    if (!g->follow) tls_expiry_tell(&g->expiry, g->tls, "control", control_now()); /* else it tells */
    if (changed & NODE_CREDENTIAL_CRL) {
        control_attach_tell_revoked(g);
        g->recheck = true; /* when they have heard why */
    }
    control_attach_tick(g, now_ns, control_now());
    if (g->registry) residency_look(&g->residency, g->registry, now_ns);
    placer_tick(g, now_ns);
    log_limit_tell(&g->lines, "control", now_ns / 1000000);
}

/* ---- without a CA -------------------------------------------------------------------------------- */

static void on_followed(void *user)
{
    control *g = user;
    shoal_err err;
    if (node_credential_reload(&g->credential, &err) != 0) {
        LOG(LOG_ERROR, "control", "state_unread", LOG_S("reason", err.message));
        return;
    }
    read_files_again(g, NODE_CREDENTIAL_CRL);
    control_attach_tell_revoked(g);
    g->recheck = true;
}

/* The gateway with the CA has the lists, signs our next certificate, and tells others where we are. */
static int control_follow(control *g, const char *listen, shoal_err *err)
{
    Shoal__V1__NodeFacts f = SHOAL__V1__NODE_FACTS__INIT;
    static char version[] = SHOAL_VERSION;
    char *address = NULL, at[GATEWAYS_ADDRESS_SIZE];
    int rc = join_address(&g->credential.dir, &address, err);
    peer_gateways_own(at, sizeof at, listen, control_port(g));
    f.version = version;
    f.address = at;
    const attach_options o = {.address = address,
                              .role = ROLE_GATEWAY,
                              .dir = &g->credential.dir,
                              .facts = &f,
                              .changed = on_followed,
                              .time = g->e,
                              .user = g};
    if (rc == 0) rc = attach_open(&g->follow, g->loop, &o, err);
    g->follow_open = rc == 0;
    free(address);
    return rc;
}

static void follow_closed(void *user)
{
    control *g = user;
    g->follow_open = false;
    control_release(g);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int open_server(control *g, const control_options *o, shoal_err *err)
{
    const node_credential *s = &g->credential;
    tls_options tls = {.cert_file = s->cert_file,
                       .key_file = s->cert_file,
                       .ca_file = s->ca_file,
                       .crl_file = folder_has(&s->dir, "crl.pem") ? s->crl_file : NULL,
                       .guests = true,
                       .admit = control_admit,
                       .user = g};
    http_limits limits = {.max_body_bytes = MEMBER_TABLE_MESSAGE_MAX,
                          .max_connections = CONTROL_CONNECTIONS_MAX,
                          .max_unauthenticated = CONTROL_UNAUTHENTICATED_MAX,
                          .keepalive_ms = CONTROL_SILENCE_MS,
                          .keepalive_timeout_ms = CONTROL_SILENCE_MS,
                          .write_timeout_ms = UINT64_MAX};
    tls_options client = tls;
    client.guests = false;
    client.admit = NULL; /* a relay proves the name of its node */
    int rc = tls_context_new(&g->tls, TLS_SERVER, &tls, err);
    if (rc == 0) rc = tls_context_new(&g->as_client, TLS_CLIENT, &client, err);
    if (rc == 0 && o->far) o->far->tls = g->as_client;
    g->far = o->far;
    if (rc == 0)
        rc = grpc_server_new(&g->server, g->loop, methods, sizeof methods / sizeof *methods, g, &limits, err);
    if (rc != 0) return rc;
    g->server_open = true;
    rc = grpc_server_add_streams(g->server, &control_attach_method, 1, g, err);
    if (rc == 0) rc = grpc_server_listen_tls(g->server, o->listen, g->tls, err);
    if (rc == 0) grpc_server_on_refused(g->server, on_refused, g);
    return rc;
}

static int control_start(control *g, const control_options *o, shoal_err *err)
{
    g->registry = o->members;
    g->silence_ns = (o->silence_ms ? o->silence_ms : CONTROL_SILENCE_MS) * UINT64_C(1000000);
    g->tick = g->e->timer_new(g->e->user, control_on_tick, g);
    int rc = g->tick ? 0 : err_nomem(err);
    if (rc == 0) rc = node_credential_open(&g->credential, o->state, o->name, control_now(), err);
    if (rc == 0) rc = member_table_new(&g->member_table, err);
    if (rc == 0 && o->members) rc = source_open(&g->members, o->members, "agents", err);
    if (rc == 0 && g->members) source_synced(g->members); /* nobody is expected: machines come as they like */
    if (rc == 0) rc = open_server(g, o, err);
    if (rc == 0 && !g->credential.ca) rc = control_follow(g, o->listen, err);
    if (rc == 0) g->e->timer_start(g->tick, CONTROL_REPORT_MS);
    return rc;
}

int control_open(control **ret, uv_loop_t *loop, const control_options *o, shoal_err *err)
{
    control *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(err);
    g->loop = loop;
    g->loop_time = env_uv(loop);
    g->e = o->time ? o->time : &g->loop_time;
    g->last_job = &g->jobs;
    g->credential.dir = FOLDER_NONE;
    int rc = control_start(g, o, err);
    if (rc != 0) {
        control_close(g, NULL, NULL);
        return rc;
    }
    LOG(LOG_INFO, "control", "listening", LOG_S("address", o->listen), LOG_I("port", control_port(g)),
        LOG_S("cluster", g->credential.own.id.cluster), LOG_S("name", control_name(g)),
        LOG_S("ca", g->credential.ca ? "here" : "elsewhere"));
    *ret = g;
    return 0;
}

void control_release(control *g)
{
    if (!g->closing || g->server_open || g->follow_open || g->jobs) return;
    void (*closed)(void *) = g->closed;
    void *user = g->closed_user;
    g->e->timer_free(g->tick);
    control_attach_forget(g);
    placer_free(g->placer);
    member_table_free(g->member_table);
    residency_done(&g->residency);
    tls_context_unref(g->tls);
    tls_context_unref(g->as_client);
    node_credential_close(&g->credential);
    free(g);
    if (closed) closed(user);
}

static void server_closed(void *user)
{
    control *g = user;
    g->server_open = false;
    control_release(g);
}

void control_close(control *g, void (*closed)(void *user), void *user)
{
    if (!g) {
        if (closed) closed(user);
        return;
    }
    g->closing = true;
    g->closed = closed;
    g->closed_user = user;
    control_jobs_forget(g);
    source_close(g->members); /* now: its registry may go before the connections have */
    g->members = NULL;
    g->registry = NULL;
    if (g->far) g->far->tls = NULL;
    attach *following = g->follow;
    g->follow = NULL;
    if (following) attach_close(following, follow_closed, g);
    g->e->timer_stop(g->tick);
    if (g->server_open)
        grpc_server_close(g->server, server_closed, g);
    else
        control_release(g);
}
