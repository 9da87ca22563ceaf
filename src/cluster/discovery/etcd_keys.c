/* etcd_keys.c: the table, and the two kinds of answers that change it. */
#include "discovery/etcd_keys.h"

#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "base/strmap.h"
#include "etcd/rpc.pb-c.h"

typedef Etcdserverpb__ResponseHeader header;

typedef struct entry {
    etcd_key k; /* first; its name is behind this struct */
    unsigned listing;
    bool known;         /* its revisions are those of this store */
    struct entry *next; /* of those to drop */
} entry;

struct etcd_keys {
    strmap by_name;
    etcd_keys_events ev;
    char *prefix;
    size_t n_prefix;
    unsigned listing; /* the number of the last one */
    int64_t revision, listed_revision;
    uint64_t cluster; /* whose revision that is */
    bool said_full;
};

int etcd_keys_new(etcd_keys **ret, const char *prefix, const etcd_keys_events *ev, shoal_err *err)
{
    etcd_keys *k = calloc(1, sizeof *k);
    char *own = k ? strdup(prefix) : NULL;
    if (!own) {
        free(k);
        return err_nomem(err);
    }
    k->prefix = own;
    k->n_prefix = strlen(own);
    k->ev = *ev;
    *ret = k;
    return 0;
}

size_t etcd_keys_count(const etcd_keys *k)
{
    return k->by_name.n;
}

int64_t etcd_keys_revision(const etcd_keys *k)
{
    return k->revision;
}

etcd_key *etcd_keys_next(const etcd_keys *k, size_t *at)
{
    return strmap_next(&k->by_name, at);
}

static void etcd_keys_drop(etcd_keys *k, entry *e)
{
    strmap_take(&k->by_name, e->k.name);
    k->ev.drop(k->ev.user, &e->k);
    free(e);
}

/* Those that the last listing did not name, or all. The table must not change while it is walked over. */
static void drop_stale(etcd_keys *k, bool all)
{
    entry *stale = NULL;
    size_t at = 0;
    for (entry *e; (e = strmap_next(&k->by_name, &at));) {
        if (!all && e->listing == k->listing) continue;
        e->next = stale;
        stale = e;
    }
    for (entry *e; (e = stale);) {
        stale = e->next;
        etcd_keys_drop(k, e);
    }
}

void etcd_keys_free(etcd_keys *k)
{
    if (!k) return;
    drop_stale(k, true);
    strmap_done(&k->by_name);
    free(k->prefix);
    free(k);
}

/* ---- one key ------------------------------------------------------------------------------------- */

/* The name behind the prefix, NUL-terminated in out; NULL: it is none that can be meant for us. */
static const char *etcd_keys_name_of(const etcd_keys *k, const ProtobufCBinaryData *key,
                                     char out[ETCD_KEY_BYTES + 1])
{
    if (key->len <= k->n_prefix || memcmp(key->data, k->prefix, k->n_prefix) != 0) return NULL;
    size_t n = key->len - k->n_prefix;
    if (n > ETCD_KEY_BYTES) return NULL;
    memcpy(out, key->data + k->n_prefix, n);
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (out[i] <= ' ' || out[i] >= 0x7F) return NULL;
    return out;
}

static entry *etcd_keys_add(etcd_keys *k, const char *name)
{
    if (k->by_name.n >= ETCD_KEYS_MAX) {
        if (!k->said_full)
            LOG(LOG_ERROR, "etcd", "too_many_keys", LOG_S("prefix", k->prefix),
                LOG_I("limit", ETCD_KEYS_MAX));
        k->said_full = true;
        return NULL;
    }
    size_t n = strlen(name) + 1;
    entry *e = calloc(1, sizeof *e + n);
    if (!e) return NULL;
    memcpy(e + 1, name, n);
    e->k.name = (const char *)(e + 1);
    if (strmap_put(&k->by_name, e->k.name, e)) return e;
    free(e);
    return NULL;
}

static int etcd_keys_put(etcd_keys *k, const Mvccpb__KeyValue *kv, shoal_err *err)
{
    char text[ETCD_KEY_BYTES + 1];
    const char *name = etcd_keys_name_of(k, &kv->key, text);
    if (!name) {
        LOG(LOG_WARN, "etcd", "key_refused", LOG_S("prefix", k->prefix), LOG_I("bytes", kv->key.len));
        return 0;
    }
    entry *e = strmap_get(&k->by_name, name);
    if (!e) e = etcd_keys_add(k, name);
    if (!e) return k->said_full ? 0 : err_nomem(err);
    e->listing = k->listing;
    bool same = e->k.mod_revision == kv->mod_revision && e->k.create_revision == kv->create_revision;
    if (e->known && same) return 0;
    e->known = true;
    e->k.mod_revision = kv->mod_revision;
    e->k.create_revision = kv->create_revision;
    k->ev.put(k->ev.user, &e->k, kv->value.data, kv->value.len);
    return 0;
}

static void del(etcd_keys *k, const Mvccpb__KeyValue *kv)
{
    char text[ETCD_KEY_BYTES + 1];
    const char *name = etcd_keys_name_of(k, &kv->key, text);
    entry *e = name ? strmap_get(&k->by_name, name) : NULL;
    if (e) etcd_keys_drop(k, e);
}

