/* packed_store.c: see packed_store.h. Whoever writes holds a lock on the folder, so that replicas which start
 * together write one image, not one each. */
#define _GNU_SOURCE
#include "model/packed/packed_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/pages.h"
#include "store/lru_folder.h"

#define SUFFIX        ".packed"
#define SETTLED_S     2
#define LEFT_BEHIND_S 3600 /* a temporary file this old is of a process that died */

/* ---- identities ----------------------------------------------------------------------------------- */

static uint64_t ns_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int packed_identify(packed_identity *ret, const char *path, shoal_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return err_set(err, errno == ENOENT ? SHOAL_ENOTFOUND : SHOAL_EIO, "%s: %s", path, strerror(errno));
    *ret = (packed_identity){0};
    time_t now = time(NULL);
    if (!S_ISREG(st.st_mode) || st.st_ctim.tv_sec + SETTLED_S > now) return 0;
    *ret = (packed_identity){.device = st.st_dev,
                             .inode = st.st_ino,
                             .size = (uint64_t)st.st_size,
                             .mtime_ns = ns_of(st.st_mtim),
                             .ctime_ns = ns_of(st.st_ctim)};
    return 0;
}

int packed_identify_also(packed_identity *id, const char *path, shoal_err *err)
{
    packed_identity both[2] = {*id};
    sha256_digest d;
    int rc = packed_identify(&both[1], path, err);
    *id = (packed_identity){0};
    if (rc || !packed_identity_known(&both[0]) || !packed_identity_known(&both[1])) return rc;
    sha256_of(both, sizeof both, &d);
    memcpy(id, d.bytes, sizeof d.bytes);
    id->ctime_ns = both[0].ctime_ns > both[1].ctime_ns ? both[0].ctime_ns : both[1].ctime_ns;
    return 0;
}

bool packed_identity_known(const packed_identity *id)
{
    return id->ctime_ns != 0;
}

/* ---- the folder ----------------------------------------------------------------------------------- */

int packed_store_folder(const packed_store *s, bool make, shoal_err *err)
{
    struct stat st;
    if (make && file_make_folders(s->folder, S_IRWXU, err) != 0) return -1;
    if (make && mkdir(s->folder, S_IRWXU) != 0 && errno != EEXIST) {
        err_set(err, SHOAL_EIO, "%s: %s", s->folder, strerror(errno));
        return -1;
    }
    int fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        err_set(err, errno == ENOENT ? SHOAL_ENOTFOUND : SHOAL_EIO, "%s: %s", s->folder, strerror(errno));
        return -1;
    }
    if (fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
        !(st.st_mode & (S_IWGRP | S_IWOTH)))
        return fd;
    close(fd);
    err_set(err, SHOAL_EAUTH, "%s: others than its owner may write there: chmod go-w it", s->folder);
    return -1;
}

static bool is_image(const char *name)
{
    size_t n = strlen(name);
    return n > strlen(SUFFIX) && n < sizeof((packed_listed *)0)->file &&
           strcmp(name + n - strlen(SUFFIX), SUFFIX) == 0;
}

static lru_class classify(const void *user, const char *name, const struct stat *st)
{
    bool old = st->st_mtime + LEFT_BEHIND_S < time(NULL);
    return is_image(name) ? LRU_MAY_GO : old && strstr(name, SUFFIX ".tmp.") ? LRU_LEFTOVER : LRU_OTHER;
}

/* The images. */
static int list_packed_store(int fd, lru_folder *ret, shoal_err *err)
{
    return lru_folder_list(ret, fd, classify, NULL, err);
}

/* ---- looking -------------------------------------------------------------------------------------- */

static char *path_of(const packed_store *s, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", s->folder, name) < 0 ? NULL : path;
}

char *packed_store_path(const packed_store *s, const packed_head *h)
{
    char model[65], layout[65], part[48] = "", name[96];
    sha256_hex(&h->model, model);
    sha256_hex(&h->layout, layout);
    if (h->end_layer)
        snprintf(part, sizeof part, "-%llu-%llu", (unsigned long long)h->first_layer,
                 (unsigned long long)h->end_layer);
    snprintf(name, sizeof name, "%.16s-%.8s%s" SUFFIX, model, layout, part);
    return path_of(s, name);
}

static bool recalls(const packed_store *s, const char *name, const packed_identity *id, sha256_digest *ret)
{
    packed_head h;
    char *path = path_of(s, name);
    bool same = path && packed_peek(&h, path, NULL) == 0 && memcmp(&h.file, id, sizeof *id) == 0;
    free(path);
    if (same) *ret = h.model;
    return same;
}

bool packed_store_recall(const packed_store *s, const packed_identity *id, sha256_digest *ret)
{
    lru_folder l;
    bool found = false;
    int fd = s->folder && packed_identity_known(id) ? packed_store_folder(s, false, NULL) : -1;
    if (fd < 0) return false;
    if (list_packed_store(fd, &l, NULL) == 0) {
        for (size_t i = l.n; !found && i > 0; i--) found = recalls(s, l.files[i - 1].name, id, ret);
        lru_folder_done(&l);
    }
    close(fd);
    return found;
}

