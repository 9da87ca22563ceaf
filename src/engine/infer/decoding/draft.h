/* draft.h: guesses of a reply's next tokens, for a step that verifies several at once.
 *
 * A decode step reads all weights for one token; for five in a row it reads them once, too. So guessed tokens
 * are put behind the newest one, the step gives a row of logits for each of them, and as long as the sampler
 * chooses what was guessed, its choices stand. A reply's bits never depend on a guess: only on how many
 * steps they take.
 *
 * Two things guess. The reply's own past: where its last tokens stood before, in the prompt or the reply,
 * what followed there follows again (names, quotations, code). And the book, which all requests of an engine
 * write: what followed the last 3 or 6 tokens in replies before. How often each kind of guess comes true is
 * counted, by the request and by the book, whether the guess was computed or not, as checking one costs
 * nothing; so a request whose replies are guessed badly computes no guesses and notices when that changes.
 *
 *     draft_guess(&book, &d, ids, n_ids, room);       d.n guesses now lie in ids[n_ids ...]
 *     d.n_planned = draft_cost_best(&cost, &d, n_rows, &tokens);
 *     ... one step of 1 + d.n_planned tokens; then for each token that the sampler chooses, in order:
 *     hit = draft_check(&book, &d, at, ids, n_ids, id);
 *
 * Source: speculative decoding (Leviathan et al. 2023, arXiv:2211.17192) with guesses of n-grams (Saxena
 * 2023, prompt lookup decoding). Engine thread; no clock. */
#ifndef INFER_DECODING_DRAFT_H
#define INFER_DECODING_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRAFT_MAX  12   /* guesses of one sequence in a step */
#define DRAFT_LOOK 8192 /* tokens back that the past is searched */

/* Which guess it was: of the past, after 1, 2, 3, 4 to 7, 8 or more equal tokens; of the book, after 3 or 6,
 * seen seldom or several times. */
enum {
    DRAFT_PAST_1,
    DRAFT_PAST_2,
    DRAFT_PAST_3,
    DRAFT_PAST_4,
    DRAFT_PAST_8,
    DRAFT_BOOK_3,
    DRAFT_BOOK_3_OFTEN,
    DRAFT_BOOK_6,
    DRAFT_BOOK_6_OFTEN,
    DRAFT_N_KINDS
};

/* How often guesses came true; old ones fade. */
typedef struct draft_rate {
    float hits, tries;
} draft_rate;

typedef struct draft_book {
    struct draft_gram *grams;
    draft_rate rate[DRAFT_N_KINDS];
} draft_book;

/* One request's. Zero it. */
typedef struct draft {
    size_t n, n_planned; /* guessed; of these to be computed */
    uint8_t kind[DRAFT_MAX];
    float chance[DRAFT_MAX]; /* that it comes true if all before it do */
    draft_rate rate[DRAFT_N_KINDS];
} draft;

int draft_book_init(draft_book *b); /* SHOAL_ENOMEM */
void draft_book_done(draft_book *b);

/* Writes at most `room` guesses (and DRAFT_MAX) behind ids[0..n_ids), n_ids > 0. */
void draft_guess(const draft_book *b, draft *d, int32_t *ids, size_t n_ids, size_t room);
/* How many of them come true with a chance over this. */
size_t draft_worth(const draft *d, double chance);
/* Token n_ids of the sequence is `id`: was that guess number `at` (false: there was none, too)? Learns from
 * it. In order, up to the first that is false. */
bool draft_check(draft_book *b, draft *d, size_t at, const int32_t *ids, size_t n_ids, int32_t id);

/* What steps of so many rows cost, by what they took lately. */
#define DRAFT_COST_ROWS 64
typedef struct draft_cost {
    double ms[DRAFT_COST_ROWS + 1]; /* about the median; 0: not known */
    uint8_t n[DRAFT_COST_ROWS + 1]; /* measured so often, as far as that is counted */
} draft_cost;

void draft_cost_note(draft_cost *c, size_t n_rows, double ms);
/* How many of the guesses make most tokens a millisecond, in a step of n_rows from which *tokens are
 * expected; adds to these what the guesses will give. */
size_t draft_cost_best(const draft_cost *c, const draft *d, size_t n_rows, double *tokens);

#endif
