/* artifact.c: files and lists of them; see artifact.h. */
#include "transfer/artifact.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "kinds/model_kind.h"

/* ---- names --------------------------------------------------------------------------------------- */

bool artifact_digest_ok(const char *s)
{
    return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static bool part_ok(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < ' ' || s[i] == 0x7F || s[i] == '\\') return false;
    return n > 0 && s[0] != '.'; /* neither "." and ".." nor what is hidden */
}

bool artifact_path_ok(const char *s)
{
    const char *slash = strchr(s, '/');
    size_t n = strlen(s), first = slash ? (size_t)(slash - s) : n;
    if (n >= ARTIFACT_PATH_SIZE || !utf8_valid(s, n, NULL) || !part_ok(s, first)) return false;
    return !slash || (part_ok(slash + 1, n - first - 1) && !strchr(slash + 1, '/'));
}

/* ---- lists --------------------------------------------------------------------------------------- */

static int list_digest(const artifact *p, char ret[65], shoal_err *err)
{
    sha256 *h = sha256_new();
    sha256_digest d;
    if (!h) return err_nomem(err);
    for (size_t i = 0; i < p->n_files; i++) {
        sha256_add(h, p->files[i].digest, 64);
        sha256_add(h, " ", 1);
        sha256_add(h, p->files[i].path, strlen(p->files[i].path));
        sha256_add(h, "\n", 1);
    }
    sha256_end(h, &d);
    sha256_hex(&d, ret);
    return 0;
}

void artifact_done(artifact *p)
{
    free(p->files);
    *p = (artifact){0};
}

/* ---- from the disk ------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const artifact_file *)a)->path, ((const artifact_file *)b)->path);
}

static int digest_of_file(const char *path, char ret[65], shoal_err *err)
{
    sha256_digest d;
    int rc = sha256_file(path, &d, err);
    if (rc == 0) sha256_hex(&d, ret);
    return rc;
}

static int artifact_add(artifact *p, const char *folder, const char *within, uint64_t bytes, shoal_err *err)
{
    if (p->n_files == ARTIFACT_FILES_MAX)
        return err_set(err, SHOAL_ELIMIT,
                       "%s: more than %d files do not travel: take out what is not the model's", folder,
                       ARTIFACT_FILES_MAX);
    if (!artifact_path_ok(within))
        return err_set(err, SHOAL_EINVALID,
                       "%s/%s: a name that cannot travel: shorten it to %d bytes of plain UTF-8", folder,
                       within, ARTIFACT_PATH_SIZE - 1);
    artifact_file *f = &p->files[p->n_files++];
    snprintf(f->path, sizeof f->path, "%s", within);
    f->bytes = bytes;
    p->bytes += bytes;
    return 0;
}

/* Links are followed: the caches of hubs are made of them. */
static int artifact_walk(artifact *p, const model_kind *kind, const char *folder, const char *within,
                         bool deeper, shoal_err *err)
{
    buf at = {0}, name = {0};
    struct stat st;
    int rc = 0;
    buf_printf(&at, "%s/%s", folder, within);
    DIR *d = at.failed ? NULL : opendir(at.data);
    if (!d) rc = at.failed ? err_nomem(err) : err_set(err, SHOAL_EIO, "%s: %s", at.data, strerror(errno));
    for (struct dirent *e; rc == 0 && d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        buf_clear(&name);
        buf_printf(&name, "%s%s%s", within, *within ? "/" : "", e->d_name);
        if (name.failed)
            rc = err_nomem(err);
        else if (model_kind_file(kind, name.data) == MODEL_FILE_FOREIGN)
            continue;
        else if (fstatat(dirfd(d), e->d_name, &st, 0) != 0)
            continue; /* a link to nowhere */
        else if (S_ISREG(st.st_mode))
            rc = artifact_add(p, folder, name.data, (uint64_t)st.st_size, err);
        else if (S_ISDIR(st.st_mode) && deeper)
            rc = artifact_walk(p, kind, folder, name.data, false, err);
    }
    if (d) closedir(d);
    buf_done(&at);
    buf_done(&name);
    return rc;
}

static int read_folder(artifact *p, const char *path, shoal_err *err)
{
    p->files = calloc(ARTIFACT_FILES_MAX, sizeof *p->files);
    int rc = p->files ? artifact_walk(p, model_kind_of(path), path, "", true, err) : err_nomem(err);
    if (rc == 0 && p->n_files == 0) rc = err_set(err, SHOAL_EINVALID, "%s: there is no file in it", path);
    if (rc == 0) qsort(p->files, p->n_files, sizeof *p->files, by_path);
    for (size_t i = 0; rc == 0 && i < p->n_files; i++) {
        buf at = {0};
        buf_printf(&at, "%s/%s", path, p->files[i].path);
        rc = at.failed ? err_nomem(err) : digest_of_file(at.data, p->files[i].digest, err);
        buf_done(&at);
    }
    return rc == 0 ? list_digest(p, p->digest, err) : rc;
}

