/* live.c: see live.h. What is described stands in a list, in the order in which it is described; each item
 * knows the beat at which it last changed, each listener the beat of its last event. */
#include "observe/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "json/json_put.h"
#include "cluster/node.h"
#include "request/admission.h"
#include "observe/describe.h"
#include "request/gateway_state.h"

typedef enum live_kind { LIVE_GATEWAY, LIVE_NODE, LIVE_REPLICA } live_kind;

typedef struct live_item {
    struct live_item *next;
    live_kind kind;
    char *name;
    buf text;               /* its object, as of `changed` */
    uint64_t changed, seen; /* beats */
    bool gone;
} live_item;

typedef struct listener {
    list_node link; /* in the listeners of live */
    struct live *live;
    gateway_request *rq;
    uint64_t beat, told_ns; /* of its last event */
} listener;

struct live {
    gateway *g;
    env_timer *beats;
    uint64_t beat;
    live_item *items, *at; /* at: where the next description is expected */
    list_node listeners;
    size_t n_listeners;
    buf here; /* this machine, as of here_ns */
    uint64_t here_ns;
    buf draft, event; /* used again */
};

/* ---- what is there ------------------------------------------------------------------------------- */

static void item_free(live_item *it)
{
    free(it->name);
    buf_done(&it->text);
    free(it);
}

static live_item *live_find(live_item *from, const live_item *to, live_kind kind, const char *name)
{
    for (live_item *it = from; it != to; it = it->next)
        if (it->kind == kind && strcmp(it->name, name) == 0) return it;
    return NULL;
}

/* NULL: out of memory. */
static live_item *live_add(live *l, live_kind kind, const char *name)
{
    live_item *it = calloc(1, sizeof *it), **end = &l->items;
    if (!it || !(it->name = strdup(name))) {
        free(it);
        return NULL;
    }
    it->kind = kind;
    while (*end) end = &(*end)->next;
    return *end = it;
}

/* l->draft is the description of this one. Without memory it stays as it was, until the next beat. */
static void note(live *l, live_kind kind, const char *name)
{
    live_item *it = live_find(l->at, NULL, kind, name);
    if (!it) it = live_find(l->items, l->at, kind, name);
    if (!it) it = live_add(l, kind, name);
    if (!it) return;
    l->at = it->next;
    it->seen = l->beat;
    if (l->draft.failed) return;
    if (!it->gone && it->text.len == l->draft.len && memcmp(it->text.data, l->draft.data, l->draft.len) == 0)
        return;
    buf_clear(&it->text);
    if (buf_append(&it->text, l->draft.data, l->draft.len) != 0) return;
    it->gone = false;
    it->changed = l->beat;
}

/* "node kitchen" */
static const char *const KINDS[] = {
    [LIVE_GATEWAY] = "gateway", [LIVE_NODE] = "node", [LIVE_REPLICA] = "replica"};

/* The beat that every listener has heard of. */
static uint64_t heard_by_all(const live *l)
{
    uint64_t beat = l->beat;
    list_each (x, &l->listeners, listener, link)
        if (x->beat < beat) beat = x->beat;
    return beat;
}

static void sweep(live *l)
{
    uint64_t heard = heard_by_all(l);
    for (live_item **at = &l->items; *at;) {
        live_item *it = *at;
        if (!it->gone && it->seen != l->beat) {
            it->gone = true;
            it->changed = l->beat;
        }
        if (it->gone && it->changed < heard) {
            *at = it->next;
            item_free(it);
        } else {
            at = &it->next;
        }
    }
}

/* To read what this machine is up to takes longer than all the rest, and it changes all the time. */
static void look_at_this_machine(live *l)
{
    uint64_t now = env_now_ns(&l->g->time);
    node *here = NULL;
    if (l->here_ns && now - l->here_ns < LIVE_MACHINE_MS * 1000000ull) return;
    if (node_here(&here, NULL) != 0) return;
    buf_clear(&l->here);
    describe_here(&l->here, here, registry_site(l->g->registry));
    l->here_ns = l->here.failed ? 0 : now;
    node_free(here);
}

/* This machine has no name among the nodes: its replicas' is "". */
static void look_at_machines(live *l)
{
    const registry *r = l->g->registry;
    size_t at = 0;
    look_at_this_machine(l);
    buf_clear(&l->draft);
    buf_join(&l->draft, &l->here);
    if (l->here.len) note(l, LIVE_NODE, "");
    for (const node *n; (n = registry_next_node(r, &at));) {
        buf_clear(&l->draft);
        describe_node(&l->draft, n);
        note(l, LIVE_NODE, n->name);
    }
}

static void live_look(live *l)
{
    const registry *r = l->g->registry;
    l->beat++;
    l->at = l->items;
    buf_clear(&l->draft);
    describe_gateway(&l->draft, l->g);
    buf_putc(&l->draft, '}');
    note(l, LIVE_GATEWAY, "");
    look_at_machines(l);
    for (size_t i = 0; i < registry_count(r); i++) {
        const replica *x = registry_at(r, i);
        buf_clear(&l->draft);
        describe_replica(&l->draft, l->g, x);
        note(l, LIVE_REPLICA, x->id);
    }
    sweep(l);
}

/* ---- who listens --------------------------------------------------------------------------------- */

