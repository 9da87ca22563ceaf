/* bert.h: the BERT family's forward pass over a ragged batch, with its heads.
 *
 * The tokens of all sequences lie one after the other in one matrix, with no padding; attention stays
 * inside each sequence. A sequence's bits do not depend on its company. */
#ifndef INFER_BERT_H
#define INFER_BERT_H

#include "base/err.h"
#include "compute/compute.h"
#include "model/model.h"

typedef struct bert bert;

typedef struct bert_item {
    const int32_t *ids;
    const uint8_t *type_ids; /* NULL: zeros */
    size_t n;                /* 1 .. n_ctx */
    /* Out: values[rows][cols], valid until the next step. classify: logits[1][n_labels]; tag:
     * logits[n][n_labels]; embed: [1][n_embd]. */
    const float *values;
    size_t rows, cols;
} bert_item;

/* Weights are packed from m for t's instruction set; max_tokens and max_items bound a step. */
int bert_new(bert **ret, const model *m, team *t, size_t max_tokens, size_t max_items, shoal_err *err);
void bert_free(bert *b);
/* Tokens and items within the bounds given to bert_new (asserted). The thread that owns t. */
void bert_step(bert *b, team *t, bert_item *items, size_t n_items);

#endif
