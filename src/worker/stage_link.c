/* stage_link.c: steps on their way through the stages; see stage_link.h. The engine thread and the link's
 * loop meet under one lock; gRPC is touched by the loop alone. */
#define _GNU_SOURCE
#include "worker/stage_link.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "shoal/v1/stage.pb-c.h"
#include "wire/grpc.h"
#include "wire/loop.h"

enum {
    RETRY_MS = 100,
    WAIT_MS = 30000,
    SILENT_MIN_MS = 2000,
    SILENT_MAX_MS = 15000,
    SILENT_TIMES = 8,    /* the slowest step so far */
    KEEPALIVE_MS = 1000, /* between machines, where a link may be cut without a word */
    MAX_FDS = 256,
    HOST_BYTES = 300,
    NODE_BYTES = 64,
};
#define RELAY "relay:"

/* A step on its way: `hop` says to which stage it was sent last. */
typedef struct trip {
    uint64_t number, sent_ns;
    size_t hop, n_rows, n_wanted;
    Shoal__V1__StageStep step; /* without rows; borrows the next three */
    Shoal__V1__StageItem *items, **item_at;
    uint32_t *numbers; /* pages of all items, then copies */
    uint8_t *bytes;    /* rows as they travel: to the first hop, and back from the last */
    bool under_way, back;
    bool finite;           /* what came so far; false from the beginning: it is nobody's fault but ours */
    const struct hop *bad; /* whose rows were the first that are not finite; NULL: nobody's */
} trip;

typedef struct hop {
    struct stage_link *l;
    char *address;
    bool far; /* on another machine */
    grpc_channel *channel;
    grpc_client_call *call;
    bool ready, said; /* said: that its numbers were not finite, in this life */
    stage_facts facts;
} hop;

struct stage_link {
    shards table;
    stage_link_options o;
    char *digest, *name;
    tls_context *tls; /* NULL: all stages are on this machine */
    size_t row_bytes, n_hops;
    hop hops[SHARDS_MAX];
    uv_loop_t loop;
    uv_async_t async;
    uv_timer_t retry;
    uv_thread_t thread;
    bool has_thread;
    buf scratch;          /* the loop's */
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t changed;
    trip trips[SHARDS_MAX]; /* oldest first: first, first + 1, ... modulo SHARDS_MAX */
    size_t first, n_trips;
    uint64_t last_number;
    bool all_ready, broken, closing;
    shoal_err why; /* of the newest loss or refusal; code SHOAL_EINVALID: it will not pass */
    stage_link_stats stats;
    char wrong[sizeof((shoal_err *)0)->message]; /* the engine thread's: what was wrong with its last call */
};

/* ---- trips, under the lock -------------------------------------------------------------------------- */

static trip *trip_at(stage_link *l, size_t i)
{
    return &l->trips[(l->first + i) % SHARDS_MAX];
}

static void trip_done(trip *t)
{
    free(t->items);
    free(t->item_at);
    free(t->numbers);
    free(t->bytes);
    *t = (trip){0};
}

static void drop_trips(stage_link *l)
{
    for (; l->n_trips > 0; l->n_trips--) {
        trip_done(trip_at(l, 0));
        l->first = (l->first + 1) % SHARDS_MAX;
    }
}

static void count_numbers(const stage_step *s, size_t *ret)
{
    *ret = 2 * s->n_copies;
    for (size_t i = 0; i < s->n_items; i++) *ret += s->items[i].n_pages;
}

