/* packed_store.h: the folder of images (packed.h), one a model, layout and range of layers.
 *
 *     packed_store s = {.folder = "/var/lib/shoal/packed", .max_bytes = 8ull << 30};
 *     packed_store_recall(&s, &identity, &digest)       the model's SHA-256 without reading it
 *     packed_store_path(&s, &head)                      where its image is, or would be
 *     packed_store_keep(&s, &head, weights, seen, &stop, &err)   write it, after the oldest made room
 *
 * A file's name is what is packed: MODEL-LAYOUT.packed, the first 16 and 8 digits of their digests, with
 * -FIRST-END in front of the dot for a part of the layers. The time of a file's last change is that of its
 * last use. Any process may remove any file at any time: whoever has it mapped keeps it.
 *
 *     packed_store_list(&s, &images, &n, &err)          what is there, for `shoal models packed`
 *
 * The folder is made when it is missing, for its owner alone; one that others may write to is not used. */
#ifndef MODEL_PACKED_PACKED_STORE_H
#define MODEL_PACKED_PACKED_STORE_H

#include "model/packed/packed.h"

#define PACKED_STORE_MAX_BYTES ((uint64_t)16 << 30) /* unless said otherwise */
#define PACKED_STORE_MIN_MB    32 /* by default: smaller ones are packed faster than anybody notices */

typedef struct packed_store {
    const char *folder; /* NULL: there is none, and nothing below is done */
    uint64_t max_bytes; /* of all images together; 0: PACKED_STORE_MAX_BYTES */
    uint64_t min_bytes; /* smaller ones are not kept */
    bool shared;        /* other processes use the same model: no copies of one's own */
    bool read_only;     /* none is written: of programs that soon end */
    bool whole;         /* compare all bytes of an image with its digest before it is used */
} packed_store;

/* A descriptor of the folder, which is made if `make`, for what else belongs there; -1: it is not there, or
 * not one to use. err is needed unless it does not matter why. */
int packed_store_folder(const packed_store *s, bool make, shoal_err *err);

/* Of a file that has not changed for two seconds; all zeros for any other, since its times may not tell two
 * states of it apart. SHOAL_ENOTFOUND, SHOAL_EIO. */
int packed_identify(packed_identity *ret, const char *path, shoal_err *err);
/* *id becomes that of all it was of and of the file at `path`, in this order: unknown if either is. */
int packed_identify_also(packed_identity *id, const char *path, shoal_err *err);
bool packed_identity_known(const packed_identity *id);

/* The digest of the model that had this identity when it was packed. */
bool packed_store_recall(const packed_store *s, const packed_identity *id, sha256_digest *ret);

/* malloc'd; NULL without memory. */
char *packed_store_path(const packed_store *s, const packed_head *h);

/* What is at `path` now, so that keep can tell whether another has taken its place; 0: nothing. */
uint64_t packed_store_seen(const char *path);

/* Write an image unless one has been written since `seen`; the ones unused for longest are removed as far as
 * max_bytes asks. Waits while another process writes one. Nothing is done about weights of fewer than
 * min_bytes. SHOAL_ELIMIT: it is larger than the store, or than the room on the disk; SHOAL_EAUTH: the folder
 * is not one to use; else as packed_write. err is needed. */
int packed_store_keep(const packed_store *s, const packed_head *h, const weights *w, uint64_t seen,
                      const atomic_bool *stop, shoal_err *err);

/* ---- for people --------------------------------------------------------------------------------- */

typedef struct packed_listed {
    char file[96]; /* in the folder */
    uint64_t bytes;
    int64_t used_s;   /* when it was last used, in seconds since 1970 */
    int status;       /* 0, or why the head cannot be read: SHOAL_EFORMAT, SHOAL_EAUTH, ... */
    packed_head head; /* zeros unless status is 0 */
} packed_listed;

/* The images, that used last first: malloc'd [*ret_n], *ret NULL for none. A folder that is not there has
 * none. SHOAL_EAUTH, SHOAL_EIO, SHOAL_ENOMEM. err is needed. */
int packed_store_list(const packed_store *s, packed_listed **ret, size_t *ret_n, shoal_err *err);
/* Remove these files, and tell how many bytes went; one that is gone already is fine. Who has one mapped
 * keeps it. SHOAL_EIO names the first that stays. */
int packed_store_remove(const packed_store *s, const packed_listed *images, size_t n, uint64_t *ret_bytes,
                        shoal_err *err);

#endif
