/* model_store.h: the models of a machine that came from others, by digest, and how they come.
 *
 * A file is FOLDER/DIGEST.SUFFIX, as long as it comes FOLDER/DIGEST.part; it takes its name after its size
 * and its SHA-256 were found right. A fetch that breaks goes on where it was, also after a restart. What is
 * said to be wanted is fetched, one file after the other; what is not wanted goes, the least recently wanted
 * first, when the room is needed.
 *
 *     model_store_open(&s, loop, &(model_store_options){.folder = "…/models", .changed = look, .user = me},
 * err); model_store_source(s, "10.0.0.1:7080", tls); model_store_want(s, files, n); `changed` when one of
 * them has come if (model_store_find(s, &files[0], path)) ...
 *
 * Loop thread; digests are made on the pool, and writes go to the page cache. */
#ifndef JOIN_MODEL_STORE_H
#define JOIN_MODEL_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "wire/tls.h"

enum { MODEL_STORE_FILES_MAX = 256, MODEL_STORE_PATH = 4096 };

typedef struct model_file {
    char digest[65]; /* 64 lower-case hexadecimal digits */
    char suffix[16]; /* ".gguf"; letters and digits behind the dot, or "" */
    uint64_t bytes;
} model_file;

typedef struct model_store model_store;

typedef struct model_store_options {
    const char *folder;          /* made when it is not there */
    uint64_t max_bytes;          /* of all files; 0: as the disk has it */
    uint64_t bytes_per_s;        /* of a fetch; 0: as the network has it */
    void (*changed)(void *user); /* a file that is wanted has come */
    void *user;
} model_store_options;

/* SHOAL_EINVALID: no digest and suffix can be made of these. Anything a gateway says may be given. */
int model_file_make(model_file *ret, const char *name, const char *digest, uint64_t bytes, shoal_err *err);

int model_store_open(model_store **ret, uv_loop_t *loop, const model_store_options *o, shoal_err *err);
/* Whom to ask. Copied, the context referenced. SHOAL_ENOMEM. */
int model_store_source(model_store *s, const char *address, tls_context *tls, shoal_err *err);
/* At most MODEL_STORE_FILES_MAX, the rest is left out. Copied. */
void model_store_want(model_store *s, const model_file *files, size_t n);
bool model_store_find(const model_store *s, const model_file *f, char ret_path[MODEL_STORE_PATH]);
/* What is half there stays for the next time. `closed` (may be NULL) when the memory is gone; NULL is fine.
 */
void model_store_close(model_store *s, void (*closed)(void *user), void *user);

#endif
