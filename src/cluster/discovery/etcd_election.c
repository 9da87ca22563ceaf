/* etcd_election.c: a key of ours, the keys of the others, and a clock. */
#include "discovery/etcd_election.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "discovery/etcd_view.h"
#include "discovery/etcd_writer.h"
#include "etcd/rpc.pb-c.h"
#include "trust/identity.h"

struct etcd_election {
    etcd_session *s;
    etcd_writer *writer;
    etcd_view *view;
    etcd_listener listener;
    etcd_election_events ev;
    char *name, *key; /* key: ours, whole */
    char *own;        /* in it, behind the prefix: the lease in hexadecimal; "": there is no such key */
    bool campaigns, leads;
    int64_t term;
    char leader[IDENTITY_NAME_SIZE];
    env_timer *hold;
};

enum { ELECTION_LEASE_BYTES = 17 };

static const env *election_env(const etcd_election *e)
{
    return etcd_session_env(e->s);
}

static uint64_t election_now_ns(const etcd_election *e)
{
    return election_env(e)->now_ns(election_env(e)->user);
}

static bool election_holds(const etcd_election *e)
{
    return etcd_session_lease_until_ns(e->s) > election_now_ns(e);
}

/* ---- who leads ----------------------------------------------------------------------------------- */

static void election_depose(etcd_election *e, const char *why)
{
    if (!e->leads) return;
    e->leads = false;
    election_env(e)->timer_stop(e->hold);
    LOG(LOG_WARN, "etcd", "deposed", LOG_S("name", e->name), LOG_I("term", e->term), LOG_S("reason", why));
    if (e->ev.deposed) e->ev.deposed(e->ev.user, why);
}

static void election_hold_on(etcd_election *e)
{
    uint64_t until = etcd_session_lease_until_ns(e->s), now = election_now_ns(e);
    election_env(e)->timer_start(e->hold, until > now ? (until - now) / 1000000 : 0);
}

static void election_hold_over(void *arg)
{
    etcd_election *e = arg;
    if (e->leads && election_holds(e))
        election_env(e)->timer_start(e->hold, 1); /* the timer counts whole milliseconds */
    else
        election_depose(e, "etcd has not confirmed the lease in time");
}

static const etcd_key *election_first_key(const etcd_election *e)
{
    const etcd_key *first = NULL;
    size_t at = 0;
    for (const etcd_key *k; (k = etcd_keys_next(etcd_view_keys(e->view), &at));)
        if (!first || k->create_revision < first->create_revision) first = k;
    return first;
}

static void election_observe(etcd_election *e, const etcd_key *first)
{
    const char *name = first && first->data ? first->data : "";
    if (strcmp(name, e->leader) == 0) return;
    snprintf(e->leader, sizeof e->leader, "%s", name);
    LOG(LOG_INFO, "etcd", "leader", LOG_S("name", *name ? name : "nobody"));
    if (e->ev.leader) e->ev.leader(e->ev.user, *name ? e->leader : NULL);
}

/* Looks at the keys again: only fresh news makes a leader, any news unmakes one. */
static void election_decide(etcd_election *e)
{
    if (!e->view) return; /* it is being opened */
    const etcd_key *first = election_first_key(e);
    bool ours = e->campaigns && *e->own && first && strcmp(first->name, e->own) == 0;
    if (!ours) election_depose(e, "its key is not the first any more");
    if (ours && e->leads && e->term != first->create_revision) election_depose(e, "its key was deleted");
    if (etcd_view_is_synced(e->view)) election_observe(e, first);
    if (!ours || e->leads || !election_holds(e) || !etcd_view_is_synced(e->view)) return;
    e->leads = true;
    e->term = first->create_revision;
    LOG(LOG_INFO, "etcd", "elected", LOG_S("name", e->name), LOG_I("term", e->term));
    election_hold_on(e);
    if (e->ev.elected) e->ev.elected(e->ev.user, e->term);
}

bool etcd_election_leads(etcd_election *e)
{
    if (e->leads && !election_holds(e)) election_depose(e, "etcd has not confirmed the lease in time");
    return e->leads;
}

const char *etcd_election_leader(const etcd_election *e)
{
    return *e->leader ? e->leader : NULL;
}

/* ---- our key ------------------------------------------------------------------------------------- */

