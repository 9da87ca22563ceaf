/* pull_manifest.c: see pull_manifest.h. */
#define _GNU_SOURCE
#include "fetch/pull_manifest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "json/json.h"
#include "json/json_put.h"
#include "kinds/model_kind.h"

enum { SHELF_MAX = 4 << 20, SAME_NAMES_MAX = 100 };

typedef struct pull_manifest {
    char *path;
    buf text;
    json_t *root; /* of text */
    const json_t *models;
} pull_manifest;

static void manifest_done(pull_manifest *s)
{
    json_decref(s->root);
    buf_done(&s->text);
    free(s->path);
}

static int pull_manifest_parse(pull_manifest *s, shoal_err *err)
{
    json_decref(s->root);
    s->root = NULL;
    int rc = json_parse(&s->root, s->text.data, s->text.len, s->path, err);
    if (rc != 0) return rc;
    s->models = json_object_get(s->root, "models");
    return json_is_array(s->models) ? 0 : err_set(err, SHOAL_EFORMAT, "%s: \"models\" is no list", s->path);
}

static int open_manifest(pull_manifest *s, const char *folder, shoal_err *err)
{
    if (asprintf(&s->path, "%s/models.json", folder) < 0) {
        s->path = NULL;
        return err_nomem(err);
    }
    int rc = file_read(&s->text, s->path, SHELF_MAX, err);
    if (rc == SHOAL_ENOTFOUND)
        rc = buf_puts(&s->text, "{\n \"models\": [\n ]\n}\n") != 0 ? err_nomem(err) : 0;
    return rc != 0 ? rc : pull_manifest_parse(s, err);
}

/* The entry whose `key` is `value`. */
static const json_t *pull_manifest_find(const pull_manifest *s, const char *key, const char *value)
{
    for (size_t i = 0; i < json_array_size(s->models); i++) {
        const json_t *o = json_array_get(s->models, i);
        const char *v = json_string_value(json_object_get(o, key));
        if (v && strcmp(v, value) == 0) return o;
    }
    return NULL;
}

static int free_name(const pull_manifest *s, const char *name, char **ret, shoal_err *err)
{
    for (int i = 1; i < SAME_NAMES_MAX; i++) {
        int n = i == 1 ? asprintf(ret, "%s", name) : asprintf(ret, "%s-%d", name, i);
        if (n < 0) return err_nomem(err);
        if (!pull_manifest_find(s, "name", *ret)) return 0;
        free(*ret);
        *ret = NULL;
    }
    return err_set(err, SHOAL_ELIMIT, "%s: too many models are called \"%s\"", s->path, name);
}

/* Put `more` into the text in place of n bytes at `at`. */
static int put_in(pull_manifest *s, size_t at, size_t n, const buf *more, shoal_err *err)
{
    buf out = {0};
    buf_append(&out, s->text.data, at);
    buf_join(&out, more);
    buf_append(&out, s->text.data + at + n, s->text.len - at - n);
    if (out.failed) {
        buf_done(&out);
        return err_nomem(err);
    }
    buf_done(&s->text);
    s->text = out;
    return pull_manifest_parse(s, err);
}

static void pull_manifest_put_field(buf *to, const char *key, const char *value)
{
    buf_printf(to, "   \"%s\": ", key);
    json_put_string(to, value, strlen(value));
    buf_puts(to, ",\n");
}

/* Behind the last entry: the list's end is the last ']' of a file with nothing behind its list; where that is
 * not so, the count afterwards shows it. */
static int add_entry(pull_manifest *s, const pull_manifest_entry *e, const char *name, shoal_err *err)
{
    size_t n = json_array_size(s->models), at = s->text.len;
    buf entry = {0};
    while (at > 0 && s->text.data[at - 1] != ']') at--;
    if (at == 0) return err_set(err, SHOAL_EFORMAT, "%s: its list has no end", s->path);
    size_t end = at - 1, from = end;
    while (from > 0 && strchr(" \t\r\n", s->text.data[from - 1])) from--;
    buf_puts(&entry, n ? ",\n  {\n" : "\n  {\n");
    pull_manifest_put_field(&entry, "name", name);
    pull_manifest_put_field(&entry, "file", e->file);
    pull_manifest_put_field(&entry, "sha256", e->sha256);
    pull_manifest_put_field(&entry, "source", e->source);
    buf_printf(&entry, "   \"bytes\": %llu\n  }\n ", (unsigned long long)e->bytes);
    int rc = put_in(s, from, end - from, &entry, err);
    buf_done(&entry);
    if (rc == SHOAL_ENOMEM) return rc;
    const json_t *o = rc == 0 ? pull_manifest_find(s, "name", name) : NULL;
    if (!o || json_array_size(s->models) != n + 1)
        return err_set(err, SHOAL_EFORMAT, "%s: cannot add an entry to it (is there more behind its list?)",
                       s->path);
    return 0;
}

