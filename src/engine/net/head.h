/* head.h: what an encoder makes of its rows: a pooled vector, labels of a text or of each token, or words for
 * places.
 *
 *     embed            pooled (and of length 1)
 *     classify, rerank pooled, then perhaps "cls" and its activation and norm, then "cls.output"
 *     tag              every token through the same
 *     fill-mask        wanted tokens through "mlm" and its activation and norm, then the words' embeddings */
#ifndef NET_HEAD_H
#define NET_HEAD_H

#include "net/block.h"
#include "net/embed.h"
#include "net/net.h"

typedef struct head {
    const model_config *c;
    proj dense;       /* n_parts 0: none */
    norm norm;        /* w NULL: none */
    proj out;         /* n_parts 0: none, or the words' embeddings */
    const proj *tied; /* fill-mask: those */
    float *bias;      /* of tied words, or NULL */
    size_t n_out;     /* columns of the answer */
    /* one step's work space */
    size_t max_rows;
    float *picked, *hidden, *values; /* [max_rows][n_embd], [max_rows][dense's rows], [max_rows][n_out] */
    uint32_t *row;                   /* [max_rows]: which row of the step each is; fill-mask */
} head;

int head_load(head *h, const model *m, const model_config *c, const embed *e, isa set, shoal_err *err);
/* Room for a step of so many inputs and tokens. */
int head_make_space(head *h, size_t max_inputs, size_t max_tokens, shoal_err *err);
void head_done(head *h); /* a zeroed one is fine */

/* Rows of the answer to one input. */
size_t head_rows(const head *h, const net_input *it);
/* Before and after a step, by one thread: rows of the answer to each input, and where they lie.
 * first[n_inputs + 1]: each input's first row. */
size_t head_lay_out(head *h, const net_input *items, size_t n_items, const uint32_t *first);
void head_point_out(const head *h, net_input *items, size_t n_items);

/* All members: x is what the last layer left; n_rows is what head_lay_out said. */
void blk_head(lane *l, const head *h, const uint32_t *first, size_t n_rows, rows *x);

#endif
