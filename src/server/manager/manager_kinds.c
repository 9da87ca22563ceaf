/* manager_kinds.c: loading and unloading, step by step. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kinds/model_kind.h"
#include "logging/log.h"
#include "json/tuning.h"
#include "base/sys.h"
#include "manager/manager_impl.h"

#define MIB (UINT64_C(1) << 20)

/* How long a worker may take until it is ready: a disk that is shared by many reads that fast at least. One
 * that hangs (in a file system that does not answer, say) would hold its place for ever. */
enum { LOAD_S = 600, LOAD_MIB_PER_S = 4, REPLICAS_PER_CORE = 4, REPLICAS_LEAST = 8 };

/* ---- loading: the file --------------------------------------------------------------------------------- */

static void resolve(job *j)
{
    manager_found f = {0};
    j->rc = manager_find(&f, &j->k->places, &j->wanted, &j->err);
    if (j->rc == 0) {
        manager_found_done(&j->found);
        j->found = f;
    }
    j->list = manager_list(&j->k->places);
}

static void manager_kinds_settle(job *j);
static void resolved(job *j);

static void fetch_told(void *user, const model_manager_progress *n)
{
    job *j = user;
    snprintf(j->file, sizeof j->file, "%s", n->file);
    snprintf(j->digest, sizeof j->digest, "%s", n->sha256);
    j->total = n->total;
    j->fetched = n->fetched;
    job_tell(j, MODEL_MANAGER_FETCHING);
}

/* What was fetched is found as any other: by its name in models.json, or by its path. */
static void fetch_over(void *user, const model_manager_progress *n, const api_error *e)
{
    job *j = user, *from = j->inner->job;
    const char *got = e ? NULL : arena_strdup(j->mem, from->got);
    j->brought = !e && from->brought;
    j->inner = NULL;
    *j->file = *j->digest = '\0';
    j->total = j->fetched = 0;
    if (j->phase == PHASE_OVER) return;
    if (e) {
        job_fail(j, e->status, e->code, "%s", e->message);
        return;
    }
    if (!got) {
        job_fail(j, 500, "out_of_memory", "out of memory");
        return;
    }
    j->wanted.what = got;
    manager_found_done(&j->found);
    job_work(j, resolve, resolved);
}

static void fetch_first(job *j)
{
    model_manager_watch w = {.news = fetch_told, .done = fetch_over, .user = j};
    api_error e;
    j->inner = j->k->face.fetch(j->k, j->found.reference, &w, &e);
    if (!j->inner)
        job_fail(j, e.status, e.code, "%s", e.message);
    else
        job_tell(j, MODEL_MANAGER_FETCHING);
}

static void resolved(job *j)
{
    job_take_list(j);
    if (j->rc != 0)
        job_fail_as(j, &j->err);
    else if (j->found.reference)
        fetch_first(j);
    else
        manager_kinds_settle(j);
}

/* A model of the configuration, which says where its file is. */
static bool find_configured(job *j)
{
    manager *k = j->k;
    const char *name = j->wanted.as.name ? NULL : j->wanted.what;
    for (size_t i = 0; name && i < k->n_base; i++) {
        if (strcmp(k->base[i].model, name) != 0) continue;
        snprintf(j->found.name, sizeof j->found.name, "%s", name);
        j->sampling = k->base[i].sampling;
        j->found.path = realpath(k->base[i].path, NULL);
        return j->found.path != NULL;
    }
    return false;
}

#define TAKE(field) \
    if (!w->as.field) w->as.field = m->field

