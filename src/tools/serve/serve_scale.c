/* serve_scale.c: see serve_scale.h. */
#include "serve/serve_scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "cluster/scale.h"
#include "logging/log.h"
#include "manager/manager.h"
#include "os/memory_headroom.h"

#define MS 1000000u

enum { LOOK_MS = 1000, WINDOW_MS = 10000, WAITS_LEAST = 20 }; /* fewer waits say nothing of their quantile */

typedef struct scaled_model {
    const char *name;
    scale_range range;
    scale s;
    scale_why why; /* of the last look */
    uint64_t bytes;
    uint64_t seen[METRICS_BUCKETS]; /* waits, when the window began */
    uint64_t window_ns, p95_since_ns;
    double p95_ms; /* of the window before, which began then */
} scaled_model;

struct serve_scale {
    serve_scale_options o;
    const env *time;
    env_timer *timer;
    scaled_model *models;
    size_t n;
};

static scale_range range_of(const config_model *m)
{
    return (scale_range){.min = config_replicas(m),
                         .max = m->scale.max,
                         .wait_ms = m->scale.wait_ms,
                         .idle_ms = m->scale.idle_s * 1000};
}

/* ---- what is seen -------------------------------------------------------------------------------- */

static void look_at_replica(scale_view *v, const replica *r, double *least_ms)
{
    bool answers = r->state == REPLICA_READY && !r->silent && !r->standby;
    v->n_failed += replica_could_not_start(r);
    if (r->stats) v->n_requests += r->stats->n_requests;
    if (!answers) return;
    uint64_t told = r->stats ? r->stats->n_running + r->stats->n_waiting : 0;
    double queue_ms = r->stats ? r->stats->queue_ms : 0;
    v->n_ready++;
    v->n_waiting += r->stats ? r->stats->n_waiting : 0;
    v->n_running += r->stats ? r->stats->n_running : 0;
    if (r->load.n_in_flight > told)
        v->n_running += r->load.n_in_flight - told; /* that the last poll did not see */
    if (r->info && r->info->n_parallel > v->n_slots) v->n_slots = r->info->n_parallel;
    if (*least_ms < 0 || queue_ms < *least_ms) *least_ms = queue_ms;
}

static void look_at_waits(const serve_scale *s, scaled_model *m, scale_view *v, uint64_t now_ns)
{
    bool over = now_ns - m->window_ns >= (uint64_t)WINDOW_MS * MS;
    gateway_waits w = gateway_look_at_waits(s->o.gateway, m->name, over ? m->seen : NULL);
    v->n_held = w.n_held;
    if (over) {
        m->p95_ms = w.n_waits >= WAITS_LEAST ? w.p95_ms : 0;
        m->p95_since_ns = m->window_ns;
        m->window_ns = now_ns;
    }
    v->p95_ms = m->p95_ms;
    v->p95_since_ns = m->p95_since_ns;
}

static scale_view view_of(const serve_scale *s, scaled_model *m, uint64_t now_ns)
{
    const replica_set *set = registry_find(s->o.registry, m->name);
    scale_view v = {.n_room = m->s.n + 1};
    double least_ms = -1;
    for (size_t i = 0; set && i < set->n; i++) look_at_replica(&v, set->replicas[i], &least_ms);
    look_at_waits(s, m, &v, now_ns);
    v.queue_ms = least_ms > 0 ? least_ms : 0;
    return v;
}

/* ---- room ---------------------------------------------------------------------------------------- */

/* What is being loaded has not taken all of its memory yet. */
static uint64_t being_loaded(const serve_scale *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->models[i].s.step_ns) bytes += s->models[i].bytes;
    return bytes;
}

static unsigned room_here(const serve_scale *s, const scaled_model *m, char *why, size_t size)
{
    memory_headroom room = memory_headroom_read("");
    uint64_t taken = being_loaded(s);
    unsigned most = manager_most_replicas();
    if (m->s.n >= most) {
        snprintf(why, size, "the cores of this machine carry %u", most);
        return m->s.n;
    }
    if (m->bytes == 0 || room.free_bytes == UINT64_MAX) return m->s.n + 1;
    if (taken <= room.free_bytes && m->bytes <= room.free_bytes - taken) return m->s.n + 1;
    snprintf(why, size, "a replica takes %llu MiB, and %s has %llu MiB free",
             (unsigned long long)(m->bytes >> 20), room.by, (unsigned long long)(room.free_bytes >> 20));
    return m->s.n;
}

static unsigned room_for(const serve_scale *s, const scaled_model *m, char *why, size_t size)
{
    return s->o.control ? control_room(s->o.control, m->name, m->s.n + 1, why, size)
                        : room_here(s, m, why, size);
}

/* ---- looks --------------------------------------------------------------------------------------- */

