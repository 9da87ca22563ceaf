/* control_attach.c: sessions of attached machines: one a name, the newest of the same agent.
 *
 * Another agent with the certificate of one that is attached is the same machine after a loss of power, or
 * another machine with a copy of its disk. It waits while the one that is attached is asked for a sign of
 * life: if there is none within RIVAL_MS it takes over, else it is refused, so that two copies do not push
 * each other out for ever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "control/control_impl.h"
#include "control/peer_gateways.h"

enum { RIVAL_MS = 1000, FIRST_MAX = 64 << 10 };

typedef struct session {
    control *g;
    grpc_call *call;
    member_entry *entry;    /* NULL: another connection of the same machine has it */
    struct session *holder; /* of the name, while this one waits for it */
    struct session *rival;  /* who waits for this one; NULL: nobody */
    uint64_t knocked_ns; /* when a rival has said who it is; by the env's listening_ns; 0: it has not yet */
    buf first;           /* and its message */
    char name[IDENTITY_NAME_SIZE]; /* while it has no entry */
    role role;
    char serial[65];
    int64_t until;      /* of its certificate */
    uint64_t heard_ns;  /* its last message, by the env's listening_ns */
    unsigned n_heard;   /* messages since the last look around */
    bool paused;        /* it has said enough until the next */
    uint64_t last_sent; /* digest of the list of other gateways (peer_gateways_digest) */
} session;

/* The time in which this process could hear machines. */
static uint64_t heard_until_ns(const control *g)
{
    return g->e->listening_ns(g->e->user);
}

static void control_attach_send_message(grpc_call *c, const Shoal__V1__ServerMessage *m)
{
    size_t n = shoal__v1__server_message__get_packed_size(m);
    uint8_t *bytes = malloc(n ? n : 1);
    if (!bytes) return; /* it is said again, or missed: the silence ends the session */
    shoal__v1__server_message__pack(m, bytes);
    grpc_call_send(c, bytes, n);
    free(bytes);
}

/* ---- ends ---------------------------------------------------------------------------------------- */

static void let_in(session *s);

static void session_free(session *s)
{
    session *rival = s->rival;
    if (s->entry) placer_changed(s->g);
    if (s->entry && s->g->members) source_drop_node(s->g->members, s->entry->name);
    if (s->entry) member_table_leave(s->g->member_table, s->entry);
    if (s->holder) s->holder->rival = NULL;
    if (rival) rival->holder = NULL;
    buf_done(&s->first);
    free(s);
    if (rival) let_in(rival);
}

static void hang_up(session *s, grpc_status status, const char *why)
{
    const char *name = s->entry ? s->entry->name : s->name;
    if (control_may_log(s->g, name))
        LOG(LOG_WARN, "control", "node_detached", LOG_S("node", name), LOG_S("reason", why));
    grpc_call_end(s->call, status, why);
    session_free(s);
}

static void control_attach_on_cancelled(void *user, grpc_call *c)
{
    session *s = grpc_call_data(c);
    if (!s) return;
    if (s->entry && control_may_log(s->g, s->entry->name))
        LOG(LOG_INFO, "control", "node_detached", LOG_S("node", s->entry->name),
            LOG_S("reason", "it has left"));
    session_free(s);
}

static void on_ended(void *user, grpc_call *c)
{
    session *s = grpc_call_data(c);
    if (s) hang_up(s, GRPC_OK, "it said goodbye");
}

/* ---- beginning ----------------------------------------------------------------------------------- */

/* The machine has come by a new connection: the old one ends, what is known of the machine stays. */
static void take_over(session *s)
{
    session *old = s->entry->session;
    s->entry->session = s;
    if (!old) return;
    old->entry = NULL;
    old->rival = NULL;
    grpc_call_end(old->call, GRPC_ABORTED, "this machine has attached by another connection");
    session_free(old);
}

