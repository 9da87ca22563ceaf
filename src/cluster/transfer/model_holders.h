/* model_holders.h: which other machines have a file, as the gateway says, and which of them are not asked.
 *
 * A machine that fails for a file is not asked for it for a while, one that sent something else than it said
 * is not asked for anything for longer. Pure: time is an argument.
 *
 *     model_holders_hear(&h, message, &err);
 *     const model_holder *at = model_holders_pick(&h, digest, now_ms);        NULL: ask the gateway
 *     model_holders_shun(&h, at->node, digest, now_ms + 60000); */
#ifndef TRANSFER_MODEL_HOLDERS_H
#define TRANSFER_MODEL_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "shoal/v1/cluster.pb-c.h"
#include "trust/identity.h"

enum {
    HOLDERS_FILES_MAX = 2048,
    HOLDERS_OF_FILE_MAX = 8,
    HOLDERS_SHUNNED_MAX = 64,
    HOLDERS_ADDRESS_SIZE = 300
};

typedef struct model_holder {
    char node[IDENTITY_NAME_SIZE];
    char address[HOLDERS_ADDRESS_SIZE]; /* HOST:PORT */
} model_holder;

typedef struct model_held model_held;

typedef struct model_shunned {
    char node[IDENTITY_NAME_SIZE];
    char digest[65]; /* "": for all files */
    uint64_t until_ms;
} model_shunned;

typedef struct model_holders { /* zeroed: nobody has anything */
    model_held *files;
    size_t n_files;
    model_shunned shunned[HOLDERS_SHUNNED_MAX]; /* the oldest gives way */
} model_holders;

/* From now on so; copied. SHOAL_EINVALID, SHOAL_ENOMEM: all is as before. */
int model_holders_hear(model_holders *h, const Shoal__V1__Holders *m, shoal_err *err);
/* The first that is not shunned; NULL: none. */
const model_holder *model_holders_pick(const model_holders *h, const char *digest, uint64_t now_ms);
/* digest NULL: it is asked for nothing. */
void model_holders_shun(model_holders *h, const char *node, const char *digest, uint64_t until_ms);
void model_holders_done(model_holders *h);

#endif
