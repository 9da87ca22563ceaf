/* model_facts.h: what lists of models tell about a model's files: how many parameters and bytes they have, and when they
 * were written. */
#ifndef BACKEND_MODEL_FACTS_H
#define BACKEND_MODEL_FACTS_H

#include <stdint.h>

#include "model/model.h"

typedef struct model_facts {
    uint64_t n_parameters; /* 0: it is made of trees */
    uint64_t file_bytes;   /* of the file, or of the files directly in the folder; 0: they cannot be read */
    int64_t file_time_s;   /* the latest of their modification times, since 1970 */
} model_facts;

/* m may be NULL (trees). Blocking. */
model_facts model_facts_of(const model *m, const char *path);

#endif