static void tell_step(const serve_scale *s, const scaled_model *m, unsigned from, scale_why why)
{
    LOG(LOG_INFO, "scale", "step", LOG_S("model", m->name), LOG_I("from", from), LOG_I("to", m->s.n),
        LOG_S("why", scale_why_text(why)));
    gateway_note_scale(s->o.gateway, m->name, m->s.n, scale_why_word(why));
}

/* Once, until something else holds it. */
static void tell_hold(const scaled_model *m, scale_why why, const char *reason)
{
    if (why == m->why || why == SCALE_STEADY || why == SCALE_STARTING) return;
    LOG(LOG_INFO, "scale", "no_step", LOG_S("model", m->name), LOG_I("replicas", m->s.n),
        LOG_S("why", scale_why_text(why)), LOG_S("reason", reason));
}

static bool look_at(serve_scale *s, scaled_model *m, uint64_t now_ns)
{
    char reason[300] = "";
    unsigned from = m->s.n;
    scale_view v = view_of(s, m, now_ns);
    if (scale_needs_room(&m->s, &m->range, &v)) v.n_room = room_for(s, m, reason, sizeof reason);
    scale_why why = scale_look(&m->s, &m->range, &v, now_ns);
    if (scale_is_step(why))
        tell_step(s, m, from, why);
    else
        tell_hold(m, why, why == SCALE_NO_ROOM ? reason : "");
    m->why = why;
    return m->s.n != from;
}

static bool follow(const serve_scale *s, scaled_model *m, uint64_t now_ns)
{
    const replica_set *set = registry_find(s->o.registry, m->name);
    unsigned n = 0, from = m->s.n;
    for (size_t i = 0; set && i < set->n; i++)
        n += set->replicas[i]->state <= REPLICA_READY && !set->replicas[i]->standby;
    scale_follow(&m->s, &m->range, n, now_ns);
    return m->s.n != from;
}

/* A set may be new since the last look. Without memory the next look tells it. */
static void tell_registry(const serve_scale *s, const scaled_model *m)
{
    bool varies = m->range.max > 0;
    (void)registry_vary(s->o.registry, m->name, varies, varies && m->range.min == 0, NULL);
}

static void on_time(void *user)
{
    serve_scale *s = user;
    uint64_t now_ns = env_now_ns(s->time);
    bool leads = !s->o.control || control_plans(s->o.control);
    for (size_t i = 0; i < s->n; i++) {
        scaled_model *m = &s->models[i];
        tell_registry(s, m);
        bool changed = m->range.max > 0 && (leads ? look_at(s, m, now_ns) : follow(s, m, now_ns));
        if (changed) s->o.changed(s->o.user); /* at once: the next one's room is what this step leaves */
    }
    s->time->timer_start(s->timer, LOOK_MS);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void set_range(serve_scale *s, scaled_model *m, const config_model *c)
{
    bool begins = m->range.max == 0;
    unsigned n = m->s.n;
    m->range = range_of(c);
    if (begins || m->range.max == 0) scale_begin(&m->s, &m->range, env_now_ns(s->time));
    if (m->range.max == 0) return;
    if (begins) scale_follow(&m->s, &m->range, n, env_now_ns(s->time)); /* those that it had stay */
    gateway_note_scale(s->o.gateway, m->name, m->s.n, NULL);
}

void serve_scale_take(serve_scale *s, const gateway_config *now)
{
    for (size_t i = 0; i < s->n; i++) {
        const config_model *c = config_find_model(now, s->models[i].name);
        if (c) set_range(s, &s->models[i], c);
    }
}

unsigned serve_scale_number(const serve_scale *s, const char *model)
{
    size_t i = 0;
    while (strcmp(s->models[i].name, model) != 0) i++;
    return s->models[i].s.n;
}

int serve_scale_open(serve_scale **ret, const serve_scale_options *o, shoal_err *err)
{
    serve_scale *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->o = *o;
    s->time = registry_env(o->registry);
    s->models = calloc(o->config->n_models + 1, sizeof *s->models);
    s->timer = s->time->timer_new(s->time->user, on_time, s);
    if (!s->models || !s->timer) {
        serve_scale_close(s);
        return err_nomem(err);
    }
    for (; s->n < o->config->n_models; s->n++) {
        scaled_model *m = &s->models[s->n];
        *m = (scaled_model){
            .name = o->config->models[s->n].name, .bytes = o->bytes[s->n], .why = SCALE_STEADY};
        m->window_ns = env_now_ns(s->time);
        set_range(s, m, &o->config->models[s->n]);
        tell_registry(s, m);
    }
    s->time->timer_start(s->timer, LOOK_MS);
    *ret = s;
    return 0;
}

void serve_scale_close(serve_scale *s)
{
    if (!s) return;
    if (s->timer) s->time->timer_free(s->timer);
    free(s->models);
    free(s);
}
