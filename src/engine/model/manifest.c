/* manifest.c: models.json, and from what a person typed to a file. */
#define _GNU_SOURCE
#include <math.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "os/installed.h"
#include "json/json.h"
#include "kinds/model_kind.h"
#include "base/utf8.h"
#include "model/model.h"

enum { MANIFEST_MAX = 4 << 20, ENTRIES_MAX = 4096, LABELS_MAX = 65536 };

struct manifest {
    arena *mem;
    size_t n;
    manifest_entry *entries;
    struct pin {
        const char *file, *sha256;
    } * pins;
    size_t n_pins;
};

/* A string of entry o, copied; absent gives "". */
static int copy_str(arena *mem, const json_t *o, const char *key, bool needed, const char **ret,
                    shoal_err *err)
{
    const char *s = needed ? NULL : "";
    int rc = json_get_str(o, key, &s, err);
    if (rc != 0) return rc;
    if (!s || (needed && !*s)) return err_set(err, SHOAL_EINVALID, "\"%s\" is missing", key);
    *ret = arena_strdup(mem, s);
    return *ret ? 0 : err_nomem(err);
}

static int read_labels(arena *mem, const json_t *o, manifest_entry *e, shoal_err *err)
{
    const json_t *list = json_object_get(o, "labels");
    if (!list || json_is_null(list)) return 0;
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > LABELS_MAX)
        return err_set(err, SHOAL_EINVALID, "\"labels\" must be an array of at most %d names", LABELS_MAX);
    const char **labels = arena_alloc(mem, n * sizeof *labels + 1);
    if (!labels) return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (!s) return err_set(err, SHOAL_EINVALID, "\"labels\" entry %zu is no string", i);
        if (!(labels[i] = arena_strdup(mem, s))) return err_nomem(err);
    }
    e->labels = labels;
    e->n_labels = n;
    return 0;
}

static int read_quality(arena *mem, const json_t *o, manifest_entry *e, shoal_err *err)
{
    const json_t *q = json_object_get(o, "quality");
    e->quality = NAN;
    e->quality_name = "";
    if (!q || json_is_null(q)) return 0;
    if (!json_is_object(q)) return err_set(err, SHOAL_EINVALID, "\"quality\" must be an object");
    int rc = copy_str(mem, q, "metric", false, &e->quality_name, err);
    return rc != 0 ? rc : json_get_num(q, "value", -1e9, 1e9, &e->quality, err);
}

static int check_entry(const manifest_entry *e, shoal_err *err)
{
    uint8_t digest[32];
    if (strchr(e->file, '/') || e->file[0] == '.')
        return err_set(err, SHOAL_EINVALID,
                       "\"file\" is \"%.80s\"; it must be a plain name beside the manifest", e->file);
    if (!hex_decode(e->sha256, strlen(e->sha256), digest, sizeof digest))
        return err_set(err, SHOAL_EINVALID, "\"sha256\" must be 64 hexadecimal digits");
    model_task task;
    if (*e->task && !task_parse(e->task, &task))
        return err_set(err, SHOAL_EUNSUPPORTED, "the task \"%.40s\" is not known", e->task);
    return 0;
}