/* Another content under the same file's name: its digest is in the text once. */
static int update_entry(pull_manifest *s, const json_t *o, const pull_manifest_entry *e, shoal_err *err)
{
    const char *old = json_string_value(json_object_get(o, "sha256"));
    if (old && strcmp(old, e->sha256) == 0) return 0;
    const char *at = old && *old ? strstr(s->text.data, old) : NULL;
    if (!at || strstr(at + 1, old))
        return err_set(err, SHOAL_EFORMAT, "%s: the digest of \"%s\" must be changed by hand", s->path,
                       e->file);
    buf digest = {0};
    buf_puts(&digest, e->sha256);
    int rc = put_in(s, (size_t)(at - s->text.data), strlen(old), &digest, err);
    buf_done(&digest);
    return rc;
}

static int put_locked(const char *folder, const pull_manifest_entry *e, char **ret_name, shoal_err *err)
{
    pull_manifest s = {0};
    char *name = NULL;
    int rc = open_manifest(&s, folder, err);
    const json_t *same = rc == 0 ? pull_manifest_find(&s, "file", e->file) : NULL;
    if (same) {
        const char *old = json_string_value(json_object_get(same, "name"));
        name = strdup(old ? old : e->name);
        rc = name ? update_entry(&s, same, e, err) : err_nomem(err);
    } else if (rc == 0) {
        rc = free_name(&s, e->name, &name, err);
        if (rc == 0) rc = add_entry(&s, e, name, err);
    }
    if (rc == 0) rc = file_replace(s.path, &s.text, err);
    if (rc == 0)
        *ret_name = name;
    else
        free(name);
    manifest_done(&s);
    return rc;
}

/* ---- taken out ------------------------------------------------------------------------------------- */

/* Where the object that begins at `at` ends, behind its brace; 0: it does not. */
static size_t end_of_object(const char *text, size_t at)
{
    size_t depth = 0;
    bool quoted = false;
    for (; text[at]; at++) {
        char c = text[at];
        if (quoted && c == '\\' && text[at + 1]) {
            at++;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted && c == '{') {
            depth++;
        } else if (!quoted && c == '}' && --depth == 0) {
            return at + 1;
        }
    }
    return 0;
}

/* The i-th object of the list at the end of the text, by its brackets. */
static bool find_entry(const pull_manifest *s, size_t i, size_t *ret_from, size_t *ret_end)
{
    const char *text = s->text.data, *list = strstr(text, "\"models\"");
    list = list ? strchr(list, '[') : NULL;
    size_t end = list ? (size_t)(list + 1 - text) : 0, from = 0;
    for (size_t k = 0; list && k <= i; k++) {
        from = end + strcspn(text + end, "{");
        end = text[from] ? end_of_object(text, from) : 0;
        if (end == 0) return false;
    }
    *ret_from = from;
    *ret_end = end;
    return list != NULL;
}

/* With the comma that stood before or behind it. */
static int cut_entry(pull_manifest *s, size_t i, shoal_err *err)
{
    size_t from, end, n = json_array_size(s->models);
    buf nothing = {0};
    json_t *left = json_copy((json_t *)s->models);
    if (!left || json_array_remove(left, i) != 0) {
        json_decref(left);
        return err_nomem(err);
    }
    int rc = find_entry(s, i, &from, &end) ? 0 : SHOAL_EFORMAT;
    if (rc == 0 && i + 1 < n) {
        end += strcspn(s->text.data + end, "{");
    } else if (rc == 0) {
        while (from > 0 && strchr(" \t\r\n,", s->text.data[from - 1])) from--;
    }
    if (rc == 0) rc = put_in(s, from, end - from, &nothing, err);
    if (rc != SHOAL_ENOMEM && (rc != 0 || !json_equal(s->models, left)))
        rc = err_set(err, SHOAL_EFORMAT, "%s: the entry must be taken out by hand", s->path);
    json_decref(left);
    return rc;
}

