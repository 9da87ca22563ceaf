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
    SAY_AGAIN_MS = 10000, /* why it is away: the reason may be another one by now */
};

struct etcd_view {
    etcd_session *s;
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
    env_timer *grace, *probe;
    uint64_t heard_ns; /* by the listening clock (time/env.h) */
    char why[200];
};

static void view_list(etcd_view *v);
static void view_watch(etcd_view *v);

size_t etcd_prefix_end(const char *prefix, size_t n, uint8_t *out)
{
    memcpy(out, prefix, n);
    while (n > 0 && out[n - 1] == 0xFF) n--;
    if (n > 0) out[n - 1]++;
    return n;
}

static const env *view_env(const etcd_view *v)
{
    return etcd_session_env(v->s);
}

static uint64_t view_listening_ns(const etcd_view *v)
{
    return view_env(v)->listening_ns(view_env(v)->user);
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

static void view_say_synced(etcd_view *v)
{
    view_env(v)->timer_stop(v->grace);
    etcd_session_succeeded(&v->listener);
    if (v->synced) return;
    v->synced = true;
    v->said_away = false;
    if (v->o.synced) v->o.synced(v->o.keys.user);
}

/* A short loss is nobody's business: the next endpoint may know the rest. */
static void view_say_lost(etcd_view *v, const char *why)
{
    bool counts = v->synced || (!v->said_away && !*v->why);
    snprintf(v->why, sizeof v->why, "%s", why);
    v->synced = false;
    if (counts) view_env(v)->timer_start(v->grace, v->o.grace_ms);
}

static void view_grace_over(void *arg)
{
    etcd_view *v = arg;
    const char *trouble = etcd_session_trouble(v->s);
    v->said_away = true;
    if (v->o.away) v->o.away(v->o.keys.user, *trouble ? trouble : v->why);
    view_env(v)->timer_start(v->grace, SAY_AGAIN_MS);
}

/* ---- failures ------------------------------------------------------------------------------------ */

static void view_stop_watch(etcd_view *v)
{
    if (v->watch) grpc_client_cancel(v->watch);
    v->watch = NULL;
    v->watching = false;
    view_env(v)->timer_stop(v->probe);
}

/* The connection stands, but this did not work. */
static void view_retry(etcd_view *v, const char *why)
{
    view_say_lost(v, why);
    view_stop_watch(v);
    etcd_session_retry(&v->listener);
}

static void view_begin(void *arg)
{
    etcd_view *v = arg;
    if (v->watch || v->listing) return;
    if (etcd_keys_revision(v->keys) > 0)
        view_watch(v);
    else
        view_list(v);
}

/* ---- a listing ----------------------------------------------------------------------------------- */

static void view_drop_page(etcd_view *v)
{
    free(v->page.next);
    v->page = (etcd_page){0};
}

static void view_list_failed(etcd_view *v, const etcd_answer *a)
{
    char why[200];
    if (a->status == GRPC_RESOURCE_EXHAUSTED && v->page_keys > 1) {
        v->page_keys /= 2;
        view_list(v);
        return;
    }
    snprintf(why, sizeof why, "etcd does not list %.60s: %.100s", v->prefix, a->message);
    view_drop_page(v);
    view_retry(v, why);
}

static void view_ask_page(etcd_view *v);

static void view_page_came(void *user, const etcd_answer *a)
{
    etcd_view *v = user;
    shoal_err err = {0};
    etcd_page page = {0};
    v->listing = NULL;
    if (a->status != GRPC_OK) {
        if (etcd_session_is_up(v->s)) view_list_failed(v, a);
        return;
    }
    int rc = etcd_keys_hear_page(v->keys, a->bytes, a->n, &page, &err);
    view_drop_page(v);
    v->page = page;
    if (rc != 0) {
        view_drop_page(v);
        view_retry(v, err.message);
    } else if (page.more) {
        view_ask_page(v);
    } else {
        etcd_keys_end_list(v->keys);
        view_watch(v);
    }
}

static void view_ask_page(etcd_view *v)
{
    Etcdserverpb__RangeRequest m = ETCDSERVERPB__RANGE_REQUEST__INIT;
    m.key.data = v->page.next ? (uint8_t *)v->page.next : (uint8_t *)v->prefix;
    m.key.len = v->page.next ? v->page.n_next : v->n_prefix;
    m.range_end.data = v->end;
    m.range_end.len = v->n_end;
    m.limit = v->page_keys;
    m.revision = v->page.revision;
    v->listing = etcd_session_call(v->s, ETCD_RANGE, &m.base, view_page_came, v);
    if (!v->listing) view_retry(v, "etcd takes no call now");
}

static void view_list(etcd_view *v)
{
    view_drop_page(v);
    etcd_keys_begin_list(v->keys);
    view_ask_page(v);
}

/* ---- a watch ------------------------------------------------------------------------------------- */

static void view_forgotten(etcd_view *v, const char *why)
{
    LOG(LOG_INFO, "etcd", "listed_anew", LOG_S("prefix", v->prefix), LOG_S("reason", why));
    view_stop_watch(v);
    view_list(v);
}

static void view_news_came(void *user, const uint8_t *msg, size_t n)
{
    etcd_view *v = user;
    shoal_err err = {0};
    etcd_news news;
    v->heard_ns = view_listening_ns(v);
    int rc = etcd_keys_hear_watch(v->keys, msg, n, &news, &err);
    if (rc == SHOAL_ENOMEM)
        view_forgotten(v, err.message); /* what was missed comes with the listing */
    else if (rc != 0)
        etcd_session_doubt(v->s, err.message);
    else if (news == ETCD_FORGOTTEN)
        view_forgotten(v, *err.message ? err.message : "the store is another one, or an older copy");
    else if (news == ETCD_ENDED)
        view_retry(v, err.message);
    else if (news == ETCD_CREATED)
        v->watching = true, view_say_synced(v);
}

static void view_watch_ended(void *user, grpc_status status, const char *message)
{
    etcd_view *v = user;
    char why[200];
    v->watch = NULL;
    v->watching = false;
    view_env(v)->timer_stop(v->probe);
    if (!etcd_stream_may_reopen(v->s, status, message)) return; /* down says why */
    snprintf(why, sizeof why, "etcd ended the watch: %.120s",
             message && *message ? message : grpc_status_name(status));
    view_retry(v, why);
}

/* Is anybody there? A frozen server keeps its connections. */
static void view_probe(void *arg)
{
    etcd_view *v = arg;
    Etcdserverpb__WatchRequest m = ETCDSERVERPB__WATCH_REQUEST__INIT;
    Etcdserverpb__WatchProgressRequest p = ETCDSERVERPB__WATCH_PROGRESS_REQUEST__INIT;
    uint64_t silent_ms = (view_listening_ns(v) - v->heard_ns) / 1000000;
    if (silent_ms >= v->o.silence_ms) {
        char why[64];
        snprintf(why, sizeof why, "nothing was heard for %u ms", (unsigned)silent_ms);
        etcd_session_doubt(v->s, why);
        return;
    }
    m.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST;
    m.progress_request = &p;
    if (v->watching && grpc_client_unsent(v->watch) < 1024) etcd_stream_send(v->watch, &m.base);
    view_env(v)->timer_start(v->probe, v->o.silence_ms / 3);
}

static void view_watch(etcd_view *v)
{
    Etcdserverpb__WatchRequest m = ETCDSERVERPB__WATCH_REQUEST__INIT;
    Etcdserverpb__WatchCreateRequest w = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
    const grpc_client_events ev = {.user = v, .message = view_news_came, .end = view_watch_ended};
    m.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    m.create_request = &w;
    w.key = (ProtobufCBinaryData){.data = (uint8_t *)v->prefix, .len = v->n_prefix};
    w.range_end = (ProtobufCBinaryData){.data = v->end, .len = v->n_end};
    w.start_revision = etcd_keys_revision(v->keys) + 1;
    w.progress_notify = true;
    w.fragment = true;
    v->watch = etcd_session_stream(v->s, ETCD_WATCH, &ev);
    if (!v->watch || etcd_stream_send(v->watch, &m.base) != 0) {
        view_retry(v, "etcd takes no call now");
        return;
    }
    v->heard_ns = view_listening_ns(v);
    view_env(v)->timer_start(v->probe, v->o.silence_ms / 3);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void view_down(void *user, const char *why)
{
    view_say_lost(user, why);
}

/* From the first moment on: whoever starts while etcd is away says so, too. */
static void view_await(etcd_view *v)
{
    snprintf(v->why, sizeof v->why, "etcd has not answered yet");
    view_env(v)->timer_start(v->grace, v->o.grace_ms);
}

static int view_make_range(etcd_view *v, shoal_err *err)
{
    v->prefix = strdup(v->o.prefix);
    v->n_prefix = strlen(v->o.prefix);
    v->end = v->prefix ? malloc(v->n_prefix + 1) : NULL;
    if (!v->end) return err_nomem(err);
    v->n_end = etcd_prefix_end(v->prefix, v->n_prefix, v->end);
    return 0;
}

static int view_make_timers(etcd_view *v, shoal_err *err)
{
    const env *e = view_env(v);
    v->grace = e->timer_new(e->user, view_grace_over, v);
    v->probe = e->timer_new(e->user, view_probe, v);
    return v->grace && v->probe ? 0 : err_nomem(err);
}

int etcd_view_open(etcd_view **ret, etcd_session *s, const etcd_view_options *o, shoal_err *err)
{
    etcd_view *v = calloc(1, sizeof *v);
    if (!v) return err_nomem(err);
    v->s = s;
    v->o = *o;
    if (!v->o.grace_ms) v->o.grace_ms = GRACE_MS;
    if (!v->o.silence_ms) v->o.silence_ms = SILENCE_MS;
    v->page_keys = o->page ? o->page : PAGE_KEYS;
    v->listener = (etcd_listener){.user = v, .ready = view_begin, .down = view_down};
    int rc = view_make_range(v, err);
    if (rc == 0) rc = view_make_timers(v, err);
    if (rc == 0) rc = etcd_keys_new(&v->keys, v->prefix, &v->o.keys, err);
    if (rc == 0) rc = etcd_session_listen(s, &v->listener, err);
    if (rc != 0) {
        etcd_view_close(v);
        return rc;
    }
    view_await(v);
    *ret = v;
    return 0;
}

void etcd_view_close(etcd_view *v)
{
    if (!v) return;
    etcd_session_unlisten(&v->listener);
    etcd_call_cancel(v->listing);
    if (v->watch) grpc_client_cancel(v->watch);
    etcd_keys_free(v->keys);
    view_env(v)->timer_free(v->grace);
    view_env(v)->timer_free(v->probe);
    view_drop_page(v);
    free(v->prefix);
    free(v->end);
    free(v);
}