/* The step as the message has it; what it names is copied, since it goes to one stage after the other. */
static int trip_fill(trip *t, const stage_step *s)
{
    size_t n, at = 0;
    count_numbers(s, &n);
    t->items = calloc(s->n_items + 1, sizeof *t->items);
    t->item_at = calloc(s->n_items + 1, sizeof *t->item_at);
    t->numbers = calloc(n + 1, sizeof *t->numbers);
    if (!t->items || !t->item_at || !t->numbers) return SHOAL_ENOMEM;
    shoal__v1__stage_step__init(&t->step);
    for (size_t i = 0; i < s->n_items; i++) {
        const stage_item *from = &s->items[i];
        shoal__v1__stage_item__init(&t->items[i]);
        t->items[i].pages = t->numbers + at;
        t->items[i].n_pages = from->n_pages;
        t->items[i].position = (uint32_t)from->position;
        t->items[i].n = (uint32_t)from->n;
        t->items[i].n_out = (uint32_t)from->n_out;
        t->item_at[i] = &t->items[i];
        memcpy(t->numbers + at, from->pages, from->n_pages * sizeof *from->pages);
        at += from->n_pages;
    }
    t->step.items = t->item_at;
    t->step.n_items = s->n_items;
    t->step.copies = t->numbers + at;
    t->step.n_copies = 2 * s->n_copies;
    for (size_t i = 0; i < s->n_copies; i++) {
        t->numbers[at++] = s->copies[i].from;
        t->numbers[at++] = s->copies[i].to;
    }
    return 0;
}

/* ---- losing ---------------------------------------------------------------------------------------------
 */

static void drop_call(hop *h)
{
    if (h->call) grpc_client_cancel(h->call);
    h->call = NULL;
    h->ready = false;
}

/* When all were there, every stream ends: a stage whose stream is new has an empty cache. */
static void lose(hop *h, int code, const char *why)
{
    stage_link *l = h->l;
    char last[sizeof l->why.message];
    drop_call(h);
    for (size_t i = 0; l->all_ready && i < l->n_hops; i++) drop_call(&l->hops[i]);
    pthread_mutex_lock(&l->lock);
    snprintf(last, sizeof last, "%s", l->why.message);
    err_set(&l->why, code, "the stage at %s: %s", h->address, why);
    bool news = l->all_ready || strcmp(last, l->why.message) != 0;
    drop_trips(l);
    l->broken = l->broken || l->all_ready;
    l->stats.n_losses += l->all_ready;
    l->all_ready = false;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (news)
        LOG(LOG_WARN, "worker", "stage_lost", LOG_S("model", l->name), LOG_S("address", h->address),
            LOG_S("why", why));
}

/* ---- the loop -------------------------------------------------------------------------------------------
 */

static int send_message(stage_link *l, hop *h, const Shoal__V1__StageRequest *m)
{
    size_t n = protobuf_c_message_get_packed_size(&m->base);
    buf_clear(&l->scratch);
    if (buf_reserve(&l->scratch, n) != 0) return SHOAL_ENOMEM;
    n = protobuf_c_message_pack(&m->base, (uint8_t *)l->scratch.data);
    return grpc_client_send(h->call, l->scratch.data, n);
}

/* To stage number t->hop, with these rows. */
static int send_trip(stage_link *l, trip *t, uint8_t *rows, size_t n)
{
    Shoal__V1__StageRequest m = SHOAL__V1__STAGE_REQUEST__INIT;
    m.what_case = SHOAL__V1__STAGE_REQUEST__WHAT_STEP;
    m.step = &t->step;
    t->step.number = t->number;
    t->step.rows = (ProtobufCBinaryData){.len = n, .data = rows};
    t->sent_ns = clock_ns();
    t->under_way = true;
    l->stats.sent_bytes += n;
    return send_message(l, &l->hops[t->hop], &m);
}

/* What the engine thread has sent since. */
static void send_new(stage_link *l)
{
    size_t failed = l->n_hops;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; l->all_ready && i < l->n_trips && failed == l->n_hops; i++) {
        trip *t = trip_at(l, i);
        if (t->under_way) continue;
        if (send_trip(l, t, t->bytes, t->n_rows * l->row_bytes)) failed = t->hop;
        free(t->bytes);
        t->bytes = NULL;
    }
    pthread_mutex_unlock(&l->lock);
    if (failed < l->n_hops) lose(&l->hops[failed], SHOAL_EUNAVAILABLE, "a step could not be sent");
}

/* The oldest step that is at this stage: replies come in order. */
static trip *oldest_at(stage_link *l, size_t h)
{
    for (size_t i = 0; i < l->n_trips; i++) {
        trip *t = trip_at(l, i);
        if (t->under_way && !t->back && t->hop == h) return t;
    }
    return NULL;
}

