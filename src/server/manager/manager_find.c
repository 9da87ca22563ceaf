/* manager_find.c: see manager_find.h. */
#define _GNU_SOURCE
#include "manager/manager_find.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_user.h"
#include "base/name.h"
#include "kinds/model_kind.h"

enum { LIST_MAX_BYTES = 4 << 20, DEPTH_MAX = 3, FILES_MAX = 10000 };

void manager_found_done(manager_found *f)
{
    free(f->path);
    free(f->sha256);
    free(f->reference);
    free(f->reader);
    *f = (manager_found){0};
}

/* ---- the lists ------------------------------------------------------------------------------------- */

/* "created": when its file was written. False: out of memory. */
static bool set_created(json_t *o, const char *folder, const char *file)
{
    struct stat st;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, file) < 0) return false;
    bool found = stat(path, &st) == 0;
    free(path);
    return !found || json_object_set_new(o, "created", json_integer((json_int_t)st.st_mtime)) == 0;
}

static bool list_file(json_t *to, const char *path, const char *folder)
{
    struct stat st;
    json_t *root = NULL;
    shoal_err err;
    size_t i;
    const json_t *o;
    bool ok = true;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) return true; /* a pipe would be waited for */
    if (json_parse_file(&root, path, LIST_MAX_BYTES, &err) != 0) return err.code != SHOAL_ENOMEM;
    json_array_foreach(json_object_get(root, "models"), i, o)
    {
        const char *name = json_string_value(json_object_get(o, "name"));
        const char *file = json_string_value(json_object_get(o, "file"));
        json_t *copy = name && file && !strchr(file, '/') ? json_deep_copy(o) : NULL;
        if (!copy) continue;
        ok &= json_object_set_new(copy, "folder", json_string(folder)) == 0;
        ok &= set_created(copy, folder, file);
        ok &= json_array_append_new(to, copy) == 0;
    }
    json_decref(root);
    return ok;
}

json_t *manager_list(const manager_places *p)
{
    json_t *list = json_array();
    char *mine = NULL, *folder = p->manifest ? file_folder(p->manifest) : NULL;
    bool ok = list && (folder || !p->manifest);
    if (ok && p->n_folders) ok = asprintf(&mine, "%s/models.json", p->folders[0]) > 0 || (mine = NULL);
    char *theirs = folder ? realpath(folder, NULL) : NULL;
    if (ok && mine) ok = list_file(list, mine, p->folders[0]);
    if (ok && theirs && (!p->n_folders || strcmp(theirs, p->folders[0]) != 0))
        ok = list_file(list, p->manifest, theirs);
    free(mine);
    free(folder);
    free(theirs);
    if (ok) return list;
    json_decref(list);
    return NULL;
}

/* "ollama:smollm2" was fetched for "smollm2" and "smollm2:latest". */
static bool was_fetched_as(const char *source, const char *called)
{
    size_t n = strlen(called);
    if (n > 7 && strcmp(called + n - 7, ":latest") == 0) n -= 7;
    if (strncmp(source, "ollama:", 7) == 0 && strncmp(called, "ollama:", 7) != 0) source += 7;
    if (strncmp(called, "hf.co/", 6) == 0 && strncmp(source, "hf:", 3) == 0) {
        source += 3;
        called += 6;
        n -= 6;
    }
    return strncmp(source, called, n) == 0 && (!source[n] || strcmp(source + n, ":latest") == 0);
}

const json_t *manager_called(const json_t *list, const char *called)
{
    size_t i;
    const json_t *o;
    json_array_foreach(list, i,
                       o) if (strcmp(json_string_value(json_object_get(o, "name")), called) == 0) return o;
    json_array_foreach(list, i, o)
    {
        const char *source = json_string_value(json_object_get(o, "source"));
        if (source && was_fetched_as(source, called)) return o;
    }
    return NULL;
}

/* ---- what may be loaded ---------------------------------------------------------------------------- */

/* Of the root, what stands in it alone: a models.json there would open the whole machine otherwise. */
static bool lies_in(const char *real, const char *folder)
{
    size_t n = strlen(folder);
    if (n > 0 && folder[n - 1] == '/') n--;
    return strncmp(real, folder, n) == 0 && real[n] == '/' && (n > 0 || !strchr(real + 1, '/'));
}

