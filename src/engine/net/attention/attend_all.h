/* attend_all.h: attention inside each sequence of a ragged batch, all at once and without a cache.
 *
 * Every token sees its whole sequence, or window / 2 tokens to each side; causal ones see themselves and what
 * stands before them, or the window's tokens of that (attend.h). Keys of a layer are turned into
 * tiles of sixteen, which one instruction scores; a token's scores are taken in order of position. */
#ifndef NET_ATTENTION_ATTEND_ALL_H
#define NET_ATTENTION_ATTEND_ALL_H

#include "net/attention/attend.h"
#include "net/attention/distance.h"

#define TILE 16 /* keys scored at once */

/* One step's sequences. */
typedef struct ragged {
    size_t n_tokens;
    const uint32_t *item;               /* [n_tokens]: whose each token is */
    const uint32_t *first, *first_tile; /* [items + 1]: rows and tiles of each */
    float *keys;                        /* [tiles][n_head_kv][head_dim][TILE], of one layer */
    float *space;                       /* [members][space_floats] */
    size_t space_floats;                /* attend_all_space of the longest sequence and a tile */
    bool causal;                        /* decoders that embed */
    const distance *distance;
} ragged;

/* What distances are compared with in one layer (distance.h), made of the relative embeddings. */
typedef struct relative {
    /* [n_vectors][n_head_kv * head_dim]: queries are compared with it; NULL: no such thing. */
    float *by_query;
    float *by_key; /* [n_vectors][n_head * head_dim]: keys are */
} relative;

/* Floats of work space that a member needs where sequences have up to n_ctx positions. */
size_t attend_all_space(const attn_conf *c, size_t n_ctx);

/* qkv[n][q, k, v]: norms and rotation in place; then att[n][n_head * head_dim]. */
void blk_attend_all(lane *l, const attend *a, const ragged *g, const relative *r, rows *qkv, rows *att);

#endif
