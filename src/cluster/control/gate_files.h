/* gate_files.h: what the models that a gateway places are made of: files, folders and adapters, with their
 * digests.
 *
 * Digests are made on the pool, one thread for each model; until they are known, and while they cannot be
 * made (the log says why), the model stays on this machine.
 *
 *     gate_files_open(&f, loop, models, n_models, changed, user, &err);
 *     const gate_freight *t = gate_files_of(f, i);            NULL: model i does not travel
 *     gate_files_find(f, digest, path);
 *     gate_files_close(f);
 *
 * Loop thread. */
#ifndef CONTROL_GATE_FILES_H
#define CONTROL_GATE_FILES_H

#include <uv.h>

#include "control/gate.h"
#include "transfer/model_send.h"
#include "transfer/artifact.h"

typedef struct gate_files gate_files;

typedef struct gate_part {
    char *path; /* on this machine */
    char *name; /* of an adapter; NULL: it is the model */
    artifact artifact;
} gate_part;

typedef struct gate_freight { /* of one model */
    gate_part *parts;         /* the model, then its adapters */
    size_t n_parts;
} gate_freight;

/* Is it not known yet whether model i travels? */
bool gate_files_pending(const gate_files *f, size_t model);
/* Why it does not; NULL: it does, or that is not known yet. */
const char *gate_files_why(const gate_files *f, size_t model);
/* Has a file that could not be used changed, or a pinned one its length? Then it is looked at again. */
void gate_files_look(gate_files *f);
/* models must outlive it; `changed` when another model may travel. */
int gate_files_open(gate_files **ret, uv_loop_t *loop, const gate_model *models, size_t n_models,
                    void (*changed)(void *user), void *user, shoal_err *err);
const gate_freight *gate_files_of(const gate_files *f, size_t model);
/* A file of one that travels, by its own digest. */
bool gate_files_find(const gate_files *f, const char *digest, char ret_path[MODEL_SEND_PATH]);
/* What is still read frees itself when it is done. NULL is fine. */
void gate_files_close(gate_files *f);

#endif
