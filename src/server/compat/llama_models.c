/* llama_models.c: see llama_models.h. What listeners share is there while there is one. */
#include "compat/llama_models.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "gateway/model_manager.h"
#include "json/json.h"
#include "json/json_put.h"
#include "request/admission.h"
#include "request/gateway_state.h"

enum { BEAT_MS = 250, ALIVE_BEATS = 60, LISTENERS_MAX = 64, LISTENERS_OF_ONE = 32 };

typedef enum model_status { MODEL_UNLOADED, MODEL_LOADING, MODEL_LOADED } model_status;

typedef struct known_model {
    struct known_model *next;
    model_status status;
    char name[]; /* NUL-terminated */
} known_model;

typedef struct listener {
    list_node link; /* in the listeners of model_events */
    struct model_events *hub;
    gateway_request *rq;
    unsigned n_quiet; /* beats without an event */
    bool missed;      /* an event: it did not read, and its stream ends with the next beat */
} listener;

typedef struct model_events {
    gateway *g;
    env_timer *beats;
    known_model *models;
    list_node listeners;
    size_t n_listeners;
    buf data; /* used again */
} model_events;

/* ---- what models are ----------------------------------------------------------------------------- */

static model_status status_now(const model_events *h, const char *model)
{
    const registry *r = h->g->registry;
    model_status s = MODEL_UNLOADED;
    for (size_t i = 0; i < registry_count(r); i++) {
        const replica *x = registry_at(r, i);
        if (strcmp(x->model, model) != 0) continue;
        if (x->state == REPLICA_READY) return MODEL_LOADED;
        if (x->state == REPLICA_STARTING) s = MODEL_LOADING;
    }
    return s;
}

/* NULL: out of memory. A new one was unloaded before. */
static known_model *know(model_events *h, const char *model)
{
    known_model *k = h->models;
    while (k && strcmp(k->name, model) != 0) k = k->next;
    if (k) return k;
    size_t n = strlen(model) + 1;
    if (!(k = calloc(1, sizeof *k + n))) return NULL;
    memcpy(k->name, model, n);
    k->next = h->models;
    return h->models = k;
}

/* ---- what is told -------------------------------------------------------------------------------- */

static void leave(void *work);

static void end_with(listener *x, const api_error *e)
{
    gateway_request *rq = x->rq;
    leave(x);
    request_watch(rq, NULL, NULL);
    if (e)
        request_error(rq, e);
    else
        request_stream_end(rq);
}

/* To whoever may use that model and reads. Who has missed a state would believe the one before it for ever. */
static void tell(model_events *h, const char *model)
{
    event e = {.kind = EVENT_DATA, .data = h->data.data, .n_data = h->data.len};
    if (h->data.failed) {
        buf_done(&h->data);
        return;
    }
    list_each (x, &h->listeners, listener, link) {
        if (!admission_shows_now(x->rq, model)) continue;
        x->missed |= request_stream_is_full(x->rq);
        if (x->missed) continue;
        x->n_quiet = 0;
        request_event(x->rq, &e);
    }
}

static void begin(model_events *h, const char *model, const char *what)
{
    buf_clear(&h->data);
    buf_putc(&h->data, '{');
    json_put_text(&h->data, "model", model);
    json_put_text(&h->data, "event", what);
}

static void tell_plain(model_events *h, const char *model, const char *what)
{
    begin(h, model, what);
    buf_putc(&h->data, '}');
    tell(h, model);
}

static void look_at(model_events *h, const char *model)
{
    static const char *const WORDS[] = {"unloaded", "loading", "loaded"};
    known_model *k = know(h, model);
    model_status now = status_now(h, model);
    if (!k || k->status == now) return;
    k->status = now;
    begin(h, model, "model_status");
    buf_printf(&h->data, ",\"data\":{\"status\":\"%s\"}}", WORDS[now]);
    tell(h, model);
}

static void on_replica(void *user, const registry_event *e)
{
    if (e->replica) look_at(user, e->replica->model);
}

/* The same from the first event of a download to its last: a file's model is known only when it is there. */
static const char *name_of(const model_manager_progress *n)
{
    return *n->asked ? n->asked : n->model;
}

