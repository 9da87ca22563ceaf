/* etcd_view.c: list, watch, resume, and the signs of life. */
#include "discovery/etcd_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "etcd/rpc.pb-c.h"

enum {
    GRACE_MS = 1500,
    SILENCE_MS = 5000,
    PAGE_KEYS = 512,
    RETRY_MIN_MS = 200,
    RETRY_MAX_MS = 5000,
    SAY_AGAIN_MS = 10000, /* why it is away: the reason may be another one by now */
};

struct etcd_view {
    etcd_client *c;
    etcd_listener listener;
    etcd_keys *keys;
    etcd_view_options o;
    char *prefix;
    uint8_t *end; /* of the range */
    size_t n_prefix, n_end;
    etcd_call *listing;
    etcd_page page; /* of the listing: where it goes on */
    unsigned page_keys;
    grpc_client_call *watch;
    bool watching;          /* the watch was created */
    bool synced, said_away; /* as was told */
    env_timer *retry, *grace, *look;
    uint64_t retry_ms, asked_ns;
    uint64_t heard_ns; /* by the listening clock (time/env.h) */
    char why[200];
};

static void list(etcd_view *v);
static void watch(etcd_view *v);

size_t etcd_prefix_end(const char *prefix, size_t n, uint8_t *out)
{
    memcpy(out, prefix, n);
    while (n > 0 && out[n - 1] == 0xFF) n--;
    if (n > 0) out[n - 1]++;
    return n;
}

static const env *env_of(const etcd_view *v)
{
    return etcd_client_env(v->c);
}

static uint64_t listening_ns(const etcd_view *v)
{
    return env_of(v)->listening_ns(env_of(v)->user);
}

bool etcd_view_is_synced(const etcd_view *v)
{
    return v->synced;
}

const etcd_keys *etcd_view_keys(const etcd_view *v)
{
    return v->keys;
}

/* ---- what is told -------------------------------------------------------------------------------- */

static void say_synced(etcd_view *v)
{
    env_of(v)->timer_stop(v->grace);
    v->retry_ms = RETRY_MIN_MS;
    if (v->synced) return;
    v->synced = true;
    v->said_away = false;
    if (v->o.synced) v->o.synced(v->o.keys.user);
}

/* A short loss is nobody's business: the next endpoint may know the rest. */
static void say_lost(etcd_view *v, const char *why)
{
    bool counts = v->synced || (!v->said_away && !*v->why);
    snprintf(v->why, sizeof v->why, "%s", why);
    v->synced = false;
    if (counts) env_of(v)->timer_start(v->grace, v->o.grace_ms);
}

static void grace_over(void *arg)
{
    etcd_view *v = arg;
    const char *trouble = etcd_client_trouble(v->c);
    v->said_away = true;
    if (v->o.away) v->o.away(v->o.keys.user, *trouble ? trouble : v->why);
    env_of(v)->timer_start(v->grace, SAY_AGAIN_MS);
}

/* ---- failures ------------------------------------------------------------------------------------ */

static void stop_watch(etcd_view *v)
{
    if (v->watch) grpc_client_cancel(v->watch);
    v->watch = NULL;
    v->watching = false;
    env_of(v)->timer_stop(v->look);
}

/* The connection stands, but this did not work. */
static void try_again(etcd_view *v, const char *why)
{
    say_lost(v, why);
    stop_watch(v);
    env_of(v)->timer_start(v->retry, v->retry_ms);
    v->retry_ms = v->retry_ms < RETRY_MAX_MS / 2 ? 2 * v->retry_ms : RETRY_MAX_MS;
}

static void begin(void *arg)
{
    etcd_view *v = arg;
    if (!etcd_client_is_up(v->c) || v->watch || v->listing) return;
    if (etcd_keys_revision(v->keys) > 0)
        watch(v);
    else
        list(v);
}

/* ---- a listing ----------------------------------------------------------------------------------- */

static void drop_page(etcd_view *v)
{
    free(v->page.next);
    v->page = (etcd_page){0};
}

