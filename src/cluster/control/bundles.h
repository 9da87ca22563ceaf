/* bundles.h: what the models that a gateway places are made of: files, folders and adapters, with their
 * digests.
 *
 * A bundle is one model with its adapters, each an artifact (transfer/artifact.h). Digests are made on the
 * pool, one thread for each model; until they are known, and while they cannot be made (the log says why),
 * the model stays on this machine.
 *
 *     bundles_open(&f, loop, models, n_models, changed, user, &err);
 *     const bundle *t = bundles_of(f, i);            NULL: model i does not travel
 *     bundles_find(f, digest, path);
 *     bundles_close(f);
 *
 * Loop thread. */
#ifndef CONTROL_BUNDLES_H
#define CONTROL_BUNDLES_H

#include <uv.h>

#include "control/control.h"
#include "transfer/model_send.h"
#include "transfer/artifact.h"

typedef struct bundles bundles;

typedef struct bundle_part {
    char *path; /* on this machine */
    char *name; /* of an adapter; NULL: it is the model */
    artifact artifact;
} bundle_part;

typedef struct bundle {
    bundle_part *parts; /* the model, then its adapters */
    size_t n_parts;
} bundle;

/* Is it not known yet whether model i travels? */
bool bundles_pending(const bundles *f, size_t model);
/* Why it does not; NULL: it does, or that is not known yet. */
const char *bundles_why(const bundles *f, size_t model);
/* Has a file that could not be used changed, or a pinned one its length? Then it is looked at again. */
void bundles_look(bundles *f);
/* models must outlive it; `changed` when another model may travel. */
int bundles_open(bundles **ret, uv_loop_t *loop, const control_model *models, size_t n_models,
                 void (*changed)(void *user), void *user, shoal_err *err);
const bundle *bundles_of(const bundles *f, size_t model);
/* A file of one that travels, by its own digest. */
bool bundles_find(const bundles *f, const char *digest, char ret_path[MODEL_SEND_PATH]);
/* What is still read frees itself when it is done. NULL is fine. */
void bundles_close(bundles *f);

#endif
