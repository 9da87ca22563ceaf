/* gaps.h: a text with gaps, and the words that a fill-mask model would write into them.
 *
 * People write "[MASK]" (BERT's) or "<mask>" (RoBERTa's) where a word is missing, whichever the model knows;
 * both become the model's own mask token, and no other control token is read from the text.
 *
 *     gaps g = {0};
 *     gaps_encode(&g, tok, "Paris is the [MASK] of France.", &err);
 *     engine_encode(e, &(enc_request){.ids = g.enc.ids, ..., .at = g.at, .n_at = g.n}, ...);
 *     engine_word_scores(e, row); gaps_best(row, n_vocab, 5, guesses);
 *     gaps_write(&g, tok, 0, guesses[0].id, &out);       ... "Paris is the capital of France."
 *     gaps_done(&g); */
#ifndef INFER_DECODING_GAPS_H
#define INFER_DECODING_GAPS_H

#include "base/buf.h"
#include "base/err.h"
#include "tokenizer/tokenizer.h"

#define GAPS_MAX     32   /* of one text: each is a row of the whole vocabulary */
#define GAPS_TOP     5    /* words for a gap when nobody says how many, */
#define GAPS_TOP_MAX 1000 /* and the most that anybody may ask for */

typedef struct gaps {
    buf text; /* with the model's own mask token */
    encoding enc;
    size_t n;
    uint32_t at[GAPS_MAX];                   /* which token of enc each gap is */
    uint32_t begin[GAPS_MAX], end[GAPS_MAX]; /* its bytes in text */
} gaps;

typedef struct gap_guess {
    int32_t id;
    float score;
} gap_guess;

/* The mask token as the model's vocabulary spells it; NULL: it has none. */
const char *gaps_token(const tokenizer *t);
/* *ret is zeroed and, on success, ended with gaps_done. SHOAL_EINVALID: no gap (the message names the token
 * to write), bad UTF-8; SHOAL_ELIMIT: over GAPS_MAX; SHOAL_EUNSUPPORTED: no mask in the vocabulary. */
int gaps_encode(gaps *ret, const tokenizer *t, const char *text, shoal_err *err);
void gaps_done(gaps *g); /* a zeroed one is fine */

/* The k words of the highest score, best first (of equals the lowest id): ret[k], k at most n_vocab. */
void gaps_best(const float *scores, size_t n_vocab, size_t k, gap_guess *ret);
/* Append a token's text by itself, without the space that it may begin with. SHOAL_ENOMEM. */
int gaps_word(const tokenizer *t, int32_t id, buf *out);
/* Append the text with this word in that gap; the other gaps stay. SHOAL_ENOMEM. */
int gaps_write(const gaps *g, const tokenizer *t, size_t gap, int32_t id, buf *out);

#endif