static void list_failed(etcd_view *v, const etcd_answer *a)
{
    char why[200];
    bool too_big = a->status == GRPC_RESOURCE_EXHAUSTED && v->page_keys > 1;
    if (too_big) v->page_keys /= 2;
    snprintf(why, sizeof why, "etcd does not list %.60s: %.100s", v->prefix, a->message);
    drop_page(v);
    try_again(v, why);
    if (too_big) env_of(v)->timer_start(v->retry, 0);
}

static void ask_page(etcd_view *v);

static void on_page(void *user, const etcd_answer *a)
{
    etcd_view *v = user;
    shoal_err err = {0};
    etcd_page page = {0};
    v->listing = NULL;
    if (a->status != GRPC_OK) {
        if (etcd_client_is_up(v->c)) list_failed(v, a);
        return;
    }
    int rc = etcd_keys_hear_page(v->keys, a->bytes, a->n, &page, &err);
    drop_page(v);
    v->page = page;
    if (rc != 0) {
        drop_page(v);
        try_again(v, err.message);
    } else if (page.more) {
        ask_page(v);
    } else {
        etcd_keys_end_list(v->keys);
        watch(v);
    }
}

static void ask_page(etcd_view *v)
{
    Etcdserverpb__RangeRequest m = ETCDSERVERPB__RANGE_REQUEST__INIT;
    m.key.data = v->page.next ? (uint8_t *)v->page.next : (uint8_t *)v->prefix;
    m.key.len = v->page.next ? v->page.n_next : v->n_prefix;
    m.range_end.data = v->end;
    m.range_end.len = v->n_end;
    m.limit = v->page_keys;
    m.revision = v->page.revision;
    v->listing = etcd_client_call(v->c, ETCD_RANGE, &m.base, on_page, v);
    if (!v->listing) try_again(v, "etcd takes no call now");
}

static void list(etcd_view *v)
{
    drop_page(v);
    etcd_keys_begin_list(v->keys);
    ask_page(v);
}

/* ---- a watch ------------------------------------------------------------------------------------- */

static void forgotten(etcd_view *v, const char *why)
{
    LOG(LOG_INFO, "etcd", "listed_anew", LOG_S("prefix", v->prefix), LOG_S("reason", why));
    stop_watch(v);
    list(v);
}

static void on_news(void *user, const uint8_t *msg, size_t n)
{
    etcd_view *v = user;
    shoal_err err = {0};
    etcd_news news;
    v->heard_ns = listening_ns(v);
    int rc = etcd_keys_hear_watch(v->keys, msg, n, &news, &err);
    if (rc == SHOAL_ENOMEM)
        forgotten(v, err.message); /* what was missed comes with the listing */
    else if (rc != 0)
        etcd_client_doubt(v->c, err.message);
    else if (news == ETCD_FORGOTTEN)
        forgotten(v, *err.message ? err.message : "the store is another one, or an older copy");
    else if (news == ETCD_ENDED)
        try_again(v, err.message);
    else if (news == ETCD_CREATED)
        v->watching = true, say_synced(v);
}

static void watch_ended(void *user, grpc_status status, const char *message)
{
    etcd_view *v = user;
    char why[200];
    v->watch = NULL;
    v->watching = false;
    env_of(v)->timer_stop(v->look);
    if (!etcd_client_is_up(v->c)) return; /* down says why */
    snprintf(why, sizeof why, "etcd ended the watch: %.120s",
             message && *message ? message : grpc_status_name(status));
    if (status == GRPC_UNAUTHENTICATED)
        etcd_client_renew(v->c);
    else if (status == GRPC_UNAVAILABLE || status == GRPC_CANCELLED)
        etcd_client_doubt(v->c, why);
    else
        try_again(v, why);
}

/* Is anybody there? A frozen server keeps its connections. */
static void look(void *arg)
{
    etcd_view *v = arg;
    Etcdserverpb__WatchRequest m = ETCDSERVERPB__WATCH_REQUEST__INIT;
    Etcdserverpb__WatchProgressRequest p = ETCDSERVERPB__WATCH_PROGRESS_REQUEST__INIT;
    uint64_t silent_ms = (listening_ns(v) - v->heard_ns) / 1000000;
    if (silent_ms >= v->o.silence_ms) {
        char why[64];
        snprintf(why, sizeof why, "nothing was heard for %u ms", (unsigned)silent_ms);
        etcd_client_doubt(v->c, why);
        return;
    }
    m.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST;
    m.progress_request = &p;
    if (v->watching && grpc_client_unsent(v->watch) < 1024) etcd_stream_send(v->watch, &m.base);
    env_of(v)->timer_start(v->look, v->o.silence_ms / 3);
}