/* FOLDER/FILE is one of what goes. */
static void count_file(pull_removal *r, const char *folder, const char *file)
{
    struct stat st;
    char path[sizeof r->path];
    int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (n >= (int)sizeof path || lstat(path, &st) != 0) return;
    r->n_files++;
    r->bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static void set_path(pull_removal *r, const char *folder, const char *file)
{
    snprintf(r->path, sizeof r->path, "%.700s%s%.300s", folder, *file ? "/" : "", file);
}

/* The template beside a file that has gone. */
static void remove_beside(const char *folder, const char *file, pull_removal *r)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s%s", folder, file, MODEL_TEMPLATE_SUFFIX);
    if (n >= (int)sizeof path || !file_exists(path)) return;
    count_file(r, folder, path + strlen(folder) + 1);
    unlink(path);
}

static int remove_file(const char *folder, const char *file, pull_removal *r, shoal_err *err)
{
    char *path = NULL;
    if (strchr(file, '/'))
        return err_set(err, SHOAL_EFORMAT,
                       "\"%.200s\" is no file of %.200s: delete it, and its entry in models.json, by hand",
                       file, folder);
    if (asprintf(&path, "%s/%s", folder, file) < 0) return err_nomem(err);
    count_file(r, folder, file);
    int rc = unlink(path) == 0 || errno == ENOENT
                 ? 0
                 : err_set(err, SHOAL_EIO, "cannot remove %s: %s; its entry stays", path, strerror(errno));
    if (rc == 0) remove_beside(folder, file, r);
    free(path);
    return rc;
}

/* Entries of the models that came with the program, or that people wrote, say no source. */
static int not_pulled(const char *name, shoal_err *err)
{
    return err_set(err, SHOAL_EAUTH,
                   "'%.100s' was not pulled, so it is not removed: delete its file and its entry in "
                   "models.json by hand",
                   name);
}

static int drop_locked(const char *folder, const char *name, bool force, pull_removal *r, shoal_err *err)
{
    pull_manifest s = {0};
    size_t i = 0;
    int rc = open_manifest(&s, folder, err);
    const json_t *o = rc == 0 ? pull_manifest_find(&s, "name", name) : NULL;
    if (rc == 0 && !o) rc = err_set(err, SHOAL_ENOTFOUND, "%s has no \"%s\"", s.path, name);
    bool pulled = json_is_string(json_object_get(o, "source"));
    if (rc == 0 && !pulled && !force) rc = not_pulled(name, err);
    const char *said = rc == 0 ? json_string_value(json_object_get(o, "file")) : NULL;
    char *file = said ? strdup(said) : NULL;
    while (rc == 0 && json_array_get(s.models, i) != o) i++;
    if (rc == 0 && said && !file) rc = err_nomem(err);
    if (rc == 0) rc = cut_entry(&s, i, err);
    *r = (pull_removal){.origin = pulled ? PULL_PULLED : PULL_LISTED};
    set_path(r, folder, file ? file : "");
    /* The file first: an entry without one can be removed again, a file without an entry cannot. */
    if (rc == 0 && file && !pull_manifest_find(&s, "file", file)) rc = remove_file(folder, file, r, err);
    if (rc == 0) rc = file_replace(s.path, &s.text, err);
    r->entry = rc == 0;
    free(file);
    manifest_done(&s);
    return rc;
}

/* ---- folders ------------------------------------------------------------------------------------- */

#define FOLDER_NOTE ".pulled.json"

int pull_manifest_note_folder(const char *folder, const char *source, const char *const *files, size_t n,
                              shoal_err *err)
{
    buf text = {0}, path = {0};
    buf_printf(&path, "%s/" FOLDER_NOTE, folder);
    buf_putc(&text, '{');
    json_put_text(&text, "source", source);
    buf_puts(&text, ",\"files\":[");
    for (size_t i = 0; i < n; i++) json_put_text(&text, NULL, files[i]);
    buf_puts(&text, "]}\n");
    int rc = path.failed ? err_nomem(err) : file_replace(path.data, &text, err);
    buf_done(&text);
    buf_done(&path);
    return rc;
}

bool pull_manifest_is_folder(const char *folder)
{
    char *path = NULL;
    bool is = asprintf(&path, "%s/" FOLDER_NOTE, folder) >= 0 && file_exists(path);
    free(path);
    return is;
}

/* A plain path below the folder: the note is a file that anybody may have written. */
static bool lies_below(const char *file)
{
    for (const char *at = file; *at; at += strcspn(at, "/"), at += *at == '/') {
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && *at == '.') || (n == 2 && at[0] == '.' && at[1] == '.')) return false;
    }
    return *file && *file != '/';
}

