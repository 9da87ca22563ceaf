/* otlp_exporter.c: see otlp_exporter.h. */
#include "otlp/otlp_exporter.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH_ITEMS = 512, INTERVAL_MS = 5000, RETRY_MS = 300000, QUEUE_BYTES = 4 << 20 };
enum { BACKOFF_MS = 1000, BACKOFF_MAX_MS = 30000, BACKOFF_SHIFT_MAX = 5, COMPACT_BYTES = 64 << 10 };
#define MS_NS 1000000u

/* One signal: its items wait in `queue`, each behind its length, from `at` on. */
typedef struct lane {
    otlp_exporter *x;
    otlp_signal signal;
    buf queue;
    size_t at, n_items;
    buf batch; /* under way, or to be sent again; n_batch items */
    size_t n_batch;
    uint64_t first_ns; /* when it was first sent */
    unsigned n_tries;
    void *call;      /* NULL: none */
    env_timer *wait; /* for the interval, or the back-off */
    bool waiting, backs_off, down;
} lane;

struct otlp_exporter {
    const env *env;
    otlp_transport transport;
    otlp_exporter_options o;
    lane lanes[OTLP_N_SIGNALS];
    buf item;
    env_timer *limit;
    void (*flushed)(void *user);
    void *flushed_user;
};

const char *otlp_drop_name(otlp_drop d)
{
    static const char *const NAMES[] = {
#define OTLP_DROP_NAME(e, name) [e] = name,
        OTLP_DROP_TABLE(OTLP_DROP_NAME)
#undef OTLP_DROP_NAME
    };
    return NAMES[d];
}

void otlp_exporter_drop(otlp_exporter *x, otlp_signal s, otlp_drop why, uint64_t n)
{
    if (n > 0 && x->o.dropped) x->o.dropped(x->o.user, s, why, n);
}

static void lane_changed(lane *l, bool up, const char *why)
{
    const otlp_exporter *x = l->x;
    if (l->down == !up) return;
    l->down = !up;
    if (x->o.changed) x->o.changed(x->o.user, l->signal, up, why);
}

/* ---- the queue --------------------------------------------------------------------------------------- */

static size_t waiting_bytes(const lane *l)
{
    return l->queue.len - l->at;
}

size_t otlp_exporter_queued_bytes(const otlp_exporter *x, otlp_signal s)
{
    return waiting_bytes(&x->lanes[s]) + x->lanes[s].batch.len;
}

static void lane_forget(lane *l)
{
    buf_clear(&l->queue);
    l->at = l->n_items = 0;
}

/* Bytes that were sent are given up where they are more than what waits. */
static void compact(lane *l)
{
    if (l->at < COMPACT_BYTES || l->at < waiting_bytes(l)) return;
    buf_consume(&l->queue, l->at);
    l->at = 0;
}

/* Move up to a batch's items into the body that is sent. SHOAL_ENOMEM: they are gone, and counted. */
static int take_batch(lane *l)
{
    const otlp_exporter *x = l->x;
    size_t n = l->n_items < x->o.batch_items ? l->n_items : x->o.batch_items;
    otlp_bytes *items = malloc(n * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        uint32_t len;
        memcpy(&len, l->queue.data + l->at, sizeof len);
        if (items) items[i] = (otlp_bytes){l->queue.data + l->at + sizeof len, len};
        l->at += sizeof len + len;
    }
    l->n_items -= n;
    l->n_batch = n;
    l->n_tries = 0;
    l->first_ns = env_now_ns(x->env);
    if (items) otlp_batch_put(&l->batch, x->o.protocol, l->signal, x->o.common, items, n);
    bool have = items && !l->batch.failed;
    free(items);
    compact(l);
    return have ? 0 : SHOAL_ENOMEM;
}

/* ---- sending ----------------------------------------------------------------------------------------- */

static void lane_send(lane *l);
static void lane_go_on(lane *l);

static void lane_wait(lane *l, uint64_t ms, bool backs_off)
{
    l->waiting = true;
    l->backs_off = backs_off;
    l->x->env->timer_start(l->wait, ms);
}

static void lane_rest(lane *l)
{
    l->waiting = l->backs_off = false;
    l->x->env->timer_stop(l->wait);
}

