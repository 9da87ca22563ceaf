/* attend.h: causal attention over a paged cache (kv.h).
 *
 * A token's query heads score the keys in order of position, chunk by chunk of positions; each chunk has a
 * softmax and a weighted sum over its values in order of position, and chunks are joined in order
 * (attend_block.h): nothing depends on how prefill was cut, or on who computed what. Under a window a token
 * sees itself and the window - 1 positions before it; pages outside are not read. */
#ifndef NET_ATTENTION_ATTEND_H
#define NET_ATTENTION_ATTEND_H

#include "net/block.h"
#include "net/attention/distance.h"
#include "net/net.h"
#include "net/attention/rope.h"

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
    const uint32_t *order;    /* [n_tokens]: where each row stands when items follow one another, */
    const uint32_t *row;      /* [n_tokens]: and the row that stands there */
    bool all_single;          /* no item has more than one token */
    float *space;             /* [members][space_floats] */
    size_t space_floats;      /* attend_block_space */
    float *parts;             /* [parts_floats]: chunks that members deal out among them; NULL: they do not */
    size_t parts_floats;      /* attend_parts_floats, or 0 */
} attend_step;

/* Norms of q and k ("<prefix>attn_q_norm", "attn_k_norm") and the sizes, of a layer with these flags; slot,
 * rope and distance are the caller's. */
int attend_load(attend *a, const model *m, const model_config *c, const char *prefix, unsigned flags,
                shoal_err *err);
void attend_done(attend *a); /* a zeroed one is fine */

/* Floats of parts that let all members work on one token of sequences of up to n_ctx positions. */
size_t attend_parts_floats(const attn_conf *c, size_t n_ctx);

/* Norms and rotation of one row [q heads, k heads, v heads] at position `pos`, in place; one thread. */
void attend_prepare(const attend *a, const vec_kernels *v, float *row, size_t pos);

/* qkv[n][q heads, k heads, v heads]: norms, rotation (in place), keys and values into the cache; then
 * att[n][n_head * head_dim]. */
void blk_attend(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att);

#endif
