/* serve_reload.c: see serve_reload.h. */
#include "serve/serve_reload.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/signal_stack.h"
#include "json/json.h"
#include "logging/log.h"
#include "config/config_diff.h"
#include "config/config_fit.h"
#include "rules/home.h"

struct serve_reload {
    serve_reload_options o;
    char *path;
    uv_thread_t thread;
    uv_async_t read; /* the thread has read the file */
    bool reading, again;
    uint64_t start_ns;
    gateway_config *next; /* what was read, or NULL and why */
    json_t *changes;      /* of {key, from, to, when} */
    shoal_err why;
};

typedef struct change_list {
    json_t *all;
    bool of_start;
    bool failed;
} change_list;

/* ---- what changed -------------------------------------------------------------------------------- */

static void add_change(void *user, const config_change *c)
{
    change_list *l = user;
    if ((c->when != CONFIG_NOW) != l->of_start) return;
    json_t *v = json_pack("{s:s, s:s, s:s, s:i}", "key", c->path, "from", c->from ? c->from : "", "to",
                          c->to ? c->to : "", "when", (int)c->when);
    if (!v || json_array_append_new(l->all, v) != 0) l->failed = true;
}

/* Against what is in use: what counts from now on. Against what was started: what is still due. Neither goes
 * while this runs. */
static int list_changes(serve_reload *r, shoal_err *err)
{
    change_list l = {.all = json_array()};
    if (!l.all) return err_nomem(err);
    int rc = config_diff(gateway_config_now(r->o.gateway), r->next, add_change, &l, err);
    l.of_start = true;
    if (rc == 0) rc = config_diff(r->o.started, r->next, add_change, &l, err);
    r->changes = l.all;
    return rc == 0 && l.failed ? err_nomem(err) : rc;
}

static const char *said(const json_t *v, const char *key)
{
    return json_string_value(json_object_get(v, key));
}

static void log_changes(const serve_reload *r)
{
    static const char *const NEEDS[] = {[CONFIG_MODELS] =
                                            "POST /v1/models/load for a new model, else a restart",
                                        [CONFIG_RESTART] = "a restart"};
    size_t i, n_left = 0, n_changed = 0;
    json_t *v;
    json_array_foreach(r->changes, i, v)
    {
        config_when when = (config_when)json_integer_value(json_object_get(v, "when"));
        const char *key = said(v, "key"), *from = said(v, "from"), *to = said(v, "to");
        if (when == CONFIG_NOW) {
            LOG(LOG_INFO, "serve", "changed", LOG_S("key", key), LOG_S("from", from), LOG_S("to", to));
            n_changed++;
        } else {
            LOG(LOG_WARN, "serve", "left", LOG_S("key", key), LOG_S("from", from), LOG_S("to", to),
                LOG_S("needs", NEEDS[when]));
            n_left++;
        }
    }
    LOG(LOG_INFO, "serve", "reloaded", LOG_S("file", r->path), LOG_I("changed", n_changed),
        LOG_I("left", n_left), LOG_F("ms", clock_ms_since(r->start_ns)));
}

/* ---- taking it ----------------------------------------------------------------------------------- */

/* Stages must fit the models that are served, as at the start. */
static int check_fit(const serve_reload *r, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < registry_count(r->o.registry); i++) {
        const replica *at = registry_at(r->o.registry, i);
        const Shoal__V1__ModelInfo *m = at->info;
        if (!m) continue;
        model_facts f = {.task = m->task,
                         .labels = (const char *const *)m->labels,
                         .n_labels = m->n_labels,
                         .has_chat_template = m->has_chat_template};
        rc = config_fit(r->next, at->model, &f, err);
    }
    return rc;
}

static int serve_reload_take(serve_reload *r, shoal_err *err)
{
    int rc = check_fit(r, err);
    if (rc == 0) rc = gateway_reload(r->o.gateway, r->next, err);
    if (rc == 0) {
        log_set_level((log_level)log_level_parse(r->next->log_level));
        if (r->o.taken) r->o.taken(r->o.user, r->next);
        r->next = NULL;
        log_changes(r);
    }
    return rc;
}

/* ---- reading it ---------------------------------------------------------------------------------- */

static void serve_reload_forget(serve_reload *r)
{
    config_free(r->next);
    json_decref(r->changes);
    r->next = NULL;
    r->changes = NULL;
}

static void serve_reload_read_file(serve_reload *r)
{
    r->next = NULL;
    r->changes = NULL;
    r->why = (shoal_err){0};
    int rc = config_load(&r->next, &HOME_STAGES, r->path, &r->why);
    if (rc == 0 && r->o.listen_given) { /* the command line's word counts */
        r->next->listen = config_keep(r->next, r->o.started->listen);
        if (!r->next->listen) rc = err_nomem(&r->why);
    }
    if (rc == 0) rc = list_changes(r, &r->why);
    if (rc != 0) serve_reload_forget(r);
}

static void read_in_thread(void *user)
{
    signal_stack_open();
    serve_reload *r = user;
    serve_reload_read_file(r);
    uv_async_send(&r->read);
}

static void serve_reload_finish(serve_reload *r)
{
    shoal_err err = r->why;
    int rc = r->next ? serve_reload_take(r, &err) : SHOAL_EINVALID;
    if (rc != 0)
        LOG(LOG_ERROR, "serve", "reload_refused", LOG_S("reason", err.message),
            LOG_S("so", "nothing has changed"));
    serve_reload_forget(r);
}

static void serve_reload_begin(serve_reload *r)
{
    r->again = false;
    r->start_ns = clock_ns();
    r->reading = uv_thread_create(&r->thread, read_in_thread, r) == 0;
    if (r->reading) return;
    serve_reload_read_file(r); /* no thread is to be had: then here */
    serve_reload_finish(r);
}

static void on_read(uv_async_t *a)
{
    serve_reload *r = a->data;
    uv_thread_join(&r->thread);
    r->reading = false;
    serve_reload_finish(r);
    if (r->again) serve_reload_begin(r);
}

void serve_reload_start(serve_reload *r)
{
    if (!r->reading) {
        serve_reload_begin(r);
        return;
    }
    r->again = true;
    LOG(LOG_WARN, "serve", "reload_waits", LOG_S("file", r->path),
        LOG_S("reason", "the file is still being read; it is read again afterwards"),
        LOG_F("ms", clock_ms_since(r->start_ns)));
}

/* ---- life ---------------------------------------------------------------------------------------- */

int serve_reload_new(serve_reload **ret, const serve_reload_options *o, shoal_err *err)
{
    serve_reload *r = calloc(1, sizeof *r);
    if (!r || !(r->path = strdup(o->path)) || uv_async_init(o->loop, &r->read, on_read) != 0) {
        if (r) free(r->path);
        free(r);
        return err_nomem(err);
    }
    r->o = *o;
    r->o.path = r->path;
    r->read.data = r;
    uv_unref((uv_handle_t *)&r->read);
    *ret = r;
    return 0;
}

static void serve_reload_on_closed(uv_handle_t *h)
{
    serve_reload *r = h->data;
    free(r->path);
    free(r);
}

void serve_reload_free(serve_reload *r)
{
    if (!r) return;
    if (r->reading) {
        uv_thread_join(&r->thread);
        serve_reload_forget(r);
    }
    uv_close((uv_handle_t *)&r->read, serve_reload_on_closed);
}
