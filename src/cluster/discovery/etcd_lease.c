/* etcd_lease.c: grant, keepalive, and what is known of its life. */
#include "discovery/etcd_lease.h"

#include "logging/log.h"
#include "etcd/rpc.pb-c.h"

enum { LEASE_RETRY_MS = 1000 };
#define S_NS  UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)

static uint64_t lease_now_ns(const etcd_lease *l)
{
    return l->e->now_ns(l->e->user);
}

static uint64_t lease_listening_ns(const etcd_lease *l)
{
    return l->e->listening_ns(l->e->user);
}

static void lease_confirm(etcd_lease *l, uint64_t ttl_s)
{
    l->ttl_ns = (ttl_s < 86400 ? ttl_s : 86400) * S_NS;
    l->until_ns = l->sent_ns + l->ttl_ns - l->ttl_ns / 10;
    l->sent_ns = 0;
}

static void lease_beat_in(etcd_lease *l, uint64_t ms)
{
    if (l->ttl_s && !l->leaving) l->e->timer_start(l->beat, ms);
}

/* ---- granting ------------------------------------------------------------------------------------ */

static void lease_refused(etcd_lease *l, const char *why)
{
    LOG(LOG_WARN, "etcd", "no_lease", LOG_S("reason", why));
    lease_beat_in(l, LEASE_RETRY_MS);
}

static void lease_take_grant(etcd_lease *l, const Etcdserverpb__LeaseGrantResponse *m)
{
    if (m->id == 0 || m->ttl <= 0) {
        lease_refused(l, m->error);
        return;
    }
    l->id = m->id;
    lease_confirm(l, (uint64_t)m->ttl);
    LOG(LOG_DEBUG, "etcd", "lease_granted", LOG_I("ttl_s", m->ttl));
    lease_beat_in(l, 0);
    l->tell(l->s, ETCD_LEASE_GRANTED);
}

static void lease_on_grant(void *user, const etcd_answer *a)
{
    etcd_lease *l = user;
    l->granting = NULL;
    Etcdserverpb__LeaseGrantResponse *m =
        a->status == GRPC_OK ? etcdserverpb__lease_grant_response__unpack(NULL, a->n, a->bytes) : NULL;
    if (m) {
        lease_take_grant(l, m);
        etcdserverpb__lease_grant_response__free_unpacked(m, NULL);
    } else if (etcd_session_is_up(l->s)) {
        lease_refused(l, a->status == GRPC_OK ? "it cannot be read" : a->message);
    }
}

static void lease_grant(etcd_lease *l)
{
    Etcdserverpb__LeaseGrantRequest m = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
    if (l->granting) return;
    m.ttl = l->ttl_s;
    l->sent_ns = lease_now_ns(l);
    l->granting = etcd_session_call(l->s, ETCD_GRANT, &m.base, lease_on_grant, l);
    if (!l->granting) lease_beat_in(l, LEASE_RETRY_MS);
}

/* ---- keeping alive ------------------------------------------------------------------------------- */

static void lease_gone(etcd_lease *l)
{
    LOG(LOG_WARN, "etcd", "lease_lost", LOG_I("ttl_s", l->ttl_ns / S_NS));
    l->id = 0;
    l->until_ns = l->sent_ns = 0;
    if (l->stream) grpc_client_cancel(l->stream);
    l->stream = NULL;
    l->tell(l->s, ETCD_LEASE_LOST);
    lease_beat_in(l, 0);
}

void etcd_lease_doubt(etcd_lease *l)
{
    if (l->id && !l->leaving) lease_gone(l);
}