/* Its folders too, from within, as long as they are empty; and `folder` itself. */
static int remove_below(const char *folder, const char *file, pull_removal *r, shoal_err *err)
{
    char *path = NULL;
    size_t n = strlen(folder);
    if (!lies_below(file))
        return err_set(err, SHOAL_EFORMAT, "%s/" FOLDER_NOTE " names '%.100s'", folder, file);
    if (asprintf(&path, "%s/%s", folder, file) < 0) return err_nomem(err);
    if (strcmp(file, FOLDER_NOTE) != 0) count_file(r, folder, file);
    int rc = unlink(path) == 0 || errno == ENOENT
                 ? 0
                 : err_set(err, SHOAL_EIO, "cannot remove %s: %s", path, strerror(errno));
    for (char *slash; rc == 0 && (slash = strrchr(path, '/')) && slash > path + n;) {
        *slash = '\0';
        if (rmdir(path) != 0) break;
    }
    free(path);
    return rc;
}

static int read_note(json_t **ret, const char *folder, shoal_err *err)
{
    char *note = NULL;
    if (asprintf(&note, "%s/" FOLDER_NOTE, folder) < 0) return err_nomem(err);
    int rc = json_parse_file(ret, note, SHELF_MAX, err);
    free(note);
    return rc;
}

int pull_manifest_drop_folder(const char *folder, pull_removal *ret, shoal_err *err)
{
    json_t *root = NULL, *v;
    size_t i;
    pull_removal r = {.origin = PULL_PULLED, .is_folder = true};
    set_path(&r, folder, "");
    int rc = read_note(&root, folder, err);
    if (rc == SHOAL_ENOTFOUND)
        rc = err_set(err, SHOAL_EAUTH, "'%.200s' was not pulled, so it is not removed: delete it by hand",
                     folder);
    const json_t *files = json_object_get(root, "files");
    json_array_foreach(files, i, v) if (rc == 0 && json_is_string(v)) rc =
        remove_below(folder, json_string_value(v), &r, err);
    if (rc == 0) rc = remove_below(folder, FOLDER_NOTE, &r, err);
    if (rc == 0) (void)rmdir(folder); /* what else lies there is its owner's */
    if (rc == 0 && ret) *ret = r;
    json_decref(root);
    return rc;
}

/* ---- looking --------------------------------------------------------------------------------------- */

static int look_at_folder(pull_removal *r, const char *folder, const char *name, shoal_err *err)
{
    json_t *root = NULL, *v;
    size_t i;
    char path[sizeof r->path];
    set_path(r, folder, name);
    memcpy(path, r->path, sizeof path);
    int rc = read_note(&root, path, err);
    if (rc == 0) *r = (pull_removal){.origin = PULL_PULLED, .is_folder = true};
    if (rc == 0) set_path(r, folder, name);
    json_array_foreach(json_object_get(root, "files"), i, v) if (json_is_string(v))
        count_file(r, path, json_string_value(v));
    json_decref(root);
    return rc == SHOAL_ENOMEM ? rc : 0;
}

static void look_at_file(pull_removal *r, const char *folder, const char *name, const char *ending)
{
    struct stat st;
    char file[300];
    snprintf(file, sizeof file, "%.250s%s", name, ending);
    set_path(r, folder, file);
    if (lstat(r->path, &st) != 0 || !S_ISREG(st.st_mode)) return;
    r->origin = PULL_COPIED;
    count_file(r, folder, file);
}

static int look_at_entry(pull_removal *r, const char *folder, const char *name, shoal_err *err)
{
    pull_manifest s = {0};
    int rc = open_manifest(&s, folder, err);
    const json_t *o = rc == 0 ? pull_manifest_find(&s, "name", name) : NULL;
    const char *file = json_string_value(json_object_get(o, "file"));
    if (o) {
        r->origin = json_is_string(json_object_get(o, "source")) ? PULL_PULLED : PULL_LISTED;
        r->entry = true;
        set_path(r, folder, file ? file : "");
        if (file) count_file(r, folder, file);
    } else if (rc == 0 && pull_manifest_find(&s, "file", name)) {
        rc = err_set(err, SHOAL_ENOTFOUND, "%s lists the file '%.100s' under another name: remove that",
                     s.path, name);
    }
    manifest_done(&s);
    return rc;
}