/* ---- keeping -------------------------------------------------------------------------------------- */

/* A tenth of what the file system has left is for others. */
static uint64_t room_on_disk(const packed_store *s)
{
    uint64_t left;
    return file_free_bytes(&left, s->folder, NULL) == 0 ? left / 10 * 9 : UINT64_MAX;
}

static int packed_store_make_room(const packed_store *s, int fd, uint64_t need, shoal_err *err)
{
    uint64_t most = s->max_bytes ? s->max_bytes : PACKED_STORE_MAX_BYTES;
    lru_folder l;
    if (need > most)
        return err_set(err, SHOAL_ELIMIT, "an image of %llu MB is larger than the store's limit of %llu MB",
                       (unsigned long long)(need >> 20), (unsigned long long)(most >> 20));
    int rc = list_packed_store(fd, &l, err);
    if (rc != 0) return rc;
    while (l.bytes + need > most && lru_folder_evict(&l)) continue;
    lru_folder_done(&l);
    uint64_t room = room_on_disk(s);
    if (need > room)
        return err_set(err, SHOAL_ELIMIT,
                       "an image of %llu MB does not fit on the disk, which has %llu MB left",
                       (unsigned long long)(need >> 20), (unsigned long long)(room >> 20));
    return 0;
}

/* Somebody else has written one since `seen` was refused, or nothing was there. */
static bool written_meanwhile(const char *path, uint64_t seen)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_ino != seen;
}

static int keep_packed_store(const packed_store *s, int fd, const packed_head *h, const weights *w,
                             uint64_t seen, const atomic_bool *stop, shoal_err *err)
{
    int rc = file_lock(fd, -1, stop, err); /* one writes at a time */
    if (rc) return rc;
    char *path = packed_store_path(s, h);
    if (!path) return err_nomem(err);
    if (!written_meanwhile(path, seen)) {
        rc = packed_store_make_room(s, fd, weights_bytes(w) + PAGES_HUGE, err);
        if (rc == 0) rc = packed_write(path, *h, w, stop, err);
    }
    free(path);
    return rc;
}

int packed_store_keep(const packed_store *s, const packed_head *h, const weights *w, uint64_t seen,
                      const atomic_bool *stop, shoal_err *err)
{
    if (!s->folder || s->read_only || weights_bytes(w) < s->min_bytes) return 0;
    int fd = packed_store_folder(s, true, err);
    if (fd < 0) return err ? err->code : SHOAL_EIO;
    int rc = keep_packed_store(s, fd, h, w, seen, stop, err);
    close(fd); /* and the lock with it */
    return rc;
}

uint64_t packed_store_seen(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* ---- for people ----------------------------------------------------------------------------------- */

static int packed_store_describe(const packed_store *s, const lru_file *f, packed_listed *ret, shoal_err *err)
{
    *ret = (packed_listed){.bytes = f->bytes, .used_s = f->used.tv_sec};
    memcpy(ret->file, f->name, strlen(f->name) + 1); /* is_image bounds it */
    char *path = path_of(s, f->name);
    if (!path) return err_nomem(err);
    ret->status = packed_peek(&ret->head, path, NULL);
    free(path);
    return 0;
}

static int describe_all(const packed_store *s, const lru_folder *l, packed_listed **ret, shoal_err *err)
{
    packed_listed *all = calloc(l->n + 1, sizeof *all);
    int rc = all ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        rc = packed_store_describe(s, &l->files[l->n - 1 - i], &all[i], err);
    if (rc == 0)
        *ret = all;
    else
        free(all);
    return rc;
}

int packed_store_list(const packed_store *s, packed_listed **ret, size_t *ret_n, shoal_err *err)
{
    lru_folder l = {0};
    *ret = NULL;
    *ret_n = 0;
    int fd = packed_store_folder(s, false, err);
    if (fd < 0) return err->code == SHOAL_ENOTFOUND ? 0 : err->code;
    int rc = list_packed_store(fd, &l, err);
    if (rc == 0) rc = describe_all(s, &l, ret, err);
    if (rc == 0) *ret_n = l.n;
    lru_folder_done(&l);
    close(fd);
    return rc;
}

int packed_store_remove(const packed_store *s, const packed_listed *images, size_t n, uint64_t *ret_bytes,
                        shoal_err *err)
{
    *ret_bytes = 0;
    if (n == 0) return 0;
    int rc = 0, fd = packed_store_folder(s, false, err);
    if (fd < 0) return err->code;
    for (size_t i = 0; i < n; i++) {
        if (unlinkat(fd, images[i].file, 0) == 0)
            *ret_bytes += images[i].bytes;
        else if (errno != ENOENT && rc == 0)
            rc = err_set(err, SHOAL_EIO, "%s/%s: %s", s->folder, images[i].file, strerror(errno));
    }
    close(fd);
    return rc;
}
