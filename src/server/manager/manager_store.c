/* manager_store.c: fetching and removing, step by step, and the list of what lies there. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "fetch/pull_manifest.h"
#include "manager/manager_impl.h"

void job_take_list(job *j)
{
    if (!j->list) return;
    json_decref(j->k->stored);
    j->k->stored = j->list;
    j->list = NULL;
}

/* ---- fetching ------------------------------------------------------------------------------------------ */

static void look_at_store(job *j)
{
    j->list = manager_list(&j->k->places);
}

static void fetched(job *j)
{
    job_take_list(j);
    const json_t *o = manager_called(j->k->stored, j->got);
    const char *digest = json_string_value(json_object_get(o, "sha256"));
    if (digest) j->found.sha256 = strdup(digest); /* for people: none is said without memory */
    snprintf(j->model, sizeof j->model, "%s", o ? json_string_value(json_object_get(o, "name")) : "");
    job_done(j, MODEL_MANAGER_FETCHED);
}

static void fetch_news(void *user, const char *file, const char *sha256, uint64_t total, uint64_t bytes)
{
    job *j = user;
    snprintf(j->file, sizeof j->file, "%s", file);
    snprintf(j->digest, sizeof j->digest, "%s", sha256);
    j->total = total;
    j->fetched = bytes;
    job_tell(j, MODEL_MANAGER_FETCHING);
}

/* Who came while it was being stopped waits for a new one, which goes on with the part. */
static void fetch_done(void *user, const manager_fetched *got, const char *why)
{
    job *j = user;
    j->fetch = NULL;
    j->got = why ? NULL : arena_strdup(j->mem, got->model);
    j->brought = !why && !got->was_here;
    if (why && j->stopped && j->tickets && j->phase != PHASE_OVER)
        kind_fetch(j);
    else if (why)
        job_fail(j, 502, "not_fetched", "%s", why);
    else if (!j->got)
        job_fail(j, 500, "out_of_memory", "out of memory");
    else
        job_work(j, look_at_store, fetched);
}

void kind_fetch(job *j)
{
    manager *k = j->k;
    shoal_err err;
    manager_fetch_options o = {.program = k->o.program,
                               .reference = j->key,
                               .folder = k->o.store,
                               .library = &k->o.config->library,
                               .news = fetch_news,
                               .done = fetch_done,
                               .user = j};
    j->step = MODEL_MANAGER_FETCHING;
    j->stopped = false;
    if (!j->tickets)
        job_fail(j, 503, "not_fetched", "nobody waits for it any more");
    else if (manager_fetch_start(&j->fetch, k->loop, &o, &err) != 0)
        job_fail_as(j, &err);
}

/* ---- removing ------------------------------------------------------------------------------------------ */

