/* model_store.c: one fetch at a time, from whoever has it, and a digest before a name. */
#include "transfer/model_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "base/sha256.h"
#include "base/signal_stack.h"
#include "transfer/model_holders.h"
#include "transfer/model_send.h"
#include "store/partial.h"
#include "grpc/grpc.h"
#include "wire/env_uv.h"

enum {
    AGAIN_MIN_MS = 500,
    AGAIN_MAX_MS = 30000,
    SLICE_MS = 100,
    STALL_MS = 10000, /* a transfer ends if fewer than STALL_BYTES arrive in this time */
    STALL_BYTES = 64 << 10,
    FAILED_MS = 60000, /* a machine that broke off is not asked for that file */
    DOUBT_MS = 600000, /* one that had a part in a wrong file */
    LIAR_MS = 3600000, /* one that alone sent another file than it said: for anything */
    GIVERS_MAX = 8,
};

struct model_store {
    uv_loop_t *loop;
    model_store_options o;
    blob_store blobs;
    model_holders holders;
    char *gateway;
    tls_context *tls, *node_tls;
    size_t next; /* where to look first, so that one that fails keeps no other waiting */
    env loop_time;
    const env *e; /* time and timers: loop_time, or what the caller gave */
    env_timer *again, *slice, *stall;
    uint64_t again_ms, in_slice;
    /* the fetch that runs */
    bool busy, hashing;
    model_file file;
    model_holder from; /* node "": the gateway */
    grpc_channel *channel;
    grpc_client_call *call;
    partial part; /* the pool's while hashing */
    uint64_t stall_at;
    /* who has sent the bytes that are there, of this digest: "" is the gateway */
    char given[65], givers[GIVERS_MAX][IDENTITY_NAME_SIZE];
    size_t n_givers;
    bool older; /* some were there before, or more than GIVERS_MAX had a part */
    uv_work_t work;
    int verified; /* what the pool found, and why */
    shoal_err why;
    struct store_check *check; /* runs on the pool; NULL: none */
    bool closing, left;        /* left: a turn of the loop after it was closed */
    void (*closed)(void *user);
    void *closed_user;
};

/* ---- a fetch ------------------------------------------------------------------------------------- */

static void model_store_go_on(model_store *s);
static void model_store_release(model_store *s);

static void on_again(void *user)
{
    model_store *s = user;
    s->left = s->closing;
    if (s->left)
        model_store_release(s);
    else
        model_store_go_on(s);
}

static uint64_t now_ms(const model_store *s)
{
    return env_now_ns(s->e) / 1000000;
}

static const char *source_name(const model_store *s)
{
    return *s->from.node ? s->from.node : s->gateway;
}

static void fetch_over(model_store *s)
{
    grpc_channel *ch = s->channel;
    s->channel = NULL;
    s->call = NULL;
    s->e->timer_stop(s->slice);
    s->e->timer_stop(s->stall);
    if (!s->hashing) partial_close(&s->part);
    s->busy = false;
    if (ch) grpc_channel_close(ch);
}

/* The next source is tried at once; behind the last, the gateway, all rest for a while. */
static void model_store_fail(model_store *s, const char *why)
{
    if (!s->busy) return;
    bool was_node = *s->from.node;
    LOG(LOG_WARN, "store", "fetch_failed", LOG_S("digest", s->file.digest), LOG_I("at", s->part.at),
        LOG_S("from", source_name(s)), LOG_S("reason", why));
    fetch_over(s);
    if (was_node) {
        model_holders_shun(&s->holders, s->from.node, s->file.digest, now_ms(s) + FAILED_MS);
        if (s->next > 0) s->next--; /* the same file */
        s->e->timer_start(s->again, 0);
        return;
    }
    s->again_ms = s->again_ms ? 2 * s->again_ms : AGAIN_MIN_MS;
    if (s->again_ms > AGAIN_MAX_MS) s->again_ms = AGAIN_MAX_MS;
    s->e->timer_start(s->again, s->again_ms);
}