/* One that the file names since it was read again: it is loaded as the file says, but for what is asked. */
static bool find_in_file(job *j)
{
    const gateway_config *c = manager_config(j->k);
    config_load_request *w = &j->wanted;
    size_t i = 0;
    while (w->what && i < c->n_models && strcmp(c->models[i].name, w->what) != 0) i++;
    if (!w->what || i == c->n_models) return false;
    const config_model *m = &c->models[i];
    TAKE(replicas);
    TAKE(threads);
    TAKE(context);
    TAKE(kv_mb);
    TAKE(sound_mb);
    tuning t = m->tuning;
    tuning_override(&t, &w->as.tuning);
    w->as.tuning = t;
    j->sampling = config_sampling_said(&m->sampling);
    if (!m->path || w->as.name || !(j->found.path = realpath(m->path, NULL))) return false;
    struct stat st;
    if (stat(j->found.path, &st) == 0 && S_ISREG(st.st_mode)) j->found.bytes = (uint64_t)st.st_size;
    snprintf(j->found.name, sizeof j->found.name, "%s", m->name);
    if (m->sha256) j->found.sha256 = strdup(m->sha256);
    return !m->sha256 || j->found.sha256;
}

void kind_load(job *j)
{
    j->step = MODEL_MANAGER_RESOLVING;
    if (find_configured(j) || find_in_file(j))
        manager_kinds_settle(j);
    else
        job_work(j, resolve, resolved);
}

/* ---- loading: the model -------------------------------------------------------------------------------- */

static worker_spec spec_of(const job *j)
{
    const config_model *m = &j->wanted.as;
    worker_spec spec = {.model = j->found.name,
                        .path = j->found.path,
                        .sha256 = j->found.sha256,
                        .n_replicas = m->replicas ? (int)m->replicas : 1,
                        .n_threads = (int)m->threads,
                        .kv_bytes = (size_t)m->kv_mb << 20,
                        .sound_bytes = (size_t)m->sound_mb << 20,
                        .n_ctx = m->context,
                        .sampling = j->found.sampling,
                        .reader = j->found.reader,
                        .guest = true};
    sampling_override(&spec.sampling, &j->sampling);
    tuning_format(&m->tuning, spec.options);
    return spec;
}

_Static_assert(WORKER_SPEC_OPTIONS == TUNING_TEXT_BYTES, "a worker gets all options of its model");

static bool has_options(const worker_spec *a, const worker_spec *wanted)
{
    tuning all = {0}, few = {0};
    return tuning_parse(&all, a->options, NULL) == 0 && tuning_parse(&few, wanted->options, NULL) == 0 &&
           tuning_includes(&all, &few);
}

/* The same file and, where the load says any, the same sizes. */
static bool is_same(const worker_spec *a, const worker_spec *wanted)
{
    char *real = a->path ? realpath(a->path, NULL) : NULL;
    bool same = real && strcmp(real, wanted->path) == 0;
    free(real);
#define SAME(field) (!wanted->field || a->field == wanted->field)
    return same && SAME(n_threads) && SAME(kv_bytes) && SAME(n_ctx) && has_options(a, wanted);
#undef SAME
}

static uint64_t load_s(uint64_t bytes)
{
    return LOAD_S + bytes / (LOAD_MIB_PER_S * MIB);
}

static void manager_kinds_watch(job *j, model_manager_step step)
{
    j->phase = PHASE_WATCHING;
    j->since_ns = manager_now_ns(j->k);
    job_tell(j, step);
    jobs_soon(j->k);
}

/* What is loaded at this moment will still take; nothing, where there will be fewer replicas. */
static uint64_t room_taken(const manager *k)
{
    uint64_t sum = 0;
    for (const managed_model *m = k->models; m; m = m->next) {
        int more = m->loading && !m->down ? m->spec.n_replicas - m->n_before : 0;
        uint64_t need = more > 0 ? managed_model_need(m->bytes, &m->spec, (unsigned)more) : 0;
        if (__builtin_add_overflow(sum, need, &sum)) return UINT64_MAX;
    }
    return sum;
}

unsigned manager_most_replicas(void)
{
    unsigned most = (unsigned)sys_core_count() * REPLICAS_PER_CORE;
    return most < REPLICAS_LEAST ? REPLICAS_LEAST : most;
}

