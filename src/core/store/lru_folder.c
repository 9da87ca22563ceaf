/* lru_folder.c: see lru_folder.h. */
#include "store/lru_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

enum { FIRST_FILES = 64 };

static int by_use(const void *a, const void *b)
{
    const lru_file *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool lru_folder_grow(lru_folder *l, size_t *cap)
{
    size_t more = *cap ? 2 * *cap : FIRST_FILES, bytes;
    lru_file *files = size_mul(more, sizeof *files, &bytes) ? NULL : realloc(l->files, bytes);
    if (!files) return false;
    l->files = files;
    *cap = more;
    return true;
}

static int lru_folder_add(lru_folder *l, size_t *cap, const char *name, const struct stat *st, bool stays,
                          shoal_err *err)
{
    size_t len = strlen(name);
    if (len >= LRU_NAME_SIZE) return 0; /* no file system of Linux has such a name */
    if (l->n == *cap && !lru_folder_grow(l, cap)) return err_nomem(err);
    lru_file *f = &l->files[l->n++];
    *f = (lru_file){.bytes = (uint64_t)st->st_size, .used = st->st_mtim, .stays = stays};
    memcpy(f->name, name, len + 1);
    l->bytes += f->bytes;
    return 0;
}

/* From its beginning, whatever was read of it before. */
static DIR *read_folder(int folder)
{
    int fd = dup(folder);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0) close(fd);
    if (d) rewinddir(d);
    return d;
}

int lru_folder_list(lru_folder *ret, int fd,
                    lru_class (*classify)(const void *user, const char *name, const struct stat *st),
                    const void *user, shoal_err *err)
{
    lru_folder l = {.dir = read_folder(fd)};
    size_t cap = 0;
    int rc = l.dir ? 0 : err_set(err, SHOAL_EIO, "the folder cannot be read: %s", strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(l.dir));) {
        struct stat st;
        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) continue;
        lru_class class = classify(user, e->d_name, &st);
        if (class == LRU_LEFTOVER) unlinkat(fd, e->d_name, 0);
        if (class == LRU_STAYS || class == LRU_MAY_GO)
            rc = lru_folder_add(&l, &cap, e->d_name, &st, class == LRU_STAYS, err);
    }
    if (rc != 0) lru_folder_done(&l);
    if (l.n) qsort(l.files, l.n, sizeof *l.files, by_use);
    l.n_left = l.n;
    *ret = l;
    return rc;
}

const lru_file *lru_folder_evict(lru_folder *l)
{
    while (l->next < l->n) {
        const lru_file *f = &l->files[l->next++];
        if (f->stays || unlinkat(dirfd(l->dir), f->name, 0) != 0) continue;
        l->n_left--;
        l->bytes -= f->bytes;
        return f;
    }
    return NULL;
}

void lru_folder_touch(const char *path)
{
    utimensat(AT_FDCWD, path, NULL, 0);
}

void lru_folder_done(lru_folder *l)
{
    if (l->dir) closedir(l->dir);
    free(l->files);
    *l = (lru_folder){0};
}
