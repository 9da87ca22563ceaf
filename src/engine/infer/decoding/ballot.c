/* ballot.c: distributions to and fro; see ballot.h. */
#include "infer/decoding/ballot.h"

#include <math.h>
#include <stdlib.h>

#include "base/buf.h"

#define SLACK 1.001f /* what a sum of rounded products may be over 1 */

ballot *ballot_new(bool geometric, size_t n_vocab)
{
    size_t bytes;
    if (size_mul(n_vocab, sizeof(float), &bytes) || size_add(bytes, sizeof(ballot), &bytes)) return NULL;
    ballot *b = calloc(1, bytes);
    if (b) *b = (ballot){.geometric = geometric, .n_vocab = n_vocab};
    return b;
}

float ballot_cast(ballot *b, const vec_kernels *v, sampler_space *sp, const float *logits)
{
    float max;
    double total = sampler_weigh(v, sp, logits, b->n_vocab, &max);
    float log_sum = max + math_logf((float)total), share = (float)(1 / total);
    for (size_t i = 0; i < b->n_vocab; i++)
        b->values[i] = b->geometric ? logits[i] - log_sum : sp->prob[i] * share;
    return log_sum;
}

void ballot_logits(ballot *b)
{
    for (size_t i = 0; !b->geometric && i < b->n_vocab; i++)
        b->values[i] = b->values[i] > 0 ? math_logf(b->values[i]) : GEN_NEVER;
}

bool ballot_is_mean(const ballot *b, const float *x)
{
    float most = b->geometric ? SLACK - 1 : SLACK, least = b->geometric ? 4 * GEN_NEVER : 0, best = least;
    for (size_t i = 0; i < b->n_vocab; i++) {
        if (!(x[i] >= least && x[i] <= most)) return false;
        if (x[i] > best) best = x[i];
    }
    return best > least;
}
