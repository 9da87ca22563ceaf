/* docs_files.c: see docs_files.h. */
#include "cli/ask/docs_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "retrieve/plain.h"

void docs_files_done(docs_files *f)
{
    for (size_t i = 0; i < f->n; i++) free(f->v[i]);
    free(f->v);
    *f = (docs_files){0};
}

/* Takes path. */
static int docs_files_put(docs_files *f, char *path, shoal_err *err)
{
    char **more = f->v;
    if (f->n == DOCS_FILES_MAX) {
        free(path);
        return err_set(err, SHOAL_ELIMIT, "more than %d files: add the folders in it one by one",
                       DOCS_FILES_MAX);
    }
    if (f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 64;
        more = realloc(f->v, cap * sizeof *more);
        if (!more) {
            free(path);
            return err_nomem(err);
        }
        f->v = more;
        f->cap = cap;
    }
    f->v[f->n++] = path;
    return 0;
}

static int docs_files_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder, in order. */
static int docs_files_list(docs_files *names, const char *folder, shoal_err *err)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int rc = 0;
    if (!d) return err_set(err, errno == EACCES ? SHOAL_EAUTH : SHOAL_EIO, "%s: %s", folder, strerror(errno));
    while (rc == 0 && (e = readdir(d))) {
        if (*e->d_name == '.') continue;
        char *name = strdup(e->d_name);
        rc = name ? docs_files_put(names, name, err) : err_nomem(err);
    }
    closedir(d);
    if (rc == 0 && names->n > 1) qsort(names->v, names->n, sizeof *names->v, docs_files_by_name);
    return rc;
}

static int add_folder(docs_files *f, const char *folder, int depth, shoal_err *err);

/* What lies in a folder. What vanished meanwhile, and what is neither file nor folder, is not there. */
static int add_entry(docs_files *f, char *path, int depth, shoal_err *err)
{
    struct stat st, target;
    plain_type type;
    int rc = 0;
    bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
    if (stat(path, &target) != 0) target.st_mode = 0;
    if (S_ISDIR(target.st_mode) && !link)
        rc = add_folder(f, path, depth + 1, err);
    else if (S_ISREG(target.st_mode) && plain_type_of(path, &type))
        return docs_files_put(f, path, err);
    else
        f->n_skipped += !S_ISDIR(target.st_mode);
    free(path);
    return rc;
}

static int add_folder(docs_files *f, const char *folder, int depth, shoal_err *err)
{
    docs_files names = {0};
    if (depth > DOCS_DEPTH_MAX)
        return err_set(err, SHOAL_ELIMIT, "%s: folders in folders, %d deep", folder, depth);
    int rc = docs_files_list(&names, folder, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        buf path = {0};
        buf_printf(&path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, names.v[i]);
        char *taken = buf_take(&path);
        rc = taken ? add_entry(f, taken, depth, err) : err_nomem(err);
        buf_done(&path);
    }
    docs_files_done(&names);
    if (rc != SHOAL_EAUTH || depth == 0) return rc;
    char *closed =
        strdup(folder); /* one folder of many: whoever reads it as a file says why it cannot be read */
    return closed ? docs_files_put(f, closed, err) : err_nomem(err);
}

int docs_files_add(docs_files *f, const char *path, shoal_err *err)
{
    struct stat st;
    while (path[0] == '.' && path[1] == '/' && path[2]) path += 2;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    char *copy = strndup(path, n);
    if (!copy) return err_nomem(err);
    if (stat(copy, &st) != 0) {
        int rc = err_set(err, errno == ENOENT ? SHOAL_ENOTFOUND : SHOAL_EIO, "%s: %s", copy, strerror(errno));
        free(copy);
        return rc;
    }
    if (S_ISREG(st.st_mode)) return docs_files_put(f, copy, err);
    int rc = S_ISDIR(st.st_mode) ? add_folder(f, copy, 0, err)
                                 : err_set(err, SHOAL_EINVALID, "%s: neither a file nor a folder", copy);
    free(copy);
    return rc;
}
