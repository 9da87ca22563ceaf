/* beam.h: beam search (Graves 2012; length penalty: Wu et al. 2016, arXiv:1609.08144), the choosing part.
 * Pure: no model, no memory of keys and values.
 *
 * Some lanes, each a reply so far with the sum of its log-probabilities. Every step each lane brings its
 * likeliest next tokens; of all of them the best become the lanes of the next step, and those that end are
 * set aside as finished replies, scored sum / length^penalty. As the reference does, a step looks at the 2 n
 * best, an ending counts only among the first n of them, and among equals the earlier lane and the lower rank
 * win.
 *
 *     beam *b;
 *     beam_new(&b, &(beam_options){.n = 4, .length_penalty = 1}, max_tokens, &err);
 *     while ((n = beam_advance(b, lanes, n, eos_ids, n_eos, moves)) > 0)
 *         ... run moves[0..n) ...
 *     ids = beam_best(b, &n_ids, &logprob);
 */
#ifndef INFER_DECODING_BEAM_H
#define INFER_DECODING_BEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "infer/engine.h"

#define BEAM_MAX 10 /* lanes; each brings twice as many candidates */

typedef struct beam beam;

typedef struct beam_options {
    size_t n;             /* lanes, 1 .. BEAM_MAX */
    float length_penalty; /* over 0 favours long replies */
    bool early;           /* stop as soon as n replies have ended, though a lane might still become better */
} beam_options;

typedef struct beam_lane {
    const int32_t *ids; /* the reply so far */
    size_t n_ids;
    const token_logprob *next; /* likeliest first, 2 n of them (fewer in a small vocabulary) */
    size_t n_next;
} beam_lane;

typedef struct beam_move { /* a lane of the next step: the reply of lane `from`, and one token */
    size_t from;
    int32_t id;
} beam_move;

/* max_tokens bounds a reply. SHOAL_EINVALID for options out of range. */
int beam_new(beam **ret, const beam_options *o, size_t max_tokens, shoal_err *err);
void beam_free(beam *b);

/* Lanes are those that moves of the step before made, in order; the first step has one, empty. moves[n] is
 * filled. Returns how many lanes go on; 0: the search is over. */
size_t beam_advance(beam *b, const beam_lane *lanes, size_t n_lanes, const int32_t *eos_ids, size_t n_eos,
                    beam_move *moves);
/* After the end: the best reply, end token included when it has one; borrowed. */
const int32_t *beam_best(const beam *b, size_t *ret_n, float *ret_logprob); /* the mean of its tokens' */

#endif
