/* manager_variants.c: variants, which clients made of other models: variants.json in the state folder, beside the
 * book of loads.
 *
 *     {"mine": {"from": "home-chat-s", "parameters": {"temperature": 0}, "system": "Be brief.", "created": 1795994949}}
 *
 * One is written at a time, on the pool; what is in memory is what the file had then. Several servers may share it:
 * each reads it again under the folder's lock before it changes an entry. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "logging/log.h"
#include "manager/manager_impl.h"

enum { VARIANTS_MAX_BYTES = 4 << 20 };

/* As a create would have written it. */
static bool is_variant(const json_t *one)
{
    const json_t *parameters = json_object_get(one, "parameters"), *system = json_object_get(one, "system"),
                 *messages = json_object_get(one, "messages"), *template = json_object_get(one, "template");
    return json_is_string(json_object_get(one, "from")) && (!parameters || json_is_object(parameters)) &&
           (!system || json_is_string(system)) && (!messages || json_is_array(messages)) &&
           (!template || json_is_string(template));
}

static int read_variants(json_t **ret, const char *path, shoal_err *err)
{
    json_t *all = NULL, *one;
    const char *name;
    void *next;
    int rc = json_parse_file(&all, path, VARIANTS_MAX_BYTES, err);
    if (rc != 0) return rc;
    json_object_foreach_safe(all, next, name, one)
    {
        if (!is_variant(one)) json_object_del(all, name);
    }
    if (!json_is_object(all)) {
        json_decref(all);
        return err_set(err, SHOAL_EFORMAT, "%s: not an object of models", path);
    }
    *ret = all;
    return 0;
}

bool manager_variants_open(manager *k)
{
    char *folder = k->o.book ? file_folder(k->o.book) : NULL;
    shoal_err err;
    if (k->o.book && !folder) return false;
    if (folder) k->variants_path = arena_printf(k->mem, "%s/variants.json", folder);
    free(folder);
    if (k->o.book && !k->variants_path) return false;
    int rc = k->variants_path ? read_variants(&k->variants, k->variants_path, &err) : 0;
    if (rc != 0 && rc != SHOAL_ENOTFOUND)
        LOG(LOG_ERROR, "models", "variants_not_read", LOG_S("reason", err.message));
    if (!k->variants) k->variants = json_object();
    return k->variants != NULL;
}

/* What the file has, or nothing. A broken file is renamed: what it had may still be mended. */
static int read_again(json_t **ret, const char *path, shoal_err *err)
{
    shoal_err why;
    int rc = read_variants(ret, path, &why);
    if (rc == SHOAL_EFORMAT || rc == SHOAL_ELIMIT)
        rc = manager_book_set_aside(path, &why, err);
    else if (rc == SHOAL_ENOTFOUND)
        rc = 0;
    else if (rc != 0)
        *err = why; /* it may be whole: it is not written over */
    if (rc == 0 && !*ret && !(*ret = json_object())) rc = err_nomem(err);
    return rc;
}

/* change: {NAME: variant}, or {NAME: null} for one that goes. */
static int apply_change(json_t *all, json_t *change, shoal_err *err)
{
    const char *name;
    json_t *one;
    json_object_foreach(change, name, one)
    {
        if (json_is_null(one))
            json_object_del(all, name);
        else if (json_object_set(all, name, one) != 0)
            return err_nomem(err);
    }
    return 0;
}

static int write_all(const char *path, const json_t *all, shoal_err *err)
{
    buf text = {0};
    json_put(&text, all);
    buf_putc(&text, '\n');
    int rc =
        text.len <= VARIANTS_MAX_BYTES
            ? file_replace(path, &text, err)
            : err_set(
                  err, SHOAL_ELIMIT,
                  "the models made of others would take %zu bytes of %d: delete some of them, or give them "
                  "shorter system messages, messages and templates",
                  text.len, VARIANTS_MAX_BYTES);
    buf_done(&text);
    return rc;
}

/* On the pool. */
static void write_variants(job *j)
{
    const char *path = j->k->variants_path;
    json_t *all = NULL;
    int folder = -1;
    j->rc = manager_book_lock(&folder, path, &j->err);
    if (j->rc == 0) j->rc = read_again(&all, path, &j->err);
    if (j->rc == 0) j->rc = apply_change(all, j->list, &j->err);
    if (j->rc == 0) j->rc = write_all(path, all, &j->err);
    if (folder >= 0) close(folder);
    if (j->rc == 0)
        j->before = all;
    else
        json_decref(all);
}

static void wrote_variants(job *j)
{
    manager *k = j->k;
    if (j->rc == SHOAL_ELIMIT) {
        job_fail(j, 507, "no_room", "%s", j->err.message);
        return;
    }
    if (j->rc != 0) {
        job_fail(j, 500, "not_kept", "it cannot be kept for the next start: %s", j->err.message);
        return;
    }
    json_decref(k->variants);
    k->variants = json_incref(j->before);
    job_done(j, MODEL_MANAGER_READY);
}

void kind_vary(job *j)
{
    job_work(j, write_variants, wrote_variants);
}

job *manager_vary_job(manager *k, const char *name, const json_t *variant, api_error *e)
{
    bool fresh;
    if (!k->variants_path) {
        api_error_set(
            e, 500, "server_error", "not_kept", NULL,
            "this server has no state folder to keep a model in: start it with HOME or SHOAL_STATE set");
        return NULL;
    }
    job *j = job_get(k, JOB_VARY, "variants", &fresh, e);
    if (j && !fresh) {
        api_error_set(e, 409, "invalid_request_error", "busy", NULL,
                      "another model is being written; send the request again");
        e->retry_after_s = 1;
        return NULL;
    }
    if (!j) return NULL;
    snprintf(j->model, sizeof j->model, "%.64s", name);
    j->list = json_object(); /* the change; `before` will be all */
    if (j->list &&
        json_object_set_new(j->list, name, variant ? json_incref((json_t *)variant) : json_null()) == 0)
        return j;
    job_free(j);
    api_error_nomem(e);
    return NULL;
}