/* ---- who is to blame ----------------------------------------------------------------------------- */

static void note_giver(model_store *s)
{
    for (size_t i = 0; i < s->n_givers; i++)
        if (strcmp(s->givers[i], s->from.node) == 0) return;
    if (s->n_givers < GIVERS_MAX)
        memcpy(s->givers[s->n_givers++], s->from.node, IDENTITY_NAME_SIZE);
    else
        s->older = true;
}

static void note_liar(model_store *s, const char *node)
{
    LOG(LOG_ERROR, "store", "liar", LOG_S("node", node), LOG_S("digest", s->file.digest),
        LOG_S("reason",
              "it sent another file than the one that it said it has; it is not asked for an hour"));
    model_holders_shun(&s->holders, node, NULL, now_ms(s) + LIAR_MS);
}

/* Nobody knows which byte is wrong. */
static void drop_part(model_store *s)
{
    partial_remove(&s->part);
    *s->given = '\0';
}

static void blame(model_store *s)
{
    for (size_t i = 0; i < s->n_givers; i++) {
        if (!*s->givers[i]) continue;
        if (s->n_givers == 1 && !s->older)
            note_liar(s, s->givers[i]);
        else
            model_holders_shun(&s->holders, s->givers[i], s->file.digest, now_ms(s) + DOUBT_MS);
    }
    drop_part(s);
}

/* ---- the digest ---------------------------------------------------------------------------------- */

/* On the pool. */
static void hash(uv_work_t *w)
{
    signal_stack_open();
    model_store *s = w->data;
    char path[MODEL_PATH_SIZE];
    content_found found;
    const content want = {.has_size = true, .size = s->file.bytes, .sha256 = s->file.digest};
    blob_store_path(&s->blobs, &s->file, false, path);
    s->verified = partial_verify(&s->part, &want, &found, &s->why);
    if (s->verified == 0) s->verified = partial_publish(&s->part, path, &s->why);
}

static void hashed(uv_work_t *w, int status)
{
    model_store *s = w->data;
    s->hashing = false;
    if (s->closing) {
        model_store_release(s);
        return;
    }
    if (s->verified != 0) {
        bool lie = s->verified == SHOAL_EDIGEST;
        if (lie) blame(s);
        model_store_fail(s, lie ? "what came is another file: its SHA-256 is not the one that was asked for"
                                : s->why.message);
        return;
    }
    LOG(LOG_INFO, "store", "fetched", LOG_S("digest", s->file.digest), LOG_I("bytes", s->file.bytes),
        LOG_S("from", source_name(s)));
    s->again_ms = 0;
    fetch_over(s);
    blob_store_look(&s->blobs);
    s->o.changed(s->o.user);
    model_store_go_on(s);
}

static void check_model_store(model_store *s)
{
    s->e->timer_stop(s->stall);
    s->work.data = s;
    s->verified = err_set(&s->why, SHOAL_ECANCELLED, "its digest was not made");
    s->hashing = uv_queue_work(s->loop, &s->work, hash, hashed) == 0;
    if (!s->hashing) model_store_fail(s, "out of memory");
}

/* ---- pieces -------------------------------------------------------------------------------------- */

static void next_slice(void *user)
{
    model_store *s = user;
    s->in_slice = 0;
    if (s->call) grpc_client_pause(s->call, false);
}

static void keep_pace(model_store *s, size_t n)
{
    s->in_slice += n;
    if (s->o.bytes_per_s == 0 || s->in_slice < s->o.bytes_per_s * SLICE_MS / 1000) return;
    grpc_client_pause(s->call, true);
    s->e->timer_start(s->slice, s->in_slice * 1000 / s->o.bytes_per_s + 1);
}

static void watch_stall(model_store *s)
{
    s->e->timer_start(s->stall, STALL_MS);
}

