/* serve_given.c: see serve_given.h. */
#define _GNU_SOURCE
#include "serve/serve_given.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/name.h"
#include "config/config_load_request.h"
#include "kinds/model_kind.h"
#include "manager/manager_find.h"
#include "model/model.h"
#include "rules/home.h"
#include "serve/serve_manager.h"
#include "serve/serve_models.h"

/* ---- where it is ----------------------------------------------------------------------------------- */

static int no_file(const char *model, shoal_err *err)
{
    return err_set(
        err, SHOAL_ENOTFOUND,
        "there is no file or folder '%.300s'; give the path of a GGUF file or of a Hugging Face folder, or "
        "hf:ORG/NAME to fetch one",
        model);
}

static int no_name(const json_t *list, const char *model, shoal_err *err)
{
    char names[300] = "";
    size_t i, at = 0;
    const json_t *o;
    json_array_foreach(list, i, o) if (at < sizeof names) at += (size_t)snprintf(
        names + at, sizeof names - at, "%s%s", i ? ", " : "", json_string_value(json_object_get(o, "name")));
    if (i == 0) return no_file(model, err);
    return err_set(
        err, SHOAL_ENOTFOUND,
        "there is no file, folder or model '%.100s': models.json has %s; hf:ORG/NAME fetches another", model,
        names);
}

/* What models.json of the store or of the manifest's folder calls so. */
static int find_listed(char **ret, char name[NAME_BYTES_MAX + 1], const char *model, shoal_err *err)
{
    char *manifest = NULL, *path = NULL;
    shoal_err why;
    if (manifest_locate(&manifest, &why) == SHOAL_ENOMEM) return err_nomem(err);
    char *store = serve_manager_store(NULL, manifest), *real = store ? manager_real_folder(store) : NULL;
    const manager_places places = {.folders = {real}, .n_folders = 1, .manifest = manifest};
    json_t *list = real ? manager_list(&places) : NULL;
    const json_t *o = list ? manager_called(list, model) : NULL;
    int rc = !list ? err_nomem(err) : o ? 0 : no_name(list, model, err);
    if (o && asprintf(&path, "%s/%s", json_string_value(json_object_get(o, "folder")),
                      json_string_value(json_object_get(o, "file"))) < 0) {
        path = NULL;
        rc = err_nomem(err);
    }
    if (path && !(*ret = realpath(path, NULL)))
        rc = err_set(err, SHOAL_ENOTFOUND,
                     "%.300s, which models.json lists as '%.100s', is not there; shoal pull "
                     "fetches it again",
                     path, model);
    const char *called = o ? json_string_value(json_object_get(o, "name")) : NULL;
    if (rc == 0 && name_is_fine(called, strlen(called))) snprintf(name, NAME_BYTES_MAX + 1, "%s", called);
    json_decref(list);
    free(path);
    free(real);
    free(store);
    free(manifest);
    return rc;
}

int serve_given_find(char **ret, char name[NAME_BYTES_MAX + 1], const char *model, shoal_err *err)
{
    *name = '\0';
    if (file_exists(model)) {
        if ((*ret = realpath(model, NULL))) return 0;
        return errno == ENOMEM
                   ? err_nomem(err)
                   : err_set(err, SHOAL_EIO, "'%.300s' cannot be read: %s", model, strerror(errno));
    }
    if (errno == EACCES)
        return err_set(err, SHOAL_EIO, "'%.300s' cannot be read: %s", model, strerror(EACCES));
    if (!model_is_reference(model) && (strchr(model, '/') || model_kind_named(model)))
        return no_file(model, err);
    return find_listed(ret, name, model, err);
}

/* ---- names ------------------------------------------------------------------------------------------ */

static bool is_taken(const json_t *models, const char *name)
{
    size_t i;
    const json_t *o;
    json_array_foreach(models, i,
                       o) if (strcmp(json_string_value(json_object_get(o, "name")), name) == 0) return true;
    return false;
}

/* "my" where that is free, else "my-2" and so on. */
static void make_distinct(const json_t *models, char name[NAME_BYTES_MAX + 1])
{
    char first[NAME_BYTES_MAX + 1], end[16];
    snprintf(first, sizeof first, "%s", name);
    for (unsigned k = 2; is_taken(models, name); k++) {
        snprintf(end, sizeof end, "-%u", k);
        snprintf(name, NAME_BYTES_MAX + 1, "%.*s%s", (int)(NAME_BYTES_MAX - strlen(end)), first, end);
    }
}

/* ---- the configuration ------------------------------------------------------------------------------ */

