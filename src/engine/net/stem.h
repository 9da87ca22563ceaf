/* stem.h: two convolutions over log-mel frames in front of a speech encoder (Whisper: Radford et al. 2022,
 * arXiv:2212.04356, section 2.2): width 3, the second with stride 2, GELU behind each; then positions.
 *
 * A convolution is a product with the three frames around each place side by side. Frames outside are zeros,
 * so an input's rows depend on its own frames alone. */
#ifndef NET_STEM_H
#define NET_STEM_H

#include "net/block.h"
#include "net/net.h"

typedef struct stem {
    size_t n_mel, width, n_positions;
    proj conv1, conv2;      /* [width][3][n_mel], [width][3][width] */
    float *positions;       /* [n_positions][width] */
    float *around, *hidden; /* work space: [2 max_positions][3 n_mel or 3 width], [2 max_positions][width] */
} stem;

/* "<prefix>conv1", "conv2" and "position_embd" of the model; a step has at most max_positions places. */
int stem_load(stem *s, const model *m, const model_config *c, const char *prefix, size_t max_positions,
              isa set, shoal_err *err);
void stem_done(stem *s); /* a zeroed one is fine */

/* Places that n frames make. */
static inline size_t stem_positions(size_t n_frames)
{
    return (n_frames + 1) / 2;
}

/* x[n][width] = what items' features make; first[i]: the first row of item i. All members. */
void blk_stem(lane *l, const stem *s, const net_input *items, const uint32_t *item, const uint32_t *first,
              rows *x);

#endif
