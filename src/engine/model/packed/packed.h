/* packed.h: packed weights in a file, so that a model starts without packing and its replicas share one copy.
 *
 * Packing is a copy of all weights into another order. It is made once: the order is written to a file (an
 * image), and later starts map that. The mapping is shared and read-only, so any number of processes reads
 * one copy, the page cache's.
 *
 *     head     512 bytes: whose weights, packed how, how many; digests of all that follows, and of itself
 *     index    40 bytes a matrix: name, type, rows, columns, place
 *     payload  on a border of 2 MiB: each matrix as weights.h has it, codes, then scales, on borders of 64
 *
 * Who opens an image says what it must be of: the model's SHA-256, the layout's digest (weights_layout) and
 * the layers. Another one is refused, as is one whose head or index has a bit that differs, or whose size is
 * not the one it names; the payload's digest is compared when asked for (it costs as much as reading the
 * model). A refused image is no error of the model's: its weights are packed anew.
 *
 * An image is trusted like the program: it is used only if the file belongs to this user (or root) and nobody
 * else may write it. All numbers are little-endian; all bytes go through a bounded cursor. */
#ifndef MODEL_PACKED_PACKED_H
#define MODEL_PACKED_PACKED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/sha256.h"
#include "compute/weights.h"

#define PACKED_HEAD_BYTES 512
#define PACKED_ITEM_BYTES 40

/* Which file of the file system, as it was last changed: while all of it is the same, so are the bytes. No
 * program can set a file's change time back. Of several files (a folder's), the digest of theirs stands in
 * the first four words, and the last one's change in the fifth. */
typedef struct packed_identity {
    uint64_t device, inode, size, mtime_ns, ctime_ns;
} packed_identity;

typedef struct packed_head {
    sha256_digest model, layout;
    uint64_t first_layer, end_layer; /* 0, 0: all of them */
    packed_identity file;            /* the model's; all zeros: not known for sure */
    uint64_t n_items, payload_at, payload_bytes;
    sha256_digest index, payload;
    /* For people, and looked at by nobody else. */
    char name[112]; /* the model's */
    char type[16];  /* of most of its weights, "Q8_0" */
} packed_head;

typedef struct packed packed;

/* data[n]: the file's first bytes. SHOAL_EFORMAT: no head, or a damaged one. */
int packed_read_head(packed_head *ret, const void *data, size_t n, shoal_err *err);
/* data[n]: head and index. ret_items[head->n_items], malloc'd; codes and scales are offsets into the payload
 * as pointers from `payload`, inside payload_bytes. */
int packed_read_index(weights_item **ret_items, const packed_head *head, const void *data, size_t n,
                      uint8_t *payload, shoal_err *err);

/* Map one that is of `want`'s model, layout and layers (the other fields are not looked at). `whole`: compare
 * the payload's digest, too. SHOAL_ENOTFOUND, SHOAL_EFORMAT, SHOAL_EDIGEST, SHOAL_EAUTH (not ours to trust).
 */
int packed_open(packed **ret, const char *path, const packed_head *want, bool whole, shoal_err *err);
void packed_close(packed *m); /* unmaps; NULL is fine */
const weights_item *packed_items(const packed *m, size_t *ret_n);

/* Only the head, of a file that may be trusted; as packed_open. */
int packed_peek(packed_head *ret, const char *path, shoal_err *err);

/* Write `s` as the image at `path`, through a temporary that takes the name when all is on the disk; the
 * counts, places, digests and type of the head are filled in. SHOAL_ECANCELLED when *stop became true; any
 * failure leaves nothing. */
int packed_write(const char *path, packed_head head, const weights *s, const atomic_bool *stop,
                 shoal_err *err);

/* ---- where its pages lie ------------------------------------------------------------------------- */

/* The mapping begins as the page cache has it, in small pages mostly, and is at once good to read. Then,
 * beside whoever reads, it can be made of huge ones, at the same addresses with the same bytes:
 *   1. in place (MADV_COLLAPSE): still one copy for all. Kernels do it for files in memory (tmpfs, so a store
 *      there has both at once) and, if they are built so, for those of disks;
 *   2. else by a copy of this process's own, which is not shared. */
typedef enum packed_pages { PACKED_SMALL, PACKED_SHARED_HUGE, PACKED_OWN_HUGE } packed_pages;

/* Try the first, and if `own`, the second. Stops early when *stop becomes true, or memory is out: what was
 * not done stays as it was. One caller at a time, beside any number of readers. */
packed_pages packed_enlarge(packed *m, bool own, const atomic_bool *stop);

#endif