/* What the writer shall keep there. Deleted it must be: while the lease is kept, nobody else leads. */
static void election_stand(void *user)
{
    etcd_election *e = user;
    if (e->campaigns && etcd_session_lease(e->s))
        snprintf(e->own, ELECTION_LEASE_BYTES, "%llx", (unsigned long long)etcd_session_lease(e->s));
    const char *value = e->campaigns ? e->name : NULL;
    if (*e->own && etcd_writer_put(e->writer, e->key, value, value ? strlen(value) : 0) != 0)
        etcd_session_retry(&e->listener);
}

static void election_failed(void *user, const char *key, const char *why)
{
    const etcd_election *e = user;
    LOG(LOG_WARN, "etcd", e->campaigns ? "cannot_campaign" : "cannot_resign", LOG_S("reason", why));
}

const char *etcd_election_fence(etcd_election *e, int64_t *ret_term)
{
    *ret_term = e->term;
    return etcd_election_leads(e) ? e->key : NULL;
}

void etcd_election_campaign(etcd_election *e)
{
    e->campaigns = true;
    election_stand(e);
}

void etcd_election_resign(etcd_election *e)
{
    if (!e->campaigns) return;
    e->campaigns = false;
    election_stand(e);
    election_depose(e, "it has resigned");
}

static void election_lease(void *user, etcd_lease_event what)
{
    etcd_election *e = user;
    if (what == ETCD_LEASE_GRANTED) {
        election_stand(e);
    } else if (what == ETCD_LEASE_CONFIRMED) {
        if (e->leads) election_hold_on(e);
        election_decide(e);
    } else {
        e->own[0] = '\0';
        etcd_writer_forget(e->writer);
        election_depose(e, "its lease is gone");
    }
}

/* ---- the keys ------------------------------------------------------------------------------------ */

static void election_put(void *user, etcd_key *k, const uint8_t *value, size_t n)
{
    etcd_election *e = user;
    free(k->data);
    k->data = identity_name_ok((const char *)value, n) ? strndup((const char *)value, n) : NULL;
    if (!k->data) LOG(LOG_WARN, "etcd", "candidate_without_name", LOG_S("key", k->name));
    election_decide(e);
}

/* The key is out of the table by now. Our own, deleted by hand, is written anew. */
static void election_drop(void *user, etcd_key *k)
{
    etcd_election *e = user;
    free(k->data);
    if (e->campaigns && strcmp(k->name, e->own) == 0) etcd_writer_rewrite(e->writer);
    election_decide(e);
}

static void election_synced(void *user)
{
    election_decide(user);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int election_open_parts(etcd_election *e, const char *prefix, shoal_err *err)
{
    const etcd_writer_options writer = {.user = e, .leased = true, .failed = election_failed};
    const etcd_view_options view = {.prefix = prefix,
                                    .keys = {.user = e, .put = election_put, .drop = election_drop},
                                    .synced = election_synced};
    size_t n = strlen(prefix);
    e->key = calloc(1, n + ELECTION_LEASE_BYTES);
    e->hold = election_env(e)->timer_new(election_env(e)->user, election_hold_over, e);
    if (!e->name || !e->key || !e->hold) return err_nomem(err);
    memcpy(e->key, prefix, n);
    e->own = e->key + n;
    int rc = etcd_writer_open(&e->writer, e->s, &writer, err);
    if (rc == 0) rc = etcd_session_listen(e->s, &e->listener, err);
    return rc == 0 ? etcd_view_open(&e->view, e->s, &view, err) : rc;
}

int etcd_election_open(etcd_election **ret, etcd_session *s, const char *prefix, const char *name,
                       const etcd_election_events *ev, shoal_err *err)
{
    if (identity_name_check(name, strlen(name), "gateway", err) != 0) return SHOAL_EINVALID;
    etcd_election *e = calloc(1, sizeof *e);
    if (!e) return err_nomem(err);
    *e = (etcd_election){.s = s, .ev = *ev, .name = strdup(name)};
    e->listener = (etcd_listener){.user = e, .ready = election_stand, .lease = election_lease};
    int rc = election_open_parts(e, prefix, err);
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
    e->campaigns = false;
    etcd_view_close(v);
    etcd_session_unlisten(&e->listener);
    etcd_writer_close(e->writer);
    election_env(e)->timer_free(e->hold);
    free(e->name);
    free(e->key);
    free(e);
}
