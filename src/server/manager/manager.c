/* manager.c: the model manager's life, and what it lends the gateway. */
#define _GNU_SOURCE
#include "manager/manager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "logging/log.h"
#include "base/name.h"
#include "cluster/registry.h"
#include "manager/manager_impl.h"

/* ---- what the gateway asks ----------------------------------------------------------------------------- */

const gateway_config *manager_config(const manager *k)
{
    return k->o.now ? k->o.now(k->o.user) : k->o.config;
}

static int manager_refuse(api_error *e, const shoal_err *err)
{
    int status = err->code == SHOAL_EINVALID ? 400 : err->code == SHOAL_EAUTH ? 403 : 500;
    return api_error_set(e, status, status == 500 ? "server_error" : "invalid_request_error",
                         status == 403 ? "not_allowed" : NULL, NULL, "%s", err->message);
}

static bool may(const manager *k, api_error *e)
{
    if (k->o.config->library.loading == CONFIG_LOADING_ON) return true;
    api_error_set(e, 403, "invalid_request_error", "not_allowed", NULL,
                  "this server loads no models but those of its shoal.yaml (library: {load: off})");
    return false;
}

/* Its ticket, and then its beginning: a job without a ticket could end unheard. */
static model_manager_ticket *manager_begin(job *j, bool fresh, const model_manager_watch *w,
                                           void (*first)(job *), api_error *e)
{
    model_manager_ticket *t = job_ticket(j, w, e);
    if (!t && fresh) job_free(j);
    if (t && fresh) j->then = first; /* a turn later: nobody is told inside the call */
    if (t && fresh) jobs_soon(j->k);
    return t;
}

char *manager_load_key(const json_t *wanted)
{
    return json_dumps(wanted, JSON_COMPACT | JSON_SORT_KEYS);
}

/* Who may name other files than others has work of his own. */
static char *job_key(const config_load_request *wanted)
{
    char who[FILE_USER_TEXT_BYTES] = "", *key = NULL;
    json_t *o = config_load_request_json(wanted);
    char *plain = o ? manager_load_key(o) : NULL;
    json_decref(o);
    if (wanted->reader) file_user_format(wanted->reader, who);
    if (plain &&
        asprintf(&key, "%s%s%s%s", wanted->any_path ? JOB_KEY_ANY : "", who, *who ? " " : "", plain) < 0)
        key = NULL;
    free(plain);
    return key;
}

static job *load_job(manager *k, const config_load_request *wanted, bool *fresh, api_error *e)
{
    char *key = job_key(wanted);
    if (!key) api_error_nomem(e);
    job *j = key ? job_get(k, JOB_LOAD, key, fresh, e) : NULL;
    free(key);
    if (!j || !*fresh || config_load_request_copy(&j->wanted, j->mem, wanted)) return j;
    job_free(j);
    api_error_nomem(e);
    return NULL;
}

/* Where there is no state folder nothing is loaded, rather than loaded and forgotten. */
static bool can_keep(const manager *k, const config_load_request *wanted, api_error *e)
{
    if (!wanted->keep || k->o.book) return true;
    api_error_set(e, 500, "server_error", "not_kept", NULL,
                  "this server has no state folder to keep it for the next start: start it with HOME or "
                  "SHOAL_STATE set, or load the model without keep");
    return false;
}

static model_manager_ticket *load_(void *user, const config_load_request *wanted,
                                   const model_manager_watch *w, api_error *e)
{
    manager *k = user;
    bool fresh;
    job *j = may(k, e) && can_keep(k, wanted, e) ? load_job(k, wanted, &fresh, e) : NULL;
    return j ? manager_begin(j, fresh, w, kind_load, e) : NULL;
}

static model_manager_ticket *unload_(void *user, const char *model, unsigned how,
                                     const model_manager_watch *w, api_error *e)
{
    manager *k = user;
    bool fresh;
    if (!may(k, e)) return NULL;
    if (!name_is_fine(model, strlen(model))) {
        api_error_no_model(e, model);
        return NULL;
    }
    job *j = job_get(k, JOB_UNLOAD, model, &fresh, e);
    if (!j) return NULL;
    if (!fresh && how & MODEL_MANAGER_AT_ONCE) k->o.hurry(k->o.user, model);
    j->how |= how;
    return manager_begin(j, fresh, w, kind_unload, e);
}

static model_manager_ticket *fetch_(void *user, const char *reference, const model_manager_watch *w,
                                    api_error *e)
{
    manager *k = user;
    bool fresh;
    shoal_err err;
    manager_fetch_options o = {
        .reference = reference, .folder = k->o.store, .library = &k->o.config->library};
    if (!may(k, e)) return NULL;
    if (manager_fetch_check(&o, &err) != 0) {
        manager_refuse(e, &err);
        return NULL;
    }
    job *j = job_get(k, JOB_FETCH, reference, &fresh, e);
    return j ? manager_begin(j, fresh, w, kind_fetch, e) : NULL;
}