static int artifact_read_file(artifact *p, const char *path, const char *pinned, shoal_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    p->bytes = (uint64_t)st.st_size;
    if (!pinned) return digest_of_file(path, p->digest, err);
    for (size_t i = 0; i < 64 && pinned[i]; i++)
        p->digest[i] = (char)(pinned[i] >= 'A' && pinned[i] <= 'F' ? pinned[i] + 32 : pinned[i]);
    return 0;
}

int artifact_read(artifact *ret, const char *path, const char *pinned, shoal_err *err)
{
    artifact p = {0};
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t at = n;
    while (at > 0 && path[at - 1] != '/') at--;
    snprintf(p.name, sizeof p.name, "%.*s", (int)(n - at < sizeof p.name ? n - at : 0), path + at);
    int rc = file_is_dir(path) ? read_folder(&p, path, err) : artifact_read_file(&p, path, pinned, err);
    if (rc == 0)
        *ret = p;
    else
        artifact_done(&p);
    return rc;
}

/* ---- over the wire ------------------------------------------------------------------------------- */

void artifact_put(const artifact *p, Shoal__V1__ModelFile *m, Shoal__V1__FolderFile *files,
                  Shoal__V1__FolderFile **list)
{
    shoal__v1__model_file__init(m);
    m->name = (char *)p->name;
    m->digest = (char *)p->digest;
    m->bytes = p->bytes;
    for (size_t i = 0; i < p->n_files; i++) {
        shoal__v1__folder_file__init(&files[i]);
        files[i].path = p->files[i].path;
        files[i].digest = p->files[i].digest;
        files[i].bytes = p->files[i].bytes;
        list[i] = &files[i];
    }
    m->files = list;
    m->n_files = p->n_files;
}

static int artifact_take_file(artifact *p, size_t i, const Shoal__V1__FolderFile *f, shoal_err *err)
{
    if (!artifact_path_ok(f->path) || (i > 0 && strcmp(p->files[i - 1].path, f->path) >= 0))
        return err_set(err, SHOAL_EINVALID, "its list has a path that leads elsewhere, or is out of order");
    if (!artifact_digest_ok(f->digest) || f->bytes > INT64_MAX || p->bytes > INT64_MAX - f->bytes)
        return err_set(err, SHOAL_EINVALID, "its list has a file that cannot be");
    artifact_file *to = &p->files[i];
    snprintf(to->path, sizeof to->path, "%s", f->path);
    memcpy(to->digest, f->digest, 65);
    to->bytes = f->bytes;
    p->bytes += f->bytes;
    return 0;
}

/* A file cannot be a folder of others as well. */
static bool is_crossed(const artifact *p)
{
    for (size_t i = 0; i < p->n_files; i++) {
        size_t n = strlen(p->files[i].path);
        for (size_t k = i + 1; k < p->n_files; k++)
            if (strncmp(p->files[k].path, p->files[i].path, n) == 0 && p->files[k].path[n] == '/')
                return true;
    }
    return false;
}

static int take_folder(artifact *p, const Shoal__V1__ModelFile *m, shoal_err *err)
{
    char digest[65];
    if (m->n_files > ARTIFACT_FILES_MAX)
        return err_set(err, SHOAL_EINVALID, "its list has more than %d files", ARTIFACT_FILES_MAX);
    p->files = calloc(m->n_files, sizeof *p->files);
    if (!p->files) return err_nomem(err);
    p->n_files = m->n_files;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->n_files; i++) rc = artifact_take_file(p, i, m->files[i], err);
    if (rc == 0 && is_crossed(p)) rc = err_set(err, SHOAL_EINVALID, "its list has a file that is a folder");
    if (rc == 0) rc = list_digest(p, digest, err);
    if (rc == 0 && (strcmp(digest, m->digest) != 0 || p->bytes != m->bytes))
        rc = err_set(err, SHOAL_EINVALID, "its list is not the one that its digest is of");
    return rc;
}

int artifact_take(artifact *ret, const Shoal__V1__ModelFile *m, shoal_err *err)
{
    artifact p = {0};
    if (!artifact_digest_ok(m->digest) || m->bytes > INT64_MAX)
        return err_set(err, SHOAL_EINVALID, "\"%.80s\" is no SHA-256 of a model", m->digest);
    memcpy(p.digest, m->digest, 65);
    if (strlen(m->name) < sizeof p.name) strcpy(p.name, m->name);
    int rc = m->n_files ? take_folder(&p, m, err) : 0;
    if (rc == 0) {
        p.bytes = m->bytes;
        *ret = p;
    } else {
        artifact_done(&p);
    }
    return rc;
}
