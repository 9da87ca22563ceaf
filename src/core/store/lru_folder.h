/* lru_folder.h: a folder of files of which the ones unused for longest go when room is needed.
 *
 * The time of a file's last change is that of its last use (lru_folder_touch).
 *
 *     lru_folder l;
 *     lru_folder_list(&l, fd, classify, me, &err);
 *     while (l.bytes + need > most && lru_folder_evict(&l)) continue;
 *     bool fits = l.bytes + need <= most;
 *     lru_folder_done(&l);
 *
 * Other processes may add and remove files meanwhile; whoever wants to be alone locks the folder. */
#ifndef STORE_LRU_FOLDER_H
#define STORE_LRU_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

enum { LRU_NAME_SIZE = 256 };

typedef enum lru_class {
    LRU_OTHER, /* it is not looked at */
    LRU_STAYS, /* its bytes count, and it does not go */
    LRU_MAY_GO,
    LRU_LEFTOVER /* of a process that died: it is removed when the folder is listed */
} lru_class;

typedef struct lru_file {
    char name[LRU_NAME_SIZE];
    uint64_t bytes;
    struct timespec used;
    bool stays;
} lru_file;

typedef struct lru_folder {
    DIR *dir;
    lru_file *files; /* unused for longest first */
    size_t n, next;  /* next: those before it stay or are gone */
    size_t n_left;   /* without those that are gone */
    uint64_t bytes;  /* of those that are left */
} lru_folder;

/* The regular files of an open folder, which is the caller's to close; classify is asked of each. SHOAL_ENOMEM,
 * SHOAL_EIO: *ret holds none. */
int lru_folder_list(lru_folder *ret, int fd,
                    lru_class (*classify)(const void *user, const char *name, const struct stat *st),
                    const void *user, shoal_err *err);
/* Remove the next one that may go and can be removed: it, until lru_folder_done; NULL: there is none. */
const lru_file *lru_folder_evict(lru_folder *l);
void lru_folder_touch(const char *path); /* it is used now */
void lru_folder_done(lru_folder *l);

#endif