/* Each replica is a process whose steps wait for the same cores. */
static bool has_cores(job *j, const worker_spec *s, unsigned n)
{
    unsigned most = manager_most_replicas();
    if (n <= most) return true;
    job_fail(j, 507, "no_room", "%u replicas of %s are more than the %u that this machine's cores (%d) carry",
             n, s->model, most, sys_core_count());
    return false;
}

static bool manager_kinds_has_room(job *j, const worker_spec *s, uint64_t bytes, unsigned n_new)
{
    const manager *k = j->k;
    if (j->runs) return true;
    if (!s->reader && model_kind_of(s->path)->device) return true; /* its weights are in a device's memory */
    memory_headroom room = memory_headroom_read(k->o.root);
    uint64_t need = managed_model_need(bytes, s, n_new), taken = room_taken(k);
    if (room.free_bytes == UINT64_MAX || (taken <= room.free_bytes && need <= room.free_bytes - taken))
        return true;
    job_fail(j, 507, "no_room",
             "%s needs %s %llu MiB (%u x %llu MiB of file and %llu MiB beside it, most for keys and "
             "values), and %s has "
             "%llu MiB free%s; unload another model, or give it less (kv_mb, replicas)",
             s->model, s->kv_bytes ? "about" : "at least", (unsigned long long)(need / MIB), n_new,
             (unsigned long long)(bytes / MIB), (unsigned long long)((managed_model_need(0, s, 1)) / MIB),
             room.by, (unsigned long long)(room.free_bytes / MIB),
             taken ? ", less what models need that are being loaded" : "");
    return false;
}

/* The list as it was before this load. */
static void undo(manager *k, managed_model *m)
{
    shoal_err err;
    if (m->n_before > 0) {
        m->spec.n_replicas = m->n_before;
        m->n_before = 0;
        m->loading = false;
    } else {
        managed_model_drop(k, m);
    }
    if (manager_apply(k, &err) != 0) LOG(LOG_ERROR, "models", "cannot_undo", LOG_S("reason", err.message));
}

static void start_new(job *j, const worker_spec *s)
{
    manager *k = j->k;
    shoal_err err;
    if (managed_model_elsewhere(k, s->model)) {
        job_fail(j, 409, "model_is_served",
                 "other machines serve a model '%s' already; give this one another name", s->model);
        return;
    }
    if (!manager_kinds_has_room(j, s, j->found.bytes, (unsigned)s->n_replicas) ||
        !has_cores(j, s, (unsigned)s->n_replicas))
        return;
    managed_model *m = managed_model_new(k, s, &j->wanted);
    if (!m) {
        job_fail(j, 500, "out_of_memory", "out of memory");
        return;
    }
    m->bytes = j->found.bytes;
    m->loading = true;
    if (manager_apply(k, &err) == 0) {
        manager_kinds_watch(j, MODEL_MANAGER_STARTING);
        return;
    }
    undo(k, m);
    job_fail_as(j, &err);
}

/* It is there: more replicas or fewer, and what is kept of it. */
static void change(job *j, managed_model *m, const worker_spec *s)
{
    manager *k = j->k;
    shoal_err err;
    int wanted = j->wanted.as.replicas ? s->n_replicas : m->spec.n_replicas,
        more = wanted - m->spec.n_replicas;
    if (!is_same(&m->spec, s)) {
        job_fail(
            j, 409, "model_is_loaded",
            "'%s' is loaded already, from %s; to load this beside it, give another name (name, or --name of "
            "shoal load); to replace it, unload it first (shoal stop %s)",
            s->model, m->spec.path, s->model);
        return;
    }
    if (more > 0 &&
        (!manager_kinds_has_room(j, s, m->bytes, (unsigned)more) || !has_cores(j, s, (unsigned)wanted)))
        return;
    if (j->wanted.keep_alive_s != LOAD_REQUEST_STAYS) m->stay_s = j->wanted.keep_alive_s;
    m->wanted.keep |= j->wanted.keep;
    if (more != 0) {
        if (!m->loading) m->n_before = m->spec.n_replicas;
        m->loading = true;
        m->spec.n_replicas = wanted;
        m->wanted.as.replicas = (unsigned)wanted;
        if (manager_apply(k, &err) != 0) {
            undo(k, m);
            job_fail_as(j, &err);
            return;
        }
    }
    manager_kinds_watch(j, MODEL_MANAGER_STARTING);
}

