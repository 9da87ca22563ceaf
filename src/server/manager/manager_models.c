/* manager_models.c: what is served: the base, what was taken out of it, and what was loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "logging/log.h"
#include "cluster/registry.h"
#include "kinds/model_kind.h"
#include "manager/manager_impl.h"

enum { PROCESS_MB = 16, TOLD_TICKS = 4, WRITE_AGAIN_TICKS = 60 };

managed_model *managed_model_find(const manager *k, const char *name)
{
    managed_model *m = k->models;
    while (m && strcmp(m->spec.model, name) != 0) m = m->next;
    return m;
}

const worker_spec *base_find(const manager *k, const char *name)
{
    const managed_model *m = managed_model_find(k, name);
    if (m && m->down) return NULL;
    for (size_t i = 0; i < k->n_base; i++)
        if (strcmp(k->base[i].model, name) == 0) return &k->base[i];
    return NULL;
}

/* At the end of the list, so that workers start in the order in which they were asked for. */
managed_model *managed_model_new(manager *k, const worker_spec *spec, const config_load_request *wanted)
{
    arena *mem = arena_new(0);
    managed_model *m = mem ? arena_alloc(mem, sizeof *m) : NULL, **at = &k->models;
    bool ok = m && worker_spec_copy(mem, &m->spec, spec) &&
              (!wanted || config_load_request_copy(&m->wanted, mem, wanted));
    if (!ok) {
        arena_free(mem);
        return NULL;
    }
    m->mem = mem;
    m->stay_s = wanted ? wanted->keep_alive_s : LOAD_REQUEST_STAYS;
    while (*at) at = &(*at)->next;
    *at = m;
    return m;
}

void managed_model_drop(manager *k, managed_model *m)
{
    managed_model **at = &k->models;
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    arena_free(m->mem);
}

/* ---- the list ------------------------------------------------------------------------------------------ */

int manager_apply(manager *k, shoal_err *err)
{
    size_t n = 0, n_models = 0;
    for (const managed_model *m = k->models; m; m = m->next) n_models++;
    worker_spec *list = calloc(k->n_base + n_models + 1, sizeof *list);
    if (!list) return err_nomem(err);
    for (size_t i = 0; i < k->n_base; i++)
        if (base_find(k, k->base[i].model)) list[n++] = k->base[i];
    for (const managed_model *m = k->models; m; m = m->next)
        if (!m->down) list[n++] = m->spec;
    int rc = k->o.set(k->o.user, list, n, err);
    free(list);
    session_write(k);
    return rc;
}

int manager_base(manager *k, const worker_spec *specs, size_t n, shoal_err *err)
{
    arena *mem = arena_new(0);
    worker_spec *base = mem ? arena_alloc(mem, (n ? n : 1) * sizeof *base) : NULL;
    bool ok = base != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = worker_spec_copy(mem, &base[i], &specs[i]);
    if (!ok) {
        arena_free(mem);
        return err_nomem(err);
    }
    arena_free(k->base_mem);
    k->base_mem = mem;
    k->base = base;
    k->n_base = n;
    session_leave_out(k);
    return manager_apply(k, err);
}

/* ---- what the registry says of them ----------------------------------------------------------------- */

static bool is_ours(const replica *r)
{
    return strcmp(r->source, "agent") == 0;
}

managed_model_state managed_model_look(const manager *k, const char *name)
{
    const replica_set *set = registry_find(k->o.registry, name);
    managed_model_state s = {0};
    for (size_t i = 0; set && i < set->n; i++) {
        const replica *r = set->replicas[i];
        if (!is_ours(r)) continue;
        bool died = r->state == REPLICA_DOWN && r->process.n_crashes >= MANAGER_CRASHES_MAX;
        s.n++;
        s.n_ready += r->state == REPLICA_READY;
        s.n_leaving += r->state == REPLICA_DRAINING;
        if (r->state == REPLICA_FAILED || died) s.failed = r;
    }
    return s;
}

bool managed_model_elsewhere(const manager *k, const char *name)
{
    const replica_set *set = registry_find(k->o.registry, name);
    for (size_t i = 0; set && i < set->n; i++)
        if (is_ours(set->replicas[i])) return false;
    return set && set->n > 0;
}