static void average(double *avg, double newest)
{
    *avg = *avg > 0 ? *avg + 0.05 * (newest - *avg) : newest;
}

static void note_trip(stage_link *l, const trip *t, const Shoal__V1__StageRows *m)
{
    double took = (double)(clock_ns() - t->sent_ns) / 1e3, compute = (double)m->compute_us;
    if (took > l->stats.slowest_us) l->stats.slowest_us = took;
    average(&l->stats.trip_us, took > compute ? took - compute : 0);
    average(&l->stats.compute_us, compute);
    l->stats.received_bytes += m->rows.len;
}

/* The first stage that has given such numbers: what they left in the caches of those behind it is its fault.
 */
static const hop *culprit(const stage_link *l)
{
    const hop *h = l->hops;
    while (!h->said) h++;
    return h;
}

/* A stage that gives back no finite numbers for finite ones computes wrongly. */
static void judge(stage_link *l, trip *t, hop *h, const Shoal__V1__StageRows *m)
{
    if (!t->finite || rows_wire_finite(l->o.wire, m->rows.data, m->rows.len / l->row_bytes, l->o.n_embd))
        return;
    if (!h->said)
        LOG(LOG_ERROR, "worker", "stage_not_finite", LOG_S("model", l->name), LOG_S("address", h->address));
    h->said = true;
    t->finite = false;
    t->bad = culprit(l);
}

/* Under the lock; NULL or what was wrong. */
static const char *take_rows(stage_link *l, size_t h, const Shoal__V1__StageRows *m)
{
    trip *t = oldest_at(l, h);
    bool last = h + 1 == l->n_hops;
    if (!t || t->number != m->number) return "it answered a step that it was not asked for";
    if (m->rows.len != (last ? t->n_wanted : t->n_rows) * l->row_bytes)
        return "it gave back another number of rows than it got";
    note_trip(l, t, m);
    judge(l, t, &l->hops[h], m);
    if (!last) {
        t->hop = h + 1;
        return send_trip(l, t, m->rows.data, m->rows.len) ? "its rows could not be sent on" : NULL;
    }
    t->bytes = malloc(m->rows.len + 1);
    if (!t->bytes) return "out of memory for its rows";
    if (m->rows.len) memcpy(t->bytes, m->rows.data, m->rows.len);
    t->back = true;
    l->stats.n_steps++;
    pthread_cond_broadcast(&l->changed);
    return NULL;
}

static const char *check_facts(const stage_link *l, size_t i, const stage_facts *f)
{
    size_t before = i ? l->hops[i - 1].facts.end : l->o.part.end;
    if (f->n_embd != l->o.n_embd || f->n_layer != l->o.n_layer) return "it has another model";
    if (f->first >= f->end || f->end > f->n_layer || f->n_ctx == 0 || f->n_pages == 0 || f->max_items == 0)
        return "it says of itself what cannot be";
    if (l->hops[i].facts.end && memcmp(f, &l->hops[i].facts, sizeof *f) != 0)
        return "it came back with other layers or less room than before";
    if (i > 0 && before == 0) return NULL; /* judged when all are there */
    return f->first == before ? NULL : "its layers do not follow those of the stage before";
}