/* One that drips is no better than one that is gone, and holds up all that is behind it. */
static void on_stall(void *user)
{
    model_store *s = user;
    watch_stall(s);
    uint64_t came = s->part.at - s->stall_at;
    s->stall_at = s->part.at;
    if (came < STALL_BYTES && (s->o.bytes_per_s == 0 || s->o.bytes_per_s > STALL_BYTES))
        model_store_fail(s, "it is too slow");
}

static void on_chunk(void *user, const uint8_t *msg, size_t n)
{
    model_store *s = user;
    Shoal__V1__FetchChunk *m;
    shoal_err why;
    const char *wrong = model_piece_take(msg, n, s->file.bytes - s->part.at, &m);
    size_t len = m ? m->data.len : 0;
    if (m && partial_append(&s->part, m->data.data, len, &why) != 0) wrong = why.message;
    if (m) shoal__v1__fetch_chunk__free_unpacked(m, NULL);
    if (wrong == MODEL_PIECE_TOO_LONG) {
        if (*s->from.node) note_liar(s, s->from.node);
        drop_part(s);
    }
    if (wrong) {
        model_store_fail(s, wrong);
        return;
    }
    if (len > 0) note_giver(s);
    keep_pace(s, len);
}

static void model_store_on_end(void *user, grpc_status status, const char *message)
{
    model_store *s = user;
    if (!s->call) return;
    s->call = NULL;
    if (status == GRPC_OK && s->part.at == s->file.bytes)
        check_model_store(s);
    else
        model_store_fail(s, message && *message ? message
                            : status == GRPC_OK ? "it is shorter"
                                                : grpc_status_name(status));
}

static void model_store_on_connected(void *user)
{
    model_store *s = user;
    Shoal__V1__FetchRequest m = SHOAL__V1__FETCH_REQUEST__INIT;
    uint8_t packed[96];
    const grpc_client_events ev = {.user = s, .message = on_chunk, .end = model_store_on_end};
    m.digest = s->file.digest;
    m.offset = s->part.at;
    size_t n = shoal__v1__fetch_request__pack(&m, packed);
    s->call = grpc_call_start(s->channel, "/shoal.v1.Models/Fetch", packed, n, NULL, 0, 0, &ev);
    if (!s->call) model_store_fail(s, "it takes no call now");
}

static void on_disconnected(void *user, const char *why)
{
    model_store *s = user;
    if (!s->hashing) model_store_fail(s, why);
}

/* ---- beginning ----------------------------------------------------------------------------------- */

static int open_part(model_store *s, shoal_err *err)
{
    char path[MODEL_PATH_SIZE];
    blob_store_path(&s->blobs, &s->file, true, path);
    int rc = partial_open(&s->part, path, 0600, err);
    if (rc == 0 && s->part.at > s->file.bytes) rc = partial_restart(&s->part, err);
    if (rc != 0 || strcmp(s->given, s->file.digest) == 0) return rc;
    memcpy(s->given, s->file.digest, sizeof s->given);
    s->n_givers = 0;
    s->older = s->part.at > 0;
    return 0;
}

static int connect_to_source(model_store *s, shoal_err *err)
{
    const grpc_channel_events ev = {
        .user = s, .connected = model_store_on_connected, .disconnected = on_disconnected};
    grpc_channel_options o = {.tls = s->tls, .keepalive_ms = 5000, .keepalive_timeout_ms = 5000};
    bool is_node = *s->from.node;
    if (is_node) {
        o.tls = s->node_tls;
        o.server_name = s->from.node;
        o.sni = MODEL_STORE_NAME;
    }
    s->stall_at = s->part.at;
    watch_stall(s);
    LOG(LOG_INFO, "store", "fetching", LOG_S("digest", s->file.digest), LOG_I("bytes", s->file.bytes),
        LOG_I("from_byte", s->part.at), LOG_S("from", source_name(s)));
    return grpc_channel_open(&s->channel, s->loop, is_node ? s->from.address : s->gateway, &o, &ev, err);
}