/* A worker without a model takes PROCESS_MB. Weights are unpacked into memory of its own, of about the file's
 * size; the cache of keys and values is taken page by page, up to its ceiling. A file of holes may say any
 * size: UINT64_MAX is more than there is anywhere. */
uint64_t managed_model_need(uint64_t file_bytes, const worker_spec *s, unsigned n_replicas)
{
    uint64_t kv = s->kv_bytes ? s->kv_bytes : MODEL_KV_LEAST_BYTES;
    uint64_t sum;
    if (__builtin_add_overflow(file_bytes, kv + ((uint64_t)PROCESS_MB << 20), &sum)) return UINT64_MAX;
    return __builtin_mul_overflow(sum, (uint64_t)n_replicas, &sum) ? UINT64_MAX : sum;
}

/* ---- idleness --------------------------------------------------------------------------------------- */

uint64_t manager_now_ns(const manager *k)
{
    const env *e = registry_env(k->o.registry);
    return e->now_ns(e->user);
}

void managed_model_touch(const manager *k, managed_model *m)
{
    m->used_ns = manager_now_ns(k);
}

static void note_use(const manager *k, managed_model *m, uint64_t now)
{
    const replica_set *set = registry_find(k->o.registry, m->spec.model);
    if (m->loading || m->used_ns == 0) m->used_ns = now;
    for (size_t i = 0; set && i < set->n; i++) {
        const load *l = &set->replicas[i]->load;
        if (l->n_in_flight > 0) m->used_ns = now;
        if (l->moved_ns > m->used_ns) m->used_ns = l->moved_ns;
    }
}

uint64_t managed_model_left_ms(const manager *k, const managed_model *m)
{
    uint64_t now = manager_now_ns(k), past_ms = (now - m->used_ns) / 1000000;
    if (m->used_ns == 0 || m->used_ns > now) past_ms = 0;
    return m->stay_s * 1000 > past_ms ? m->stay_s * 1000 - past_ms : 0;
}

/* One at a time: an unload changes the list. */
static managed_model *idle(const manager *k)
{
    for (managed_model *m = k->models; m; m = m->next) {
        if (m->down || m->loading || m->stay_s == LOAD_REQUEST_STAYS) continue;
        if (managed_model_left_ms(k, m) == 0) return m;
    }
    return NULL;
}

/* Whoever waits for minutes hears now and then that it goes on; and that a client has left is seen when it is
 * written to. */
static void tell_again(manager *k)
{
    for (job *j = k->jobs; j; j = j->next)
        if (j->phase == PHASE_WATCHING || (j->kind == JOB_FETCH && j->fetch)) job_tell(j, j->step);
}

void managed_model_tick(manager *k)
{
    uint64_t now = manager_now_ns(k);
    for (managed_model *m = k->models; m; m = m->next) note_use(k, m, now);
    for (managed_model *m; (m = idle(k));) {
        char name[65];
        shoal_err err;
        snprintf(name, sizeof name, "%s", m->spec.model);
        LOG(LOG_INFO, "models", "idle", LOG_S("model", name), LOG_I("s", m->stay_s));
        bool was_kept = m->wanted.keep;
        managed_model_drop(k, m);
        if (manager_apply(k, &err) != 0)
            LOG(LOG_ERROR, "models", "cannot_unload", LOG_S("reason", err.message));
        if (was_kept) manager_write_book(k);
    }
    jobs_soon(k);
    if (++k->n_ticks % TOLD_TICKS == 0) tell_again(k);
    if (k->unwritten && k->n_ticks % WRITE_AGAIN_TICKS == 0)
        manager_write_book(k); /* the disk was full, say */
}

/* ---- the book --------------------------------------------------------------------------------------- */

static bool manager_models_is_named(const json_t *entry, const char *name)
{
    const char *said = json_string_value(json_object_get(entry, "name"));
    return said && strcmp(said, name) == 0;
}

void manager_forget_absent(manager *k, const char *name)
{
    for (size_t i = json_array_size(k->absent); i-- > 0;)
        if (manager_models_is_named(json_array_get(k->absent, i), name)) json_array_remove(k->absent, i);
}

