/* rope.h: rotary position tables (Su et al. 2021), made once a model.
 *
 * Angle of pair i at position p: p * f(i), f(i) = theta^(-2i / rot_dim), changed by
 *   - linear scaling: f / factor;
 *   - factors of the file (rope_freqs.weight): f / factor[i];
 *   - "llama3" scaling: wavelengths over original_ctx / low_freq are divided by factor, those
 *     under original_ctx / high_freq stay, between them f moves smoothly from one to the other. */
#ifndef INFER_ROPE_H
#define INFER_ROPE_H

#include <stddef.h>

#include "base/err.h"
#include "model/model.h"

typedef struct rope_table {
    size_t n_ctx, half; /* half = rot_dim / 2 */
    float *cos, *sin;   /* [n_ctx][half], owned */
} rope_table;

/* factors: [rot_dim / 2] or NULL; when given, the configuration's llama3 scaling is in them already. */
int rope_init(rope_table *t, const model_config *c, size_t n_ctx, const float *factors, shoal_err *err);
void rope_done(rope_table *t);

#endif
