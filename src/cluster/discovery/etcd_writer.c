/* etcd_writer.c: a list of keys, each with what etcd shall have there, and one transaction at a time. */
#include "discovery/etcd_writer.h"

#include <stdlib.h>
#include <string.h>

#include "etcd/rpc.pb-c.h"

typedef struct record {
    struct record *next;
    uint8_t *value; /* NULL: to be deleted */
    size_t n;
    bool dirty;
    char key[];
} record;

struct etcd_writer {
    etcd_session *s;
    etcd_writer_options o;
    etcd_listener listener;
    record *records; /* in the order of their first put */
    record *sending; /* what the call is about */
    etcd_call *call;
};

static void writer_pump(void *arg);

/* ---- records ------------------------------------------------------------------------------------- */

static void writer_drop(etcd_writer *w, record *r)
{
    record **at = &w->records;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    free(r->value);
    free(r);
}

static record *writer_find(etcd_writer *w, const char *key)
{
    record *r = w->records;
    while (r && strcmp(r->key, key) != 0) r = r->next;
    return r;
}

static record *writer_add(etcd_writer *w, const char *key)
{
    size_t n = strlen(key) + 1;
    record *r = calloc(1, sizeof *r + n), **at = &w->records;
    if (!r) return NULL;
    memcpy(r->key, key, n);
    while (*at) at = &(*at)->next;
    return *at = r;
}

size_t etcd_writer_waiting(const etcd_writer *w)
{
    size_t n = w->call != NULL;
    for (const record *r = w->records; r; r = r->next) n += r->dirty;
    return n;
}

static void writer_cancel(etcd_writer *w)
{
    etcd_call_cancel(w->call);
    if (w->sending) w->sending->dirty = true;
    w->call = NULL;
    w->sending = NULL;
}

void etcd_writer_forget(etcd_writer *w)
{
    writer_cancel(w);
    while (w->records) writer_drop(w, w->records);
}

/* ---- a transaction ------------------------------------------------------------------------------- */

/* False: etcd did not answer, or not so that it can be read. */
static bool writer_read(const etcd_answer *a, bool *ret_held)
{
    Etcdserverpb__TxnResponse *m =
        a->status == GRPC_OK ? etcdserverpb__txn_response__unpack(NULL, a->n, a->bytes) : NULL;
    if (!m) return false;
    *ret_held = m->succeeded;
    etcdserverpb__txn_response__free_unpacked(m, NULL);
    return true;
}

static void writer_failed(etcd_writer *w, record *r, const etcd_answer *a)
{
    r->dirty = true;
    if (!etcd_session_is_up(w->s)) return; /* the next connection goes on */
    w->o.failed(w->o.user, r->key, a->status == GRPC_OK ? "its answer cannot be read" : a->message);
    etcd_session_retry(&w->listener);
    if (w->o.leased && a->status == GRPC_NOT_FOUND) etcd_session_doubt_lease(w->s);
}

static void writer_answered(void *user, const etcd_answer *a)
{
    etcd_writer *w = user;
    record *r = w->sending;
    bool held;
    w->call = NULL;
    w->sending = NULL;
    if (!writer_read(a, &held)) {
        writer_failed(w, r, a);
        return;
    }
    etcd_session_succeeded(&w->listener);
    if (!held) {
        w->o.failed(w->o.user, r->key, NULL);
        etcd_writer_forget(w);
    } else if (!r->dirty && (!r->value || !w->o.leased)) {
        writer_drop(w, r);
    }
    writer_pump(w);
}

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)text, .len = strlen(text)};
}