static void put_changed(buf *out, const live *l, live_kind kind, uint64_t since)
{
    bool first = true;
    for (const live_item *it = l->items; it; it = it->next) {
        if (it->kind != kind || it->gone || it->changed <= since || it->text.len == 0) continue;
        if (!first) buf_putc(out, ',');
        first = false;
        buf_append(out, it->text.data, it->text.len);
    }
}

static void put_gone(buf *out, const live *l, uint64_t since)
{
    for (const live_item *it = l->items; it; it = it->next) {
        if (!it->gone || it->changed <= since) continue;
        buf name = {0};
        buf_printf(&name, "%s %s", KINDS[it->kind], it->name);
        json_put_buf(out, NULL, &name);
        buf_done(&name);
    }
}

static void put_event(buf *out, const live *l, uint64_t since)
{
    event_begin(out, EVENT_DATA, "status");
    buf_printf(out, "{\"at\":%.3f", (double)env_wall_ns(&l->g->time) / 1e9);
    size_t before = out->len;
    buf_puts(out, ",\"gateway\":");
    size_t empty = out->len;
    put_changed(out, l, LIVE_GATEWAY, since);
    if (out->len == empty) out->len = before;
    buf_puts(out, ",\"nodes\":[");
    put_changed(out, l, LIVE_NODE, since);
    buf_puts(out, "],\"replicas\":[");
    put_changed(out, l, LIVE_REPLICA, since);
    buf_puts(out, "],\"gone\":[");
    put_gone(out, l, since);
    buf_puts(out, "]}");
    event_end(out);
}

static bool has_news(const live *l, uint64_t since)
{
    for (const live_item *it = l->items; it; it = it->next)
        if (it->changed > since) return true;
    return false;
}

static void live_tell(live *l, listener *x)
{
    uint64_t now = env_now_ns(&l->g->time);
    bool quiet = now - x->told_ns > LIVE_QUIET_MS * 1000000ull;
    if ((!quiet && !has_news(l, x->beat)) || request_stream_is_full(x->rq)) return;
    buf_clear(&l->event);
    put_event(&l->event, l, x->beat);
    if (l->event.failed) {
        buf_done(&l->event); /* with the next beat */
        return;
    }
    x->beat = l->beat;
    x->told_ns = now;
    request_stream_write(x->rq, &l->event);
}

static void live_leave(void *work)
{
    listener *x = work;
    live *l = x->live;
    list_take(&x->link);
    if (--l->n_listeners == 0) l->g->time.timer_stop(l->beats);
    free(x);
}

/* Whose key is taken away hears no more. */
static bool may_hear(listener *x)
{
    gateway_request *rq = x->rq;
    api_error e = {0};
    if (admission_check_again(rq, &e) == 0) return true;
    live_leave(x);
    request_watch(rq, NULL, NULL);
    request_error(rq, &e);
    return false;
}

static void on_beat(void *user)
{
    live *l = user;
    l->g->time.timer_start(l->beats, LIVE_BEAT_MS);
    live_look(l);
    list_each (x, &l->listeners, listener, link)
        if (may_hear(x)) live_tell(l, x);
    if (l->draft.failed) buf_done(&l->draft);
}

static listener *live_join(live *l, gateway_request *rq)
{
    listener *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (listener){.live = l, .rq = rq};
    list_put(&l->listeners, &x->link);
    if (l->n_listeners++ == 0) l->g->time.timer_start(l->beats, LIVE_BEAT_MS);
    return x;
}

void live_handle(gateway_request *rq)
{
    live *l = rq->gateway->live;
    api_error e = {0};
    if (rq->gateway->draining)
        api_error_set(&e, 503, "service_unavailable", "draining", NULL, "the server is shutting down");
    else if (l->n_listeners >= LIVE_LISTENERS_MAX)
        api_error_set(&e, 429, "rate_limit_error", "too_many_requests", NULL,
                      "%d clients listen, which is the limit; close one of them, or ask GET /v1/status",
                      LIVE_LISTENERS_MAX);
    else if (request_count_like(rq) >= LIVE_LISTENERS_OF_ONE)
        api_error_set(
            &e, 429, "rate_limit_error", "too_many_requests", NULL,
            "this client listens %d times, which is the limit; close one of them, or ask GET /v1/status",
            LIVE_LISTENERS_OF_ONE);
    listener *x = e.status ? NULL : live_join(l, rq);
    if (!e.status && !x) api_error_nomem(&e);
    if (!x) {
        request_error(rq, &e);
        return;
    }
    request_watch(rq, live_leave, x);
    request_stream_begin(rq);
    live_look(l);
    live_tell(l, x);
}

/* ---- the gateway's ------------------------------------------------------------------------------- */

int live_open(gateway *g, shoal_err *err)
{
    live *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    l->g = g;
    list_init(&l->listeners);
    g->live = l;
    l->beats = g->time.timer_new(g->time.user, on_beat, l);
    return l->beats ? 0 : err_nomem(err);
}

void live_drain(gateway *g)
{
    for (listener *x; (x = list_first(&g->live->listeners, listener, link));) {
        gateway_request *rq = x->rq;
        live_leave(x);
        request_watch(rq, NULL, NULL);
        request_stream_end(rq);
    }
}

void live_close(gateway *g)
{
    live *l = g->live;
    if (!l) return;
    while (l->items) {
        live_item *it = l->items;
        l->items = it->next;
        item_free(it);
    }
    buf_done(&l->here);
    buf_done(&l->draft);
    buf_done(&l->event);
    g->live = NULL;
    g->time.timer_free(l->beats);
    free(l);
}
