/* quantize_block.h: choose the scales of a block better than the plain quantiser does.
 *
 * The format fixes what is stored, not how the scale is chosen. Each run tries a range of scales around
 * the obvious one, refits the scale (and minimum) to the rounded values by weighted least squares and keeps
 * the best. A super-block then shares them out: the integers of the runs and the block's own numbers are
 * refitted in turns. model_test_quantize prints what that gains on bell-shaped weights: 14 % of the squared
 * error of Q4_0, 19 % of Q4_1. Where it is known how much a column matters (importance.h) a
 * squared error counts by that, which is then what it adds to the output's; else errors count more for large
 * weights, w = sqrt(mean(x²) + x²), since those carry the row's output. On home-chat-m and a text of its
 * kind, not the one that was learned from, importance cut the divergence of Q4_K from float by 18 %. */
#ifndef MODEL_QUANTIZE_QUANTIZE_BLOCK_H
#define MODEL_QUANTIZE_QUANTIZE_BLOCK_H

#include <stddef.h>

#include "compute/compute.h"

/* dst = src[n] in type t, n a multiple of the block. importance[n] >= 0, or NULL for all alike. Floats and
 * Q8_0 are dtype_from_f32's, and so are types of our own in eight bits when all columns are alike: there a
 * search took a hundred times as long, and gained nothing in chats (docs/quantisation.md). src must be finite.
 */
void quantize_row(dtype t, const float *src, const float *importance, void *dst, size_t n);

#endif
