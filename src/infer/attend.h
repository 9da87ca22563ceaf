/* attend.h: causal attention over a paged cache (kv.h).
 *
 * A token's query heads score the keys in order of position, one softmax goes over the whole row, and one
 * weighted sum over the values in order of position: nothing depends on how prefill was cut. Under a window a
 * token sees itself and the window - 1 positions before it; pages outside are not read. */
#ifndef INFER_ATTEND_H
#define INFER_ATTEND_H

#include "infer/block.h"
#include "infer/distance.h"
#include "infer/net.h"
#include "infer/rope.h"

/* How one layer attends. */
typedef struct attend {
    size_t n_head, n_head_kv, head_dim;
    size_t window;            /* 0: all */
    size_t slot;              /* its layer in the cache */
    float scale, softcap;     /* softcap 0: none */
    const rope_table *rope;   /* NULL: none */
    const distance *distance; /* NULL: none; a bias of each head */
    qk_norm qk;
    norm q_norm, k_norm;
} attend;

/* Where each token of a step belongs. */
typedef struct token_place {
    uint32_t item, position;
} token_place;

typedef struct attend_step {
    const kv *cache;
    const net_item *items;
    const token_place *place; /* [n_tokens] */
    bool all_single;          /* no item has more than one token */
    float *space;             /* [members][space_floats] */
    size_t space_floats;      /* attend_space */
} attend_step;

/* Norms of q and k ("<prefix>attn_q_norm", "attn_k_norm") and the sizes, of a layer with these flags; slot,
 * rope and distance are the caller's. */
int attend_load(attend *a, const model *m, const model_config *c, const char *prefix, unsigned flags,
                shoal_err *err);
void attend_done(attend *a); /* a zeroed one is fine */

/* Floats of work space that a member needs where sequences have up to n_ctx positions. */
size_t attend_space(const attn_conf *c, size_t n_ctx);
/* How many of them are for scores; behind these there are two of [KV_PAGE_TOKENS][query heads of a key
 * head][head_dim], and what attention over int8 wants of as many rows. */
size_t attend_scores_floats(const attend *a, size_t space_floats);
/* Floats from one row of scores of so many pages to the next. */
size_t attend_row_floats(size_t n_pages);

/* Norms and rotation of one row [q heads, k heads, v heads] at position `pos`, in place; one thread. */
void attend_prepare(const attend *a, const vec_kernels *v, float *row, size_t pos);

/* qkv[n][q heads, k heads, v heads]: norms, rotation (in place), keys and values into the cache; then
 * att[n][n_head * head_dim]. */
void blk_attend(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att);

#endif
