/* stage_link_loop.c: the streams to the stages: what is sent, what comes back, and what is lost. */
#define _GNU_SOURCE
#include "backend/stage_link_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/signal_stack.h"
#include "logging/log.h"
#include "wire/listening.h"

enum {
    RETRY_MS = 100,
    SILENT_MIN_MS = 2000,
    SILENT_MAX_MS = 15000,
    SILENT_TIMES = 8,    /* the slowest step so far */
    KEEPALIVE_MS = 1000, /* between machines, where a link may be cut without a word */
    MAX_FDS = 256,
    HOST_BYTES = 300,
    NODE_BYTES = 64,
};
#define RELAY "relay:"

/* ---- losing -------------------------------------------------------------------------------------- */

static void drop_call(hop *h)
{
    if (h->call) grpc_client_cancel(h->call);
    h->call = NULL;
    h->ready = false;
}

/* When all were there, every stream ends: a stage whose stream is new has an empty cache. */
static void link_loop_lose(hop *h, int code, const char *why)
{
    stage_link *l = h->l;
    char last[sizeof l->why.message];
    drop_call(h);
    for (size_t i = 0; l->all_ready && i < l->n_hops; i++) drop_call(&l->hops[i]);
    pthread_mutex_lock(&l->lock);
    snprintf(last, sizeof last, "%s", l->why.message);
    err_set(&l->why, code, "the stage at %s: %s", h->address, why);
    bool news = l->all_ready || strcmp(last, l->why.message) != 0;
    stage_link_drop_trips(l);
    l->broken = l->broken || l->all_ready;
    l->stats.n_losses += l->all_ready;
    l->all_ready = false;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (news)
        LOG(LOG_WARN, "worker", "stage_lost", LOG_S("model", l->name), LOG_S("address", h->address),
            LOG_S("why", why));
}

/* ---- the loop ------------------------------------------------------------------------------------ */

static int link_loop_send_message(stage_link *l, hop *h, const Shoal__V1__StageRequest *m)
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
    return link_loop_send_message(l, &l->hops[t->hop], &m);
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
    if (failed < l->n_hops) link_loop_lose(&l->hops[failed], SHOAL_EUNAVAILABLE, "a step could not be sent");
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
static void link_loop_judge(stage_link *l, trip *t, hop *h, const Shoal__V1__StageRows *m)
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
static const char *link_loop_take_rows(stage_link *l, size_t h, const Shoal__V1__StageRows *m)
{
    trip *t = oldest_at(l, h);
    bool last = h + 1 == l->n_hops;
    if (!t || t->number != m->number) return "it answered a step that it was not asked for";
    if (m->rows.len != (last ? t->n_wanted : t->n_rows) * l->row_bytes)
        return "it gave back another number of rows than it got";
    note_trip(l, t, m);
    link_loop_judge(l, t, &l->hops[h], m);
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

static const char *link_loop_check_facts(const stage_link *l, size_t i, const stage_facts *f)
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
    const char *wrong = h->ready ? "it said twice that it is ready" : link_loop_check_facts(l, at, &f);
    if (wrong) return wrong;
    h->facts = f;
    h->ready = true;
    h->said = false;
    for (size_t i = 0; i < l->n_hops; i++) n_ready += l->hops[i].ready;
    if (n_ready < l->n_hops) return NULL;
    for (size_t i = 1; i < l->n_hops; i++)
        if ((wrong = link_loop_check_facts(l, i, &l->hops[i].facts))) return wrong;
    if (l->hops[l->n_hops - 1].facts.end != l->o.n_layer)
        return "it is the last one, and layers are missing behind it";
    pthread_mutex_lock(&l->lock);
    l->all_ready = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    LOG(LOG_INFO, "worker", "stages_ready", LOG_S("model", l->name), LOG_I("stages", l->n_hops + 1));
    return NULL;
}

static void link_loop_on_message(void *user, const uint8_t *msg, size_t n)
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
        wrong = link_loop_take_rows(l, (size_t)(h - l->hops), m->rows);
        pthread_mutex_unlock(&l->lock);
    }
    if (m) shoal__v1__stage_reply__free_unpacked(m, NULL);
    if (wrong) link_loop_lose(h, code, wrong);
}

static void link_loop_on_end(void *user, grpc_status status, const char *message)
{
    hop *h = user;
    bool wrong = status == GRPC_INVALID_ARGUMENT || status == GRPC_UNIMPLEMENTED;
    h->call = NULL;
    link_loop_lose(h, wrong ? SHOAL_EINVALID : SHOAL_EUNAVAILABLE,
                   message && *message ? message : grpc_status_name(status));
}

