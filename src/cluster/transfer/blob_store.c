/* blob_store.c: names, links and room; see blob_store.h. */
#include "transfer/blob_store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "logging/log.h"
#include "store/lru_folder.h"
#include "trust/folder.h"

enum { DIGEST_LETTERS = 64 };

/* ---- names --------------------------------------------------------------------------------------- */

int model_file_make(model_file *ret, const char *name, const char *digest, uint64_t bytes, shoal_err *err)
{
    const char *dot = strrchr(name, '.');
    *ret = (model_file){.bytes = bytes};
    if (!artifact_digest_ok(digest) || bytes > INT64_MAX)
        return err_set(err, SHOAL_EINVALID, "\"%.80s\" is no SHA-256 of a model", digest);
    memcpy(ret->digest, digest, 65);
    size_t n = dot ? strlen(dot) : 0;
    bool plain = n > 1 && n < sizeof ret->suffix;
    for (size_t i = 1; plain && i < n; i++) plain = isalnum((unsigned char)dot[i]);
    if (plain && strcmp(dot, ".part") != 0 && strcmp(dot, ".d") != 0) memcpy(ret->suffix, dot, n + 1);
    return 0;
}

void blob_store_path(const blob_store *s, const model_file *f, bool part, char ret[MODEL_PATH_SIZE])
{
    snprintf(ret, MODEL_PATH_SIZE, "%s/%s%s", s->folder, f->digest, part ? ".part" : f->suffix);
}

bool blob_store_has(const blob_store *s, const model_file *f, char ret_path[MODEL_PATH_SIZE])
{
    struct stat st;
    blob_store_path(s, f, false, ret_path);
    return stat(ret_path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->bytes;
}

/* The i-th file of an artifact; of one that is no folder the first. */
static void file_of(const artifact *p, size_t i, model_file *ret)
{
    if (p->n_files)
        model_file_make(ret, p->files[i].path, p->files[i].digest, p->files[i].bytes, NULL);
    else
        model_file_make(ret, p->name, p->digest, p->bytes, NULL);
}

static size_t count_of(const artifact *p)
{
    return p->n_files ? p->n_files : 1;
}

/* ---- folders ------------------------------------------------------------------------------------- */

/* A folder of links, and of folders of links. */
static void remove_links(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0) close(fd);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (unlinkat(fd, e->d_name, 0) != 0 && (errno == EISDIR || errno == EPERM))
            remove_links(fd, e->d_name);
    }
    if (d) closedir(d);
    unlinkat(at, name, AT_REMOVEDIR);
}

static bool link_file(int folder, const artifact_file *f)
{
    model_file blob;
    char part[ARTIFACT_PATH_SIZE], to[sizeof blob + 8];
    const char *slash = strchr(f->path, '/');
    model_file_make(&blob, f->path, f->digest, f->bytes, NULL);
    snprintf(part, sizeof part, "%.*s", slash ? (int)(slash - f->path) : 0, f->path);
    snprintf(to, sizeof to, "%s%s%s", slash ? "../../" : "../", blob.digest, blob.suffix);
    if (slash && mkdirat(folder, part, 0700) != 0 && errno != EEXIST) return false;
    return symlinkat(to, folder, f->path) == 0;
}

/* It takes its name when all links are in it. */
static bool build_folder(const blob_store *s, const artifact *p, const char *path)
{
    char fresh[MODEL_PATH_SIZE + 8];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    remove_links(AT_FDCWD, fresh);
    int fd = mkdir(fresh, 0700) == 0 ? open(fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0;
    for (size_t i = 0; ok && i < p->n_files; i++) ok = link_file(fd, &p->files[i]);
    int why = errno;
    if (fd >= 0) close(fd);
    if (ok && rename(fresh, path) == 0) return true;
    LOG(LOG_ERROR, "store", "no_folder", LOG_S("path", path), LOG_S("reason", strerror(ok ? errno : why)));
    remove_links(AT_FDCWD, fresh);
    return false;
}

bool blob_store_find(const blob_store *s, const artifact *p, char ret_path[MODEL_PATH_SIZE])
{
    struct stat st;
    model_file f;
    for (size_t i = 0; i < count_of(p); i++) {
        file_of(p, i, &f);
        if (!blob_store_has(s, &f, ret_path)) return false;
    }
    if (p->n_files == 0) return true;
    snprintf(ret_path, MODEL_PATH_SIZE, "%s/%s.d", s->folder, p->digest);
    return (lstat(ret_path, &st) == 0 && S_ISDIR(st.st_mode)) || build_folder(s, p, ret_path);
}

static bool names_folder(const char *name, const artifact *const *artifacts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (artifacts[i]->n_files && strncmp(artifacts[i]->digest, name, DIGEST_LETTERS) == 0 &&
            strcmp(name + DIGEST_LETTERS, ".d") == 0)
            return true;
    return false;
}

/* A worker that still runs has its files open. */
static void drop_folders(const blob_store *s, const artifact *const *artifacts, size_t n)
{
    DIR *d = opendir(s->folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        if (strlen(e->d_name) < DIGEST_LETTERS + 2 || names_folder(e->d_name, artifacts, n)) continue;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
            remove_links(dirfd(d), e->d_name);
    }
    if (d) closedir(d);
}

/* ---- what is wanted ------------------------------------------------------------------------------ */

bool blob_store_wants(const blob_store *s, const char *digest)
{
    for (size_t i = 0; i < s->n_wanted; i++)
        if (strncmp(s->wanted[i].digest, digest, DIGEST_LETTERS) == 0) return true;
    return false;
}

int blob_store_want(blob_store *s, const artifact *const *artifacts, size_t n, shoal_err *err)
{
    char path[MODEL_PATH_SIZE];
    size_t most = 0;
    for (size_t i = 0; i < n; i++) most += count_of(artifacts[i]);
    if (most > BLOB_STORE_MAX) most = BLOB_STORE_MAX;
    model_file *wanted = calloc(most + 1, sizeof *wanted);
    if (!wanted) return err_nomem(err);
    free(s->wanted);
    s->wanted = wanted;
    s->n_wanted = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < count_of(artifacts[i]) && s->n_wanted < most; k++) {
            model_file *f = &s->wanted[s->n_wanted++];
            file_of(artifacts[i], k, f);
            if (blob_store_has(s, f, path)) lru_folder_touch(path);
        }
    drop_folders(s, artifacts, n);
    return 0;
}

