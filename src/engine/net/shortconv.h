/* shortconv.h: LFM2's short convolution, a gated causal convolution of a few taps over each channel.
 *
 * From in_proj come b, c and x of n_embd each; u = b * x; y[p] = c * (w[0] u[p - taps + 1] + ... + w[taps -
 * 1] u[p]). Its state (seq_state.h) is u of the last taps - 1 positions, so that a prefix that is shared, cut
 * or taken back leads to the same bits as one that was computed in one go. Beside F16 keys u is rounded to
 * F16. */
#ifndef NET_SHORTCONV_H
#define NET_SHORTCONV_H

#include "net/attention/attend.h"

typedef struct shortconv {
    float *w, *bias; /* [taps][width]; [width] or NULL */
    size_t taps, width;
    size_t state_at;   /* its offset in a state */
    size_t file_bytes; /* of w in the file, for a profile */
} shortconv;

/* "<prefix>shortconv.conv.weight" [n_embd][taps]; state_at is the caller's. */
int shortconv_load(shortconv *c, const model *m, const char *prefix, shoal_err *err);
void shortconv_done(shortconv *c); /* a zeroed one is fine */
/* Bytes of one layer's state: [taps - 1][n_embd] floats. */
size_t shortconv_state_bytes(const model_config *c);

/* in[n][3 width] = b, c, x, of which b becomes u; out[n][width] */
void blk_shortconv(lane *l, const shortconv *c, const attend_step *s, rows *in, rows *out);

#endif