static void batch_done(lane *l)
{
    buf_done(&l->batch); /* batches are large, and mostly there is none */
    l->n_batch = 0;
}

static void batch_drop(lane *l, otlp_drop why)
{
    otlp_exporter_drop(l->x, l->signal, why, l->n_batch);
    batch_done(l);
}

/* Doubling, with a quarter of chance so that gateways do not come together. */
static uint64_t backoff_ms(const lane *l)
{
    unsigned shift = l->n_tries - 1 < BACKOFF_SHIFT_MAX ? l->n_tries - 1 : BACKOFF_SHIFT_MAX;
    uint64_t ms = (uint64_t)BACKOFF_MS << shift;
    if (ms > BACKOFF_MAX_MS) ms = BACKOFF_MAX_MS;
    return ms - l->x->env->random(l->x->env->user) % (ms / 4);
}

static void send_later(lane *l, uint64_t after_ms)
{
    uint64_t past_ms = (env_now_ns(l->x->env) - l->first_ns) / MS_NS;
    uint64_t ms = after_ms ? after_ms : backoff_ms(l);
    if (past_ms + ms > l->x->o.retry_ms) {
        batch_drop(l, OTLP_DROP_LATE);
        lane_go_on(l);
        return;
    }
    lane_wait(l, ms, true);
}