static void choose_source(model_store *s)
{
    const model_holder *at = s->node_tls ? model_holders_pick(&s->holders, s->file.digest, now_ms(s)) : NULL;
    s->from = at ? *at : (model_holder){0};
}

static void model_store_begin(model_store *s, const model_file *f)
{
    shoal_err err;
    s->busy = true;
    s->file = *f;
    s->in_slice = 0;
    choose_source(s);
    int rc = blob_store_make_room(&s->blobs, f, &err);
    if (rc == 0) rc = open_part(s, &err);
    bool whole = rc == 0 && s->part.at == f->bytes;
    if (rc != 0 || whole) s->from = (model_holder){0}; /* nobody is asked */
    if (rc == 0 && !whole) rc = connect_to_source(s, &err);
    if (rc != 0)
        model_store_fail(s, err.message);
    else if (whole)
        check_model_store(s);
}

static void model_store_go_on(model_store *s)
{
    char path[MODEL_PATH_SIZE];
    size_t n = s->blobs.n_wanted;
    if (s->busy || s->closing || !s->gateway) return;
    for (size_t k = 0; k < n; k++) {
        size_t i = (s->next + k) % n;
        if (blob_store_has(&s->blobs, &s->blobs.wanted[i], path)) continue;
        s->next = i + 1;
        model_store_begin(s, &s->blobs.wanted[i]);
        return;
    }
}

/* ---- what others say ----------------------------------------------------------------------------- */

static void go_on_now(model_store *s)
{
    if (s->busy || s->closing) return;
    s->e->timer_stop(s->again);
    model_store_go_on(s);
}

/* ---- what is damaged ----------------------------------------------------------------------------- */

typedef struct store_check {
    model_store *s;
    uv_work_t work;
    size_t n;
    struct {
        model_file file;
        char path[MODEL_PATH_SIZE];
        bool damaged;
    } files[];
} store_check;

static void model_store_compare(uv_work_t *w)
{
    signal_stack_open();
    store_check *c = w->data;
    for (size_t i = 0; i < c->n; i++)
        c->files[i].damaged = !sha256_file_is(c->files[i].path, c->files[i].file.digest);
}

static void set_aside(model_store *s, const store_check *c)
{
    bool any = false;
    for (size_t i = 0; i < c->n; i++) {
        const model_file *f = &c->files[i].file;
        if (!c->files[i].damaged) continue;
        bool gone = blob_store_set_aside(&s->blobs, f);
        LOG(LOG_ERROR, "store", "damaged", LOG_S("digest", f->digest), LOG_S("path", c->files[i].path),
            LOG_S("so", gone ? "it is set aside and fetched again" : "remove it: it cannot be renamed here"));
        any |= gone;
    }
    if (!any) return;
    blob_store_look(&s->blobs);
    s->again_ms = 0;
    s->o.changed(s->o.user);
    go_on_now(s);
}

static void compared(uv_work_t *w, int status)
{
    store_check *c = w->data;
    model_store *s = c->s;
    s->check = NULL;
    if (s->closing)
        model_store_release(s);
    else if (status == 0)
        set_aside(s, c);
    free(c);
}

void model_store_check(model_store *s, const artifact *const *artifacts, size_t n)
{
    size_t most = 0;
    model_file files[ARTIFACT_FILES_MAX];
    if (s->check || s->closing) return;
    for (size_t i = 0; i < n; i++) most += artifacts[i]->n_files ? artifacts[i]->n_files : 1;
    store_check *c = calloc(1, sizeof *c + most * sizeof c->files[0]);
    if (!c) return; /* the next refusal asks again */
    c->s = s;
    for (size_t i = 0; i < n; i++) {
        size_t k = blob_store_files(artifacts[i], files, ARTIFACT_FILES_MAX);
        for (size_t f = 0; f < k; f++) {
            c->files[c->n].file = files[f];
            blob_store_path(&s->blobs, &files[f], false, c->files[c->n++].path);
        }
    }
    c->work.data = c;
    s->check = uv_queue_work(s->loop, &c->work, model_store_compare, compared) == 0 ? c : NULL;
    if (!s->check) free(c);
}

