/* rope.h: rotary position tables (Su et al. 2021, arXiv:2104.09864), made once a model.
 *
 * Angle of pair i at position p: p * f(i), f(i) = theta^(-2i / dim), changed by
 *   LINEAR   f / factor
 *   LLAMA3   wavelengths over original_ctx / low_freq are divided by factor, those under original_ctx /
 *            high_freq stay, between them f moves smoothly from one to the other
 *   YARN     f stays where a pair turns more than beta_fast times in original_ctx, is divided by factor where
 *            it turns less than beta_slow times, a ramp over i between; cos and sin times 0.1 ln(factor) + 1
 *            (Peng et al. 2023, arXiv:2309.00071)
 *   LONG     f / short_by[i], past original_ctx f / long_by[i]; cos and sin times
 *            sqrt(1 + ln(factor) / ln(original_ctx)) (Ding et al. 2024, arXiv:2402.13753)
 *   DYNAMIC  past original_ctx theta grows with the length n: theta * (factor n / original_ctx - factor + 1)
 *            ^ (dim / (dim - 2))
 *   factors of the file (rope_freqs.weight): f / factor[i], instead of LLAMA3, which they have in them.
 *
 * LONG and DYNAMIC depend on a length. The reference takes that of the whole text at hand, so that one
 * forward over a long prompt turns even its first tokens otherwise than a short prompt would; keys that are
 * cached could then not be kept. Here position p has the frequencies of length p + 1: what the reference
 * computes when it generates token by token, and the same however a prompt is cut. Within original_ctx there
 * is no difference. */
#ifndef NET_ATTENTION_ROPE_H
#define NET_ATTENTION_ROPE_H

#include <stddef.h>

#include "base/err.h"
#include "model/model.h"

typedef struct rope_table {
    size_t n_ctx, half; /* half = dim / 2 */
    bool interleaved;
    float *cos, *sin; /* [n_ctx][half], owned */
} rope_table;

/* factors: [dim / 2] or NULL. */
int rope_init(rope_table *t, const rope_conf *r, size_t n_ctx, const float *factors, shoal_err *err);
/* The same with the divisors that m's file has as tensors. SHOAL_EFORMAT for one that is no positive number.
 */
int rope_load(rope_table *t, const model *m, const rope_conf *conf, size_t n_ctx, shoal_err *err);
void rope_done(rope_table *t); /* a zeroed one is fine */

#endif
