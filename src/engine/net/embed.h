/* embed.h: from token ids to the residual stream.
 *
 * A token's row is its embedding times scale.embd, plus its type's, plus its position's; then perhaps a norm;
 * then perhaps a matrix that widens it (n_embd_in -> n_embd: ELECTRA, ALBERT; OPT-350m). A part stands in
 * front of that matrix when it is as wide as the embeddings, behind it when it is as wide as the stream. */
#ifndef NET_EMBED_H
#define NET_EMBED_H

#include "net/block.h"

typedef struct embed {
    const model_config *c;
    proj words; /* [n_vocab][n_in] */
    size_t n_in, n_positions;
    float *positions; /* [n_positions][position_width], from position 0 on; NULL: none */
    size_t position_width;
    float *types; /* [n_types][n_in] or NULL */
    norm norm;    /* w NULL: none */
    proj widen;   /* n_parts 0: none */
} embed;

/* One token of a step. */
typedef struct embed_token {
    int32_t id;
    size_t position, type;
} embed_token;
typedef embed_token (*embed_token_fn)(const void *step, size_t t);

/* prefix: "", "enc." or "dec."; token_embd itself has none. n_ctx positions are needed. */
int embed_load(embed *e, const model *m, const model_config *c, const char *prefix, size_t n_ctx, isa set,
               shoal_err *err);
void embed_done(embed *e); /* a zeroed one is fine */

/* x[n][n_embd] = the tokens that token(step, 0 ..) names. narrow[n][n_in] is only used when there is a
 * matrix. */
void blk_embed(lane *l, const embed *e, embed_token_fn token, const void *step, rows *narrow, rows *x);

#endif