static void link_loop_open_stream(stage_link *l, hop *h)
{
    Shoal__V1__StageRequest m = SHOAL__V1__STAGE_REQUEST__INIT;
    Shoal__V1__StageOpen open = SHOAL__V1__STAGE_OPEN__INIT;
    grpc_client_events ev = {.user = h, .message = link_loop_on_message, .end = link_loop_on_end};
    grpc_call_options opt = {.max_message = 128u << 20, .max_unsent = 64u << 20};
    h->call = grpc_call_open(h->channel, "/shoal.v1.Stage/Run", &opt, &ev);
    if (!h->call) return; /* again at the next look */
    open.digest = l->digest;
    open.wire = (Shoal__V1__StageWire)l->o.wire;
    open.kv_type = (char *)kv_type_name(l->o.kv_type);
    m.what_case = SHOAL__V1__STAGE_REQUEST__WHAT_OPEN;
    m.open = &open;
    if (link_loop_send_message(l, h, &m) != 0) {
        grpc_client_cancel(h->call);
        h->call = NULL;
    }
}

static void link_loop_on_connected(void *user)
{
    hop *h = user;
    if (!h->call) link_loop_open_stream(h->l, h);
}

/* Calls on it have ended before; without any, this is news. */
static void link_loop_on_disconnected(void *user, const char *why)
{
    hop *h = user;
    if (!h->call) link_loop_lose(h, SHOAL_EUNAVAILABLE, why);
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
    if (silent) link_loop_lose(&l->hops[h], SHOAL_EUNAVAILABLE, "it does not answer");
}

static void link_loop_look_again(uv_timer_t *t)
{
    stage_link *l = t->data;
    look_for_silence(l);
    for (size_t i = 0; i < l->n_hops; i++) {
        hop *h = &l->hops[i];
        if (h->call) continue;
        if (grpc_channel_is_connected(h->channel)) {
            link_loop_open_stream(l, h);
            continue;
        }
        if (h->far) (void)tls_context_reload(l->tls, NULL); /* what was read before does for now */
        (void)grpc_channel_connect(h->channel);
    }
}

static void link_loop_woken(uv_async_t *a)
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

static void link_loop_thread_main(void *arg)
{
    signal_stack_open();
    stage_link *l = arg;
    listening_open(&l->loop);
    uv_run(&l->loop, UV_RUN_DEFAULT);
    listening_close();
    uv_run(&l->loop, UV_RUN_DEFAULT);
    uv_loop_close(&l->loop);
}

/* ---- its start ----------------------------------------------------------------------------------- */

static bool link_loop_take_part(char *to, size_t size, const char **s)
{
    size_t n = strcspn(*s, "/");
    if (n == 0 || n >= size || (*s)[n] != '/') return false;
    memcpy(to, *s, n);
    to[n] = '\0';
    *s += n + 1;
    return true;
}

/* "relay:HOST:PORT/NODE/WORKER" */
static int link_loop_open_far(stage_link *l, hop *h, const grpc_channel_events *ev, shoal_err *err)
{
    const char *worker = h->address + strlen(RELAY);
    char host[HOST_BYTES], node[NODE_BYTES];
    if (!link_loop_take_part(host, sizeof host, &worker) ||
        !link_loop_take_part(node, sizeof node, &worker) || !*worker)
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
    const grpc_channel_events ev = {
        .user = h, .connected = link_loop_on_connected, .disconnected = link_loop_on_disconnected};
    h->l = l;
    if (!(h->address = strdup(address))) return err_nomem(err);
    if (strncmp(address, RELAY, strlen(RELAY)) == 0) return link_loop_open_far(l, h, &ev, err);
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

int stage_link_start(stage_link *l, shoal_err *err)
{
    int rc = loop_open(&l->loop, MAX_FDS, err);
    if (rc) return rc;
    if (uv_async_init(&l->loop, &l->async, link_loop_woken) != 0)
        return err_set(err, SHOAL_EIO, "cannot make a wake-up handle");
    uv_timer_init(&l->loop, &l->retry);
    l->async.data = l->retry.data = l;
    rc = open_hops(l, err);
    uv_timer_start(&l->retry, link_loop_look_again, RETRY_MS, RETRY_MS);
    if (uv_thread_create(&l->thread, link_loop_thread_main, l) != 0)
        return err_set(err, SHOAL_ENOMEM, "the thread of the stages' link could not be started");
    l->has_thread = true;
    return rc;
}