static int read_entry(manifest *m, const char *folder, const json_t *o, manifest_entry *e, shoal_err *err)
{
    if (!json_is_object(o)) return err_set(err, SHOAL_EINVALID, "not an object");
    int rc = copy_str(m->mem, o, "name", true, &e->name, err);
    if (rc == 0) rc = copy_str(m->mem, o, "file", true, &e->file, err);
    if (rc == 0) rc = copy_str(m->mem, o, "sha256", true, &e->sha256, err);
    if (rc == 0) rc = copy_str(m->mem, o, "task", false, &e->task, err);
    if (rc == 0) rc = copy_str(m->mem, o, "quantisation", false, &e->quantisation, err);
    if (rc == 0) rc = copy_str(m->mem, o, "version", false, &e->version, err);
    if (rc == 0) rc = copy_str(m->mem, o, "description", false, &e->description, err);
    if (rc == 0) rc = copy_str(m->mem, o, "use", false, &e->use, err);
    if (rc == 0) rc = read_labels(m->mem, o, e, err);
    if (rc == 0) rc = read_quality(m->mem, o, e, err);
    if (rc == 0) rc = sampling_from_json(&e->sampling, json_object_get(o, "sampling"), err);
    if (rc == 0) rc = check_entry(e, err);
    if (rc != 0) return rc;
    if (manifest_find(m, e->name))
        return err_set(err, SHOAL_EINVALID, "the name \"%.80s\" appears twice", e->name);
    e->file = arena_printf(m->mem, "%s%s", folder, e->file);
    return e->file ? 0 : err_nomem(err);
}

static int read_entries(manifest *m, const char *path, const json_t *root, shoal_err *err)
{
    const json_t *list = json_object_get(root, "models");
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > ENTRIES_MAX)
        return err_set(err, SHOAL_EINVALID, "%s: \"models\" must be an array of at most %d entries", path,
                       ENTRIES_MAX);
    m->entries = arena_alloc(m->mem, n * sizeof *m->entries + 1);
    const char *slash = strrchr(path, '/');
    const char *folder = arena_strndup(m->mem, path, slash ? (size_t)(slash - path) + 1 : 0);
    if (!m->entries || !folder) return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        int rc = read_entry(m, folder, json_array_get(list, i), &m->entries[i], err);
        if (rc != 0) return err_prefix(err, rc, "%s: entry %zu", path, i);
        m->n++;
    }
    return 0;
}

static int read_pins(manifest *m, const char *path, const json_t *root, shoal_err *err)
{
    json_t *all = json_object_get(root, "calibrations"), *v;
    const char *file;
    uint8_t digest[32];
    if (!all) return 0;
    if (!json_is_object(all) || json_object_size(all) > ENTRIES_MAX)
        return err_set(err, SHOAL_EINVALID, "%s: \"calibrations\" must be an object of at most %d files",
                       path, ENTRIES_MAX);
    m->pins = arena_alloc(m->mem, json_object_size(all) * sizeof *m->pins + 1);
    if (!m->pins) return err_nomem(err);
    json_object_foreach(all, file, v)
    {
        const char *hex = json_string_value(v);
        if (!hex || !hex_decode(hex, strlen(hex), digest, sizeof digest))
            return err_set(err, SHOAL_EINVALID,
                           "%s: \"calibrations\": \"%.80s\" must be 64 hexadecimal digits", path, file);
        struct pin *p = &m->pins[m->n_pins++];
        *p = (struct pin){arena_strdup(m->mem, file), arena_strdup(m->mem, hex)};
        if (!p->file || !p->sha256) return err_nomem(err);
    }
    return 0;
}

int manifest_open(manifest **ret, const char *path, shoal_err *err)
{
    json_t *root = NULL;
    arena *mem = arena_new(0);
    manifest *m = mem ? arena_alloc(mem, sizeof *m) : NULL;
    int rc = m ? json_parse_file(&root, path, MANIFEST_MAX, err) : err_nomem(err);
    if (rc == 0) {
        m->mem = mem;
        rc = read_entries(m, path, root, err);
        if (rc == 0) rc = read_pins(m, path, root, err);
    }
    json_decref(root);
    if (rc != 0)
        arena_free(mem);
    else
        *ret = m;
    return rc;
}

void manifest_free(manifest *m)
{
    if (m) arena_free(m->mem);
}

size_t manifest_count(const manifest *m)
{
    return m->n;
}

const manifest_entry *manifest_at(const manifest *m, size_t i)
{
    return i < m->n ? &m->entries[i] : NULL;
}

