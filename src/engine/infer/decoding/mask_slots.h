/* mask_slots.h: a text with gaps, and the words that a fill-mask model would write into them.
 *
 * People write "[MASK]" (BERT's) or "<mask>" (RoBERTa's) where a word is missing, whichever the model knows;
 * both become the model's own mask token, and no other control token is read from the text.
 *
 *     mask_slots g = {0};
 *     mask_slots_encode(&g, tok, "Paris is the [MASK] of France.", &err);
 *     engine_encode(e, &(enc_request){.ids = g.enc.ids, ..., .at = g.at, .n_at = g.n}, ...);
 *     engine_word_scores(e, row); mask_slots_best(row, n_vocab, 5, guesses);
 *     mask_slots_write(&g, tok, 0, guesses[0].id, &out);       ... "Paris is the capital of France."
 *     mask_slots_done(&g); */
#ifndef INFER_DECODING_GAPS_H
#define INFER_DECODING_GAPS_H

#include "base/buf.h"
#include "base/err.h"
#include "tokenizer/tokenizer.h"

#define GAPS_MAX     32   /* of one text: each is a row of the whole vocabulary */
#define GAPS_TOP     5    /* words for a gap when nobody says how many, */
#define GAPS_TOP_MAX 1000 /* and the most that anybody may ask for */

typedef struct mask_slots {
    buf text; /* with the model's own mask token */
    encoding enc;
    size_t n;
    uint32_t at[GAPS_MAX];                   /* which token of enc each gap is */
    uint32_t begin[GAPS_MAX], end[GAPS_MAX]; /* its bytes in text */
} mask_slots;

typedef struct mask_guess {
    int32_t id;
    float score;
} mask_guess;

/* The mask token as the model's vocabulary spells it; NULL: it has none. */
const char *mask_slots_token(const tokenizer *t);
/* *ret is zeroed and, on success, ended with mask_slots_done. SHOAL_EINVALID: no gap (the message names the token
 * to write), bad UTF-8; SHOAL_ELIMIT: over GAPS_MAX; SHOAL_EUNSUPPORTED: no mask in the vocabulary. */
int mask_slots_encode(mask_slots *ret, const tokenizer *t, const char *text, shoal_err *err);
void mask_slots_done(mask_slots *g); /* a zeroed one is fine */

/* The k words of the highest score, best first (of equals the lowest id): ret[k], k at most n_vocab. */
void mask_slots_best(const float *scores, size_t n_vocab, size_t k, mask_guess *ret);
/* Append a token's text by itself, without the space that it may begin with. SHOAL_ENOMEM. */
int mask_slots_word(const tokenizer *t, int32_t id, buf *out);
/* Append the text with this word in that gap; the other gaps stay. SHOAL_ENOMEM. */
int mask_slots_write(const mask_slots *g, const tokenizer *t, size_t gap, int32_t id, buf *out);

#endif