static bool may_retry(int status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

static void taken(lane *l, const otlp_reply *r)
{
    otlp_answer a = {0};
    shoal_err err;
    size_t n = l->n_batch;
    otlp_answer_parse(&a, r->json, r->body, r->n_body,
                      &err); /* of a well status nothing else is known then */
    uint64_t refused = a.n_rejected < n || l->signal == OTLP_METRICS ? a.n_rejected : n;
    otlp_exporter_drop(l->x, l->signal, OTLP_DROP_PARTIAL, refused);
    size_t well = refused < n ? n - (size_t)refused : 0;
    if (well > 0 && l->x->o.sent) l->x->o.sent(l->x->o.user, l->signal, well);
    lane_changed(l, a.n_rejected == 0, a.why);
    batch_done(l);
}

static void on_reply(void *user, const otlp_reply *r)
{
    lane *l = user;
    char why[OTLP_WHY_BYTES];
    l->call = NULL;
    if (r->status / 100 == 2) {
        taken(l, r);
        lane_go_on(l);
        return;
    }
    if (r->status)
        snprintf(why, sizeof why, "it answers with status %d", r->status);
    else
        buf_copy_str(why, sizeof why, r->why);
    lane_changed(l, false, why);
    if (l->x->flushed && r->status == 0) { /* it is the end, and nobody is there */
        batch_drop(l, OTLP_DROP_STOPPED);
        lane_go_on(l);
        return;
    }
    if (may_retry(r->status)) {
        send_later(l, r->retry_after_ms);
        return;
    }
    batch_drop(l, OTLP_DROP_REFUSED);
    lane_go_on(l);
}

static void lane_send(lane *l)
{
    otlp_exporter *x = l->x;
    lane_rest(l);
    if (l->n_batch == 0 && l->n_items == 0) return;
    if (l->n_batch == 0 && take_batch(l) != 0) {
        batch_drop(l, OTLP_DROP_MEMORY);
        lane_go_on(l);
        return;
    }
    l->n_tries++;
    l->call = x->transport.post(x->transport.user, l->signal, &l->batch, on_reply, l);
    if (!l->call) send_later(l, 0);
}

static bool is_idle(const lane *l)
{
    return !l->call && l->n_batch == 0 && l->n_items == 0;
}

static void flush_end(otlp_exporter *x)
{
    void (*done)(void *) = x->flushed;
    x->env->timer_stop(x->limit);
    x->flushed = NULL;
    done(x->flushed_user);
}

static void check_flushed(otlp_exporter *x)
{
    if (!x->flushed) return;
    for (size_t i = 0; i < OTLP_N_SIGNALS; i++)
        if (!is_idle(&x->lanes[i])) return;
    flush_end(x);
}

/* Nothing is under way: what waits goes out at once where it is enough, else when the interval is over. */
static void lane_go_on(lane *l)
{
    otlp_exporter *x = l->x;
    if (l->call || l->n_batch > 0) return;
    if (l->n_items >= x->o.batch_items || (x->flushed && l->n_items > 0))
        lane_send(l);
    else if (l->n_items > 0 && !l->waiting)
        lane_wait(l, x->o.interval_ms, false);
    if (is_idle(l)) check_flushed(x);
}

static void on_waited(void *user)
{
    lane *l = user;
    l->waiting = l->backs_off = false;
    if (!l->call) lane_send(l);
}

void otlp_exporter_add(otlp_exporter *x, otlp_signal s, const buf *item)
{
    lane *l = &x->lanes[s];
    uint32_t len = (uint32_t)item->len;
    if (item->failed) {
        otlp_exporter_drop(x, s, OTLP_DROP_MEMORY, 1);
        return;
    }
    if (item->len > x->o.queue_bytes ||
        otlp_exporter_queued_bytes(x, s) + sizeof len + item->len > x->o.queue_bytes) {
        otlp_exporter_drop(x, s, OTLP_DROP_FULL, 1);
        return;
    }
    if (buf_reserve(&l->queue, sizeof len + item->len) != 0) {
        l->queue.failed = false; /* what is in it is whole */
        otlp_exporter_drop(x, s, OTLP_DROP_MEMORY, 1);
        return;
    }
    buf_append(&l->queue, &len, sizeof len);
    buf_append(&l->queue, item->data, item->len);
    l->n_items++;
    lane_go_on(l);
}

void otlp_exporter_replace(otlp_exporter *x, otlp_signal s)
{
    lane_forget(&x->lanes[s]);
}

buf *otlp_exporter_item(otlp_exporter *x)
{
    x->item.failed = false;
    buf_clear(&x->item);
    return &x->item;
}

/* ---- life -------------------------------------------------------------------------------------------- */

static void on_limit(void *user)
{
    otlp_exporter *x = user;
    if (x->flushed) flush_end(x);
}

void otlp_exporter_flush(otlp_exporter *x, uint64_t limit_ms, void (*done)(void *user), void *user)
{
    assert(!x->flushed);
    x->flushed = done;
    x->flushed_user = user;
    x->env->timer_start(x->limit, limit_ms);
    for (size_t i = 0; i < OTLP_N_SIGNALS; i++) {
        lane *l = &x->lanes[i];
        if (!l->call && !is_idle(l)) lane_send(l);
    }
    check_flushed(x);
}

static void lane_free(lane *l)
{
    otlp_exporter *x = l->x;
    if (l->call) x->transport.cancel(x->transport.user, l->call);
    if (l->wait) x->env->timer_free(l->wait);
    otlp_exporter_drop(x, l->signal, OTLP_DROP_STOPPED, l->n_batch + l->n_items);
    buf_done(&l->batch);
    buf_done(&l->queue);
}

void otlp_exporter_free(otlp_exporter *x)
{
    if (!x) return;
    for (size_t i = 0; i < OTLP_N_SIGNALS; i++)
        if (x->lanes[i].x) lane_free(&x->lanes[i]);
    if (x->limit) x->env->timer_free(x->limit);
    buf_done(&x->item);
    free(x);
}

static void set_defaults(otlp_exporter_options *o)
{
    if (!o->batch_items) o->batch_items = BATCH_ITEMS;
    if (!o->queue_bytes) o->queue_bytes = QUEUE_BYTES;
    if (!o->interval_ms) o->interval_ms = INTERVAL_MS;
    if (!o->retry_ms) o->retry_ms = RETRY_MS;
}

int otlp_exporter_new(otlp_exporter **ret, const env *e, const otlp_transport *t,
                      const otlp_exporter_options *o, shoal_err *err)
{
    otlp_exporter *x = calloc(1, sizeof *x);
    if (!x) return err_nomem(err);
    *x = (otlp_exporter){.env = e, .transport = *t, .o = *o};
    set_defaults(&x->o);
    bool have = (x->limit = e->timer_new(e->user, on_limit, x)) != NULL;
    for (size_t i = 0; i < OTLP_N_SIGNALS; i++) {
        lane *l = &x->lanes[i];
        *l = (lane){.x = x, .signal = (otlp_signal)i, .wait = e->timer_new(e->user, on_waited, l)};
        have &= l->wait != NULL;
    }
    if (have) {
        *ret = x;
        return 0;
    }
    otlp_exporter_free(x);
    return err_nomem(err);
}