/* fence NULL: whatever there is. */
static etcd_call *writer_send(etcd_writer *w, const record *r, const char *fence, int64_t revision)
{
    Etcdserverpb__TxnRequest m = ETCDSERVERPB__TXN_REQUEST__INIT;
    Etcdserverpb__Compare holds = ETCDSERVERPB__COMPARE__INIT, *compare[] = {&holds};
    Etcdserverpb__RequestOp op = ETCDSERVERPB__REQUEST_OP__INIT, *success[] = {&op};
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    Etcdserverpb__DeleteRangeRequest del = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
    if (fence) {
        holds.key = bytes_of(fence);
        holds.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__CREATE;
        holds.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_CREATE_REVISION;
        holds.create_revision = revision;
        m.compare = compare;
        m.n_compare = 1;
    }
    put.key = del.key = bytes_of(r->key);
    put.value = (ProtobufCBinaryData){.data = r->value, .len = r->n};
    put.lease = w->o.leased ? etcd_session_lease(w->s) : 0;
    if (r->value) {
        op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
        op.request_put = &put;
    } else {
        op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
        op.request_delete_range = &del;
    }
    m.success = success;
    m.n_success = 1;
    return etcd_session_call(w->s, ETCD_TXN, &m.base, writer_answered, w);
}

static void writer_pump(void *arg)
{
    etcd_writer *w = arg;
    record *r = w->records;
    const char *fence = NULL;
    int64_t revision = 0;
    while (r && !r->dirty) r = r->next;
    if (!r || w->call || (w->o.leased && !etcd_session_lease(w->s))) return;
    if (w->o.fence && !(fence = w->o.fence(w->o.user, &revision))) {
        etcd_writer_forget(w);
        return;
    }
    w->call = writer_send(w, r, fence, revision);
    if (w->call) {
        w->sending = r;
        r->dirty = false;
    } else {
        etcd_session_retry(&w->listener);
    }
}

/* ---- what is wanted ------------------------------------------------------------------------------ */

static bool writer_has(const record *r, const void *value, size_t n)
{
    return !value == !r->value && n == r->n && (!n || memcmp(value, r->value, n) == 0);
}

int etcd_writer_put(etcd_writer *w, const char *key, const void *value, size_t n)
{
    record *r = writer_find(w, key);
    if (r ? writer_has(r, value, n) : !value && w->o.leased) return 0;
    uint8_t *copy = value ? malloc(n + 1) : NULL;
    if (!r && (copy || !value)) r = writer_add(w, key);
    if (!r || (value && !copy)) {
        free(copy);
        return SHOAL_ENOMEM;
    }
    if (n) memcpy(copy, value, n);
    free(r->value);
    r->value = copy;
    r->n = n;
    r->dirty = true;
    writer_pump(w);
    return 0;
}

static void writer_all_dirty(etcd_writer *w)
{
    for (record *r = w->records; r; r = r->next) r->dirty = true;
}

void etcd_writer_rewrite(etcd_writer *w)
{
    writer_all_dirty(w);
    etcd_session_retry(&w->listener);
}

static void writer_lease(void *user, etcd_lease_event what)
{
    etcd_writer *w = user;
    if (what == ETCD_LEASE_LOST && w->o.leased) {
        writer_cancel(w);
        writer_all_dirty(w);
    } else if (what == ETCD_LEASE_GRANTED) {
        writer_pump(w);
    }
}

/* ---- life ---------------------------------------------------------------------------------------- */

int etcd_writer_open(etcd_writer **ret, etcd_session *s, const etcd_writer_options *o, shoal_err *err)
{
    etcd_writer *w = calloc(1, sizeof *w);
    if (!w) return err_nomem(err);
    *w = (etcd_writer){.s = s, .o = *o};
    w->listener = (etcd_listener){.user = w, .ready = writer_pump, .lease = writer_lease};
    if (etcd_session_listen(s, &w->listener, err) != 0) {
        free(w);
        return SHOAL_ENOMEM;
    }
    *ret = w;
    return 0;
}

void etcd_writer_close(etcd_writer *w)
{
    if (!w) return;
    etcd_writer_forget(w);
    etcd_session_unlisten(&w->listener);
    free(w);
}