/* One more name below a folder; "..": one less. NULL: no memory. */
static char *step_down(char *at, const char *name, size_t n)
{
    char *next = NULL;
    if (n == 0 || (n == 1 && *name == '.')) return at;
    if (n == 2 && memcmp(name, "..", 2) == 0)
        next = file_folder(at);
    else if (asprintf(&next, "%s/%.*s", at[1] ? at : "", (int)n, name) < 0)
        next = NULL;
    free(at);
    return next;
}

char *manager_real_folder(const char *folder)
{
    char *here = *folder == '/' ? strdup("") : getcwd(NULL, 0), *path = NULL, *real = NULL;
    if (!here && errno != ENOMEM) return strdup(folder); /* this process has no place any more */
    if (!here || asprintf(&path, "%s/%s", here, folder) < 0) path = NULL;
    size_t n = path ? strlen(path) : 0;
    char *cut = path ? strdup(path) : NULL;
    while (cut && !(real = realpath(cut, NULL)) && errno != ENOMEM && n > 1) {
        while (n > 1 && cut[n - 1] == '/') n--;
        while (n > 1 && cut[n - 1] != '/') n--;
        cut[n] = '\0';
    }
    for (const char *at = path + n; real && *at;) {
        size_t len = strcspn(at, "/");
        real = step_down(real, at, len);
        at += len + (at[len] == '/');
    }
    free(here);
    free(path);
    free(cut);
    return real;
}

static bool may_be(const manager_places *p, const char *real)
{
    if (p->any) return true;
    for (size_t i = 0; i < p->n_folders; i++)
        if (lies_in(real, p->folders[i])) return true;
    return false;
}

static int elsewhere(const char *path, shoal_err *err)
{
    return err_set(
        err, SHOAL_EAUTH,
        "'%.160s' does not lie in a folder that models may be loaded from: type shoal load '%.160s' on the "
        "server's machine as its user, or add its folder to library.folders in shoal.yaml",
        path, path);
}

typedef struct look {
    const manager_places *p;
    uint64_t bytes;
    size_t n;
} look;

static int look_at(look *l, const char *path, int depth, shoal_err *err);

static int look_into(look *l, const char *path, int depth, shoal_err *err)
{
    DIR *d = opendir(path);
    int rc = d ? 0 : err_set(err, SHOAL_EAUTH, "%s: %s", path, strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        char *at = NULL;
        if (e->d_name[0] == '.') continue;
        if (asprintf(&at, "%s/%s", path, e->d_name) < 0)
            rc = err_nomem(err);
        else
            rc = look_at(l, at, depth + 1, err);
        free(at);
    }
    if (d) closedir(d);
    return rc;
}

/* Each link to its end: nothing that is read may lie elsewhere. */
static int look_at(look *l, const char *path, int depth, shoal_err *err)
{
    struct stat st;
    char *real = realpath(path, NULL);
    if (!real && errno == ENOMEM) return err_nomem(err);
    if (!real && depth > 0) return 0; /* a link to nowhere is no part of it */
    bool ours = real && may_be(l->p, real);
    int rc = ours ? 0 : elsewhere(path, err);
    if (rc == 0 && ++l->n > FILES_MAX)
        rc = err_set(err, SHOAL_ELIMIT, "%s: there are more than %d files", path, FILES_MAX);
    if (rc == 0 && stat(real, &st) != 0) rc = err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    if (rc == 0 && S_ISREG(st.st_mode) && __builtin_add_overflow(l->bytes, (uint64_t)st.st_size, &l->bytes))
        l->bytes = UINT64_MAX;
    if (rc == 0 && depth == 0 && access(real, R_OK) != 0)
        rc = err_set(err, SHOAL_EAUTH, "'%s' cannot be read: %s", path, strerror(errno));
    if (rc == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) /* a pipe would be read for ever */
        rc = err_set(err, SHOAL_EINVALID, "'%s' is neither a file nor a folder", path);
    if (rc == 0 && S_ISDIR(st.st_mode) && depth < DEPTH_MAX) rc = look_into(l, real, depth, err);
    free(real);
    return rc;
}

int manager_name_by(char ret[NAME_BYTES_MAX + 1], const char *path, shoal_err *err)
{
    const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path, *dot = strrchr(from, '.');
    size_t n = dot && dot > from && !file_is_dir(path) ? (size_t)(dot - from) : strlen(from);
    if (name_make_fine(ret, from, n)) return 0;
    return err_set(err, SHOAL_EINVALID, "'%s' says no name; give it one (name)", path);
}

