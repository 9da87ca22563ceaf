/* tagging.h: a tagger's logits -> labelled spans of the text.
 *
 * Labels follow BIO: "B-x" begins a span of x, "I-x" carries it on (and begins one where nothing of x
 * is open), "O" is outside; a label without such a prefix counts as its own "I-". */
#ifndef INFER_TAGGING_H
#define INFER_TAGGING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/tokenizer.h"

typedef struct tag_span {
    uint32_t begin, end;       /* bytes of the text */
    uint32_t cp_begin, cp_end; /* code points of the text */
    const char *label;         /* without "B-"; borrowed from labels */
    float score;               /* mean probability of the chosen labels over its tokens */
} tag_span;

/* logits[e->n][n_labels]. Tokens that stand for no text and those of a second text are skipped. On
 * success *ret is the caller's to free (NULL when there are none). Any thread. */
int tag_spans(const encoding *e, const float *logits, const char *const *labels, size_t n_labels, tag_span **ret,
              size_t *ret_n, shoal_err *err);

#endif
