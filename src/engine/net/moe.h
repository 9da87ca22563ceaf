/* moe.h: a mixture of experts (Shazeer et al. 2017, arXiv:1701.06538; Jiang et al. 2024, arXiv:2401.04088).
 *
 * The router's softmax goes over all experts; a token goes to the n_used best, the lower number among equals.
 * The rows of a step are sorted by expert, so that each expert's matrices are read once whatever the batch.
 * A token adds up its experts in the order of their numbers: its bits do not depend on its company. */
#ifndef NET_MOE_H
#define NET_MOE_H

#include "net/block.h"

typedef struct moe {
    const ffn_conf *c;
    size_t width;
    proj router;
    proj *in, *down; /* [n_expert]: gate and up (or up alone), and down */
} moe;

/* One step's work space, shared by all layers. Rows of experts are called places. */
typedef struct moe_space {
    acts *acts;
    float *logits;             /* [n][n_expert] */
    float *weight;             /* [n][n_used] */
    uint32_t *expert, *place;  /* [n][n_used], by expert's number */
    uint32_t *token;           /* [n * n_used]: of each place */
    uint32_t *first;           /* [n_expert + 1]: of each expert */
    float *x, *ff, *act, *out; /* [n * n_used][n_embd, 2 or 1 n_ff_expert, n_ff_expert, n_embd] */
} moe_space;

int moe_load(moe *e, const model *m, const char *prefix, isa set, shoal_err *err);
void moe_done(moe *e); /* a zeroed one is fine */
int moe_space_init(moe_space *s, const model_config *c, size_t max_tokens, shoal_err *err);
void moe_space_done(moe_space *s); /* a zeroed one is fine */

/* y = the weighted sum of x's experts; y is not x. */
void blk_moe(lane *l, const moe *e, const moe_space *s, rows *x, rows *y);

#endif