static int take_path(manager_found *f, const manager_places *p, const char *path, shoal_err *err)
{
    look l = {.p = p};
    int rc = look_at(&l, path, 0, err);
    if (rc == 0 && !(f->path = realpath(path, NULL)))
        rc = errno == ENOMEM ? err_nomem(err) : err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    f->bytes = l.bytes;
    if (rc == 0 && !*f->name) rc = manager_name_by(f->name, f->path, err);
    return rc;
}

/* ---- for another user ------------------------------------------------------------------------------ */

typedef struct look_as {
    const file_user *user;
    uint64_t bytes;
    size_t n;
} look_as;

static int look_as_at(look_as *l, const char *path, int depth, char **ret_path, shoal_err *err);

/* fd is the folder's. Each file is looked at by its whole path, as the worker will open it. */
static int look_as_into(look_as *l, int fd, const char *path, int depth, shoal_err *err)
{
    DIR *d = fdopendir(fd);
    if (!d) close(fd);
    int rc = d ? 0 : err_nomem(err);
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        char *at = NULL;
        if (e->d_name[0] == '.') continue;
        rc = asprintf(&at, "%s/%s", path, e->d_name) < 0 ? err_nomem(err)
                                                         : look_as_at(l, at, depth + 1, NULL, err);
        if (rc == SHOAL_ENOTFOUND) rc = 0; /* a link to nowhere is no part of it */
        free(at);
    }
    if (d) closedir(d);
    return rc;
}

static void add_bytes(uint64_t *sum, const struct stat *st)
{
    if (!S_ISREG(st->st_mode)) return;
    if (__builtin_add_overflow(*sum, (uint64_t)st->st_size, sum)) *sum = UINT64_MAX;
}

/* *ret_path: where it is, without links; malloc'd. NULL: of no interest. */
static int look_as_at(look_as *l, const char *path, int depth, char **ret_path, shoal_err *err)
{
    file_opened f;
    int rc = file_user_open(&f, l->user, path, err);
    if (rc != 0) return rc;
    add_bytes(&l->bytes, &f.st);
    if (++l->n > FILES_MAX)
        rc = err_set(err, SHOAL_ELIMIT, "%s: there are more than %d files", path, FILES_MAX);
    if (rc == 0 && S_ISDIR(f.st.st_mode) && depth < DEPTH_MAX)
        rc = look_as_into(l, f.fd, f.path, depth, err);
    else
        close(f.fd);
    if (rc == 0 && ret_path)
        *ret_path = f.path;
    else
        free(f.path);
    return rc;
}

static int take_for(manager_found *f, const config_load_request *w, const char *path, shoal_err *err)
{
    look_as l = {.user = w->reader};
    if (w->keep)
        return err_set(
            err, SHOAL_EAUTH,
            "'%.160s' lies in no folder of the server's, so only the server's user can keep it for the "
            "next start: load it without keep (shoal load without --keep)",
            path);
    char *text = malloc(FILE_USER_TEXT_BYTES);
    if (!text) return err_nomem(err);
    file_user_format(w->reader, text);
    f->reader = text;
    int rc = look_as_at(&l, path, 0, &f->path, err);
    f->bytes = l.bytes;
    if (rc == 0 && !*f->name) rc = manager_name_by(f->name, f->path, err);
    return rc;
}

/* ---- paths ----------------------------------------------------------------------------------------- */

static bool climbs(const char *path)
{
    for (const char *at = path; (at = strstr(at, "..")); at += 2)
        if ((at == path || at[-1] == '/') && (at[2] == '/' || !at[2])) return true;
    return false;
}

static int not_there(const manager_places *p, const char *path, shoal_err *err)
{
    if (p->any && *path == '/') return err_set(err, SHOAL_ENOTFOUND, "there is no '%.200s'", path);
    return err_set(err, SHOAL_ENOTFOUND, "there is no '%.200s' in a folder that models may be loaded from",
                   path);
}

static int find_absolute(manager_found *f, const manager_places *p, const config_load_request *w,
                         const char *path, shoal_err *err)
{
    char *real = realpath(path, NULL);
    bool there = real != NULL, ours = there ? may_be(p, real) : !climbs(path) && may_be(p, path);
    free(real);
    if (!ours && w->reader) return take_for(f, w, path, err);
    if (!ours) return elsewhere(path, err);
    return there ? take_path(f, p, path, err) : not_there(p, path, err);
}