static int add_model(json_t *models, const serve_given *g, const char *model, shoal_err *err)
{
    char name[NAME_BYTES_MAX + 1], *path = NULL;
    int rc = serve_given_find(&path, name, model, err);
    if (rc == 0 && g->name) snprintf(name, sizeof name, "%.*s", NAME_BYTES_MAX, g->name);
    /* A name of other letters, as "日本.gguf", says none that a model may have. */
    if (rc == 0 && !*name && manager_name_by(name, path, err) != 0) snprintf(name, sizeof name, "model");
    if (rc == 0) {
        make_distinct(models, name);
        config_load_request w = {.as = g->as, .keep_alive_s = LOAD_REQUEST_STAYS};
        w.as.name = name;
        w.as.path = path;
        json_t *o = config_load_request_json(&w);
        if (!o || json_array_append_new(models, o) != 0)
            rc = err_set(err, SHOAL_EINVALID, "'%.300s' cannot be named in a configuration: it is not UTF-8",
                         model);
    }
    free(path);
    return rc;
}

/* A name that no model may have, as "llama3.2:3b", is an alias of the one model. */
static void put_alias(buf *out, const char *name, const json_t *models)
{
    buf_puts(out, ", \"aliases\": {");
    json_put_string(out, name, strlen(name));
    buf_puts(out, ": ");
    const char *model = json_string_value(json_object_get(json_array_get(models, 0), "name"));
    json_put_string(out, model, strlen(model));
    buf_putc(out, '}');
}

int serve_given_config(gateway_config **ret, const serve_given *g, shoal_err *err)
{
    json_t *models = json_array();
    buf text = {0};
    int rc = models ? 0 : err_nomem(err);
    if (rc == 0 && g->name && g->models.n > 1)
        rc = err_set(err, SHOAL_EINVALID, "--name is for one model, and there are %zu", g->models.n);
    bool other = g->name && !name_is_fine(g->name, strlen(g->name));
    if (rc == 0 && other && !config_alias_is_fine(g->name))
        rc = err_set(
            err, SHOAL_EINVALID,
            "--name may hold letters, digits, and '-', '_', '.', ':', '/', '@', '+' only, and begins with a "
            "letter, a digit or '_'");
    serve_given own = *g;
    if (other) own.name = NULL;
    for (size_t i = 0; rc == 0 && i < g->models.n; i++) rc = add_model(models, &own, g->models.v[i], err);
    buf_puts(&text, "{\"models\": ");
    if (rc == 0 && json_put(&text, models) != 0) rc = err_nomem(err);
    if (rc == 0 && other) put_alias(&text, g->name, models);
    buf_puts(&text, "}");
    if (rc == 0 && text.failed) rc = err_nomem(err);
    if (rc == 0) rc = config_parse(ret, &HOME_STAGES, text.data, text.len, "command line", err);
    json_decref(models);
    buf_done(&text);
    return rc;
}

/* ---- can they be served? ---------------------------------------------------------------------------- */

void serve_given_inside(const char *folder, const char *called, buf *out)
{
    DIR *d = opendir(folder);
    unsigned n = 0;
    for (struct dirent *e; d && (e = readdir(d)) && n < 3;) {
        if (model_kind_named(e->d_name) != &model_kind_gguf) continue;
        buf_printf(out, "%s%s/%s", n++ ? ", " : "", called, e->d_name);
    }
    if (d) closedir(d);
}

static int not_served(const char *path, const char *called, const char *why, shoal_err *err)
{
    buf files = {0};
    size_t n = strlen(path);
    bool repeats = strncmp(why, path, n) == 0 && strncmp(why + n, ": ", 2) == 0;
    if (file_is_dir(path)) serve_given_inside(path, called, &files);
    bool says_what_to_do = strstr(why, "download it again") || strstr(why, strerror(EACCES));
    if (says_what_to_do)
        err_set(err, SHOAL_EFORMAT, "%.300s cannot be served: %.200s", called, repeats ? why + n + 2 : why);
    else if (files.len)
        err_set(err, SHOAL_EFORMAT,
                "the folder %.300s is no model, but it holds some; serve one of them: %.300s", called,
                files.data);
    else
        err_set(err, SHOAL_EFORMAT,
                "%.300s cannot be served: %.300s; give a GGUF file or a Hugging Face folder of a family that "
                "docs/families.md lists, or hf:ORG/NAME to fetch one",
                called, repeats ? why + n + 2 : why);
    buf_done(&files);
    return err->code;
}

int serve_given_check(const gateway_config *c, const worker_spec *specs, const serve_given *g, shoal_err *err)
{
    json_t *said = NULL;
    int rc = serve_models_describe(c, specs, &said, err);
    for (size_t i = 0; rc == 0 && i < c->n_models; i++) {
        const json_t *o = json_array_get(said, i);
        const char *why = json_is_object(o) ? json_string_value(json_object_get(o, "error"))
                                            : "the process that read its file died";
        const char *key = json_string_value(json_object_get(o, "key"));
        if (why && key && *key) /* the file is right, and an option is not */
            rc = err_set(err, SHOAL_EINVALID, "--%s: %.300s: %s", key, g->models.v[i], why);
        else if (why)
            rc = not_served(specs[i].path, g->models.v[i], why, err);
    }
    json_decref(said);
    return rc;
}
