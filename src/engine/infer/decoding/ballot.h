/* ballot.h: what one model makes of the next token, and what several came to together.
 *
 * Where models with one vocabulary write a reply together, each tells its distribution over the next token,
 * somebody takes the mean of all, and each gets that mean and chooses from it as it would from its own: the
 * same sampler, form and stop strings everywhere, so that all choose the same token without another word.
 *
 *     ballot_cast(b, vec, space, logits)  ─► b->values: probabilities, or their logarithms for a geometric
 *                                         mean
 *     b->values = the mean                ─► ballot_logits(b): what the sampler chooses from
 *
 * Exact: the same bits on every instruction set. Engine thread, and team members on rows of their own. */
#ifndef INFER_DECODING_BALLOT_H
#define INFER_DECODING_BALLOT_H

#include <stdbool.h>

#include "infer/decoding/sampler.h"

typedef struct ballot {
    bool geometric;
    size_t n_vocab;
    bool waits, given; /* for the mean; it is there. Changed under the engine's lock */
    float values[];    /* [n_vocab] */
} ballot;

ballot *ballot_new(bool geometric, size_t n_vocab); /* NULL: out of memory; free() it */
/* Returns the logarithm of the sum of all exponentials: no finite number when the logits are none. */
float ballot_cast(ballot *b, const vec_kernels *v, sampler_space *sp, const float *logits);
/* Values of a mean, as it was given, into logits, in place. */
void ballot_logits(ballot *b);
/* Can `x` be a mean of n ballots: finite, and probabilities from 0 to 1, or their logarithms? */
bool ballot_is_mean(const ballot *b, const float *x);

#endif
