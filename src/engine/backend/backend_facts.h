/* backend_facts.h: what lists of models tell about a model's files: how many parameters and bytes they have, and when they
 * were written. */
#ifndef BACKEND_BACKEND_FACTS_H
#define BACKEND_BACKEND_FACTS_H

#include <stdint.h>

#include "model/model.h"

typedef struct backend_facts {
    uint64_t n_parameters; /* 0: it is made of trees */
    uint64_t file_bytes;   /* as model_kind_measure counts them; 0: they cannot be read */
    int64_t file_time_s;   /* the latest of their modification times, since 1970 */
} backend_facts;

/* m may be NULL (trees). Blocking. */
backend_facts backend_facts_of(const model *m, const char *path);

#endif
