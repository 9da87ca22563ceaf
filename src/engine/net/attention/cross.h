/* cross.h: attention of a decoder to what its encoder made of a source (Vaswani et al. 2017, section 3.2.3).
 *
 * Keys and values of a source are made once, for all layers, and belong to the session:
 *
 *     memory: [layer][keys: [tile][kv head][head_dim][16], values: [n_positions][kv heads * head_dim]], F32
 *
 * A token's query heads score all positions in their order, one softmax, one weighted sum in order. */
#ifndef NET_ATTENTION_CROSS_H
#define NET_ATTENTION_CROSS_H

#include "net/block.h"
#include "net/net.h"

typedef struct cross {
    norm pre, post;  /* w NULL where there is none */
    proj q, kv, out; /* q.n_parts 0: the layer has no such thing */
    size_t n_head, n_head_kv, head_dim, layer;
    float scale;
} cross;

/* "<prefix>cross_attn_..." of a decoder's layer number `layer`. */
int cross_load(cross *x, const model *m, const model_config *c, const char *prefix, size_t layer, isa set,
               shoal_err *err);
void cross_done(cross *x); /* a zeroed one is fine */

/* Bytes of one layer's keys and values of n positions. */
size_t cross_layer_bytes(const model_config *c, size_t n);

/* All members: x[n][n_embd], the encoder's rows, into the session's memory. kv[n][2 * kv heads * head_dim] is
 * work space. */
void blk_cross_keep(lane *l, const cross *x, rows *from, rows *kv, void *memory);

typedef struct cross_step {
    const net_item *items;
    const uint32_t *item; /* [n_tokens]: whose each token is */
    float *scores;        /* [members][n_head / n_head_kv][scores_width] */
    size_t scores_width;
    const model_config *c;
} cross_step;

/* q[n][n_head * head_dim] -> att, of the same shape. */
void blk_cross(lane *l, const cross *x, const cross_step *s, rows *q, rows *att);

#endif