void model_store_want(model_store *s, const artifact *const *artifacts, size_t n)
{
    shoal_err err;
    if (blob_store_want(&s->blobs, artifacts, n, &err) != 0) return;
    if (s->busy && !s->hashing && !blob_store_wants(&s->blobs, s->file.digest)) fetch_over(s);
    s->again_ms = 0;
    go_on_now(s);
}

void model_store_hear(model_store *s, const Shoal__V1__Holders *m)
{
    shoal_err err;
    if (model_holders_hear(&s->holders, m, &err) != 0) {
        LOG(LOG_WARN, "store", "holders_refused", LOG_S("reason", err.message));
        return;
    }
    go_on_now(s);
}

bool model_store_find(const model_store *s, const artifact *p, char ret_path[MODEL_PATH_SIZE])
{
    return blob_store_find(&s->blobs, p, ret_path);
}

size_t model_store_count(const model_store *s)
{
    return s->blobs.n_held;
}

const model_file *model_store_at(const model_store *s, size_t i)
{
    return &s->blobs.held[i];
}

bool model_store_path(const model_store *s, const char *digest, char ret_path[MODEL_PATH_SIZE])
{
    for (size_t i = 0; i < s->blobs.n_held; i++)
        if (strcmp(s->blobs.held[i].digest, digest) == 0)
            return blob_store_has(&s->blobs, &s->blobs.held[i], ret_path);
    return false;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void set_tls(tls_context **to, tls_context *tls)
{
    if (tls) tls_context_ref(tls);
    tls_context_unref(*to);
    *to = tls;
}

int model_store_source(model_store *s, const char *address, tls_context *tls, tls_context *nodes,
                       shoal_err *err)
{
    char *copy = strdup(address);
    if (!copy) return err_nomem(err);
    free(s->gateway);
    s->gateway = copy;
    set_tls(&s->tls, tls);
    set_tls(&s->node_tls, nodes);
    model_store_go_on(s);
    return 0;
}

static void store_free(model_store *s)
{
    s->e->timer_free(s->again);
    s->e->timer_free(s->slice);
    s->e->timer_free(s->stall);
    tls_context_unref(s->tls);
    tls_context_unref(s->node_tls);
    partial_close(&s->part);
    blob_store_close(&s->blobs);
    model_holders_done(&s->holders);
    free(s->gateway);
    free(s);
}

int model_store_open(model_store **ret, uv_loop_t *loop, const model_store_options *o, shoal_err *err)
{
    model_store *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    int rc = blob_store_open(&s->blobs, o->folder, o->max_bytes, err);
    if (rc != 0) {
        free(s);
        return rc;
    }
    s->loop = loop;
    s->o = *o;
    s->part = PARTIAL_NONE;
    s->loop_time = env_uv(loop);
    s->e = o->time ? o->time : &s->loop_time;
    s->again = s->e->timer_new(s->e->user, on_again, s);
    s->slice = s->e->timer_new(s->e->user, next_slice, s);
    s->stall = s->e->timer_new(s->e->user, on_stall, s);
    if (!s->again || !s->slice || !s->stall) {
        store_free(s);
        return err_nomem(err);
    }
    *ret = s;
    return 0;
}

static void model_store_release(model_store *s)
{
    if (!s->left || s->hashing || s->check) return;
    void (*closed)(void *) = s->closed;
    void *user = s->closed_user;
    store_free(s);
    if (closed) closed(user);
}

void model_store_close(model_store *s, void (*closed)(void *user), void *user)
{
    if (!s) {
        if (closed) closed(user);
        return;
    }
    s->closing = true;
    s->closed = closed;
    s->closed_user = user;
    fetch_over(s);
    s->e->timer_start(s->again, 0);
}