static model_manager_ticket *remove_(void *user, const char *model, unsigned how,
                                     const model_manager_watch *w, api_error *e)
{
    manager *k = user;
    bool fresh;
    job *j = may(k, e) ? job_get(k, JOB_REMOVE, model, &fresh, e) : NULL;
    if (!j) return NULL;
    j->how |= how;
    return manager_begin(j, fresh, w, kind_remove, e);
}

static bool about(void *user, const char *model, model_manager_fact *ret)
{
    const manager *k = user;
    const managed_model *m = managed_model_find(k, model);
    *ret = (model_manager_fact){0};
    if (m && !m->down) {
        ret->loading = m->loading;
        ret->kept = m->wanted.keep;
        ret->bytes = m->bytes;
        ret->goes = m->stay_s != LOAD_REQUEST_STAYS;
        if (ret->goes) ret->left_ms = managed_model_left_ms(k, m);
        return true;
    }
    ret->configured = base_find(k, model) != NULL;
    return ret->configured;
}

static void stay(void *user, const char *model, uint64_t s)
{
    managed_model *m = managed_model_find(user, model);
    if (m && !m->down) m->stay_s = s;
}

static const char *find_manager(void *user, const char *called)
{
    const manager *k = user;
    const char *name = json_string_value(json_object_get(manager_called(k->stored, called), "name"));
    return name && name_is_fine(name, strlen(name)) ? name : NULL;
}

static const json_t *stored(void *user)
{
    return ((const manager *)user)->stored;
}

static const json_t *variants(void *user)
{
    return ((const manager *)user)->variants;
}

static model_manager_ticket *vary(void *user, const char *name, const json_t *variant,
                                  const model_manager_watch *w, api_error *e)
{
    manager *k = user;
    job *j = may(k, e) ? manager_vary_job(k, name, variant, e) : NULL;
    return j ? manager_begin(j, true, w, kind_vary, e) : NULL;
}

static void observe(void *user, const model_manager_events *e)
{
    manager *k = user;
    k->events = e ? *e : (model_manager_events){0};
}

const model_manager *manager_interface(manager *k)
{
    return &k->face;
}

/* ---- the book ------------------------------------------------------------------------------------------ */

static void restored(void *user, const model_manager_progress *n, const api_error *e)
{
    if (e) LOG(LOG_ERROR, "models", "not_restored", LOG_S("model", n->model), LOG_S("reason", e->message));
}

static bool has_entry(const json_t *list, const json_t *o)
{
    size_t i;
    const json_t *other;
    json_array_foreach(list, i, other) if (json_equal(other, o)) return true;
    return false;
}

/* Until it is loaded it stays in the book as it was: a file may come back. What stands there twice is one. */
static void restore_one(void *user, const config_load_request *wanted)
{
    manager *k = user;
    model_manager_watch w = {.done = restored, .user = k};
    api_error e;
    config_load_request kept = *wanted;
    kept.keep = true;
    kept.any_path =
        true; /* it was allowed when it was written there, and nobody but this server writes there */
    json_t *o = config_load_request_json(&kept);
    bool known = o && has_entry(k->absent, o);
    if (o && !known) json_array_append(k->absent, o);
    json_decref(o);
    if (known) return;
    if (!load_(k, &kept, &w, &e)) LOG(LOG_ERROR, "models", "not_restored", LOG_S("reason", e.message));
}

static void broken_book(void *user, const char *sentence)
{
    LOG(LOG_ERROR, "models", "not_restored", LOG_S("reason", sentence));
}

void manager_restore(manager *k)
{
    session_restore(k); /* first: a load that the book names as well is the same piece of work */
    if (!k->o.book) return;
    json_decref(k->book);
    k->book = manager_book_read(k->o.book, restore_one, broken_book, k);
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void changed(void *user, const registry_event *e)
{
    manager *k = user;
    if (e->what != REGISTRY_NODE && k->jobs) jobs_soon(k);
}

static void ticked(void *user)
{
    manager *k = user;
    registry_env(k->o.registry)->timer_start(k->tick, MANAGER_TICK_MS);
    managed_model_tick(k);
}

static bool copy_options(manager *k, const manager_options *o)
{
    bool ok = true;
    const char **const texts[] = {&k->o.store, &k->o.manifest, &k->o.book, &k->o.program, &k->o.root};
    k->o = *o;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i]) ok &= (*texts[i] = arena_strdup(k->mem, *texts[i])) != NULL;
    if (!k->o.root) k->o.root = "";
    return ok;
}

