/* attach.c: one link to a gateway, or two while the second takes over from the first. */
#include "join/attach.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "logging/log.h"
#include "cluster/machine.h"
#include "join/join.h"
#include "trust/cert.h"
#include "trust/key.h"
#include "grpc/grpc.h"
#include "wire/env_uv.h"
#include "wire/tls_expiry.h"

enum {
    PAUSE_MIN_MS = 250,
    PAUSE_MAX_MS = 10000,
    REPORT_MS = 1000,
    SILENCE_MS = 5000,
    RENEW_AGAIN_S = 60, /* after a renewal that failed */
    RENEW_DEADLINE_MS = 15000,
    CONNECT_MS = 3000,     /* where there is another gateway to try */
    HOME_AGAIN_MS = 60000, /* after a way home that was none */
};

typedef struct attach_link {
    attach *a;
    grpc_channel *channel;
    grpc_client_call *call; /* NULL: not open */
    bool welcomed, closing;
    uint64_t heard_ns; /* by the env's listening_ns */
    uint64_t since_ns; /* it was welcomed */
    char address[GATEWAYS_ADDRESS_SIZE];
} attach_link;

struct attach {
    uv_loop_t *loop;
    attach_options o;
    gateways known;
    uint64_t instance;                    /* tells this process from another one with the same certificate */
    uint64_t epoch;                       /* of the newest link */
    double bytes_per_s, multiplies_per_s; /* as measured since the facts were said; 0: they hold */
    bool may_go_home;                     /* the gateway says so */
    uint64_t go_home_ns;                  /* not before */
    uint8_t *hello;                       /* the packed message that begins a link */
    size_t n_hello;
    credential own;
    tls_context *tls;
    tls_expiry expiry;
    attach_link *now, *next; /* next: with a new certificate, or at home, until it is welcomed */
    env loop_time;
    const env *e; /* time and timers: loop_time, or what the caller gave */
    env_timer *tick, *retry;
    bool closing;
    grpc_client_call *renewal;
    EVP_PKEY *renewal_key;
    int64_t renew_after;
    void (*closed)(void *user);
    void *closed_user;
};

uint64_t attach_pause_ms(unsigned n, double draw)
{
    uint64_t base = n < 6 ? (uint64_t)PAUSE_MIN_MS << n : PAUSE_MAX_MS;
    if (base > PAUSE_MAX_MS) base = PAUSE_MAX_MS;
    return base / 2 + (uint64_t)((double)(base / 2) * draw);
}

static uint64_t now_ns(const attach *a)
{
    return a->e->now_ns(a->e->user);
}

static uint64_t heard_until_ns(const attach *a)
{
    return a->e->listening_ns(a->e->user);
}

static int64_t wall(const attach *a)
{
    return a->o.now ? a->o.now(a->o.user) : (int64_t)time(NULL);
}

bool attach_knows_revoked(const attach *a, const char *serial)
{
    return trust_serial_is_revoked(a->own.trust, serial);
}

/* ---- links --------------------------------------------------------------------------------------- */

static void link_close(attach_link *l)
{
    if (!l) return;
    l->closing = true;
    grpc_channel_close(l->channel); /* its calls end before this returns */
    free(l);
}

static void link_lost(attach_link *l, const char *why);
static void report_attach(attach *a);
static int link_open(attach *a, attach_link **ret, const char *address);

static void attach_release(attach *a);

static void retry(void *user)
{
    attach *a = user;
    if (a->closing)
        attach_release(a);
    else if (!a->now && link_open(a, &a->now, gateways_address(&a->known)) != 0)
        a->e->timer_start(a->retry, PAUSE_MAX_MS);
}

static double attach_draw(const attach *a)
{
    return rng_uniform(a->e->random(a->e->user), 0);
}

static void retry_later(attach *a, uint64_t lived_ms)
{
    a->e->timer_start(a->retry, gateways_lost(&a->known, lived_ms, attach_draw(a)));
}

