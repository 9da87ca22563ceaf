/* shortconv.h: LFM2's short convolution, a gated causal convolution of a few taps over each channel.
 *
 * From in_proj come b, c and x of n_embd each; u = b * x; y[p] = c * (w[0] u[p - taps + 1] + ... + w[taps -
 * 1] u[p]). A position keeps its u in the cache, in the slots of its layer, so that a prefix that is shared,
 * cut or taken back leads to the same bits as one that was computed in one go. Beside F16 keys u is F16 too.
 */
#ifndef NET_SHORTCONV_H
#define NET_SHORTCONV_H

#include "net/attention/attend.h"

typedef struct shortconv {
    float *w, *bias; /* [taps][width]; [width] or NULL */
    size_t taps, width;
    size_t slot; /* its first layer in the cache */
} shortconv;

/* "<prefix>shortconv.conv.weight" [n_embd][taps]; slot is the caller's. */
int shortconv_load(shortconv *c, const model *m, const char *prefix, shoal_err *err);
void shortconv_done(shortconv *c); /* a zeroed one is fine */
/* Layers of a cache of n_head_kv * head_dim that one convolution of `width` takes. */
size_t shortconv_slots(const kv_shape *shape, size_t width);

/* in[n][3 width] = b, c, x; out[n][width] */
void blk_shortconv(lane *l, const shortconv *c, const attend_step *s, rows *in, rows *out);

#endif