/* ---- a listing ----------------------------------------------------------------------------------- */

void etcd_keys_begin_list(etcd_keys *k)
{
    k->listing++;
    if (k->listing == 0) k->listing = 1;
    k->listed_revision = 0;
    k->said_full = false;
}

/* Where the page after this one begins: behind its last key, that is, at the same with a zero byte. */
static int next_page(const Etcdserverpb__RangeResponse *m, etcd_page *p, shoal_err *err)
{
    const ProtobufCBinaryData *last = &m->kvs[m->n_kvs - 1]->key;
    p->next = malloc(last->len + 1);
    if (!p->next) return err_nomem(err);
    if (last->len) memcpy(p->next, last->data, last->len);
    p->next[last->len] = '\0';
    p->n_next = last->len + 1;
    return 0;
}

/* Its revisions are not those that we know: another store, or an old copy of ours that was put in place. */
static bool is_other_store(const etcd_keys *k, const header *h)
{
    return h->cluster_id != k->cluster || h->revision < k->revision;
}

/* Another store's revisions say nothing of what we know: each key counts as changed. */
static void begin_pages(etcd_keys *k, const header *h)
{
    size_t at = 0;
    if (is_other_store(k, h))
        for (entry *e; (e = strmap_next(&k->by_name, &at));) e->known = false;
    k->listed_revision = h->revision;
    k->cluster = h->cluster_id;
}

static int take_page(etcd_keys *k, const Etcdserverpb__RangeResponse *m, etcd_page *p, shoal_err *err)
{
    if (!m->header || m->header->revision <= 0 || (m->more && m->n_kvs == 0))
        return err_set(err, SHOAL_EPROTOCOL, "etcd's listing makes no sense");
    if (!k->listed_revision) begin_pages(k, m->header);
    for (size_t i = 0; i < m->n_kvs; i++) {
        int rc = etcd_keys_put(k, m->kvs[i], err);
        if (rc != 0) return rc;
    }
    *p = (etcd_page){.more = m->more, .revision = k->listed_revision};
    return m->more ? next_page(m, p, err) : 0;
}

int etcd_keys_hear_page(etcd_keys *k, const uint8_t *bytes, size_t n, etcd_page *ret, shoal_err *err)
{
    Etcdserverpb__RangeResponse *m = etcdserverpb__range_response__unpack(NULL, n, bytes);
    if (!m) return err_set(err, SHOAL_EPROTOCOL, "etcd's listing cannot be read");
    int rc = take_page(k, m, ret, err);
    etcdserverpb__range_response__free_unpacked(m, NULL);
    return rc;
}

void etcd_keys_end_list(etcd_keys *k)
{
    drop_stale(k, false);
    k->revision = k->listed_revision;
}

/* ---- a watch ------------------------------------------------------------------------------------- */

static int take_events(etcd_keys *k, const Etcdserverpb__WatchResponse *m, shoal_err *err)
{
    int64_t at = k->revision;
    for (size_t i = 0; i < m->n_events; i++) {
        const Mvccpb__Event *e = m->events[i];
        if (!e->kv) return err_set(err, SHOAL_EPROTOCOL, "etcd tells of a change of no key");
        int rc = 0;
        if (e->type == MVCCPB__EVENT__EVENT_TYPE__DELETE)
            del(k, e->kv);
        else
            rc = etcd_keys_put(k, e->kv, err);
        if (rc != 0) return rc;
        if (e->kv->mod_revision > at) at = e->kv->mod_revision;
    }
    /* What is left of a revision must not be skipped should the stream break here. */
    if (!m->fragment) k->revision = at;
    return 0;
}

static int take_answer(etcd_keys *k, const Etcdserverpb__WatchResponse *m, etcd_news *ret, shoal_err *err)
{
    *ret = ETCD_NEWS;
    if (m->canceled) {
        *ret = m->compact_revision > 0 ? ETCD_FORGOTTEN : ETCD_ENDED;
        err_set(err, SHOAL_EUNAVAILABLE, "etcd ended the watch: %.120s",
                *m->cancel_reason ? m->cancel_reason : "no reason given");
        return 0;
    }
    if (!m->header) return err_set(err, SHOAL_EPROTOCOL, "etcd's answer has no header");
    if (m->created) {
        *ret = is_other_store(k, m->header) ? ETCD_FORGOTTEN : ETCD_CREATED;
        return 0;
    }
    /* Said unasked, it holds for all that this watch saw; an answer to a question may overtake events (etcd
     * 3.4 before .25). */
    bool idle = m->n_events == 0 && m->watch_id >= 0 && !m->fragment;
    if (idle && m->header->revision > k->revision) k->revision = m->header->revision;
    return take_events(k, m, err);
}

int etcd_keys_hear_watch(etcd_keys *k, const uint8_t *bytes, size_t n, etcd_news *ret, shoal_err *err)
{
    Etcdserverpb__WatchResponse *m = etcdserverpb__watch_response__unpack(NULL, n, bytes);
    if (!m) return err_set(err, SHOAL_EPROTOCOL, "etcd's answer cannot be read");
    int rc = take_answer(k, m, ret, err);
    etcdserverpb__watch_response__free_unpacked(m, NULL);
    return rc;
}
