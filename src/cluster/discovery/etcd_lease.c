/* etcd_lease.c: grant, keepalive, and what is known of its life. */
#include "discovery/etcd_lease.h"

#include <stdlib.h>

#include "logging/log.h"
#include "etcd/rpc.pb-c.h"

enum { RETRY_MS = 1000 };
#define S_NS  UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)

struct etcd_lease {
    etcd_client *c;
    etcd_listener listener;
    etcd_lease_events ev;
    unsigned ttl_s;  /* that is asked for */
    uint64_t ttl_ns; /* that was given */
    int64_t id;
    uint64_t sent_ns, until_ns; /* sent_ns: of what is not answered yet; 0: all is */
    uint64_t asked_ns;          /* the same moment by the listening clock (time/env.h) */
    etcd_call *granting, *revoking;
    grpc_client_call *stream;
    env_timer *beat; /* the next keepalive, or grant */
    bool leaving;
    void (*done)(void *user);
    void *done_user;
};

static const env *env_of(const etcd_lease *l)
{
    return etcd_client_env(l->c);
}

static uint64_t now_ns(const etcd_lease *l)
{
    return env_of(l)->now_ns(env_of(l)->user);
}

static uint64_t listening_ns(const etcd_lease *l)
{
    return env_of(l)->listening_ns(env_of(l)->user);
}

int64_t etcd_lease_id(const etcd_lease *l)
{
    return l->id;
}

uint64_t etcd_lease_until_ns(const etcd_lease *l)
{
    return l->id ? l->until_ns : 0;
}

static void confirm(etcd_lease *l, uint64_t ttl_s)
{
    l->ttl_ns = (ttl_s < 86400 ? ttl_s : 86400) * S_NS;
    l->until_ns = l->sent_ns + l->ttl_ns - l->ttl_ns / 10;
    l->sent_ns = 0;
}

static void beat_in(etcd_lease *l, uint64_t ms)
{
    if (!l->leaving) env_of(l)->timer_start(l->beat, ms);
}

static void close_stream(etcd_lease *l)
{
    if (l->stream) grpc_client_cancel(l->stream);
    l->stream = NULL;
}

/* ---- granting ------------------------------------------------------------------------------------ */

static void take_grant(etcd_lease *l, const Etcdserverpb__LeaseGrantResponse *m)
{
    if (m->id == 0 || m->ttl <= 0) {
        LOG(LOG_WARN, "etcd", "no_lease", LOG_S("reason", m->error));
        beat_in(l, RETRY_MS);
        return;
    }
    l->id = m->id;
    confirm(l, (uint64_t)m->ttl);
    LOG(LOG_DEBUG, "etcd", "lease_granted", LOG_I("ttl_s", m->ttl));
    beat_in(l, 0);
    l->ev.granted(l->ev.user);
}

static void on_grant(void *user, const etcd_answer *a)
{
    etcd_lease *l = user;
    l->granting = NULL;
    Etcdserverpb__LeaseGrantResponse *m =
        a->status == GRPC_OK ? etcdserverpb__lease_grant_response__unpack(NULL, a->n, a->bytes) : NULL;
    if (m) {
        take_grant(l, m);
        etcdserverpb__lease_grant_response__free_unpacked(m, NULL);
    } else if (etcd_client_is_up(l->c)) {
        LOG(LOG_WARN, "etcd", "no_lease", LOG_S("reason", a->message ? a->message : "it cannot be read"));
        beat_in(l, RETRY_MS);
    }
}

static void grant(etcd_lease *l)
{
    Etcdserverpb__LeaseGrantRequest m = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
    if (l->granting || l->leaving) return;
    m.ttl = l->ttl_s;
    l->sent_ns = now_ns(l);
    l->granting = etcd_client_call(l->c, ETCD_GRANT, &m.base, on_grant, l);
    if (!l->granting) beat_in(l, RETRY_MS);
}

/* ---- keeping alive ------------------------------------------------------------------------------- */

static void gone(etcd_lease *l)
{
    LOG(LOG_WARN, "etcd", "lease_lost", LOG_I("ttl_s", l->ttl_ns / S_NS));
    l->id = 0;
    l->until_ns = l->sent_ns = 0;
    close_stream(l);
    l->ev.lost(l->ev.user);
    beat_in(l, 0);
}

void etcd_lease_doubt(etcd_lease *l)
{
    if (l->id && !l->leaving) gone(l);
}

