/* gate.c: the port, whom TLS lets in, and the look around once a second. */
#include "control/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "logging/log.h"
#include "control/gate_impl.h"
#include "control/peer_gateways.h"
#include "join/join.h"

static const grpc_method methods[] = {
    {"/shoal.v1.Join/Enrol", gate_on_enrol},
    {"/shoal.v1.Join/Renew", gate_on_renew},
    {"/shoal.v1.Models/Fetch", gate_on_fetch},
};

int64_t gate_now(void)
{
    return (int64_t)time(NULL);
}

int gate_port(const gate *g)
{
    return grpc_server_port(g->server);
}

const char *gate_name(const gate *g)
{
    return g->standing.own.id.name;
}

const char *gate_state(const gate *g)
{
    return g->standing.dir.path;
}

bool gate_has_ca(const gate *g)
{
    return g->standing.ca != NULL;
}

const roster *gate_roster(const gate *g)
{
    return g->roster;
}

/* ---- whom TLS lets in ---------------------------------------------------------------------------- */

/* Chain, dates and list are right by now, but a list may be newer than the one that TLS has read. */
static bool admit(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    const gate *g = user;
    role r;
    if (!role_parse(&r, who->unit, strlen(who->unit)))
        snprintf(why, TLS_WHY_BYTES, "its certificate says no role");
    else if (trust_serial_is_revoked(g->standing.own.trust, who->serial))
        snprintf(why, TLS_WHY_BYTES, "its certificate was revoked");
    else
        return true;
    return false;
}

bool gate_may_log(gate *g, const char *from)
{
    return log_limit_take(&g->lines, from, clock_ns() / 1000000);
}

static void on_refused(void *user, const char *from, const char *why)
{
    if (!gate_may_log(user, from)) return;
    LOG(LOG_WARN, "gate", "connection_refused", LOG_S("from", from), LOG_S("reason", why));
}

/* ---- once a second ------------------------------------------------------------------------------- */

static void read_files_again(gate *g, unsigned changed)
{
    shoal_err err;
    if (tls_context_reload(g->tls, &err) != 0 || tls_context_reload(g->as_client, &err) != 0) {
        LOG(LOG_ERROR, "gate", "certificates_unread", LOG_S("reason", err.message));
        return;
    }
    LOG(LOG_INFO, "gate", "certificates_read",
        LOG_S("own", changed & STANDING_CERT ? "renewed" : "as it was"),
        LOG_I("crl", trust_crl_number(g->standing.own.trust)));
}

static void on_tick(uv_timer_t *t)
{
    gate *g = t->data;
    unsigned changed = 0;
    shoal_err err;
    if (g->recheck) grpc_server_recheck(g->server);
    g->recheck = false;
    /* While the CA works for somebody it is not looked at: it belongs to that thread. */
    if (!g->jobs && standing_tick(&g->standing, gate_now(), &changed, &err) != 0)
        LOG(LOG_ERROR, "gate", "state_unread", LOG_S("reason", err.message));
    if (changed) read_files_again(g, changed);
    if (changed & STANDING_CRL) {
        gate_attach_tell_revoked(g);
        g->recheck = true; /* when they have heard why */
    }
    gate_attach_tick(g, clock_ns(), gate_now());
    if (g->registry) recall_look(&g->recall, g->registry, clock_ns());
    placer_tick(g, clock_ns());
    log_limit_tell(&g->lines, "gate", clock_ns() / 1000000);
}

/* ---- without a CA -------------------------------------------------------------------------------- */

static void on_followed(void *user)
{
    gate *g = user;
    shoal_err err;
    if (standing_reload(&g->standing, &err) != 0) {
        LOG(LOG_ERROR, "gate", "state_unread", LOG_S("reason", err.message));
        return;
    }
    read_files_again(g, STANDING_CRL);
    gate_attach_tell_revoked(g);
    g->recheck = true;
}

/* The gateway with the CA has the lists, signs our next certificate, and tells others where we are. */
static int follow(gate *g, const char *listen, shoal_err *err)
{
    Shoal__V1__NodeFacts f = SHOAL__V1__NODE_FACTS__INIT;
    static char version[] = SHOAL_VERSION;
    char *address = NULL, at[GATEWAYS_ADDRESS_SIZE];
    int rc = join_address(&g->standing.dir, &address, err);
    peer_gateways_own(at, sizeof at, listen, gate_port(g));
    f.version = version;
    f.address = at;
    const attach_options o = {.address = address,
                              .role = ROLE_GATEWAY,
                              .dir = &g->standing.dir,
                              .facts = &f,
                              .changed = on_followed,
                              .user = g};
    if (rc == 0) rc = attach_open(&g->follow, g->loop, &o, err);
    g->follow_open = rc == 0;
    free(address);
    return rc;
}