static void bring_back(job *j, managed_model *m)
{
    manager *k = j->k;
    shoal_err err;
    managed_model_drop(k, m);
    if (manager_apply(k, &err) != 0)
        job_fail_as(j, &err);
    else
        manager_kinds_watch(j, MODEL_MANAGER_STARTING);
}

static bool is_pipeline(const gateway_config *c, const char *name)
{
    for (size_t i = 0; i < c->n_pipelines; i++)
        if (strcmp(c->pipelines[i].name, name) == 0) return true;
    return false;
}

/* A key whose `models` names one of these would open the model, too. */
const char *manager_name_taken(const manager *k, const char *name)
{
    if (route_find(&manager_config(k)->book, name)) return "a route";
    if (is_pipeline(manager_config(k), name)) return "a pipeline";
    if (config_alias_find(manager_config(k), name)) return "an alias";
    return config_ensemble_find(manager_config(k), name) ? "an ensemble" : NULL;
}

static void manager_kinds_settle(job *j)
{
    manager *k = j->k;
    worker_spec s = spec_of(j);
    snprintf(j->model, sizeof j->model, "%s", j->found.name);
    const char *other = manager_name_taken(k, s.model);
    managed_model *m = managed_model_find(k, s.model);
    const worker_spec *base = base_find(k, s.model);
    for (size_t i = 0; m && m->down && i < k->n_base; i++)
        if (strcmp(k->base[i].model, s.model) == 0) base = &k->base[i];
    if (k->draining)
        job_fail(j, 503, "draining", "the server is shutting down");
    else if (other)
        job_fail(j, 409, "name_is_taken", "'%s' is %s of shoal.yaml; give the model another name (name)",
                 s.model, other);
    else if (base && (!is_same(base, &s) || j->wanted.as.replicas))
        job_fail(
            j, 409, "model_is_configured",
            "'%s' is a model of shoal.yaml, which says its file, sizes and replicas; load this one under "
            "another name (name)",
            s.model);
    else if (base && m)
        bring_back(j, m);
    else if (base)
        manager_kinds_watch(j, MODEL_MANAGER_STARTING);
    else if (m)
        change(j, m, &s);
    else
        start_new(j, &s);
}

/* ---- loading: the end ---------------------------------------------------------------------------------- */

/* All that wait for this model hear the same. */
static void fail_loads(manager *k, const char *name, int status, const char *code, const char *why)
{
    for (job *j = k->jobs; j; j = j->next)
        if (j->kind == JOB_LOAD && j->phase == PHASE_WATCHING && strcmp(j->model, name) == 0)
            job_fail(j, status, code, "%s", why);
}

/* It hangs: its worker is ended, and the place is free. One of the configuration starts on. */
static void manager_kinds_give_up(job *j, managed_model *m)
{
    manager *k = j->k;
    unsigned long long s = load_s(j->found.bytes);
    char why[200];
    if (!m || !m->loading) {
        job_fail(j, 504, "load_timeout", "'%s' was not ready within %llu s; its worker goes on starting",
                 j->model, s);
        return;
    }
    snprintf(why, sizeof why, "'%s' does not load: it was not ready within %llu s, and its worker was ended",
             j->model, s);
    undo(k, m);
    k->o.hurry(k->o.user, j->model);
    fail_loads(k, j->model, 504, "load_timeout", why);
}