static void on_kept(void *user, const uint8_t *msg, size_t n)
{
    etcd_lease *l = user;
    Etcdserverpb__LeaseKeepAliveResponse *m = etcdserverpb__lease_keep_alive_response__unpack(NULL, n, msg);
    if (!m) {
        etcd_client_doubt(l->c, "its answer to a keepalive cannot be read");
        return;
    }
    int64_t id = m->id, ttl_s = m->ttl;
    etcdserverpb__lease_keep_alive_response__free_unpacked(m, NULL);
    if (id != l->id || !l->sent_ns) return;
    if (ttl_s <= 0) {
        gone(l);
        return;
    }
    confirm(l, (uint64_t)ttl_s);
    beat_in(l, l->ttl_ns / MS_NS / 3);
    if (l->ev.confirmed) l->ev.confirmed(l->ev.user);
}

static void stream_ended(void *user, grpc_status status, const char *message)
{
    etcd_lease *l = user;
    l->stream = NULL;
    l->sent_ns = 0;
    if (!etcd_client_is_up(l->c)) return;
    if (status == GRPC_UNAUTHENTICATED)
        etcd_client_renew(l->c);
    else if (status == GRPC_UNAVAILABLE)
        etcd_client_doubt(l->c, message);
    else
        beat_in(l, RETRY_MS);
}

/* Silence counts while we listened; until when the lease holds is told by the true clock alone. */
static uint64_t may_still_answer_ms(const etcd_lease *l)
{
    uint64_t silent_ns = listening_ns(l) - l->asked_ns, most_ns = l->ttl_ns / 3;
    return silent_ns < most_ns ? (most_ns - silent_ns) / MS_NS + 1 : 0;
}

static void keep(etcd_lease *l)
{
    Etcdserverpb__LeaseKeepAliveRequest m = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
    const grpc_client_events ev = {.user = l, .message = on_kept, .end = stream_ended};
    if (l->sent_ns && may_still_answer_ms(l) > 0) {
        beat_in(l, may_still_answer_ms(l));
        return;
    }
    if (l->sent_ns) { /* a third of its life without an answer */
        etcd_client_doubt(l->c, "it does not answer a keepalive");
        return;
    }
    m.id = l->id;
    if (!l->stream) l->stream = etcd_client_stream(l->c, ETCD_KEEP_ALIVE, &ev);
    if (l->stream && etcd_stream_send(l->stream, &m.base) == 0) {
        l->sent_ns = now_ns(l);
        l->asked_ns = listening_ns(l);
    }
    beat_in(l, l->sent_ns ? l->ttl_ns / MS_NS / 3 : RETRY_MS);
}

static void beat(void *arg)
{
    etcd_lease *l = arg;
    if (!etcd_client_is_up(l->c) || l->leaving) return;
    if (l->id)
        keep(l);
    else
        grant(l);
}

/* ---- giving it back ------------------------------------------------------------------------------ */

static void revoked(etcd_lease *l)
{
    void (*done)(void *) = l->done;
    l->done = NULL;
    if (done) done(l->done_user);
}

static void on_revoked(void *user, const etcd_answer *a)
{
    etcd_lease *l = user;
    l->revoking = NULL;
    l->id = 0;
    revoked(l);
}

void etcd_lease_revoke(etcd_lease *l, void (*done)(void *user), void *user)
{
    Etcdserverpb__LeaseRevokeRequest m = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;
    l->leaving = true;
    l->done = done;
    l->done_user = user;
    env_of(l)->timer_stop(l->beat);
    etcd_call_cancel(l->granting);
    l->granting = NULL;
    m.id = l->id;
    l->revoking = l->id ? etcd_client_call(l->c, ETCD_REVOKE, &m.base, on_revoked, l) : NULL;
    if (!l->revoking) revoked(l);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void on_up(void *user)
{
    etcd_lease *l = user;
    l->sent_ns = 0;
    beat_in(l, 0);
}

static void on_down(void *user, const char *why)
{
    etcd_lease *l = user;
    env_of(l)->timer_stop(l->beat);
    l->sent_ns = 0;
}

int etcd_lease_open(etcd_lease **ret, etcd_client *c, unsigned ttl_s, const etcd_lease_events *ev,
                    shoal_err *err)
{
    etcd_lease *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    *l = (etcd_lease){.c = c, .ttl_s = ttl_s, .ev = *ev};
    l->listener = (etcd_listener){.user = l, .up = on_up, .down = on_down};
    l->beat = env_of(l)->timer_new(env_of(l)->user, beat, l);
    if (!l->beat) {
        free(l);
        return err_nomem(err);
    }
    etcd_client_listen(c, &l->listener);
    *ret = l;
    return 0;
}

void etcd_lease_close(etcd_lease *l)
{
    if (!l) return;
    etcd_client_unlisten(l->c, &l->listener);
    etcd_call_cancel(l->granting);
    etcd_call_cancel(l->revoking);
    close_stream(l);
    env_of(l)->timer_free(l->beat);
    free(l);
}