/* ---- room ---------------------------------------------------------------------------------------- */

static int list_files(const blob_store *s, lru_folder *ret,
                      lru_class (*classify)(const void *user, const char *name, const struct stat *st),
                      const void *user, shoal_err *err)
{
    folder f = FOLDER_NONE;
    int rc = folder_open(&f, s->folder, false, err);
    if (rc == 0) rc = lru_folder_list(ret, f.fd, classify, user, err);
    folder_close(&f);
    return rc;
}

typedef struct arrival {
    const blob_store *s;
    const model_file *file;
} arrival;

/* What has come of the file counts as its. */
static lru_class class_beside(const void *user, const char *name, const struct stat *st)
{
    const arrival *a = user;
    if (strncmp(name, a->file->digest, DIGEST_LETTERS) == 0) return LRU_OTHER;
    return strlen(name) < DIGEST_LETTERS || blob_store_wants(a->s, name) ? LRU_STAYS : LRU_MAY_GO;
}

/* Unlinking a file that a worker still maps takes nothing from it. */
static bool evict_down_to(lru_folder *l, uint64_t most)
{
    while (l->bytes > most) {
        const lru_file *gone = lru_folder_evict(l);
        if (!gone) return false;
        LOG(LOG_INFO, "store", "evicted", LOG_S("file", gone->name));
    }
    return true;
}

int blob_store_make_room(const blob_store *s, const model_file *coming, shoal_err *err)
{
    const arrival a = {s, coming};
    lru_folder l;
    bool fits = s->max_bytes == 0;
    if (!fits && coming->bytes <= s->max_bytes) {
        int rc = list_files(s, &l, class_beside, &a, err);
        if (rc != 0) return rc;
        fits = evict_down_to(&l, s->max_bytes - coming->bytes);
        lru_folder_done(&l);
    }
    if (fits) return 0;
    return err_set(err, SHOAL_ELIMIT, "there is no room for it: give the store more (--models-gb)");
}

/* ---- what is damaged ----------------------------------------------------------------------------- */

#define DAMAGED "damaged-"

size_t blob_store_files(const artifact *p, model_file *ret, size_t max)
{
    size_t n = count_of(p);
    for (size_t i = 0; i < n && i < max; i++) file_of(p, i, &ret[i]);
    return n < max ? n : max;
}

static lru_class class_damaged(const void *user, const char *name, const struct stat *st)
{
    return strncmp(name, DAMAGED, sizeof DAMAGED - 1) == 0 ? LRU_MAY_GO : LRU_OTHER;
}

bool blob_store_set_aside(const blob_store *s, const model_file *f)
{
    char path[MODEL_PATH_SIZE], aside[MODEL_PATH_SIZE];
    lru_folder l;
    blob_store_path(s, f, false, path);
    snprintf(aside, sizeof aside, "%s/" DAMAGED "%s%s", s->folder, f->digest, f->suffix);
    if (rename(path, aside) != 0 && unlink(path) != 0 && errno != ENOENT) return false;
    lru_folder_touch(aside);
    if (list_files(s, &l, class_damaged, NULL, NULL) != 0) return true;
    while (l.n_left > BLOB_STORE_DAMAGED && lru_folder_evict(&l)) continue;
    lru_folder_done(&l);
    return true;
}

/* ---- what is held -------------------------------------------------------------------------------- */

static bool is_whole(const char *name, uint64_t bytes, model_file *ret)
{
    char digest[65] = "";
    if (strlen(name) < DIGEST_LETTERS) return false;
    memcpy(digest, name, DIGEST_LETTERS);
    return model_file_make(ret, name + DIGEST_LETTERS, digest, bytes, NULL) == 0 &&
           strcmp(name + DIGEST_LETTERS, ret->suffix) == 0;
}

static lru_class class_any(const void *user, const char *name, const struct stat *st)
{
    return LRU_STAYS;
}

void blob_store_look(blob_store *s)
{
    lru_folder l = {0};
    model_file *held = malloc(BLOB_STORE_MAX * sizeof *held);
    size_t n = 0;
    if (held) (void)list_files(s, &l, class_any, NULL, NULL);
    for (size_t i = 0; i < l.n && n < BLOB_STORE_MAX; i++)
        if (is_whole(l.files[i].name, l.files[i].bytes, &held[n])) n++;
    lru_folder_done(&l);
    free(s->held);
    s->held = held;
    s->n_held = n;
}

int blob_store_open(blob_store *ret, const char *path, uint64_t max_bytes, shoal_err *err)
{
    folder f = FOLDER_NONE;
    int rc = folder_open(&f, path, true, err);
    folder_close(&f);
    if (rc != 0) return rc;
    *ret = (blob_store){.folder = strdup(path), .max_bytes = max_bytes};
    if (!ret->folder) return err_nomem(err);
    blob_store_look(ret);
    return 0;
}

void blob_store_close(blob_store *s)
{
    free(s->folder);
    free(s->wanted);
    free(s->held);
    *s = (blob_store){0};
}