int pull_manifest_look(const char *folder, const char *name, pull_removal *ret, shoal_err *err)
{
    *ret = (pull_removal){0};
    int rc = look_at_entry(ret, folder, name, err);
    bool plain = lies_below(name) && !strchr(name, '/');
    if (rc == 0 && plain && !ret->origin) rc = look_at_folder(ret, folder, name, err);
    if (rc == 0 && plain && !ret->origin) look_at_file(ret, folder, name, "");
    if (rc == 0 && plain && !ret->origin) look_at_file(ret, folder, name, ".gguf");
    return rc;
}

/* ---- pins ---------------------------------------------------------------------------------------- */

/* Where "calibrations": {...} stands in the text; *ret_n 0: it does not, and may be put in there. */
static int find_pins(const pull_manifest *s, size_t *ret_at, size_t *ret_n, shoal_err *err)
{
    const char *text = s->text.data, *at = strstr(text, "\"calibrations\""), *end;
    bool has = json_object_get(s->root, "calibrations") != NULL;
    *ret_n = 0;
    if (!has && (at = strchr(text, '{'))) {
        *ret_at = (size_t)(at + 1 - text);
        return 0;
    }
    end = at ? strchr(at, '}') : NULL;
    if (!end) return err_set(err, SHOAL_EFORMAT, "%s: its \"calibrations\" must be changed by hand", s->path);
    *ret_at = (size_t)(at - text);
    *ret_n = (size_t)(end + 1 - at);
    return 0;
}

/* What was read of it afterwards is what was meant, and nothing else has changed. */
static int put_pins(pull_manifest *s, const json_t *pins, shoal_err *err)
{
    buf text = {0};
    size_t at = 0, n = 0;
    json_t *models = json_deep_copy(s->models);
    int rc = models ? find_pins(s, &at, &n, err) : err_nomem(err);
    if (rc == 0) {
        buf_puts(&text, n ? "\"calibrations\": " : "\n \"calibrations\": ");
        json_put(&text, pins);
        if (!n) buf_putc(&text, ',');
        rc = put_in(s, at, n, &text, err);
    }
    bool same = rc == 0 && json_equal(json_object_get(s->root, "calibrations"), pins) &&
                json_equal(s->models, models);
    if (rc == 0 && !same)
        rc = err_set(err, SHOAL_EFORMAT, "%s: its \"calibrations\" must be changed by hand", s->path);
    buf_done(&text);
    json_decref(models);
    return rc;
}

static int pin_locked(const char *folder, const char *file, const char *sha256, shoal_err *err)
{
    pull_manifest s = {0};
    json_t *pins = NULL;
    int rc = open_manifest(&s, folder, err);
    if (rc == 0) {
        const json_t *old = json_object_get(s.root, "calibrations");
        pins = old ? json_deep_copy(old) : json_object();
        if (!pins || json_object_set_new(pins, file, json_string(sha256)) != 0) rc = err_nomem(err);
    }
    if (rc == 0) rc = put_pins(&s, pins, err);
    if (rc == 0) rc = file_replace(s.path, &s.text, err);
    json_decref(pins);
    manifest_done(&s);
    return rc;
}

int pull_manifest_pin(const char *folder, const char *file, const char *sha256, shoal_err *err)
{
    buf path = {0};
    buf_printf(&path, "%s/models.json", folder);
    int fd = -1, rc = path.failed ? err_nomem(err) : 0;
    if (rc == 0 && !file_exists(path.data)) rc = err_set(err, SHOAL_ENOTFOUND, "there is no %s", path.data);
    if (rc == 0) rc = file_lock_folder(&fd, folder, -1, err);
    if (rc == 0) rc = pin_locked(folder, file, sha256, err);
    if (fd >= 0) close(fd);
    buf_done(&path);
    return rc;
}

int pull_manifest_put(const char *folder, const pull_manifest_entry *e, char **ret_name, shoal_err *err)
{
    int fd, rc = file_lock_folder(&fd, folder, -1, err);
    if (rc != 0) return rc;
    rc = put_locked(folder, e, ret_name, err);
    close(fd);
    return rc;
}

int pull_manifest_drop(const char *folder, const char *name, bool force, pull_removal *ret, shoal_err *err)
{
    pull_removal r = {0};
    int fd, rc = file_lock_folder(&fd, folder, -1, err);
    if (rc != 0) return rc;
    rc = drop_locked(folder, name, force, &r, err);
    if (rc == 0 && ret) *ret = r;
    close(fd);
    return rc;
}
