/* model_store.h: the models of a machine that came from others, by digest, and how they come.
 *
 * What is said to be wanted is fetched, one file after the other: from a machine that has it, as the gateway
 * says (model_holders.h), and from the gateway where none is left. A fetch that breaks goes on where it was,
 * at the next one, also after a restart. A file takes its name after its size and its SHA-256 were found
 * right. Who alone sent a file that was another one is asked for nothing for an hour; where several had a
 * part in it, none of them is asked for that file, until it has come from others.
 *
 *     model_store_options o = {.folder = "…/models", .changed = look, .user = me};
 *     model_store_open(&s, loop, &o, err);
 *     model_store_source(s, "10.0.0.1:7080", tls, node_tls, err);
 *     model_store_want(s, artifacts, n);    // `changed` when one of their files has come
 *     if (model_store_find(s, artifacts[0], path)) ...
 *
 * Loop thread. Writes go to the page cache; on the pool a file is brought to the disk, verified and named. */
#ifndef TRANSFER_MODEL_STORE_H
#define TRANSFER_MODEL_STORE_H

#include <uv.h>

#include "time/env.h"
#include "transfer/blob_store.h"
#include "wire/tls.h"

/* Under this name a machine's relay reaches what it lets other nodes fetch. Workers' names have a slash. */
#define MODEL_STORE_NAME "models"

typedef struct model_store model_store;

typedef struct model_store_options {
    const char *folder;          /* made when it is not there */
    uint64_t max_bytes;          /* of all files; 0: as the disk has it */
    uint64_t bytes_per_s;        /* of a fetch; 0: as the network has it */
    const env *time;             /* NULL: the loop's (wire/env_uv.h). Must outlive the store */
    void (*changed)(void *user); /* a file that is wanted has come */
    void *user;
} model_store_options;

int model_store_open(model_store **ret, uv_loop_t *loop, const model_store_options *o, shoal_err *err);
/* The gateway to ask, and with what nodes are asked (NULL: they are not). Copied, the contexts referenced.
 * SHOAL_ENOMEM. */
int model_store_source(model_store *s, const char *address, tls_context *tls, tls_context *nodes,
                       shoal_err *err);
/* Who has what, as the gateway says. */
void model_store_hear(model_store *s, const Shoal__V1__Holders *m);
/* Copied. Without memory all is as it was. */
void model_store_want(model_store *s, const artifact *const *artifacts, size_t n);
/* A worker could not read these: their files are compared with their digests, on the pool. What is damaged is
 * set aside and fetched again; `changed` when something was. While one check runs, another is forgotten. */
void model_store_check(model_store *s, const artifact *const *artifacts, size_t n);
bool model_store_find(const model_store *s, const artifact *p, char ret_path[MODEL_PATH_SIZE]);
/* What is here and whole, for others. */
size_t model_store_count(const model_store *s);
const model_file *model_store_at(const model_store *s, size_t i);
bool model_store_path(const model_store *s, const char *digest, char ret_path[MODEL_PATH_SIZE]);
/* What is half there stays for the next time. `closed` (may be NULL) when the memory is gone; NULL is fine.
 */
void model_store_close(model_store *s, void (*closed)(void *user), void *user);

#endif