/* A relative path starts at the first of the folders that has it. */
static int find_path(manager_found *f, const manager_places *p, const config_load_request *w,
                     const char *path, shoal_err *err)
{
    if (*path == '/') return find_absolute(f, p, w, path, err);
    if (climbs(path)) return elsewhere(path, err);
    for (size_t i = 0; i < p->n_folders; i++) {
        char *at = NULL;
        if (asprintf(&at, "%s/%s", p->folders[i], path) < 0) return err_nomem(err);
        bool here = access(at, F_OK) == 0;
        int rc = here ? take_path(f, p, at, err) : 0;
        free(at);
        if (here) return rc;
    }
    return not_there(p, path, err);
}

/* ---- by name --------------------------------------------------------------------------------------- */

/* A listed model keeps its name, where models may have it. */
static int take_listed(manager_found *f, const manager_places *p, const json_t *o, shoal_err *err)
{
    const char *name = json_string_value(json_object_get(o, "name"));
    const char *digest = json_string_value(json_object_get(o, "sha256"));
    char *path = NULL;
    if (!*f->name && name_is_fine(name, strlen(name))) snprintf(f->name, sizeof f->name, "%s", name);
    if (!f->sha256 && digest && !(f->sha256 = strdup(digest))) return err_nomem(err);
    int rc = sampling_from_json(&f->sampling, json_object_get(o, "sampling"), err);
    if (rc != 0) return err_prefix(err, rc, "models.json: %s", name);
    if (asprintf(&path, "%s/%s", json_string_value(json_object_get(o, "folder")),
                 json_string_value(json_object_get(o, "file"))) < 0)
        return err_nomem(err);
    rc = access(path, F_OK) == 0
             ? take_path(f, p, path, err)
             : err_set(err, SHOAL_ENOTFOUND, "%s, the file of '%s', is not there", path, name);
    free(path);
    return rc;
}

static int no_such(const json_t *list, const char *called, shoal_err *err)
{
    char names[300] = "";
    size_t i, at = 0;
    const json_t *o;
    json_array_foreach(list, i, o) if (at < sizeof names) at += (size_t)snprintf(
        names + at, sizeof names - at, "%s%s", i ? ", " : "", json_string_value(json_object_get(o, "name")));
    return err_set(err, SHOAL_ENOTFOUND,
                   "there is no model '%.100s' here%s%s; a reference such as hf:ORG/NAME fetches one", called,
                   i ? ": there are " : "", names);
}

static int find_called(manager_found *f, const manager_places *p, const config_load_request *w,
                       shoal_err *err)
{
    const char *called = w->what;
    json_t *list = manager_list(p);
    if (!list) return err_nomem(err);
    const json_t *o = manager_called(list, called);
    int rc;
    if (o)
        rc = take_listed(f, p, o, err);
    else if (model_is_reference(called))
        rc = (f->reference = strdup(called)) ? 0 : err_nomem(err);
    else if ((rc = find_path(f, p, w, called, err)) == SHOAL_ENOTFOUND)
        rc = no_such(list, called, err);
    json_decref(list);
    return rc;
}

/* The models.json beside a file that was said by its path tells how it is sampled. */
static int take_sampling(manager_found *f, const manager_places *p, shoal_err *err)
{
    json_t *list = manager_list(p);
    size_t i;
    const json_t *o;
    int rc = list ? 0 : err_nomem(err);
    json_array_foreach(list, i, o)
    {
        const char *folder = json_string_value(json_object_get(o, "folder")), *slash = strrchr(f->path, '/');
        size_t n = slash ? (size_t)(slash - f->path) : 0;
        if (rc != 0 || f->sampling.said || strlen(folder) != n || memcmp(folder, f->path, n) != 0) continue;
        if (strcmp(json_string_value(json_object_get(o, "file")), slash + 1) != 0) continue;
        rc = sampling_from_json(&f->sampling, json_object_get(o, "sampling"), err);
    }
    json_decref(list);
    return rc;
}

int manager_find(manager_found *ret, const manager_places *places, const config_load_request *w,
                 shoal_err *err)
{
    manager_found f = {0};
    manager_places all = *places, *p = &all;
    all.any |= w->any_path;
    if (w->as.name) snprintf(f.name, sizeof f.name, "%s", w->as.name);
    int rc = w->as.sha256 && !(f.sha256 = strdup(w->as.sha256)) ? err_nomem(err) : 0;
    if (rc == 0) rc = w->as.path ? find_path(&f, p, w, w->as.path, err) : find_called(&f, p, w, err);
    if (rc == 0 && w->as.path) rc = take_sampling(&f, p, err);
    if (rc == 0)
        *ret = f;
    else
        manager_found_done(&f);
    return rc;
}