void manager_loaded(manager *k, job *j)
{
    bool was_in_book = false;
    const managed_model *m = managed_model_find(k, j->model);
    for (size_t i = json_array_size(k->absent); i-- > 0;) {
        char *key = manager_load_key(json_array_get(k->absent, i));
        size_t before = strncmp(j->key, JOB_KEY_ANY, strlen(JOB_KEY_ANY)) == 0 ? strlen(JOB_KEY_ANY) : 0;
        bool same = key && strcmp(key, j->key + before) == 0;
        if (same) json_array_remove(k->absent, i);
        was_in_book |= same;
        free(key);
    }
    if (!m || !m->wanted.keep) return;
    manager_forget_absent(k, j->model); /* it stands in the book itself */
    manager_write_book(k);
    if (!was_in_book) j->book_at = k->book_wanted;
}

/* The name is written down, so that a file of another name loads under it again. */
static bool put_load(json_t *list, const managed_model *m)
{
    config_load_request w = m->wanted;
    w.as.name = m->spec.model;
    return json_array_append_new(list, config_load_request_json(&w)) == 0;
}

static void write_text(job *j)
{
    j->rc = manager_book_write(j->k->o.book, j->list, j->before, &j->err);
}

static void write_now(manager *k);

static void fail_in_book(job *j, const char *why)
{
    char sentence[sizeof j->err.message];
    snprintf(sentence, sizeof sentence, "%s", why);
    file_name_alone(sentence, j->k->o.book);
    job_fail(j, 500, "not_kept",
             j->kind == JOB_LOAD ? "'%s' is loaded, but not yet kept for the next start: %s"
                                 : "'%s' is unloaded, but the next start may load it again: %s",
             j->model, sentence);
}

/* Those whose change is in what was written, or could not be. why: NULL: it is written. */
static void answer_writers(manager *k, const char *why)
{
    for (job *j = k->jobs; j; j = j->next) {
        if (j->phase != PHASE_WRITING || j->book_at > k->book_started) continue;
        if (why)
            fail_in_book(j, why);
        else
            job_done(j, j->step);
    }
}

void job_done_in_book(job *j, model_manager_step step)
{
    if (j->book_at <= j->k->book_written) {
        job_done(j, step);
        return;
    }
    j->step = step;
    j->phase = PHASE_WRITING;
    if (!j->k->writing) write_now(j->k); /* the last writing has failed */
}

static void written(job *j)
{
    manager *k = j->k;
    bool again = k->unwritten;
    k->writing = false;
    if (j->rc != 0) LOG(LOG_ERROR, "models", "not_kept", LOG_S("reason", j->err.message));
    if (j->rc != 0) k->unwritten = true;
    if (j->rc == 0) k->book_written = k->book_started;
    if (j->rc == 0) json_decref(k->book), k->book = json_incref(j->list);
    answer_writers(k, j->rc == 0 ? NULL : j->err.message);
    job_done(j, MODEL_MANAGER_READY);
    if (again) write_now(k);
}

static void write_now(manager *k)
{
    api_error e;
    bool fresh, ok = true;
    json_t *list = json_deep_copy(k->absent);
    for (const managed_model *m = k->models; list && m; m = m->next)
        if (!m->down && m->wanted.keep && !m->loading) ok &= put_load(list, m);
    job *j = list && ok ? job_get(k, JOB_WRITE, "", &fresh, &e) : NULL;
    json_t *before = j ? json_deep_copy(k->book) : NULL; /* the pool's own: counts of users are not atomic */
    k->book_started = k->book_wanted;
    if (!j || (k->book && !before)) {
        LOG(LOG_ERROR, "models", "not_kept", LOG_S("reason", "out of memory"));
        json_decref(list);
        if (j) job_done(j, MODEL_MANAGER_READY);
        answer_writers(k, "out of memory");
        return;
    }
    j->list = list;
    j->before = before;
    k->unwritten = false;
    k->writing = true;
    job_work(j, write_text, written);
}

void manager_write_book(manager *k)
{
    if (!k->o.book) return;
    k->unwritten = true;
    k->book_wanted++;
    if (!k->writing) write_now(k);
}
