/* tagging.h: a tagger's logits -> labelled entities of the text.
 *
 * Labels follow BIO: "B-x" begins an entity of x, "I-x" carries it on (and begins one where nothing of
 * x is open), "O" is outside; a label without such a prefix counts as its own "I-". */
#ifndef NET_TAGGING_H
#define NET_TAGGING_H

#include <stddef.h>

#include "base/err.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

typedef struct entity {
    token_span span;   /* in the original text */
    const char *label; /* without "B-"; borrowed from the configuration */
    float score;       /* mean probability of the chosen labels over its tokens */
} entity;

/* logits[e->n][c->n_labels]. Tokens that stand for no text and those of a second text are skipped. On
 * success *ret is the caller's to free() (NULL when there are none). Any thread. */
int tagging_entities(const model_config *c, const encoding *e, const float *logits, entity **ret,
                     size_t *ret_n, shoal_err *err);

#endif