static const char *objection(const tls_identity *peer)
{
    if (!peer) return "only members attach: join with a token first";
    role r;
    if (!role_parse(&r, peer->unit, strlen(peer->unit))) return "the certificate says no role";
    return identity_name_ok(peer->common_name, strlen(peer->common_name)) ? NULL
                                                                          : "the certificate names no member";
}

/* What it has already goes on. */
static bool begins_too_often(control *g, const char *name, grpc_call *c)
{
    char why[96];
    uint64_t wait_ms = attach_limit_pass(&g->attach_limit, name, control_now_ns(g) / 1000000);
    if (wait_ms == 0) return false;
    snprintf(why, sizeof why, "this machine attaches too often; try again in %llu s",
             (unsigned long long)(wait_ms + 999) / 1000);
    if (control_may_log(g, name))
        LOG(LOG_WARN, "control", "attach_refused", LOG_S("from", grpc_call_from(c)), LOG_S("node", name),
            LOG_S("reason", why));
    grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, why);
    return true;
}

/* ---- two with one name --------------------------------------------------------------------------- */

static void control_attach_on_message(void *user, grpc_call *c, const uint8_t *msg, size_t n);

/* It has the name from now on; what it has said already is heard. */
static void let_in(session *s)
{
    buf first = s->first;
    shoal_err err;
    if (s->holder) s->holder->rival = NULL;
    s->holder = NULL;
    s->first = (buf){0};
    int rc = member_table_admit(s->g->member_table, s->name, control_now_ns(s->g), &s->entry, &err);
    if (rc != 0) {
        grpc_call_end(s->call, grpc_status_from_err(rc), err.message);
        session_free(s);
    } else {
        s->heard_ns = heard_until_ns(s->g);
        s->entry->role = s->role;
        take_over(s);
        if (first.len) {
            grpc_call_pause(s->call, false);
            control_attach_on_message(s->g, s->call, (const uint8_t *)first.data, first.len); /* may end it */
        }
    }
    buf_done(&first);
}

static void refuse_rival(session *s)
{
    session *rival = s->rival;
    member_entry *e = s->entry;
    char why[320];
    s->rival = NULL;
    rival->holder = NULL;
    e->twice_ns = control_now_ns(s->g);
    snprintf(e->from, sizeof e->from, "%s", grpc_call_from(s->call));
    snprintf(e->twice_from, sizeof e->twice_from, "%s", grpc_call_from(rival->call));
    snprintf(why, sizeof why,
             "another machine is attached as %s, from %s: both have the same certificate, as copies of one "
             "disk do. "
             "Remove the state folder of one of them, and let it join with a token of its own",
             e->name, e->from);
    if (control_may_log(s->g, e->twice_from))
        LOG(LOG_WARN, "control", "identity_twice", LOG_S("node", e->name), LOG_S("attached_from", e->from),
            LOG_S("refused_from", e->twice_from),
            LOG_S("hint", "let one of them join with a token of its own"));
    grpc_call_end(rival->call, GRPC_FAILED_PRECONDITION, why);
    session_free(rival);
}

/* Of an agent of before, which says no instance, its address has to tell. */
static bool is_same_agent(const session *s, const Shoal__V1__AgentMessage *m)
{
    const member_entry *e = s->holder->entry;
    if (m->instance && e->instance) return m->instance == e->instance;
    return strcmp(grpc_call_from(s->call), grpc_call_from(s->holder->call)) == 0;
}

/* A rival says who it is. */
static void knock(session *s, const uint8_t *msg, size_t n)
{
    Shoal__V1__ServerMessage ping = SHOAL__V1__SERVER_MESSAGE__INIT;
    Shoal__V1__AgentMessage *m = n <= FIRST_MAX ? shoal__v1__agent_message__unpack(NULL, n, msg) : NULL;
    bool ok = m && m->hello && !s->first.len && buf_append(&s->first, msg, n) == 0,
         same = ok && is_same_agent(s, m);
    if (m) shoal__v1__agent_message__free_unpacked(m, NULL);
    if (!ok) {
        hang_up(s, GRPC_INVALID_ARGUMENT, "it does not begin with hello");
        return;
    }
    if (same) {
        let_in(s);
        return;
    }
    s->knocked_ns = heard_until_ns(s->g);
    grpc_call_pause(s->call, true);
    ping.ping = control_now_ns(s->g);
    control_attach_send_message(s->holder->call, &ping);
}

