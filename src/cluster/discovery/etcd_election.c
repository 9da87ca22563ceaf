/* etcd_election.c: a key of ours, the keys of the others, and a clock. */
#include "discovery/etcd_election.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "discovery/etcd_view.h"
#include "etcd/rpc.pb-c.h"
#include "trust/identity.h"

enum { RETRY_MS = 1000 };

struct etcd_election {
    etcd_client *c;
    etcd_lease *lease;
    etcd_view *view;
    etcd_election_events ev;
    char *prefix, *name;
    bool campaigns, leads, written; /* written: etcd has said that our key is there */
    char own[20];                   /* our key behind the prefix: the lease in hexadecimal; "": it is gone */
    int64_t term;
    char leader[IDENTITY_NAME_SIZE];
    etcd_call *writing, *deleting;
    env_timer *retry, *hold;
};

static const env *env_of(const etcd_election *e)
{
    return etcd_client_env(e->c);
}

static uint64_t now_ns(const etcd_election *e)
{
    return env_of(e)->now_ns(env_of(e)->user);
}

static bool holds(const etcd_election *e)
{
    return etcd_lease_until_ns(e->lease) > now_ns(e);
}

/* ---- who leads ----------------------------------------------------------------------------------- */

static void depose(etcd_election *e, const char *why)
{
    if (!e->leads) return;
    e->leads = false;
    env_of(e)->timer_stop(e->hold);
    LOG(LOG_WARN, "etcd", "deposed", LOG_S("name", e->name), LOG_I("term", e->term), LOG_S("reason", why));
    if (e->ev.deposed) e->ev.deposed(e->ev.user, why);
}

static void hold_on(etcd_election *e)
{
    uint64_t until = etcd_lease_until_ns(e->lease), now = now_ns(e);
    env_of(e)->timer_start(e->hold, until > now ? (until - now) / 1000000 : 0);
}

static void hold_over(void *arg)
{
    etcd_election *e = arg;
    if (e->leads && holds(e))
        env_of(e)->timer_start(e->hold, 1); /* the timer counts whole milliseconds */
    else
        depose(e, "etcd has not confirmed the lease in time");
}

static const etcd_key *first_key(const etcd_election *e)
{
    const etcd_key *first = NULL;
    size_t at = 0;
    for (const etcd_key *k; (k = etcd_keys_next(etcd_view_keys(e->view), &at));)
        if (!first || k->create_revision < first->create_revision) first = k;
    return first;
}

static void observe(etcd_election *e, const etcd_key *first)
{
    const char *name = first && first->data ? first->data : "";
    if (strcmp(name, e->leader) == 0) return;
    snprintf(e->leader, sizeof e->leader, "%s", name);
    LOG(LOG_INFO, "etcd", "leader", LOG_S("name", *name ? name : "nobody"));
    if (e->ev.leader) e->ev.leader(e->ev.user, *name ? e->leader : NULL);
}

/* Looks at the keys again: only fresh news makes a leader, any news unmakes one. */
static void decide(etcd_election *e)
{
    if (!e->view) return; /* it is being opened */
    const etcd_key *first = first_key(e);
    bool ours = e->campaigns && *e->own && first && strcmp(first->name, e->own) == 0;
    if (!ours) depose(e, "its key is not the first any more");
    if (ours && e->leads && e->term != first->create_revision) depose(e, "its key was deleted");
    if (etcd_view_is_synced(e->view)) observe(e, first);
    if (!ours || e->leads || !holds(e) || !etcd_view_is_synced(e->view)) return;
    e->leads = true;
    e->term = first->create_revision;
    LOG(LOG_INFO, "etcd", "elected", LOG_S("name", e->name), LOG_I("term", e->term));
    hold_on(e);
    if (e->ev.elected) e->ev.elected(e->ev.user, e->term);
}

bool etcd_election_leads(etcd_election *e)
{
    if (e->leads && !holds(e)) depose(e, "etcd has not confirmed the lease in time");
    return e->leads;
}

const char *etcd_election_leader(const etcd_election *e)
{
    return *e->leader ? e->leader : NULL;
}

/* ---- our key ------------------------------------------------------------------------------------- */

static void try_later(etcd_election *e)
{
    env_of(e)->timer_start(e->retry, RETRY_MS);
}

static void on_written(void *user, const etcd_answer *a)
{
    etcd_election *e = user;
    e->writing = NULL;
    e->written = a->status == GRPC_OK;
    if (a->status == GRPC_NOT_FOUND)
        etcd_lease_doubt(e->lease);
    else if (!e->written) {
        if (etcd_client_is_up(e->c)) LOG(LOG_WARN, "etcd", "cannot_campaign", LOG_S("reason", a->message));
        try_later(e);
    }
}

static void send_write(etcd_election *e, char *key)
{
    Etcdserverpb__TxnRequest m = ETCDSERVERPB__TXN_REQUEST__INIT;
    Etcdserverpb__Compare is_new = ETCDSERVERPB__COMPARE__INIT, *compare[] = {&is_new};
    Etcdserverpb__RequestOp op = ETCDSERVERPB__REQUEST_OP__INIT, *success[] = {&op};
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    put.key = (ProtobufCBinaryData){.data = (uint8_t *)key, .len = strlen(key)};
    put.value = (ProtobufCBinaryData){.data = (uint8_t *)e->name, .len = strlen(e->name)};
    put.lease = etcd_lease_id(e->lease);
    op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
    op.request_put = &put;
    is_new.key = put.key;
    is_new.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__CREATE;
    is_new.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_CREATE_REVISION;
    m.compare = compare;
    m.success = success;
    m.n_compare = m.n_success = 1;
    e->writing = etcd_client_call(e->c, ETCD_TXN, &m.base, on_written, e);
    if (!e->writing) try_later(e);
}

