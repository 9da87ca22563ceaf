/* etcd_shared_plan.c: keys that a view reads and a writer writes behind the leader's fence. */
#include "discovery/etcd_shared_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "discovery/etcd_view.h"
#include "discovery/etcd_writer.h"
#include "trust/identity.h"

struct etcd_shared_plan {
    etcd_election *election;
    etcd_plan_events ev;
    etcd_view *view;
    etcd_writer *writer;
    char *key; /* the prefix, and room for a machine's name */
    size_t n_prefix;
    bool closing;
};

/* ---- writing ------------------------------------------------------------------------------------- */

static const char *plan_fence(void *user, int64_t *ret_term)
{
    const etcd_shared_plan *p = user;
    return etcd_election_fence(p->election, ret_term);
}

static void plan_failed(void *user, const char *key, const char *why)
{
    const etcd_shared_plan *p = user;
    LOG(LOG_WARN, "etcd", why ? "plan_unwritten" : "plan_refused", LOG_S("node", key + p->n_prefix),
        LOG_S("reason", why ? why : "another leads"));
}

size_t etcd_shared_plan_waiting(const etcd_shared_plan *p)
{
    return etcd_writer_waiting(p->writer);
}

void etcd_shared_plan_put(etcd_shared_plan *p, const char *node, const uint8_t *plan, size_t n)
{
    bool fits = snprintf(p->key + p->n_prefix, IDENTITY_NAME_SIZE, "%s", node) < IDENTITY_NAME_SIZE;
    if (!fits || etcd_writer_put(p->writer, p->key, plan, plan ? n : 0) != 0)
        LOG(LOG_ERROR, "etcd", "plan_unwritten", LOG_S("node", node),
            LOG_S("reason", fits ? "out of memory" : "the name is too long"));
}

/* ---- reading ------------------------------------------------------------------------------------- */

static void plan_key_put(void *user, etcd_key *k, const uint8_t *value, size_t n)
{
    etcd_shared_plan *p = user;
    if (n > ETCD_PLAN_BYTES || !identity_name_ok(k->name, strlen(k->name)))
        LOG(LOG_WARN, "etcd", "plan_unread", LOG_S("key", k->name), LOG_I("bytes", n));
    else
        p->ev.read(p->ev.user, k->name, n ? value : (const uint8_t *)"", n); /* empty is not gone */
}

static void plan_key_dropped(void *user, etcd_key *k)
{
    etcd_shared_plan *p = user;
    if (!p->closing) p->ev.read(p->ev.user, k->name, NULL, 0);
}

static void plan_synced(void *user)
{
    etcd_shared_plan *p = user;
    p->ev.synced(p->ev.user);
}

/* ---- life ---------------------------------------------------------------------------------------- */

int etcd_shared_plan_open(etcd_shared_plan **ret, etcd_session *s, etcd_election *e, const char *prefix,
                          const etcd_plan_events *ev, shoal_err *err)
{
    etcd_shared_plan *p = calloc(1, sizeof *p);
    if (!p) return err_nomem(err);
    *p = (etcd_shared_plan){.election = e, .ev = *ev, .n_prefix = strlen(prefix)};
    const etcd_writer_options writer = {.user = p, .fence = plan_fence, .failed = plan_failed};
    const etcd_view_options view = {.prefix = prefix,
                                    .keys = {.user = p, .put = plan_key_put, .drop = plan_key_dropped},
                                    .synced = plan_synced};
    p->key = malloc(p->n_prefix + IDENTITY_NAME_SIZE);
    int rc = p->key ? etcd_writer_open(&p->writer, s, &writer, err) : err_nomem(err);
    if (rc == 0) rc = etcd_view_open(&p->view, s, &view, err);
    if (rc != 0) {
        etcd_shared_plan_close(p);
        return rc;
    }
    memcpy(p->key, prefix, p->n_prefix);
    *ret = p;
    return 0;
}

void etcd_shared_plan_close(etcd_shared_plan *p)
{
    if (!p) return;
    p->closing = true;
    etcd_view_close(p->view);
    etcd_writer_close(p->writer);
    free(p->key);
    free(p);
}