static void wait_behind(session *s, session *holder)
{
    if (holder->rival) {
        hang_up(s, GRPC_RESOURCE_EXHAUSTED, "several machines attach by this name at once");
        return;
    }
    s->holder = holder;
    holder->rival = s;
}

/* The one that is attached says nothing: it has lost its power, and this is what came of it. */
static void look_at_rival(session *s)
{
    session *rival = s->rival;
    if (!rival) return;
    if (rival->knocked_ns && heard_until_ns(s->g) - rival->knocked_ns >= RIVAL_MS * UINT64_C(1000000))
        let_in(rival);
    else if (heard_until_ns(s->g) - rival->heard_ns > s->g->silence_ns)
        hang_up(rival, GRPC_ABORTED, "it does not say who it is");
}

static void control_attach_on_begin(void *user, grpc_call *c)
{
    control *g = user;
    const tls_identity *peer = grpc_call_peer(c);
    const char *why = objection(peer);
    if (why) {
        if (control_may_log(g, grpc_call_from(c)))
            LOG(LOG_WARN, "control", "attach_refused", LOG_S("from", grpc_call_from(c)),
                LOG_S("reason", why));
        grpc_call_end(c, peer ? GRPC_PERMISSION_DENIED : GRPC_UNAUTHENTICATED, why);
        return;
    }
    if (begins_too_often(g, peer->common_name, c)) return;
    session *s = calloc(1, sizeof *s);
    if (!s) {
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    s->g = g;
    s->call = c;
    s->heard_ns = heard_until_ns(g);
    s->until = peer->not_after_s;
    memcpy(s->serial, peer->serial, sizeof s->serial);
    snprintf(s->name, sizeof s->name, "%.*s", (int)sizeof s->name - 1, peer->common_name);
    role_parse(&s->role, peer->unit, strlen(peer->unit));
    grpc_call_set_data(c, s);
    member_entry *e = member_table_find(g->member_table, s->name);
    if (e && e->session)
        wait_behind(s, e->session);
    else
        let_in(s);
}

/* ---- the cluster is told ------------------------------------------------------------------------- */

static void tell_members(const session *s)
{
    const member_entry *e = s->entry;
    const Shoal__V1__NodeFacts *f = e->facts;
    char at[CONNECTOR_ADDRESS_SIZE];
    shoal_err err;
    node_device devices[NODE_DEVICES_MAX];
    node n = {.name = e->name,
              .site = *f->site ? f->site : NULL,
              .address = control_replicas_address(e, at, sizeof at) ? at : NULL,
              .isa = f->isa,
              .n_cores = f->n_cores,
              .memory_bytes = f->memory_bytes,
              .bytes_per_s = f->bytes_per_s,
              .multiplies_per_s = f->multiplies_per_s,
              .rtt_ms = e->rtt_ms,
              .epoch = e->epoch,
              .draining = e->drains,
              .labels = (const char *const *)f->labels,
              .n_labels = f->n_labels,
              .devices = devices,
              .n_devices = member_table_devices(f, devices)};
    if (e->load) {
        n.memory_free_bytes = e->load->memory_free_bytes;
        n.load_1m = e->load->load_1m;
        n.celsius = e->load->celsius;
        n.on_battery = e->load->on_battery;
        n.battery_percent = e->load->battery_percent;
        if (e->load->bytes_per_s > 0) n.bytes_per_s = e->load->bytes_per_s;
        if (e->load->multiplies_per_s > 0) n.multiplies_per_s = e->load->multiplies_per_s;
    }
    if (source_put_node(s->g->members, &n, &err) != 0)
        LOG(LOG_ERROR, "control", "node_untold", LOG_S("node", e->name), LOG_S("reason", err.message));
}

/* ---- talking ------------------------------------------------------------------------------------- */

static void send_list(session *s)
{
    Shoal__V1__ServerMessage m = SHOAL__V1__SERVER_MESSAGE__INIT;
    buf pem = {0};
    if (folder_read(&s->g->credential.dir, "crl.pem", CERT_CRL_BYTES_MAX, false, &pem, NULL) == 0 &&
        pem.data) {
        m.revoked = pem.data;
        control_attach_send_message(s->call, &m);
    }
    buf_done(&pem);
}

static void tell_others(session *s)
{
    Shoal__V1__ServerMessage m = SHOAL__V1__SERVER_MESSAGE__INIT;
    peer_gateways all;
    peer_gateways_list(&all, s->g, s->entry, grpc_call_from(s->call));
    uint64_t digest = peer_gateways_digest(&all);
    if (digest == s->last_sent) return;
    s->last_sent = digest;
    m.gateways = &all.message;
    control_attach_send_message(s->call, &m);
}

static void welcome(session *s)
{
    Shoal__V1__ServerMessage m = SHOAL__V1__SERVER_MESSAGE__INIT;
    Shoal__V1__Welcome w = SHOAL__V1__WELCOME__INIT;
    w.cluster = s->g->credential.own.id.cluster;
    w.gateway = s->g->credential.own.id.name;
    w.report_ms = CONTROL_REPORT_MS;
    w.now = control_now();
    m.welcome = &w;
    control_attach_send_message(s->call, &m);
    send_list(s);
    tell_others(s);
    if (!control_may_log(s->g, s->entry->name)) return;
    LOG(LOG_INFO, "control", "node_attached", LOG_S("node", s->entry->name),
        LOG_S("from", grpc_call_from(s->call)), LOG_S("site", s->entry->facts->site),
        LOG_I("cores", s->entry->facts->n_cores));
}

/* A machine says two things a second. One that talks without end would keep the gateway from its clients:
 * what it has to say waits on its own side. */
static void listen_less(session *s)
{
    if (++s->n_heard < CONTROL_MESSAGES || s->paused) return;
    if (s->entry && control_may_log(s->g, s->entry->name))
        LOG(LOG_WARN, "control", "node_talks_too_much", LOG_S("node", s->entry->name));
    s->paused = true;
    grpc_call_pause(s->call, true);
}

/* May end the session, by what has waited. */
static void listen_again(session *s)
{
    bool paused = s->paused;
    s->n_heard = 0;
    s->paused = false;
    if (paused) grpc_call_pause(s->call, false);
}

static void control_attach_on_message(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    session *s = grpc_call_data(c);
    uint64_t now = control_now_ns(s->g), pong = 0;
    unsigned bits = 0;
    shoal_err err;
    if (!s) return;
    if (s->holder) {
        knock(s, msg, n);
        return;
    }
    s->heard_ns = heard_until_ns(s->g);
    listen_less(s);
    if (s->rival && s->rival->knocked_ns) refuse_rival(s);
    int rc = member_table_hear(s->g->member_table, s->entry, msg, n, now, &bits, &pong, &err);
    if (rc != 0) {
        hang_up(s, grpc_status_from_err(rc), err.message);
        return;
    }
    if (bits & MEMBER_TABLE_HELLO) {
        if (!s->entry->epoch) s->entry->epoch = (uint64_t)control_now() * 1000000u;
        welcome(s);
        placer_greet(s->g, s->entry->name);
    }
    if ((bits & MEMBER_TABLE_PONG) && pong < now) s->entry->rtt_ms = (double)(now - pong) / 1e6;
    if (s->entry->role != ROLE_NODE) return;
    if (s->g->members && (bits & (MEMBER_TABLE_HELLO | MEMBER_TABLE_LOAD))) tell_members(s);
    if (bits & MEMBER_TABLE_REPLICAS) {
        control_replicas_drop(s->g, s->entry->name, s->entry->had, s->entry->replicas);
        control_replicas_tell(s->g, s->entry, grpc_call_from(c));
        if (!s->entry->had) placer_changed(s->g);
    }
}

void control_attach_send(const member_entry *e, const Shoal__V1__ServerMessage *m)
{
    session *s = e->session;
    if (s) control_attach_send_message(s->call, m);
}

const char *control_attach_from(const member_entry *e)
{
    session *s = e->session;
    return s ? grpc_call_from(s->call) : "";
}

void control_attach_retell(const member_entry *e)
{
    session *s = e->session;
    if (s) control_replicas_tell(s->g, e, grpc_call_from(s->call));
}

void control_attach_expel(member_entry *e, const char *why)
{
    session *s = e->session;
    if (s) residency_lacks_others(&s->g->residency, e->name, NULL, NULL);
    if (s) hang_up(s, GRPC_UNAUTHENTICATED, why);
}

const grpc_stream_method control_attach_method = {.path = "/shoal.v1.Cluster/Attach",
                                                  .max_message = MEMBER_TABLE_MESSAGE_MAX,
                                                  .begin = control_attach_on_begin,
                                                  .message = control_attach_on_message,
                                                  .ended = on_ended,
                                                  .cancelled = control_attach_on_cancelled};

/* ---- looking around ------------------------------------------------------------------------------ */

/* Another gateway says that the machine has attached there since. */
static bool is_elsewhere(const session *s)
{
    const registry *r = s->g->registry;
    const node *n = r && s->entry->role == ROLE_NODE ? registry_node(r, s->entry->name) : NULL;
    return n && n->epoch > s->entry->epoch;
}

static void control_attach_look_at(session *s, uint64_t now_ns, int64_t now)
{
    Shoal__V1__ServerMessage m = SHOAL__V1__SERVER_MESSAGE__INIT;
    m.ping = now_ns;
    uint64_t silent_ns = heard_until_ns(s->g) - s->heard_ns;
    if (silent_ns > s->g->silence_ns) {
        placer_lost(s->g, s->entry->name, silent_ns);
        hang_up(s, GRPC_ABORTED, "nothing was heard of this machine for too long");
    } else if (now > s->until)
        hang_up(s, GRPC_UNAUTHENTICATED, "the certificate of this connection has expired");
    else if (is_elsewhere(s))
        hang_up(s, GRPC_ABORTED, "this machine has attached to another gateway");
    else {
        if (s->entry->facts) tell_others(s);
        if (grpc_call_unsent(s->call) < GRPC_CALM_BYTES) control_attach_send_message(s->call, &m);
        listen_again(s);
    }
}

void control_attach_tick(control *g, uint64_t now_ns, int64_t now)
{
    for (size_t i = member_table_count(g->member_table); i-- > 0;)
        look_at_rival(member_table_at(g->member_table, i)->session);
    for (size_t i = member_table_count(g->member_table); i-- > 0;)
        control_attach_look_at(member_table_at(g->member_table, i)->session, now_ns, now);
}

void control_attach_forget(control *g)
{
    for (size_t i = 0; g->member_table && i < member_table_count(g->member_table); i++) {
        session *s = member_table_at(g->member_table, i)->session;
        if (s && s->rival) {
            buf_done(&s->rival->first);
            free(s->rival);
        }
        free(s);
    }
}

void control_attach_tell_revoked(control *g)
{
    for (size_t i = member_table_count(g->member_table); i-- > 0;) {
        session *s = member_table_at(g->member_table, i)->session;
        if (trust_serial_is_revoked(g->credential.own.trust, s->serial))
            control_attach_expel(s->entry, "the certificate of this machine was revoked");
        else
            send_list(s);
    }
}