static const char *take_ready(stage_link *l, hop *h, const Shoal__V1__StageReady *m)
{
    stage_facts f = {.first = m->first,
                     .end = m->end,
                     .n_layer = m->n_layer,
                     .n_embd = m->n_embd,
                     .n_ctx = m->n_ctx,
                     .n_pages = m->n_pages,
                     .max_items = m->max_items,
                     .max_tokens = m->max_tokens};
    size_t at = (size_t)(h - l->hops), n_ready = 0;
    const char *wrong = h->ready ? "it said twice that it is ready" : check_facts(l, at, &f);
    if (wrong) return wrong;
    h->facts = f;
    h->ready = true;
    h->said = false;
    for (size_t i = 0; i < l->n_hops; i++) n_ready += l->hops[i].ready;
    if (n_ready < l->n_hops) return NULL;
    for (size_t i = 1; i < l->n_hops; i++)
        if ((wrong = check_facts(l, i, &l->hops[i].facts))) return wrong;
    if (l->hops[l->n_hops - 1].facts.end != l->o.n_layer)
        return "it is the last one, and layers are missing behind it";
    pthread_mutex_lock(&l->lock);
    l->all_ready = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    LOG(LOG_INFO, "worker", "stages_ready", LOG_S("model", l->name), LOG_I("stages", l->n_hops + 1));
    return NULL;
}

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    hop *h = user;
    stage_link *l = h->l;
    Shoal__V1__StageReply *m = shoal__v1__stage_reply__unpack(NULL, n, msg);
    const char *wrong = "its reply is malformed";
    int code = SHOAL_EUNAVAILABLE;
    if (m && m->what_case == SHOAL__V1__STAGE_REPLY__WHAT_READY) {
        wrong = take_ready(l, h, m->ready);
        code = SHOAL_EINVALID;
    } else if (m && m->what_case == SHOAL__V1__STAGE_REPLY__WHAT_ROWS) {
        pthread_mutex_lock(&l->lock);
        wrong = take_rows(l, (size_t)(h - l->hops), m->rows);
        pthread_mutex_unlock(&l->lock);
    }
    if (m) shoal__v1__stage_reply__free_unpacked(m, NULL);
    if (wrong) lose(h, code, wrong);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    hop *h = user;
    bool wrong = status == GRPC_INVALID_ARGUMENT || status == GRPC_UNIMPLEMENTED;
    h->call = NULL;
    lose(h, wrong ? SHOAL_EINVALID : SHOAL_EUNAVAILABLE,
         message && *message ? message : grpc_status_name(status));
}

static void open_stream(stage_link *l, hop *h)
{
    Shoal__V1__StageRequest m = SHOAL__V1__STAGE_REQUEST__INIT;
    Shoal__V1__StageOpen open = SHOAL__V1__STAGE_OPEN__INIT;
    grpc_client_events ev = {.user = h, .message = on_message, .end = on_end};
    grpc_call_options opt = {.max_message = 128u << 20, .max_unsent = 64u << 20};
    h->call = grpc_call_open(h->channel, "/shoal.v1.Stage/Run", &opt, &ev);
    if (!h->call) return; /* again at the next look */
    open.digest = l->digest;
    open.wire = (Shoal__V1__StageWire)l->o.wire;
    m.what_case = SHOAL__V1__STAGE_REQUEST__WHAT_OPEN;
    m.open = &open;
    if (send_message(l, h, &m) != 0) {
        grpc_client_cancel(h->call);
        h->call = NULL;
    }
}

static void on_connected(void *user)
{
    hop *h = user;
    if (!h->call) open_stream(h->l, h);
}

/* Calls on it have ended before; without any, this is news. */
static void on_disconnected(void *user, const char *why)
{
    hop *h = user;
    if (!h->call) lose(h, SHOAL_EUNAVAILABLE, why);
}

static uint64_t patience_ns(const stage_link *l)
{
    double ms = l->stats.slowest_us * SILENT_TIMES / 1e3;
    if (l->o.silent_ms) return (uint64_t)l->o.silent_ms * 1000000;
    ms = ms < SILENT_MIN_MS ? SILENT_MIN_MS : ms > SILENT_MAX_MS ? SILENT_MAX_MS : ms;
    return (uint64_t)((l->stats.n_steps ? ms : SILENT_MAX_MS) * 1e6);
}

/* A stage that is stopped, stuck or behind a dead link says nothing and closes nothing. */
static void look_for_silence(stage_link *l)
{
    uint64_t now = clock_ns();
    pthread_mutex_lock(&l->lock);
    uint64_t most_ns = patience_ns(l);
    const trip *t = l->n_trips > 0 ? trip_at(l, 0) : NULL;
    bool silent = t && t->under_way && !t->back && now - t->sent_ns > most_ns;
    size_t h = silent ? t->hop : 0;
    pthread_mutex_unlock(&l->lock);
    if (silent) lose(&l->hops[h], SHOAL_EUNAVAILABLE, "it does not answer");
}

