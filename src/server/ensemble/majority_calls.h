/* majority_calls.h: several models answer one question, and what most of them say goes out.
 *
 * A classification or tagging asked of a vote's name (vote_calls.h: the same rules) is asked of all its
 * members at once. Of classifications the weighted mean of each label's probability goes out, a label that a
 * model does not know counting 0 there; of taggings the spans (place and label) for which more than half of
 * the weight speaks, with the mean of their scores, the heavier one where two overlap.
 *
 * Who fails, or has not answered when the deadline nears, is left out, and the weights of the others count
 * for all; the answer says so (`wanted`, `why`). Other tasks go on as they came.
 *
 *     majority_calls_new(&c, env, inner, &(vote_options){.rules = rules, .n_rules = 1}, err); */
#ifndef ENSEMBLE_MAJORITY_CALLS_H
#define ENSEMBLE_MAJORITY_CALLS_H

#include "ensemble/vote_calls.h"

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int majority_calls_new(calls **ret, const env *env_, calls *inner, const vote_options *opts, shoal_err *err);

#endif