/* What stands directly in the store, and nothing that links lead to. */
static bool is_pulled_folder(const char *store, const char *path)
{
    size_t n = strlen(store);
    return strncmp(path, store, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/') &&
           pull_manifest_is_folder(path);
}

/* A name of models.json, or a folder that was pulled as a whole. Nothing else of this machine is a request's
 * to remove: the store may be the folder of the models that came with the program. */
static int not_pulled(job *j)
{
    return err_set(
        &j->err, SHOAL_EAUTH,
        "'%.100s' was not pulled into the store, so no request removes it: delete its file by hand, "
        "and its entry in models.json",
        j->key);
}

/* It is served from a path that the configuration, or a request, names. */
static int not_stored(job *j)
{
    return err_set(&j->err, SHOAL_EAUTH,
                   "'%.100s' was not pulled into the store, but is served from another file, so no request "
                   "removes it: take it "
                   "out of the configuration, or unload it, and delete its file by hand",
                   j->key);
}

static void find_stored(job *j)
{
    const config_load_request w = {.what = j->key};
    const char *store = j->k->places.folders[0];
    j->list = manager_list(&j->k->places);
    const json_t *o = j->list ? manager_called(j->list, j->key) : NULL;
    const char *folder = json_string_value(json_object_get(o, "folder"));
    bool pulled = o && strcmp(folder, store) == 0 && json_is_string(json_object_get(o, "source"));
    j->rc = j->list ? manager_find(&j->found, &j->k->places, &w, &j->err) : err_nomem(&j->err);
    if (j->rc == 0 && j->found.reference)
        j->rc = err_set(&j->err, SHOAL_ENOTFOUND, "the store has no '%.200s'", j->key);
    if (j->rc == SHOAL_ENOTFOUND)
        j->rc = j->is_served ? not_stored(j)
                             : err_set(&j->err, SHOAL_ENOTFOUND,
                                       "there is no model '%.100s' here; GET /v1/models?loadable=true lists "
                                       "those that are",
                                       j->key);
    if (j->rc == 0 && !pulled && (o || !is_pulled_folder(store, j->found.path))) j->rc = not_pulled(j);
    if (pulled) j->got = arena_strdup(j->mem, json_string_value(json_object_get(o, "name")));
    if (pulled && !j->got) j->rc = err_nomem(&j->err);
}

static void remove_it(job *j)
{
    const char *store = j->k->places.folders[0];
    pull_removal r = {0};
    j->rc = j->got ? pull_manifest_drop(store, j->got, false, &r, &j->err)
                   : pull_manifest_drop_folder(j->found.path, &r, &j->err);
    j->total = r.bytes;
    j->n_removed = r.n_files;
    j->list = manager_list(&j->k->places);
}

static void removed(job *j)
{
    job_take_list(j);
    if (j->rc != 0)
        job_fail_as(j, &j->err);
    else
        job_done(j, MODEL_MANAGER_REMOVED);
}

/* Is it that file, or one in that folder? */
static bool lies_at(const char *used, const char *path)
{
    char *real = used ? realpath(used, NULL) : NULL;
    size_t n = strlen(path);
    bool is = real && strncmp(real, path, n) == 0 && (real[n] == '/' || !real[n]);
    free(real);
    return is;
}

static bool reads(const worker_spec *s, const char *path)
{
    if (lies_at(s->path, path)) return true;
    for (size_t i = 0; i < WORKER_SPEC_ADAPTERS && s->adapters[i]; i++) {
        const char *equals = strchr(s->adapters[i], '=');
        if (equals && lies_at(equals + 1, path)) return true;
    }
    return false;
}

/* Who reads that file or folder, "" nobody; *ret_base: the configuration names it. Of several, one that is
 * served, so that the others are met when that one is gone. */
static const char *server_of(const manager *k, const char *path, bool *ret_base)
{
    const char *down = "";
    *ret_base = false;
    for (const managed_model *m = k->models; m; m = m->next)
        if (!m->down && reads(&m->spec, path)) return m->spec.model;
    for (size_t i = 0; i < k->n_base; i++) {
        if (!reads(&k->base[i], path)) continue;
        *ret_base = true;
        if (base_find(k, k->base[i].model)) return k->base[i].model;
        down = k->base[i].model;
    }
    return down;
}

static void check_unserved(job *j);

static void unloaded_first(void *user, const model_manager_progress *n, const api_error *e)
{
    job *j = user;
    j->inner = NULL;
    if (j->phase == PHASE_OVER) return;
    if (e)
        job_fail(j, e->status, e->code, "%s", e->message);
    else
        check_unserved(j);
}

static void check_unserved(job *j)
{
    manager *k = j->k;
    bool in_base;
    const char *name = server_of(k, j->found.path, &in_base);
    const managed_model *m = managed_model_find(k, name);
    model_manager_watch w = {.done = unloaded_first, .user = j};
    api_error e;
    bool may = j->how & MODEL_MANAGER_FORCE || (j->how & MODEL_MANAGER_UNLOAD && !in_base);
    if (*name && !may) {
        job_fail(j, 409, "model_is_served", "%s '%s'; %s",
                 in_base ? "shoal.yaml names it, as" : "it is served as", name,
                 in_base ? "take it out there, or force it" : "unload it first, or force it");
    } else if (*name && !(m && m->down)) {
        j->inner = k->face.unload(k, name, j->how, &w, &e);
        if (!j->inner) job_fail(j, e.status, e.code, "%s", e.message);
    } else {
        job_work(j, remove_it, removed);
    }
}

static void stored_found(job *j)
{
    job_take_list(j);
    snprintf(j->model, sizeof j->model, "%s", j->got ? j->got : j->found.name);
    const char *other = j->rc == SHOAL_ENOTFOUND ? manager_name_taken(j->k, j->key) : NULL;
    if (other)
        job_fail(j, 409, "model_is_configured", "'%.100s' is %s of shoal.yaml: take it out there", j->key,
                 other);
    else if (j->rc != 0)
        job_fail_as(j, &j->err);
    else
        check_unserved(j);
}

void kind_remove(job *j)
{
    j->step = MODEL_MANAGER_REMOVING;
    j->is_served = managed_model_find(j->k, j->key) || base_find(j->k, j->key);
    job_work(j, find_stored, stored_found);
}

/* ---- what a load has brought, and nobody can use ---------------------------------------------------- */

static void drop_brought(job *j)
{
    const char *store = j->k->places.folders[0], *path = j->found.path;
    shoal_err err;
    size_t n = strlen(store);
    bool inside = path && strncmp(path, store, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
    if (pull_manifest_drop(store, j->wanted.what, false, NULL, &err) != 0 && inside &&
        pull_manifest_drop_folder(path, NULL, &err) != 0)
        unlink(path);
    j->list = manager_list(&j->k->places);
}

static void brought_dropped(job *j)
{
    LOG(LOG_INFO, "models", "not_kept", LOG_S("model", j->model), LOG_S("asked", j->key),
        LOG_S("reason", "it was fetched for a load that failed"));
    job_take_list(j);
    job_over(j);
}

bool job_drops_brought(job *j)
{
    bool in_base;
    if (j->kind != JOB_LOAD || !j->brought || !j->found.path || *server_of(j->k, j->found.path, &in_base))
        return false;
    j->brought = false;
    job_work(j, drop_brought, brought_dropped);
    return true;
}

/* ---- looking ------------------------------------------------------------------------------------------- */

static void listed(job *j)
{
    job_take_list(j);
    job_done(j, MODEL_MANAGER_READY);
}

void list_begin(manager *k)
{
    api_error e;
    bool fresh;
    job *j = job_get(k, JOB_LIST, "", &fresh, &e);
    if (j && fresh) job_work(j, look_at_store, listed);
}
