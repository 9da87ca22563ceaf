/* etcd_board.c: keys that are read by a view, and written one after the other behind a fence. */
#include "discovery/etcd_board.h"

#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "discovery/etcd_view.h"
#include "etcd/rpc.pb-c.h"
#include "trust/identity.h"

enum { RETRY_MS = 1000 };

/* One that is to be written. */
typedef struct notice {
    struct notice *next;
    char node[IDENTITY_NAME_SIZE];
    uint8_t *plan; /* NULL: to be deleted */
    size_t n;
} notice;

struct etcd_board {
    etcd_client *c;
    etcd_election *election;
    etcd_board_events ev;
    etcd_view *view;
    etcd_listener listener;
    char *prefix;
    notice *notices, *sending; /* sending: in no list */
    etcd_call *call;
    env_timer *retry;
    bool closing;
};

static const env *env_of(const etcd_board *b)
{
    return etcd_client_env(b->c);
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void notice_free(notice *x)
{
    if (!x) return;
    free(x->plan);
    free(x);
}

static void forget_all(etcd_board *b)
{
    for (notice *x; (x = b->notices);) {
        b->notices = x->next;
        notice_free(x);
    }
}

static notice *take_notice(etcd_board *b, const char *node)
{
    notice **at = &b->notices;
    while (*at && strcmp((*at)->node, node) != 0) at = &(*at)->next;
    notice *x = *at;
    if (x) *at = x->next;
    return x;
}

size_t etcd_board_waiting(const etcd_board *b)
{
    size_t n = b->sending != NULL;
    for (const notice *x = b->notices; x; x = x->next) n++;
    return n;
}

static void pump(void *arg);

/* Newer news of the same machine replace it; else it is tried again. */
static void put_back(etcd_board *b, notice *x)
{
    notice *newer = take_notice(b, x->node);
    if (newer) {
        notice_free(x);
        x = newer;
    }
    x->next = b->notices;
    b->notices = x;
    env_of(b)->timer_start(b->retry, RETRY_MS);
}

static void on_written(void *user, const etcd_answer *a)
{
    etcd_board *b = user;
    notice *x = b->sending;
    b->call = NULL;
    b->sending = NULL;
    Etcdserverpb__TxnResponse *r =
        a->status == GRPC_OK ? etcdserverpb__txn_response__unpack(NULL, a->n, a->bytes) : NULL;
    if (!r) {
        if (etcd_client_is_up(b->c))
            LOG(LOG_WARN, "etcd", "plan_unwritten", LOG_S("node", x->node), LOG_S("reason", a->message));
        put_back(b, x);
        return;
    }
    if (!r->succeeded) { /* the fence: these plans are nobody's any more */
        LOG(LOG_WARN, "etcd", "plan_refused", LOG_S("node", x->node), LOG_S("reason", "another leads"));
        forget_all(b);
    }
    etcdserverpb__txn_response__free_unpacked(r, NULL);
    notice_free(x);
    pump(b);
}

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)text, .len = strlen(text)};
}

static etcd_call *write_plan(etcd_board *b, const notice *x, const char *key, const char *fence, int64_t term)
{
    Etcdserverpb__TxnRequest m = ETCDSERVERPB__TXN_REQUEST__INIT;
    Etcdserverpb__Compare leads = ETCDSERVERPB__COMPARE__INIT, *compare[] = {&leads};
    Etcdserverpb__RequestOp op = ETCDSERVERPB__REQUEST_OP__INIT, *success[] = {&op};
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    Etcdserverpb__DeleteRangeRequest del = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
    leads.key = bytes_of(fence);
    leads.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__CREATE;
    leads.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_CREATE_REVISION;
    leads.create_revision = term;
    put.key = del.key = bytes_of(key);
    put.value = (ProtobufCBinaryData){.data = x->plan, .len = x->n};
    op.request_case = x->plan ? ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT
                              : ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
    if (x->plan)
        op.request_put = &put;
    else
        op.request_delete_range = &del;
    m.compare = compare;
    m.success = success;
    m.n_compare = m.n_success = 1;
    return etcd_client_call(b->c, ETCD_TXN, &m.base, on_written, b);
}