static void go_home_later(attach *a)
{
    a->go_home_ns = now_ns(a) + attach_pause_ms(UINT_MAX, attach_draw(a)) * UINT64_C(1000000);
}

static void link_lost(attach_link *l, const char *why)
{
    attach *a = l->a;
    if (l->closing) return;
    char reason[256];
    snprintf(reason, sizeof reason, "%s", why); /* it may go with the channel */
    bool was_now = l == a->now;
    uint64_t lived_ms = l->welcomed ? (now_ns(a) - l->since_ns) / 1000000 : 0;
    if (was_now)
        a->now = NULL;
    else
        a->next = NULL;
    if (was_now) a->renewal = NULL; /* a call of this channel */
    LOG(LOG_WARN, "attach", was_now ? "detached" : "takeover_failed", LOG_S("gateway", l->address),
        LOG_S("reason", reason));
    link_close(l);
    if (!was_now) {
        a->go_home_ns = now_ns(a) + HOME_AGAIN_MS * UINT64_C(1000000);
        return;
    }
    if (a->o.detached) a->o.detached(a->o.user, reason);
    if (a->next) {
        a->now = a->next;
        a->next = NULL;
    } else {
        retry_later(a, lived_ms);
    }
}

/* ---- what the gateway says ----------------------------------------------------------------------- */

static void attach_send_message(attach_link *l, const Shoal__V1__AgentMessage *m)
{
    size_t n = shoal__v1__agent_message__get_packed_size(m);
    uint8_t *bytes = malloc(n ? n : 1);
    if (!bytes) return; /* the next one says as much */
    shoal__v1__agent_message__pack(m, bytes);
    grpc_client_send(l->call, bytes, n);
    free(bytes);
}

static void keep_known(attach *a)
{
    shoal_err err;
    if (gateways_write(&a->known, a->o.dir, &err) != 0)
        LOG(LOG_ERROR, "attach", "gateways_unkept", LOG_S("reason", err.message));
}

static void on_gateways(attach_link *l, const Shoal__V1__Gateways *m)
{
    attach *a = l->a;
    if (gateways_hear(&a->known, m)) keep_known(a);
    if (l != a->now) return;
    if (m->home && !a->may_go_home) go_home_later(a);
    a->may_go_home = m->home;
}

static void on_welcome(attach_link *l, const Shoal__V1__Welcome *w)
{
    attach *a = l->a;
    if (l->welcomed) return;
    l->welcomed = true;
    l->since_ns = now_ns(a);
    a->may_go_home = false;
    if (gateways_settle(&a->known, l->address, w->gateway)) keep_known(a);
    if (l == a->next) {
        link_close(a->now);
        a->now = l;
        a->next = NULL;
        a->renewal = NULL;
    }
    LOG(LOG_INFO, "attach", "attached", LOG_S("cluster", w->cluster), LOG_S("gateway", w->gateway),
        LOG_S("address", l->address), LOG_I("clock_ahead_s", w->now ? (int64_t)time(NULL) - w->now : 0));
    if (a->o.attached) a->o.attached(a->o.user, w->gateway);
    if (a->now == l) report_attach(a);
}

static void on_list(attach *a, const char *pem)
{
    shoal_err err;
    uint64_t before = trust_crl_number(a->own.trust);
    int rc = credential_revocations(&a->own, a->o.dir, pem, strlen(pem), &err);
    if (rc == 0) rc = tls_context_reload(a->tls, &err);
    if (rc != 0)
        LOG(LOG_ERROR, "attach", "revocations_refused", LOG_S("reason", err.message));
    else if (trust_crl_number(a->own.trust) != before)
        LOG(LOG_INFO, "attach", "revocations", LOG_I("crl", trust_crl_number(a->own.trust)));
    if (rc == 0 && a->o.changed) a->o.changed(a->o.user);
}