static void on_fetching(void *user, const model_manager_progress *n)
{
    model_events *h = user;
    begin(h, name_of(n), "download_progress");
    buf_puts(&h->data, ",\"data\":{");
    json_put_string(&h->data, n->file, strlen(n->file));
    buf_printf(&h->data, ":{\"done\":%llu,\"total\":%llu}}}", (unsigned long long)n->fetched,
               (unsigned long long)n->total);
    tell(h, name_of(n));
}

static void on_fetched(void *user, const model_manager_progress *n, const api_error *e)
{
    tell_plain(user, name_of(n), e ? "download_failed" : "download_finished");
}

static void on_removed(void *user, const model_manager_progress *n)
{
    tell_plain(user, name_of(n), "model_remove");
}

/* ---- who listens --------------------------------------------------------------------------------- */

static void hub_free(model_events *h)
{
    const model_manager *k = h->g->model_manager;
    registry_unlisten(h->g->registry, on_replica, h);
    if (k && k->observe) k->observe(k->user, NULL);
    h->g->time.timer_free(h->beats);
    h->g->model_events = NULL;
    for (known_model *m = h->models, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    buf_done(&h->data);
    free(h);
}

static void leave(void *work)
{
    listener *x = work;
    model_events *h = x->hub;
    list_take(&x->link);
    free(x);
    if (--h->n_listeners == 0) hub_free(h);
}

/* The server shuts down, a listener does not read, or a key is taken away; else, now and then, that the stream is still there. */
static void on_beat(void *user)
{
    model_events *h = user;
    h->g->time.timer_start(h->beats, BEAT_MS);
    bool drains = h->g->draining;
    size_t left = h->n_listeners;
    for (listener *x = list_first(&h->listeners, listener, link); left > 0; left--) {
        api_error e = {0};
        bool last = left == 1;
        listener *next = last ? NULL : list_next(&h->listeners, x, listener, link);
        if (drains || x->missed)
            end_with(x, NULL);
        else if (admission_check_again(x->rq, &e) != 0)
            end_with(x, &e);
        else if (++x->n_quiet % ALIVE_BEATS == 0 && !request_stream_is_full(x->rq))
            request_event(x->rq, &(event){.kind = EVENT_ALIVE});
        x = next; /* with the last one h may be gone */
    }
}

static model_events *hub_new(gateway *g)
{
    static const model_manager_events EVENTS = {on_fetching, on_fetched, on_removed, NULL};
    const model_manager *k = g->model_manager;
    model_events *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    *h = (model_events){.g = g};
    list_init(&h->listeners);
    h->beats = g->time.timer_new(g->time.user, on_beat, h);
    if (!h->beats || registry_listen(g->registry, on_replica, h, NULL) != 0) {
        g->time.timer_free(h->beats);
        free(h);
        return NULL;
    }
    for (size_t i = 0; i < registry_count(g->registry); i++) {
        known_model *m = know(h, registry_at(g->registry, i)->model);
        if (m) m->status = status_now(h, m->name);
    }
    model_manager_events events = EVENTS;
    events.user = h;
    if (k && k->observe) k->observe(k->user, &events);
    g->time.timer_start(h->beats, BEAT_MS);
    return g->model_events = h;
}

static listener *join(gateway_request *rq)
{
    gateway *g = rq->gateway;
    listener *x = calloc(1, sizeof *x);
    model_events *h = x ? g->model_events ? g->model_events : hub_new(g) : NULL;
    if (!h) {
        free(x);
        return NULL;
    }
    *x = (listener){.hub = h, .rq = rq};
    list_put(&h->listeners, &x->link);
    h->n_listeners++;
    return x;
}

void llama_models_sse(gateway_request *rq)
{
    const model_events *h = rq->gateway->model_events;
    api_error e = {0};
    if (rq->gateway->draining)
        api_error_set(&e, 503, "service_unavailable", "draining", NULL, "the server is shutting down");
    else if ((h && h->n_listeners >= LISTENERS_MAX) || request_count_like(rq) >= LISTENERS_OF_ONE)
        api_error_set(&e, 429, "rate_limit_error", "too_many_requests", NULL,
                      "%d clients may listen, and one client %d times; close one of them, or ask GET /models",
                      LISTENERS_MAX, LISTENERS_OF_ONE);
    listener *x = e.status ? NULL : join(rq);
    if (!e.status && !x) api_error_nomem(&e);
    if (!x) {
        request_error(rq, &e);
        return;
    }
    request_watch(rq, leave, x);
    request_stream_begin(rq);
}