static void lease_on_kept(void *user, const uint8_t *msg, size_t n)
{
    etcd_lease *l = user;
    Etcdserverpb__LeaseKeepAliveResponse *m = etcdserverpb__lease_keep_alive_response__unpack(NULL, n, msg);
    if (!m) {
        etcd_session_doubt(l->s, "its answer to a keepalive cannot be read");
        return;
    }
    int64_t id = m->id, ttl_s = m->ttl;
    etcdserverpb__lease_keep_alive_response__free_unpacked(m, NULL);
    if (id != l->id || !l->sent_ns) return;
    if (ttl_s <= 0) {
        lease_gone(l);
        return;
    }
    lease_confirm(l, (uint64_t)ttl_s);
    lease_beat_in(l, l->ttl_ns / MS_NS / 3);
    l->tell(l->s, ETCD_LEASE_CONFIRMED);
}

static void lease_stream_ended(void *user, grpc_status status, const char *message)
{
    etcd_lease *l = user;
    l->stream = NULL;
    l->sent_ns = 0;
    if (etcd_stream_may_reopen(l->s, status, message)) lease_beat_in(l, LEASE_RETRY_MS);
}

/* Silence counts while we listened; until when the lease holds is told by the true clock alone. */
static uint64_t lease_may_answer_ms(const etcd_lease *l)
{
    uint64_t silent_ns = lease_listening_ns(l) - l->asked_ns, most_ns = l->ttl_ns / 3;
    return silent_ns < most_ns ? (most_ns - silent_ns) / MS_NS + 1 : 0;
}

static void lease_keep(etcd_lease *l)
{
    Etcdserverpb__LeaseKeepAliveRequest m = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
    const grpc_client_events ev = {.user = l, .message = lease_on_kept, .end = lease_stream_ended};
    if (l->sent_ns && lease_may_answer_ms(l) > 0) {
        lease_beat_in(l, lease_may_answer_ms(l));
        return;
    }
    if (l->sent_ns) { /* a third of its life without an answer */
        etcd_session_doubt(l->s, "it does not answer a keepalive");
        return;
    }
    m.id = l->id;
    if (!l->stream) l->stream = etcd_session_stream(l->s, ETCD_KEEP_ALIVE, &ev);
    if (l->stream && etcd_stream_send(l->stream, &m.base) == 0) {
        l->sent_ns = lease_now_ns(l);
        l->asked_ns = lease_listening_ns(l);
    }
    lease_beat_in(l, l->sent_ns ? l->ttl_ns / MS_NS / 3 : LEASE_RETRY_MS);
}

static void lease_beat(void *arg)
{
    etcd_lease *l = arg;
    if (!etcd_session_is_up(l->s) || l->leaving) return;
    if (l->id)
        lease_keep(l);
    else
        lease_grant(l);
}

void etcd_lease_up(etcd_lease *l)
{
    lease_beat_in(l, 0);
}

void etcd_lease_down(etcd_lease *l)
{
    l->e->timer_stop(l->beat);
    l->sent_ns = 0;
}

/* ---- giving it back ------------------------------------------------------------------------------ */

static void lease_on_revoked(void *user, const etcd_answer *a)
{
    etcd_lease *l = user;
    l->revoking = NULL;
    l->id = 0;
    l->done(l->done_user);
}

void etcd_lease_revoke(etcd_lease *l, void (*done)(void *user), void *user)
{
    Etcdserverpb__LeaseRevokeRequest m = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;
    l->leaving = true;
    l->done = done;
    l->done_user = user;
    l->e->timer_stop(l->beat);
    etcd_call_cancel(l->granting);
    l->granting = NULL;
    m.id = l->id;
    l->revoking = l->id ? etcd_session_call(l->s, ETCD_REVOKE, &m.base, lease_on_revoked, l) : NULL;
    if (!l->revoking) done(user);
}

/* ---- life ---------------------------------------------------------------------------------------- */

int etcd_lease_open(etcd_lease *l, shoal_err *err)
{
    l->beat = l->e->timer_new(l->e->user, lease_beat, l);
    return l->beat ? 0 : err_nomem(err);
}

void etcd_lease_close(etcd_lease *l)
{
    if (l->stream) grpc_client_cancel(l->stream);
    l->e->timer_free(l->beat);
}