static void attach_on_message(void *user, const uint8_t *msg, size_t n)
{
    attach_link *l = user;
    Shoal__V1__ServerMessage *m = shoal__v1__server_message__unpack(NULL, n, msg);
    if (!m) {
        link_lost(l, "the gateway's message cannot be read");
        return;
    }
    l->heard_ns = heard_until_ns(l->a);
    if (m->ping) {
        Shoal__V1__AgentMessage back = SHOAL__V1__AGENT_MESSAGE__INIT;
        back.pong = m->ping;
        attach_send_message(l, &back);
    }
    if (m->revoked && *m->revoked) on_list(l->a, m->revoked);
    if (m->welcome) on_welcome(l, m->welcome);
    if (m->gateways) on_gateways(l, m->gateways);
    if (m->holders && l->a->o.holders) l->a->o.holders(l->a->o.user, m->holders);
    if (m->assign && l->a->o.assigned) l->a->o.assigned(l->a->o.user, m->assign);
    shoal__v1__server_message__free_unpacked(m, NULL);
    const tls_identity *gateway = grpc_channel_peer(l->channel);
    if (gateway && trust_serial_is_revoked(l->a->own.trust, gateway->serial))
        link_lost(l, "the gateway's certificate was revoked");
}

static void attach_on_end(void *user, grpc_status status, const char *message)
{
    attach_link *l = user;
    if (l->closing) return;
    l->call = NULL;
    link_lost(l, message && *message ? message : grpc_status_name(status));
}

/* ---- connecting ---------------------------------------------------------------------------------- */

/* It rises with each link, and from one run of the program to the next where the time of day does. */
static uint64_t next_epoch(attach *a)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
    return a->epoch = now > a->epoch ? now : a->epoch + 1;
}

/* What a machine says of itself, and behind it the epoch: messages in a row are one. */
static int say_hello(attach_link *l)
{
    attach *a = l->a;
    Shoal__V1__AgentMessage m = SHOAL__V1__AGENT_MESSAGE__INIT;
    m.epoch = next_epoch(a);
    m.instance = a->instance;
    size_t n = shoal__v1__agent_message__get_packed_size(&m);
    uint8_t *bytes = malloc(a->n_hello + n);
    if (!bytes) return SHOAL_ENOMEM;
    memcpy(bytes, a->hello, a->n_hello);
    shoal__v1__agent_message__pack(&m, bytes + a->n_hello);
    int rc = grpc_client_send(l->call, bytes, a->n_hello + n);
    free(bytes);
    return rc;
}

static void attach_on_connected(void *user)
{
    attach_link *l = user;
    const grpc_client_events ev = {.user = l, .message = attach_on_message, .end = attach_on_end};
    const grpc_call_options o = {.max_message = CERT_CRL_BYTES_MAX + (1 << 20)};
    l->heard_ns = heard_until_ns(l->a);
    l->call = grpc_call_open(l->channel, "/shoal.v1.Cluster/Attach", &o, &ev);
    if (!l->call || say_hello(l) != 0) link_lost(l, "the gateway takes no call now");
}

static void on_disconnected(void *user, const char *why)
{
    link_lost(user, why);
}