static void look_again(uv_timer_t *t)
{
    stage_link *l = t->data;
    look_for_silence(l);
    for (size_t i = 0; i < l->n_hops; i++) {
        hop *h = &l->hops[i];
        if (h->call) continue;
        if (grpc_channel_is_connected(h->channel)) {
            open_stream(l, h);
            continue;
        }
        if (h->far) (void)tls_context_reload(l->tls, NULL); /* what was read before does for now */
        (void)grpc_channel_connect(h->channel);
    }
}

static void woken(uv_async_t *a)
{
    stage_link *l = a->data;
    pthread_mutex_lock(&l->lock);
    bool closing = l->closing;
    pthread_mutex_unlock(&l->lock);
    if (!closing) {
        send_new(l);
        return;
    }
    for (size_t i = 0; i < l->n_hops; i++) {
        if (l->hops[i].call) grpc_client_cancel(l->hops[i].call);
        l->hops[i].call = NULL;
        grpc_channel_close(l->hops[i].channel);
    }
    uv_close((uv_handle_t *)&l->retry, NULL);
    uv_close((uv_handle_t *)&l->async, NULL);
}

static void thread_main(void *arg)
{
    stage_link *l = arg;
    uv_run(&l->loop, UV_RUN_DEFAULT);
    uv_loop_close(&l->loop);
}

/* ---- the engine's side ----------------------------------------------------------------------------------
 */

