/* manager_job.c: pieces of work, who waits for them, and the thread pool. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/signal_stack.h"
#include "logging/log.h"
#include "manager/manager_impl.h"

/* ---- tickets ----------------------------------------------------------------------------------------- */

static model_manager_progress news_of(const job *j)
{
    managed_model_state s = *j->model ? managed_model_look(j->k, j->model) : (managed_model_state){0};
    return (model_manager_progress){.step = j->step,
                                    .model = j->model,
                                    .asked = j->key ? j->key : "",
                                    .file = j->file,
                                    .sha256 = j->step == MODEL_MANAGER_FETCHING ? j->digest
                                              : j->found.sha256                 ? j->found.sha256
                                                                                : "",
                                    .total = j->total,
                                    .fetched = j->fetched,
                                    .n_removed = j->n_removed,
                                    .n_ready = s.n_ready,
                                    .n_replicas = s.n};
}

model_manager_ticket *job_ticket(job *j, const model_manager_watch *w, api_error *e)
{
    model_manager_ticket *t = calloc(1, sizeof *t), **at = &j->tickets;
    if (!t) {
        api_error_nomem(e);
        return NULL;
    }
    *t = (model_manager_ticket){.job = j, .watch = *w};
    while (*at) at = &(*at)->next;
    *at = t;
    return t;
}

/* A download that nobody waits for ends (one that has not begun never does); all else goes on. */
void ticket_leave(model_manager_ticket *t)
{
    if (!t) return;
    job *j = t->job;
    model_manager_ticket **at = &j->tickets;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    free(t);
    if (j->kind != JOB_FETCH || j->tickets || !j->fetch) return;
    j->stopped = true;
    manager_fetch_stop(j->fetch);
}

void job_tell(job *j, model_manager_step step)
{
    j->step = step;
    model_manager_progress n = news_of(j);
    const model_manager_events *o = &j->k->events;
    if (j->kind == JOB_FETCH && step == MODEL_MANAGER_FETCHING && *j->file && o->fetching)
        o->fetching(o->user, &n);
    for (model_manager_ticket *t = j->tickets, *next; t; t = next) {
        next = t->next; /* whoever is told may leave */
        if (t->watch.news) t->watch.news(t->watch.user, &n);
    }
}

/* ---- jobs -------------------------------------------------------------------------------------------- */

job *job_get(manager *k, job_kind kind, const char *key, bool *ret_new, api_error *e)
{
    *ret_new = false;
    for (job *j = k->jobs; j; j = j->next)
        if (j->kind == kind && j->phase != PHASE_OVER && strcmp(j->key, key) == 0) return j;
    if (k->draining && kind != JOB_WRITE) { /* what has changed is written down to the end */
        api_error_set(e, 503, "service_unavailable", "draining", NULL, "the server is shutting down");
        return NULL;
    }
    if (k->n_jobs >= MANAGER_JOBS_MAX && kind != JOB_WRITE) {
        api_error_set(e, 429, "rate_limit_error", "too_many_loads", NULL,
                      "%d models come and go already; try again when some have", MANAGER_JOBS_MAX);
        e->retry_after_s = 1;
        return NULL;
    }
    job *j = calloc(1, sizeof *j);
    arena *mem = j ? arena_new(0) : NULL;
    const char *own = mem ? arena_strdup(mem, key) : NULL;
    if (!own) {
        arena_free(mem);
        free(j);
        api_error_nomem(e);
        return NULL;
    }
    *j = (job){.k = k, .kind = kind, .mem = mem, .key = own};
    job **at = &k->jobs;
    while (*at) at = &(*at)->next;
    *at = j;
    k->n_jobs++;
    *ret_new = true;
    return j;
}