static bool add_folder(manager *k, const char *folder)
{
    char *real = manager_real_folder(folder);
    const char *own = real ? arena_strdup(k->mem, real) : NULL;
    free(real);
    for (size_t i = 0; own && i < k->places.n_folders; i++)
        if (strcmp(k->places.folders[i], own) == 0) return true; /* the store may be the manifest's, too */
    if (own && k->places.n_folders < MANAGER_FOLDERS_MAX) k->places.folders[k->places.n_folders++] = own;
    return own != NULL;
}

/* Of a served file the folder it lies in, of a served folder that alone. Never all of the machine. */
static bool add_served(manager *k, const char *path)
{
    char *folder = file_is_dir(path) ? strdup(path) : file_folder(path);
    bool ok = folder && (strcmp(folder, "/") == 0 || add_folder(k, folder));
    free(folder);
    return ok;
}

static bool find_places(manager *k)
{
    const config_library *l = &k->o.config->library;
    bool ok = add_folder(k, k->o.store);
    char *folder = k->o.manifest ? file_folder(k->o.manifest) : NULL;
    if (ok) k->o.store = k->places.folders[0]; /* what is fetched lies where it is looked for */
    if (k->o.manifest) ok = ok && folder && add_folder(k, folder);
    for (size_t i = 0; ok && i < l->n_folders; i++) ok = add_folder(k, l->folders[i]);
    for (size_t i = 0; ok && i < k->o.config->n_models; i++)
        if (k->o.config->models[i].path) ok = add_served(k, k->o.config->models[i].path);
    k->places.manifest = k->o.manifest;
    free(folder);
    return ok;
}

static void manager_free(manager *k)
{
    while (k->models) managed_model_drop(k, k->models);
    json_decref(k->stored);
    json_decref(k->variants);
    json_decref(k->absent);
    json_decref(k->book);
    session_close(k);
    arena_free(k->base_mem);
    arena_free(k->mem);
    free(k);
}

void manager_release(manager *k)
{
    if (--k->n_open == 0) manager_free(k);
}

int manager_open(manager **ret, uv_loop_t *loop, const manager_options *o, shoal_err *err)
{
    const env *time = registry_env(o->registry);
    manager *k = calloc(1, sizeof *k);
    if (!k) return err_nomem(err);
    k->mem = arena_new(0);
    session_open(k);
    k->stored = json_array();
    k->absent = json_array();
    k->tick = time->timer_new(time->user, ticked, k);
    bool ok = k->mem && k->stored && k->absent && k->tick && copy_options(k, o) && find_places(k) &&
              manager_variants_open(k);
    int rc = ok ? registry_listen(o->registry, changed, k, err) : err_nomem(err);
    if (rc != 0) {
        time->timer_free(k->tick);
        manager_free(k);
        return rc;
    }
    k->loop = loop;
    k->face = (model_manager){.user = k,
                              .observe = observe,
                              .load = load_,
                              .unload = unload_,
                              .fetch = fetch_,
                              .remove = remove_,
                              .leave = ticket_leave,
                              .about = about,
                              .stay = stay,
                              .find = find_manager,
                              .stored = stored,
                              .variants = variants,
                              .vary = vary};
    uv_timer_init(loop, &k->soon);
    k->soon.data = k;
    k->n_open = 1;
    time->timer_start(k->tick, MANAGER_TICK_MS);
    list_begin(k);
    *ret = k;
    return 0;
}

void manager_drain(manager *k)
{
    if (!k || k->draining) return;
    k->draining = true;
    for (job *j = k->jobs; j; j = j->next) {
        if (j->fetch) manager_fetch_stop(j->fetch);
        if (j->kind == JOB_WRITE || j->phase == PHASE_WORKING || j->phase == PHASE_WRITING) continue;
        job_fail(j, 503, "draining", "the server is shutting down");
    }
    jobs_soon(k);
}

static void soon_closed(uv_handle_t *h)
{
    manager_release(h->data);
}

void manager_close(manager *k)
{
    if (!k) return;
    k->closing = true;
    registry_unlisten(k->o.registry, changed, k);
    for (job *j = k->jobs; j; j = j->next) j->inner = NULL; /* it goes with the job that it is for */
    for (job *j = k->jobs, *next; j; j = next) {
        next = j->next;
        if (j->phase != PHASE_WORKING) job_free(j); /* those go when they are back */
    }
    if (k->unwritten && !k->writing) manager_write_book(k);
    registry_env(k->o.registry)->timer_free(k->tick);
    uv_close((uv_handle_t *)&k->soon, soon_closed);
}
