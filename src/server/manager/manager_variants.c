/* manager_variants.c: variants, which clients made of other models: variants.json in the state folder, beside the
 * book of loads.
 *
 *     {"mine": {"from": "home-chat-s", "parameters": {"temperature": 0}, "system": "Be brief.", "created": 1795994949}}
 *
 * One is written at a time, on the pool; what is in memory is what the file has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "logging/log.h"
#include "manager/manager_impl.h"

enum { VARIANTS_MAX_BYTES = 4 << 20 };

static int read_variants(json_t **ret, const char *path, shoal_err *err)
{
    json_t *all = NULL, *one;
    const char *name;
    void *next;
    int rc = json_parse_file(&all, path, VARIANTS_MAX_BYTES, err);
    if (rc != 0) return rc;
    json_object_foreach_safe(all, next, name, one)
    {
        if (!json_is_string(json_object_get(one, "from"))) json_object_del(all, name);
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

/* On the pool. */
static void write_variants(job *j)
{
    buf text = {0};
    json_put(&text, j->list);
    buf_putc(&text, '\n');
    manager_book_make_folder(j->k->variants_path);
    j->rc = file_replace(j->k->variants_path, &text, &j->err);
    buf_done(&text);
}

static void wrote_variants(job *j)
{
    manager *k = j->k;
    if (j->rc != 0) {
        job_fail(j, 500, "not_kept", "it cannot be kept for the next start: %s", j->err.message);
        return;
    }
    json_decref(k->variants);
    k->variants = json_incref(j->list);
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
    j->list = json_copy(k->variants);
    bool ok = j->list && (variant ? json_object_set(j->list, name, (json_t *)variant) == 0
                                  : json_object_del(j->list, name) == 0);
    if (ok) return j;
    job_free(j);
    api_error_nomem(e);
    return NULL;
}