static char *key_of(const etcd_election *e)
{
    size_t n = strlen(e->prefix) + sizeof e->own;
    char *key = malloc(n);
    if (key) snprintf(key, n, "%s%s", e->prefix, e->own);
    return key;
}

char *etcd_election_fence(etcd_election *e, int64_t *ret_term)
{
    char *key = etcd_election_leads(e) ? key_of(e) : NULL;
    if (key) *ret_term = e->term;
    return key;
}

static void write_key(etcd_election *e)
{
    if (!e->campaigns || e->written || e->writing || !etcd_lease_id(e->lease)) return;
    snprintf(e->own, sizeof e->own, "%llx", (unsigned long long)etcd_lease_id(e->lease));
    char *key = key_of(e);
    if (key)
        send_write(e, key);
    else
        try_later(e);
    free(key);
}

static void on_deleted(void *user, const etcd_answer *a)
{
    etcd_election *e = user;
    e->deleting = NULL;
    if (e->campaigns) return; /* again: it is written again */
    if (a->status == GRPC_OK) {
        e->own[0] = '\0';
        return;
    }
    if (etcd_client_is_up(e->c)) LOG(LOG_WARN, "etcd", "cannot_resign", LOG_S("reason", a->message));
    try_later(e);
}

/* Until it is gone: while the lease is kept, nobody else leads. */
static void delete_key(etcd_election *e)
{
    Etcdserverpb__DeleteRangeRequest m = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
    if (!*e->own) return;
    char *key = key_of(e);
    etcd_call_cancel(e->deleting);
    e->deleting = NULL;
    if (key) {
        m.key = (ProtobufCBinaryData){.data = (uint8_t *)key, .len = strlen(key)};
        e->deleting = etcd_client_call(e->c, ETCD_DELETE_RANGE, &m.base, on_deleted, e);
    }
    if (!e->deleting) try_later(e);
    free(key);
}

static void try_again(void *arg)
{
    etcd_election *e = arg;
    if (e->campaigns)
        write_key(e);
    else
        delete_key(e);
}

void etcd_election_campaign(etcd_election *e)
{
    e->campaigns = true;
    write_key(e);
}

void etcd_election_resign(etcd_election *e)
{
    if (!e->campaigns) return;
    e->campaigns = false;
    etcd_call_cancel(e->writing); /* may have been done: the deletion follows it on the same connection */
    e->writing = NULL;
    env_of(e)->timer_stop(e->retry);
    delete_key(e);
    e->written = false;
    depose(e, "it has resigned");
}

/* ---- the lease ----------------------------------------------------------------------------------- */

void etcd_election_granted(etcd_election *e)
{
    e->written = false;
    e->own[0] = '\0';
    write_key(e);
}

void etcd_election_confirmed(etcd_election *e)
{
    if (e->leads) hold_on(e);
    decide(e);
}

void etcd_election_lost(etcd_election *e)
{
    e->written = false;
    e->own[0] = '\0';
    etcd_call_cancel(e->writing);
    e->writing = NULL;
    depose(e, "its lease is gone");
}

/* ---- the keys ------------------------------------------------------------------------------------ */

static void on_put(void *user, etcd_key *k, const uint8_t *value, size_t n)
{
    etcd_election *e = user;
    free(k->data);
    k->data = identity_name_ok((const char *)value, n) ? strndup((const char *)value, n) : NULL;
    if (!k->data) LOG(LOG_WARN, "etcd", "candidate_without_name", LOG_S("key", k->name));
    decide(e);
}

/* The key is out of the table by now. Our own, deleted by hand, is written anew. */
static void on_drop(void *user, etcd_key *k)
{
    etcd_election *e = user;
    free(k->data);
    if (*e->own && strcmp(k->name, e->own) == 0) {
        e->written = false;
        try_later(e);
    }
    decide(e);
}

static void on_synced(void *user)
{
    decide(user);
}

/* ---- life ---------------------------------------------------------------------------------------- */

int etcd_election_open(etcd_election **ret, etcd_client *c, etcd_lease *lease, const char *prefix,
                       const char *name, const etcd_election_events *ev, shoal_err *err)
{
    if (identity_name_check(name, strlen(name), "gateway", err) != 0) return SHOAL_EINVALID;
    etcd_election *e = calloc(1, sizeof *e);
    if (!e) return err_nomem(err);
    *e = (etcd_election){.c = c, .lease = lease, .ev = *ev, .prefix = strdup(prefix), .name = strdup(name)};
    e->retry = env_of(e)->timer_new(env_of(e)->user, try_again, e);
    e->hold = env_of(e)->timer_new(env_of(e)->user, hold_over, e);
    const etcd_view_options o = {
        .prefix = prefix, .keys = {.user = e, .put = on_put, .drop = on_drop}, .synced = on_synced};
    int rc = e->prefix && e->name && e->retry && e->hold ? 0 : err_nomem(err);
    if (rc == 0) rc = etcd_view_open(&e->view, c, &o, err);
    if (rc != 0) {
        etcd_election_close(e);
        return rc;
    }
    *ret = e;
    return 0;
}

void etcd_election_close(etcd_election *e)
{
    if (!e) return;
    etcd_view *v = e->view;
    e->view = NULL; /* nothing is decided any more */
    e->own[0] = '\0';
    etcd_view_close(v);
    etcd_call_cancel(e->writing);
    etcd_call_cancel(e->deleting);
    env_of(e)->timer_free(e->retry);
    env_of(e)->timer_free(e->hold);
    free(e->prefix);
    free(e->name);
    free(e);
}