static void follow_closed(void *user)
{
    gate *g = user;
    g->follow_open = false;
    gate_release(g);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int open_server(gate *g, const gate_options *o, shoal_err *err)
{
    const standing *s = &g->standing;
    tls_options tls = {.cert_file = s->cert_file,
                       .key_file = s->cert_file,
                       .ca_file = s->ca_file,
                       .crl_file = folder_has(&s->dir, "crl.pem") ? s->crl_file : NULL,
                       .guests = true,
                       .admit = admit,
                       .user = g};
    http_limits limits = {.max_body_bytes = ROSTER_MESSAGE_MAX,
                          .max_connections = GATE_CONNECTIONS_MAX,
                          .max_strangers = GATE_STRANGERS_MAX,
                          .keepalive_ms = GATE_SILENCE_MS,
                          .keepalive_timeout_ms = GATE_SILENCE_MS,
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
    rc = grpc_server_add_streams(g->server, &gate_attach_method, 1, g, err);
    if (rc == 0) rc = grpc_server_listen_tls(g->server, o->listen, g->tls, err);
    if (rc == 0) grpc_server_on_refused(g->server, on_refused, g);
    return rc;
}

static int open_gate(gate *g, const gate_options *o, shoal_err *err)
{
    g->registry = o->members;
    g->silence_ns = (o->silence_ms ? o->silence_ms : GATE_SILENCE_MS) * UINT64_C(1000000);
    int rc = standing_open(&g->standing, o->state, o->name, gate_now(), err);
    if (rc == 0) rc = roster_new(&g->roster, err);
    if (rc == 0 && o->members) rc = source_open(&g->members, o->members, "agents", err);
    if (rc == 0 && g->members) source_synced(g->members); /* nobody is expected: machines come as they like */
    if (rc == 0) rc = open_server(g, o, err);
    if (rc == 0 && !g->standing.ca) rc = follow(g, o->listen, err);
    if (rc != 0) return rc;
    uv_timer_init(g->loop, &g->tick);
    g->tick_open = true;
    g->tick.data = g;
    uv_timer_start(&g->tick, on_tick, GATE_REPORT_MS, GATE_REPORT_MS);
    uv_unref((uv_handle_t *)&g->tick);
    return 0;
}

int gate_open(gate **ret, uv_loop_t *loop, const gate_options *o, shoal_err *err)
{
    gate *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(err);
    g->loop = loop;
    g->last_job = &g->jobs;
    g->standing.dir = FOLDER_NONE;
    int rc = open_gate(g, o, err);
    if (rc != 0) {
        gate_close(g, NULL, NULL);
        return rc;
    }
    LOG(LOG_INFO, "gate", "listening", LOG_S("address", o->listen), LOG_I("port", gate_port(g)),
        LOG_S("cluster", g->standing.own.id.cluster), LOG_S("name", gate_name(g)),
        LOG_S("ca", g->standing.ca ? "here" : "elsewhere"));
    *ret = g;
    return 0;
}

void gate_release(gate *g)
{
    if (!g->closing || g->server_open || g->tick_open || g->follow_open || g->jobs) return;
    void (*closed)(void *) = g->closed;
    void *user = g->closed_user;
    gate_attach_forget(g);
    placer_free(g->placer);
    roster_free(g->roster);
    recall_done(&g->recall);
    tls_context_unref(g->tls);
    tls_context_unref(g->as_client);
    standing_close(&g->standing);
    free(g);
    if (closed) closed(user);
}

static void server_closed(void *user)
{
    gate *g = user;
    g->server_open = false;
    gate_release(g);
}

static void tick_closed(uv_handle_t *h)
{
    gate *g = h->data;
    g->tick_open = false;
    gate_release(g);
}

void gate_close(gate *g, void (*closed)(void *user), void *user)
{
    if (!g) {
        if (closed) closed(user);
        return;
    }
    g->closing = true;
    g->closed = closed;
    g->closed_user = user;
    gate_jobs_forget(g);
    source_close(g->members); /* now: its registry may go before the connections have */
    g->members = NULL;
    g->registry = NULL;
    if (g->far) g->far->tls = NULL;
    attach *following = g->follow;
    g->follow = NULL;
    if (following) attach_close(following, follow_closed, g);
    if (g->tick_open) uv_close((uv_handle_t *)&g->tick, tick_closed);
    if (g->server_open)
        grpc_server_close(g->server, server_closed, g);
    else
        gate_release(g);
}
