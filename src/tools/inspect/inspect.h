/* inspect.h: what a model file or folder is, for a person who found it and wants to know whether it runs
 * here. */
#ifndef INSPECT_INSPECT_H
#define INSPECT_INSPECT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/model.h"

typedef struct inspect_report {
    size_t n_tensors, n_weights;            /* parameters */
    size_t bytes[DT_COUNT], n_of[DT_COUNT]; /* of matrices and vectors, by type */
    size_t file_bytes;                      /* of all tensors */
    size_t used_weights; /* multiplied for each token: not embeddings that are looked up, nor idle experts */
    size_t used_bytes;
    size_t kv_token_bytes; /* of the cache, a position; 0: none */
    size_t memory_bytes;   /* weights, and a full cache of one sequence or 64 MiB, the smaller */
    char digest[65];       /* SHA-256, hex; "": not asked for */
    char unsupported[512]; /* why it cannot run; "" when it can */
    /* Measured on this machine, all cores, for the commonest type; 0: not asked for, or it cannot run. */
    double decode_per_s, prefill_per_s; /* tokens */
    double load;                        /* processes that ran or waited then, a minute's mean; -1: unknown */
} inspect_report;

/* measure: run kernels for about half a second. m keeps its weights. */
int inspect_model(inspect_report *ret, const model *m, bool measure, shoal_err *err);
void inspect_put(buf *out, const inspect_report *r, const model *m, const char *path);
void inspect_put_json(buf *out, const inspect_report *r, const model *m, const char *path);

#endif