void job_free(job *j)
{
    manager *k = j->k;
    job **at = &k->jobs;
    while (*at != j) at = &(*at)->next;
    *at = j->next;
    k->n_jobs--;
    for (model_manager_ticket *t = j->tickets, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    ticket_leave(j->inner);
    if (j->fetch) manager_fetch_leave(j->fetch);
    manager_found_done(&j->found);
    json_decref(j->list);
    json_decref(j->before);
    arena_free(j->mem);
    free(j);
}

void job_done(job *j, model_manager_step step)
{
    if (j->phase == PHASE_OVER) return;
    if (j->kind < JOB_LIST)
        LOG(LOG_INFO, "models", model_manager_step_name(step), LOG_S("model", j->model),
            LOG_S("asked", j->key));
    j->step = step;
    j->phase = PHASE_OVER;
    jobs_soon(j->k);
}

/* FOLDER alone as "the models' folder". */
static void hide_folder(const char *folder, char *sentence)
{
    static const char ALONE[] = "the models' folder";
    size_t n = strlen(folder), put = strlen(ALONE) < n ? strlen(ALONE) : n;
    if (n < 2) return;
    file_hide_folder(sentence, folder, n);
    for (char *at = sentence; (at = strstr(at, folder)); at += put) {
        memcpy(at, ALONE, put);
        memmove(at + put, at + n, strlen(at + n) + 1);
    }
}

void manager_hide_folders(const manager_places *p, char *sentence)
{
    for (size_t i = 0; i < p->n_folders; i++) hide_folder(p->folders[i], sentence);
}

void job_over(job *j)
{
    j->phase = PHASE_OVER;
    jobs_soon(j->k);
}

void job_fail(job *j, int status, const char *code, const char *fmt, ...)
{
    char message[sizeof j->error.message];
    va_list ap;
    if (j->phase == PHASE_OVER) return;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    LOG(LOG_WARN, "models", "failed", LOG_S("model", j->model), LOG_S("asked", j->key),
        LOG_S("reason", message));
    manager_hide_folders(&j->k->places, message);
    api_error_set(&j->error, status, status >= 500 ? "server_error" : "invalid_request_error", code, NULL,
                  "%s", message);
    j->failed = true;
    bool is_no_good = code && strcmp(code, "model_not_loadable") == 0;
    if (!is_no_good || !job_drops_brought(j)) job_over(j);
}

void job_fail_as(job *j, const shoal_err *err)
{
    switch (err->code) {
    case SHOAL_EINVALID: job_fail(j, 400, "invalid_model", "%s", err->message); break;
    case SHOAL_ENOTFOUND: job_fail(j, 404, "model_not_found", "%s", err->message); break;
    case SHOAL_EAUTH: job_fail(j, 403, "not_allowed", "%s", err->message); break;
    case SHOAL_ELIMIT: job_fail(j, 507, "no_room", "%s", err->message); break;
    case SHOAL_ENOMEM: job_fail(j, 500, "out_of_memory", "out of memory"); break;
    default: job_fail(j, 500, "model_not_loaded", "%s", err->message);
    }
}

/* ---- the pool ---------------------------------------------------------------------------------------- */

static void on_pool(uv_work_t *w)
{
    signal_stack_open();
    job *j = (job *)w;
    j->errand(j);
}

static void back(uv_work_t *w, int status)
{
    job *j = (job *)w;
    manager *k = j->k;
    j->phase = PHASE_IDLE;
    if (!k->closing || j->kind == JOB_WRITE) j->then(j); /* which may have to be written once more */
    if (k->closing) job_free(j);
    manager_release(k);
}

void job_work(job *j, void (*errand)(job *j), void (*then)(job *j))
{
    j->errand = errand;
    j->then = then;
    j->phase = PHASE_WORKING;
    j->k->n_open++;
    uv_queue_work(j->k->loop, &j->work, on_pool, back);
}

/* ---- the end ----------------------------------------------------------------------------------------- */

static void on_soon(uv_timer_t *t)
{
    manager *k = t->data;
    if (k->closing) return;
    for (job *j = k->jobs; j; j = j->next) {
        if (j->phase == PHASE_NEW) {
            j->phase = PHASE_IDLE;
            j->then(j);
        }
        if (j->phase == PHASE_WATCHING) kinds_look(j);
    }
    jobs_deliver(k);
}

void jobs_soon(manager *k)
{
    if (!k->closing && !uv_is_active((uv_handle_t *)&k->soon)) uv_timer_start(&k->soon, on_soon, 0, 0);
}

static job *over(const manager *k)
{
    job *j = k->jobs;
    while (j && j->phase != PHASE_OVER) j = j->next;
    return j;
}

/* Whoever is told may ask again, or leave: one at a time, from the list as it is then. */
void jobs_deliver(manager *k)
{
    for (job *j; (j = over(k));) {
        model_manager_progress n = news_of(j);
        const model_manager_events *o = &k->events;
        if (j->kind == JOB_FETCH && o->fetched) o->fetched(o->user, &n, j->failed ? &j->error : NULL);
        if (j->kind == JOB_REMOVE && !j->failed && o->removed) o->removed(o->user, &n);
        while (j->tickets) {
            model_manager_ticket *t = j->tickets;
            j->tickets = t->next;
            if (t->watch.done) t->watch.done(t->watch.user, &n, j->failed ? &j->error : NULL);
            free(t);
        }
        job_free(j);
    }
}