static void watch(etcd_view *v)
{
    Etcdserverpb__WatchRequest m = ETCDSERVERPB__WATCH_REQUEST__INIT;
    Etcdserverpb__WatchCreateRequest w = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
    const grpc_client_events ev = {.user = v, .message = on_news, .end = watch_ended};
    m.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    m.create_request = &w;
    w.key = (ProtobufCBinaryData){.data = (uint8_t *)v->prefix, .len = v->n_prefix};
    w.range_end = (ProtobufCBinaryData){.data = v->end, .len = v->n_end};
    w.start_revision = etcd_keys_revision(v->keys) + 1;
    w.progress_notify = true;
    w.fragment = true;
    v->watch = etcd_client_stream(v->c, ETCD_WATCH, &ev);
    if (!v->watch || etcd_stream_send(v->watch, &m.base) != 0) {
        try_again(v, "etcd takes no call now");
        return;
    }
    v->heard_ns = listening_ns(v);
    env_of(v)->timer_start(v->look, v->o.silence_ms / 3);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void on_up(void *user)
{
    etcd_view *v = user;
    env_of(v)->timer_stop(v->retry);
    begin(v);
}

static void on_down(void *user, const char *why)
{
    etcd_view *v = user;
    env_of(v)->timer_stop(v->retry);
    say_lost(v, why);
}

/* From the first moment on: whoever starts while etcd is away says so, too. */
static void await(etcd_view *v)
{
    snprintf(v->why, sizeof v->why, "etcd has not answered yet");
    env_of(v)->timer_start(v->grace, v->o.grace_ms);
}

static int make_range(etcd_view *v, shoal_err *err)
{
    v->prefix = strdup(v->o.prefix);
    v->n_prefix = strlen(v->o.prefix);
    v->end = v->prefix ? malloc(v->n_prefix + 1) : NULL;
    if (!v->end) return err_nomem(err);
    v->n_end = etcd_prefix_end(v->prefix, v->n_prefix, v->end);
    return 0;
}

static int make_timers(etcd_view *v, shoal_err *err)
{
    const env *e = env_of(v);
    v->retry = e->timer_new(e->user, begin, v);
    v->grace = e->timer_new(e->user, grace_over, v);
    v->look = e->timer_new(e->user, look, v);
    return v->retry && v->grace && v->look ? 0 : err_nomem(err);
}

int etcd_view_open(etcd_view **ret, etcd_client *c, const etcd_view_options *o, shoal_err *err)
{
    etcd_view *v = calloc(1, sizeof *v);
    if (!v) return err_nomem(err);
    v->c = c;
    v->o = *o;
    if (!v->o.grace_ms) v->o.grace_ms = GRACE_MS;
    if (!v->o.silence_ms) v->o.silence_ms = SILENCE_MS;
    v->page_keys = o->page ? o->page : PAGE_KEYS;
    v->retry_ms = RETRY_MIN_MS;
    v->listener = (etcd_listener){.user = v, .up = on_up, .down = on_down};
    int rc = make_range(v, err);
    if (rc == 0) rc = make_timers(v, err);
    if (rc == 0) rc = etcd_keys_new(&v->keys, v->prefix, &v->o.keys, err);
    if (rc != 0) {
        etcd_view_close(v);
        return rc;
    }
    await(v);
    etcd_client_listen(c, &v->listener);
    *ret = v;
    return 0;
}

void etcd_view_close(etcd_view *v)
{
    if (!v) return;
    etcd_client_unlisten(v->c, &v->listener);
    etcd_call_cancel(v->listing);
    if (v->watch) grpc_client_cancel(v->watch);
    etcd_keys_free(v->keys);
    env_of(v)->timer_free(v->retry);
    env_of(v)->timer_free(v->grace);
    env_of(v)->timer_free(v->look);
    drop_page(v);
    free(v->prefix);
    free(v->end);
    free(v);
}