static int link_open(attach *a, attach_link **ret, const char *address)
{
    shoal_err err;
    attach_link *l = calloc(1, sizeof *l);
    const grpc_channel_events ev = {
        .user = l, .connected = attach_on_connected, .disconnected = on_disconnected};
    const grpc_channel_options o = {.tls = a->tls,
                                    .connect_timeout_ms = a->known.n > 1 ? CONNECT_MS : 0,
                                    .keepalive_ms = SILENCE_MS,
                                    .keepalive_timeout_ms = SILENCE_MS};
    if (!l) return SHOAL_ENOMEM;
    l->a = a;
    l->heard_ns = heard_until_ns(a);
    snprintf(l->address, sizeof l->address, "%s", address);
    int rc = grpc_channel_open(&l->channel, a->loop, l->address, &o, &ev, &err);
    if (rc != 0) {
        LOG(LOG_ERROR, "attach", "cannot_connect", LOG_S("reason", err.message));
        free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

/* ---- renewal ------------------------------------------------------------------------------------- */

static int take_renewed(attach *a, const Shoal__V1__RenewReply *r, shoal_err *err)
{
    credential fresh = {0};
    buf ca = {0}, crl = {0};
    int rc = cert_put_pem(&ca, trust_ca(a->own.trust), err);
    if (rc == 0)
        rc = credential_make(&fresh, a->renewal_key, r->certificate, strlen(r->certificate), ca.data, ca.len,
                             wall(a), err);
    if (rc == 0 && (strcmp(fresh.id.name, a->own.id.name) != 0 || fresh.id.role != a->own.id.role))
        rc = err_set(err, SHOAL_EAUTH, "the new certificate is another's");
    if (rc == 0 && folder_read(a->o.dir, "crl.pem", CERT_CRL_BYTES_MAX, false, &crl, err) == 0)
        rc = trust_revocations(fresh.trust, crl.data, crl.len, err);
    if (rc == 0) rc = credential_save(&fresh, a->o.dir, err);
    if (rc == 0) rc = tls_context_reload(a->tls, err);
    buf_done(&ca);
    buf_done(&crl);
    if (rc != 0) {
        credential_done(&fresh);
        return rc;
    }
    credential_done(&a->own);
    a->own = fresh;
    return 0;
}

static void on_renewed(void *user, const uint8_t *msg, size_t n)
{
    attach *a = user;
    shoal_err err;
    Shoal__V1__RenewReply *r = shoal__v1__renew_reply__unpack(NULL, n, msg);
    int rc = r ? take_renewed(a, r, &err) : err_set(&err, SHOAL_EPROTOCOL, "the answer cannot be read");
    if (r) shoal__v1__renew_reply__free_unpacked(r, NULL);
    if (rc != 0) {
        LOG(LOG_ERROR, "attach", "renewal_failed", LOG_S("reason", err.message));
        return;
    }
    LOG(LOG_INFO, "attach", "renewed", LOG_S("name", a->own.id.name), LOG_I("until", a->own.until));
    if (a->o.changed) a->o.changed(a->o.user);
    if (!a->next && a->now) link_open(a, &a->next, a->now->address);
}

static void on_renewal_end(void *user, grpc_status status, const char *message)
{
    attach *a = user;
    a->renewal = NULL;
    if (status != GRPC_OK && status != GRPC_CANCELLED)
        LOG(LOG_ERROR, "attach", "renewal_failed", LOG_S("reason", message));
}

/* By the certificate that is renewed, for where the gateway passes it on. */
static int prove(const attach *a, const buf *der, buf *cert, buf *signature, shoal_err *err)
{
    int rc = cert_put_pem(cert, a->own.cert, err);
    if (rc == 0) rc = buf_putc(cert, '\0') == 0 ? 0 : err_nomem(err);
    return rc != 0 ? rc : key_sign(a->own.key, JOIN_RENEW, der->data, der->len, signature, err);
}

static int ask_renewal(attach *a, const buf *der, const buf *cert, const buf *signature, shoal_err *err)
{
    Shoal__V1__RenewRequest m = SHOAL__V1__RENEW_REQUEST__INIT;
    const grpc_client_events ev = {.user = a, .message = on_renewed, .end = on_renewal_end};
    m.request = (ProtobufCBinaryData){.data = (uint8_t *)der->data, .len = der->len};
    m.certificate = cert->data;
    m.signature = (ProtobufCBinaryData){.data = (uint8_t *)signature->data, .len = signature->len};
    uint8_t *packed = malloc(shoal__v1__renew_request__get_packed_size(&m));
    if (!packed) return err_nomem(err);
    size_t n = shoal__v1__renew_request__pack(&m, packed);
    uint64_t deadline = clock_ns() + /* real time, as gRPC's */ RENEW_DEADLINE_MS * UINT64_C(1000000);
    a->renewal = attach_call(a, "/" JOIN_RENEW, packed, n, deadline, &ev);
    free(packed);
    return 0;
}

static int start_renewal(attach *a, shoal_err *err)
{
    buf der = {0}, cert = {0}, signature = {0};
    EVP_PKEY_free(a->renewal_key);
    a->renewal_key = NULL;
    int rc = key_new(&a->renewal_key, err);
    if (rc == 0) rc = key_request(a->renewal_key, a->own.id.name, &der, err);
    if (rc == 0) rc = prove(a, &der, &cert, &signature, err);
    if (rc == 0) rc = ask_renewal(a, &der, &cert, &signature, err);
    buf_done(&der);
    buf_done(&cert);
    buf_done(&signature);
    return rc;
}

static void renew_when_due(attach *a)
{
    shoal_err err;
    int64_t now = wall(a);
    if (a->renewal || a->next || now < credential_renew_at(&a->own) || now < a->renew_after) return;
    a->renew_after = now + RENEW_AGAIN_S;
    if (start_renewal(a, &err) != 0) LOG(LOG_ERROR, "attach", "renewal_failed", LOG_S("reason", err.message));
}

/* ---- once a second ------------------------------------------------------------------------------- */

static void report_attach(attach *a)
{
    Shoal__V1__AgentMessage m = SHOAL__V1__AGENT_MESSAGE__INIT;
    Shoal__V1__NodeLoad load = SHOAL__V1__NODE_LOAD__INIT;
    machine now;
    machine_read(&now, "");
    load.memory_free_bytes = now.memory_free_bytes;
    load.load_1m = now.load_1m;
    load.celsius = now.celsius;
    load.on_battery = now.on_battery;
    load.battery_percent = now.battery_percent;
    load.bytes_per_s = a->bytes_per_s;
    load.multiplies_per_s = a->multiplies_per_s;
    m.load = &load;
    if (a->o.report) a->o.report(a->o.user, &m);
    if (grpc_client_unsent(a->now->call) < GRPC_CALM_BYTES) attach_send_message(a->now, &m);
}

void attach_report(attach *a)
{
    if (a->now && a->now->call && a->now->welcomed) report_attach(a);
}

void attach_speeds(attach *a, double bytes_per_s, double multiplies_per_s)
{
    a->bytes_per_s = bytes_per_s;
    a->multiplies_per_s = multiplies_per_s;
}

tls_context *attach_tls(const attach *a)
{
    return a->tls;
}

const char *attach_address(const attach *a)
{
    return a->now ? a->now->address : gateways_address(&a->known);
}

const gateways *attach_gateways(const attach *a)
{
    return &a->known;
}

bool attach_is_up(const attach *a)
{
    return a->now && a->now->welcomed;
}

grpc_client_call *attach_call(attach *a, const char *path, const void *msg, size_t n, uint64_t deadline_ns,
                              const grpc_client_events *ev)
{
    return attach_is_up(a) ? grpc_call_start(a->now->channel, path, msg, n, NULL, 0, deadline_ns, ev) : NULL;
}

/* The gateway where this machine began places models again: there first, and only then away from here. */
static void go_home_when_due(attach *a)
{
    bool due = a->o.roams && a->may_go_home && !gateways_is_home(&a->known) && now_ns(a) >= a->go_home_ns;
    if (!due || a->next || a->renewal) return;
    go_home_later(a);
    link_open(a, &a->next, a->known.list[0].address);
}

static void attach_on_tick(void *user)
{
    attach *a = user;
    attach_link *l = a->now;
    a->e->timer_start(a->tick, REPORT_MS);
    tls_expiry_tell(&a->expiry, a->tls, "attach", wall(a));
    if (l && l->call && heard_until_ns(a) - l->heard_ns > SILENCE_MS * UINT64_C(1000000)) {
        link_lost(l, "nothing was heard of the gateway for too long");
        return;
    }
    if (!l || !l->welcomed) return;
    report_attach(a);
    renew_when_due(a);
    go_home_when_due(a);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static bool attach_admit(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    const attach *a = user;
    if (strcmp(who->unit, role_name(ROLE_GATEWAY)) != 0)
        snprintf(why, TLS_WHY_BYTES, "it shows a node's certificate, and is no gateway");
    else if (trust_serial_is_revoked(a->own.trust, who->serial))
        snprintf(why, TLS_WHY_BYTES, "the gateway's certificate was revoked");
    else
        return true;
    return false;
}

static int open_tls(attach *a, shoal_err *err)
{
    char cert[4096], ca[4096], crl[4096];
    const char *path = a->o.dir->path;
    snprintf(cert, sizeof cert, "%s/member.pem", path);
    snprintf(ca, sizeof ca, "%s/ca.crt", path);
    snprintf(crl, sizeof crl, "%s/crl.pem", path);
    tls_options o = {.cert_file = cert,
                     .key_file = cert,
                     .ca_file = ca,
                     .crl_file = crl,
                     .any_name = true,
                     .admit = attach_admit,
                     .user = a};
    return tls_context_new(&a->tls, TLS_CLIENT, &o, err);
}

static int pack_hello(attach *a, shoal_err *err)
{
    Shoal__V1__AgentMessage m = SHOAL__V1__AGENT_MESSAGE__INIT;
    m.hello = (Shoal__V1__NodeFacts *)a->o.facts;
    a->n_hello = shoal__v1__agent_message__get_packed_size(&m);
    a->hello = malloc(a->n_hello ? a->n_hello : 1);
    if (!a->hello) return err_nomem(err);
    shoal__v1__agent_message__pack(&m, a->hello);
    return 0;
}

static int set_up(attach *a, shoal_err *err)
{
    shoal_err why;
    int rc = gateways_give(&a->known, a->o.address, err);
    if (rc == 0 && gateways_read(&a->known, a->o.dir, &why) != 0)
        LOG(LOG_WARN, "attach", "gateways_unread", LOG_S("reason", why.message));
    a->known.roams = a->o.roams;
    if (rc == 0) rc = credential_load(&a->own, a->o.dir, err);
    if (rc == 0 && a->own.id.role != a->o.role)
        rc = err_set(err, SHOAL_EAUTH, "%s/member.pem is a %s's certificate: start it with shoal %s",
                     a->o.dir->path, role_name(a->own.id.role),
                     a->own.id.role == ROLE_NODE ? "agent" : "serve");
    if (rc == 0) rc = pack_hello(a, err);
    if (rc == 0) rc = open_tls(a, err);
    if (rc == 0 && link_open(a, &a->now, gateways_address(&a->known)) != 0)
        rc = err_set(err, SHOAL_EINVALID, "%s: no gateway can be there", gateways_address(&a->known));
    return rc;
}

static void attach_release(attach *a)
{
    void (*closed)(void *) = a->closed;
    void *user = a->closed_user;
    a->e->timer_free(a->tick);
    a->e->timer_free(a->retry);
    credential_done(&a->own);
    EVP_PKEY_free(a->renewal_key);
    tls_context_unref(a->tls);
    free(a->hello);
    free(a);
    if (closed) closed(user);
}

int attach_open(attach **ret, uv_loop_t *loop, const attach_options *o, shoal_err *err)
{
    attach *a = calloc(1, sizeof *a);
    if (!a) return err_nomem(err);
    a->loop = loop;
    a->o = *o;
    a->loop_time = env_uv(loop);
    a->e = o->time ? o->time : &a->loop_time;
    a->tick = a->e->timer_new(a->e->user, attach_on_tick, a);
    a->retry = a->e->timer_new(a->e->user, retry, a);
    rng_bytes(&a->instance, sizeof a->instance);
    a->instance |= 1;
    int rc = a->tick && a->retry ? set_up(a, err) : err_nomem(err);
    if (rc != 0) {
        attach_release(a);
        return rc;
    }
    a->e->timer_start(a->tick, REPORT_MS);
    *ret = a;
    return 0;
}

void attach_close(attach *a, void (*closed)(void *user), void *user)
{
    if (!a) {
        if (closed) closed(user);
        return;
    }
    a->closed = closed;
    a->closed_user = user;
    link_close(a->next);
    link_close(a->now);
    a->now = a->next = NULL;
    a->closing = true;
    a->e->timer_stop(a->tick);
    a->e->timer_start(a->retry, 0);
}