const char *manifest_pin(const manifest *m, const char *file)
{
    for (size_t i = 0; i < m->n_pins; i++)
        if (strcmp(m->pins[i].file, file) == 0) return m->pins[i].sha256;
    return NULL;
}

const manifest_entry *manifest_find(const manifest *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->entries[i].name, name) == 0) return &m->entries[i];
    return NULL;
}

void manifest_sampling(const char *path, sampling_defaults *ret)
{
    const char *slash = strrchr(path, '/');
    char *beside = NULL;
    manifest *m = NULL;
    *ret = (sampling_defaults){0};
    if (asprintf(&beside, "%.*smodels.json", slash ? (int)(slash - path + 1) : 0, path) < 0) return;
    if (file_exists(beside) && manifest_open(&m, beside, NULL) == 0)
        for (size_t i = 0; i < m->n; i++)
            if (strcmp(m->entries[i].file, path) == 0) *ret = m->entries[i].sampling;
    manifest_free(m);
    free(beside);
}

/* ---- resolve ------------------------------------------------------------------------------------------- */

/* The manifest to use when none was given: malloc'd path, NULL when there is none. */
static char *default_manifest(void)
{
    const char *folder = getenv("SHOAL_MODELS");
    char *path = NULL, installed[INSTALLED_PATH_BYTES];
    if (folder && *folder) return asprintf(&path, "%s/models.json", folder) < 0 ? NULL : path;
    if (file_exists("models/models.json")) return strdup("models/models.json");
    return installed_find(installed, sizeof installed, "models/models.json") ? strdup(installed) : NULL;
}

int manifest_locate(char **ret, shoal_err *err)
{
    char *path = default_manifest();
    if (!path) return err_set(err, SHOAL_ENOTFOUND, "no models.json found: set SHOAL_MODELS to its folder");
    *ret = path;
    return 0;
}

static int unknown_name(const manifest *m, const char *path, const char *arg, shoal_err *err)
{
    char names[300] = "";
    for (size_t i = 0, at = 0; i < m->n && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", m->entries[i].name);
    return err_set(err, SHOAL_ENOTFOUND, "no file or folder \"%.100s\", and %s has only %s", arg, path,
                   names);
}

static int resolve_name(const char *arg, const char *manifest_path, char **ret_path, char **ret_sha256,
                        shoal_err *err)
{
    manifest *m = NULL;
    int rc = manifest_open(&m, manifest_path, err);
    if (rc != 0) return rc;
    const manifest_entry *e = manifest_find(m, arg);
    if (!e) {
        rc = unknown_name(m, manifest_path, arg, err);
    } else {
        char *path = strdup(e->file), *sha = strdup(e->sha256);
        if (path && sha) {
            *ret_path = path;
            *ret_sha256 = sha;
        } else {
            free(path);
            free(sha);
            rc = err_nomem(err);
        }
    }
    manifest_free(m);
    return rc;
}

int manifest_resolve(const char *arg, const char *manifest_path, char **ret_path, char **ret_sha256,
                     shoal_err *err)
{
    if (file_exists(arg)) {
        char *path = strdup(arg);
        if (!path) return err_nomem(err);
        *ret_path = path;
        *ret_sha256 = NULL;
        return 0;
    }
    if (errno == EACCES) return err_set(err, SHOAL_EIO, "%.300s: %s", arg, strerror(EACCES));
    if (model_is_reference(arg))
        return err_set(
            err, SHOAL_ENOTFOUND,
            "\"%.200s\" is no file here: shoal pull %.200s fetches it, and says by which name it is run", arg,
            arg);
    char *found = manifest_path ? strdup(manifest_path) : default_manifest();
    if (!found) {
        if (manifest_path) return err_nomem(err);
        return err_set(err, SHOAL_ENOTFOUND,
                       "no file or folder \"%.200s\", and no models/models.json to look it up in", arg);
    }
    int rc = resolve_name(arg, found, ret_path, ret_sha256, err);
    free(found);
    return rc;
}