static struct timespec in_ms(unsigned ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Under the lock. */
static void note_loss(stage_link *l, bool fine)
{
    snprintf(l->wrong, sizeof l->wrong, "%s", fine ? "" : l->why.message);
}

static bool link_ready(void *user, unsigned wait_ms)
{
    stage_link *l = user;
    struct timespec until = in_ms(wait_ms);
    pthread_mutex_lock(&l->lock);
    bool lost = l->broken;
    l->broken = false;
    while (!lost && !l->all_ready && pthread_cond_timedwait(&l->changed, &l->lock, &until) == 0) continue;
    bool there = !lost && l->all_ready && !l->broken;
    note_loss(l, there);
    pthread_mutex_unlock(&l->lock);
    return there;
}

static int link_send(void *user, const stage_step *step, const float *rows, size_t n_rows)
{
    stage_link *l = user;
    trip t = {.n_rows = n_rows, .n_wanted = stage_wanted(step), .finite = true};
    size_t n;
    t.bytes = size_mul(n_rows, l->row_bytes, &n) ? NULL : malloc(n + 1);
    if (!t.bytes || trip_fill(&t, step)) {
        trip_done(&t);
        return SHOAL_EUNAVAILABLE; /* what runs is computed again, when there is memory */
    }
    rows_wire_put(l->o.wire, rows, n_rows, l->o.n_embd, t.bytes);
    t.finite = rows_wire_finite(l->o.wire, t.bytes, n_rows, l->o.n_embd);
    pthread_mutex_lock(&l->lock);
    bool go = l->all_ready && !l->broken;
    note_loss(l, go);
    assert(l->n_trips < SHARDS_MAX);
    t.number = ++l->last_number;
    if (go) *trip_at(l, l->n_trips++) = t;
    pthread_mutex_unlock(&l->lock);
    if (go)
        uv_async_send(&l->async);
    else
        trip_done(&t);
    return go ? 0 : SHOAL_EUNAVAILABLE;
}

static int link_receive(void *user, float *rows, size_t n_wanted)
{
    stage_link *l = user;
    trip t = {0};
    pthread_mutex_lock(&l->lock);
    while (!l->broken && l->n_trips > 0 && !trip_at(l, 0)->back) pthread_cond_wait(&l->changed, &l->lock);
    bool there = !l->broken && l->n_trips > 0;
    note_loss(l, there);
    if (there) {
        t = *trip_at(l, 0);
        *trip_at(l, 0) = (trip){0};
        l->first = (l->first + 1) % SHARDS_MAX;
        l->n_trips--;
    }
    pthread_mutex_unlock(&l->lock);
    if (!there) return SHOAL_EUNAVAILABLE;
    assert(t.n_wanted == n_wanted);
    if (t.bad)
        snprintf(
            l->wrong, sizeof l->wrong,
            "the stage at %.300s gave back numbers that are not finite: its memory, its processor or its "
            "copy of the model may be damaged",
            t.bad->address);
    rows_wire_get(l->o.wire, t.bytes, n_wanted, l->o.n_embd, rows);
    trip_done(&t);
    return 0;
}

static const char *link_why(void *user)
{
    const stage_link *l = user;
    return *l->wrong ? l->wrong : NULL;
}

/* ---- life ------------------------------------------------------------------------------------------------
 */

static bool take_part(char *to, size_t size, const char **s)
{
    size_t n = strcspn(*s, "/");
    if (n == 0 || n >= size || (*s)[n] != '/') return false;
    memcpy(to, *s, n);
    to[n] = '\0';
    *s += n + 1;
    return true;
}

/* "relay:HOST:PORT/NODE/WORKER" */
static int open_far(stage_link *l, hop *h, const grpc_channel_events *ev, shoal_err *err)
{
    const char *worker = h->address + strlen(RELAY);
    char host[HOST_BYTES], node[NODE_BYTES];
    if (!take_part(host, sizeof host, &worker) || !take_part(node, sizeof node, &worker) || !*worker)
        return err_set(err, SHOAL_EINVALID, "\"%s\" is not relay:HOST:PORT/NODE/WORKER", h->address);
    if (!l->tls)
        return err_set(err, SHOAL_EINVALID,
                       "%s is on another machine: say where this one's certificate is (--member)",
                       h->address);
    h->far = true;
    const grpc_channel_options o = {.tls = l->tls,
                                    .server_name = node,
                                    .sni = worker,
                                    .keepalive_ms = KEEPALIVE_MS,
                                    .keepalive_timeout_ms = KEEPALIVE_MS};
    return grpc_channel_open(&h->channel, &l->loop, host, &o, ev, err);
}

static int open_hop(stage_link *l, hop *h, const char *address, shoal_err *err)
{
    const grpc_channel_events ev = {.user = h, .connected = on_connected, .disconnected = on_disconnected};
    h->l = l;
    if (!(h->address = strdup(address))) return err_nomem(err);
    if (strncmp(address, RELAY, strlen(RELAY)) == 0) return open_far(l, h, &ev, err);
    if (strncmp(address, "unix:", 5) == 0)
        return grpc_channel_new(&h->channel, &l->loop, h->address, &ev, err);
    return err_set(err, SHOAL_EINVALID,
                   "\"%s\" is no Unix socket: a stage elsewhere is reached through its machine's relay, "
                   "relay:HOST:PORT/NODE/WORKER",
                   address);
}

static int open_hops(stage_link *l, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < l->o.n; i++) {
        rc = open_hop(l, &l->hops[i], l->o.addresses[i], err);
        if (rc == 0)
            l->n_hops++;
        else
            free(l->hops[i].address);
    }
    return rc;
}

/* Whoever proves to be the node that the address names will do: relays belong to members alone. */
static int open_tls(stage_link *l, const char *member, shoal_err *err)
{
    char cert[4096], ca[4096], crl[4096];
    if (!member) return 0;
    snprintf(cert, sizeof cert, "%s/member.pem", member);
    snprintf(ca, sizeof ca, "%s/ca.crt", member);
    snprintf(crl, sizeof crl, "%s/crl.pem", member);
    const tls_options o = {.cert_file = cert, .key_file = cert, .ca_file = ca, .crl_file = crl};
    return tls_context_new(&l->tls, TLS_CLIENT, &o, err);
}