static void look_at_load(job *j)
{
    manager *k = j->k;
    managed_model *m = managed_model_find(k, j->model);
    const worker_spec *spec = m ? &m->spec : base_find(k, j->model);
    managed_model_state s = managed_model_look(k, j->model);
    char why[400];
    if (!spec) {
        job_fail(j, 409, "unloaded", "it was unloaded while it was loaded");
    } else if (s.failed && !s.n_leaving) {
        snprintf(why, sizeof why, "'%s' does not load: %s", j->model, s.failed->reason);
        if (m && m->loading) undo(k, m);
        fail_loads(k, j->model, 422, "model_not_loadable", why);
    } else if (!s.n_leaving && s.n_ready >= (unsigned)(spec->n_replicas > 0 ? spec->n_replicas : 1)) {
        if (m) m->loading = false;
        if (m) m->n_before = 0;
        if (m) managed_model_touch(k, m);
        manager_loaded(k, j);
        job_done_in_book(j, MODEL_MANAGER_READY);
    } else if (manager_now_ns(k) - j->since_ns >= load_s(j->found.bytes) * 1000000000) {
        manager_kinds_give_up(j, m);
    }
}

/* ---- unloading ----------------------------------------------------------------------------------------- */

/* What was loaded is forgotten, what the base has is left out of it. */
static bool leave_out(manager *k, const char *name)
{
    managed_model *m = managed_model_find(k, name);
    if (m && !m->down) managed_model_drop(k, m);
    if (!m && (m = managed_model_new(k, base_find(k, name), NULL))) m->down = true;
    return m != NULL;
}

static void take_down(job *j)
{
    manager *k = j->k;
    shoal_err err;
    const managed_model *m = managed_model_find(k, j->model);
    bool was_kept = m && m->wanted.keep;
    if (!leave_out(k, j->model)) {
        job_fail(j, 500, "out_of_memory", "out of memory");
        return;
    }
    manager_forget_absent(k, j->model);
    fail_loads(k, j->model, 409, "unloaded", "it was unloaded while it was loaded");
    if (manager_apply(k, &err) != 0) LOG(LOG_ERROR, "models", "cannot_unload", LOG_S("reason", err.message));
    if (was_kept) {
        manager_write_book(k);
        j->book_at = k->book_wanted;
    }
    if (j->how & MODEL_MANAGER_AT_ONCE) k->o.hurry(k->o.user, j->model);
    manager_kinds_watch(j, MODEL_MANAGER_DRAINING);
}

static void unload(job *j)
{
    manager *k = j->k;
    const managed_model *m = managed_model_find(k, j->model);
    char user[160] = "";
    config_load_request_user(manager_config(k), j->model, user, sizeof user);
    if (!m && !base_find(k, j->model) && managed_model_elsewhere(k, j->model))
        job_fail(
            j, 409, "model_is_elsewhere",
            "'%s' is served by other machines alone; the configuration of the gateway that places it says so",
            j->model);
    else if (!m && !base_find(k, j->model) && managed_model_look(k, j->model).n == 0)
        job_fail(j, 404, "model_not_found", "the model '%s' is not loaded", j->model);
    else if (!m && k->o.placed)
        job_fail(j, 409, "model_is_placed",
                 "'%s' is a model of the cluster's configuration, whose control plane places it; take it out "
                 "of shoal.yaml",
                 j->model);
    else if (*user && !(j->how & MODEL_MANAGER_FORCE))
        job_fail(j, 409, "model_is_used",
                 "%s uses '%s', and would fail without it; \"force\": true unloads it all the same", user,
                 j->model);
    else if (m || base_find(k, j->model))
        take_down(j);
    else
        manager_kinds_watch(j, MODEL_MANAGER_DRAINING); /* it is on its way out */
}

void kind_unload(job *j)
{
    snprintf(j->model, sizeof j->model, "%s", j->key);
    unload(j);
}

static void look_at_unload(job *j)
{
    managed_model_state s = managed_model_look(j->k, j->model);
    const managed_model *m = managed_model_find(j->k, j->model);
    if ((m && !m->down) || s.n == 0) job_done_in_book(j, MODEL_MANAGER_UNLOADED); /* or it is loaded again */
}

void kinds_look(job *j)
{
    if (j->kind == JOB_LOAD) look_at_load(j);
    if (j->kind == JOB_UNLOAD) look_at_unload(j);
}