static void pump(void *arg)
{
    etcd_board *b = arg;
    notice *x = b->notices;
    int64_t term;
    if (!x || b->call) return;
    char *fence = etcd_election_fence(b->election, &term);
    if (!fence) { /* we do not lead, or there is no memory to say so */
        if (etcd_election_leads(b->election))
            env_of(b)->timer_start(b->retry, RETRY_MS);
        else
            forget_all(b);
        return;
    }
    size_t n = strlen(b->prefix) + strlen(x->node) + 1;
    char *key = malloc(n);
    if (key) {
        memcpy(key, b->prefix, strlen(b->prefix));
        memcpy(key + strlen(b->prefix), x->node, strlen(x->node) + 1);
        b->call = write_plan(b, x, key, fence, term);
    }
    if (b->call) {
        b->notices = x->next;
        b->sending = x;
    } else {
        env_of(b)->timer_start(b->retry, RETRY_MS);
    }
    free(key);
    free(fence);
}

void etcd_board_post(etcd_board *b, const char *node, const uint8_t *plan, size_t n)
{
    notice *x = calloc(1, sizeof *x), **at = &b->notices;
    uint8_t *copy = plan && x ? malloc(n ? n : 1) : NULL;
    if (!x || (plan && !copy) || strlen(node) >= sizeof x->node) {
        LOG(LOG_ERROR, "etcd", "plan_unwritten", LOG_S("node", node), LOG_S("reason", "out of memory"));
        free(copy);
        free(x);
        return;
    }
    if (plan) memcpy(copy, plan, n);
    notice_free(take_notice(b, node));
    memcpy(x->node, node, strlen(node) + 1);
    x->plan = copy;
    x->n = n;
    while (*at) at = &(*at)->next;
    *at = x;
    pump(b);
}

/* ---- reading ------------------------------------------------------------------------------------- */

static void on_put(void *user, etcd_key *k, const uint8_t *value, size_t n)
{
    etcd_board *b = user;
    if (n > ETCD_PLAN_BYTES || !identity_name_ok(k->name, strlen(k->name)))
        LOG(LOG_WARN, "etcd", "plan_unread", LOG_S("key", k->name), LOG_I("bytes", n));
    else
        b->ev.read(b->ev.user, k->name, n ? value : (const uint8_t *)"", n); /* empty is not gone */
}

static void on_drop(void *user, etcd_key *k)
{
    etcd_board *b = user;
    if (!b->closing) b->ev.read(b->ev.user, k->name, NULL, 0);
}

static void on_synced(void *user)
{
    etcd_board *b = user;
    b->ev.synced(b->ev.user);
}

static void on_up(void *user)
{
    pump(user);
}

static void on_down(void *user, const char *why)
{
    etcd_board *b = user;
    env_of(b)->timer_stop(b->retry);
}

/* ---- life ---------------------------------------------------------------------------------------- */

int etcd_board_open(etcd_board **ret, etcd_client *c, etcd_election *e, const char *prefix,
                    const etcd_board_events *ev, shoal_err *err)
{
    etcd_board *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    *b = (etcd_board){.c = c, .election = e, .ev = *ev, .prefix = strdup(prefix)};
    b->listener = (etcd_listener){.user = b, .up = on_up, .down = on_down};
    b->retry = env_of(b)->timer_new(env_of(b)->user, pump, b);
    const etcd_view_options o = {
        .prefix = prefix, .keys = {.user = b, .put = on_put, .drop = on_drop}, .synced = on_synced};
    int rc = b->prefix && b->retry ? etcd_view_open(&b->view, c, &o, err) : err_nomem(err);
    if (rc != 0) {
        free(b->prefix);
        env_of(b)->timer_free(b->retry);
        free(b);
        return rc;
    }
    etcd_client_listen(c, &b->listener);
    *ret = b;
    return 0;
}

void etcd_board_close(etcd_board *b)
{
    if (!b) return;
    b->closing = true;
    etcd_client_unlisten(b->c, &b->listener);
    etcd_view_close(b->view);
    etcd_call_cancel(b->call);
    notice_free(b->sending);
    forget_all(b);
    env_of(b)->timer_free(b->retry);
    free(b->prefix);
    free(b);
}