static int start(stage_link *l, shoal_err *err)
{
    int rc = loop_open(&l->loop, MAX_FDS, err);
    if (rc) return rc;
    if (uv_async_init(&l->loop, &l->async, woken) != 0)
        return err_set(err, SHOAL_EIO, "cannot make a wake-up handle");
    uv_timer_init(&l->loop, &l->retry);
    l->async.data = l->retry.data = l;
    rc = open_hops(l, err);
    uv_timer_start(&l->retry, look_again, RETRY_MS, RETRY_MS);
    if (uv_thread_create(&l->thread, thread_main, l) != 0)
        return err_set(err, SHOAL_ENOMEM, "the thread of the stages' link could not be started");
    l->has_thread = true;
    return rc;
}

static int wait_for_all(stage_link *l, shoal_err *err)
{
    struct timespec until = in_ms(l->o.wait_ms ? l->o.wait_ms : WAIT_MS);
    pthread_mutex_lock(&l->lock);
    while (!l->all_ready && l->why.code != SHOAL_EINVALID &&
           pthread_cond_timedwait(&l->changed, &l->lock, &until) == 0)
        continue;
    int rc = 0;
    if (!l->all_ready)
        rc = err_set(err, l->why.code ? l->why.code : SHOAL_EUNAVAILABLE, "%s",
                     l->why.code ? l->why.message : "the other stages did not come");
    pthread_mutex_unlock(&l->lock);
    return rc;
}

static void least(size_t *at, size_t n)
{
    if (n < *at) *at = n;
}

static void fill_table(stage_link *l)
{
    l->table = (shards){.n_stages = l->n_hops + 1,
                        .part = l->o.part,
                        .n_ctx = SIZE_MAX,
                        .n_pages = SIZE_MAX,
                        .max_items = SIZE_MAX,
                        .max_tokens = SIZE_MAX,
                        .user = l,
                        .ready = link_ready,
                        .send = link_send,
                        .receive = link_receive,
                        .why = link_why};
    for (size_t i = 0; i < l->n_hops; i++) {
        least(&l->table.n_ctx, l->hops[i].facts.n_ctx);
        least(&l->table.n_pages, l->hops[i].facts.n_pages);
        least(&l->table.max_items, l->hops[i].facts.max_items);
        least(&l->table.max_tokens, l->hops[i].facts.max_tokens);
    }
}

static int open_link(stage_link *l, const stage_link_options *o, shoal_err *err)
{
    l->row_bytes = rows_wire_bytes(o->wire, o->n_embd);
    if (o->n == 0 || o->n >= SHARDS_MAX || l->row_bytes == 0)
        return err_set(err, SHOAL_EINVALID, "%zu further stages; there can be 1 to %d", o->n, SHARDS_MAX - 1);
    l->o = *o;
    l->digest = strdup(o->digest);
    l->name = strdup(o->name ? o->name : "");
    int rc = l->digest && l->name ? open_tls(l, o->member, err) : err_nomem(err);
    if (rc == 0) rc = start(l, err);
    if (rc == 0) rc = wait_for_all(l, err);
    if (rc == 0) fill_table(l);
    return rc;
}

int stage_link_open(stage_link **ret, const stage_link_options *o, shoal_err *err)
{
    stage_link *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &steady);
    pthread_condattr_destroy(&steady);
    pthread_mutex_init(&l->lock, NULL);
    int rc = open_link(l, o, err);
    if (rc) {
        stage_link_close(l);
        return rc;
    }
    *ret = l;
    return 0;
}

const shards *stage_link_shards(const stage_link *l)
{
    return &l->table;
}

void stage_link_get_stats(stage_link *l, stage_link_stats *ret)
{
    pthread_mutex_lock(&l->lock);
    *ret = l->stats;
    pthread_mutex_unlock(&l->lock);
}

void stage_link_close(stage_link *l)
{
    if (!l) return;
    if (l->has_thread) {
        pthread_mutex_lock(&l->lock);
        l->closing = true;
        pthread_mutex_unlock(&l->lock);
        uv_async_send(&l->async);
        uv_thread_join(&l->thread);
    }
    drop_trips(l);
    for (size_t i = 0; i < l->n_hops; i++) free(l->hops[i].address);
    tls_context_unref(l->tls);
    buf_done(&l->scratch);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l->digest);
    free(l->name);
    free(l);
}
