/* sampler.h: from logits to the next token.
 *
 * The order is the field's usual one: penalties, bias, grammar mask, temperature, then top-k, top-p and
 * min-p on the sorted distribution, then one draw. The draw is rng_uniform(seed, position) and all
 * arithmetic is the contract's, so a reply is a function of (model, prompt, sampling, seed) on every
 * machine. The distribution is summed up in blocks and kept nowhere: a draw looks at block sums and inside
 * one block only, and what is cut is ranked in bands of likelihood, the next of which is looked for in the
 * blocks that can hold it when the last is used up. A band is sorted only where the cut or the draw falls in it: it
 * is split in halves until few ids are left, which takes time in proportion to its ids. With temperature 0 the
 * largest logit wins, the lowest id among equals.
 *
 * Log-probabilities are of the raw distribution, before any of this. */
#ifndef INFER_DECODING_SAMPLER_H
#define INFER_DECODING_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/compute.h"
#include "infer/engine.h"
#include "grammar/grammar.h"

#define SAMPLER_TOP_MAX 20

/* One request's sampler: its settings and the tokens it has seen. */
typedef struct sampler {
    sampling s;
    logit_bias *bias; /* own copy of s.bias */
    size_t n_vocab;
    uint32_t *n_seen;   /* [n_vocab] generated so often; NULL when no penalty is asked for */
    uint8_t *in_prompt; /* [n_vocab] */
    int32_t *seen;      /* ids with n_seen or in_prompt, each once */
    size_t n_distinct;
    int n_top;
} sampler;

/* Work space of one team member. */
typedef struct sampler_space {
    float *work, *prob; /* [n_vocab] */
    float *block;       /* sums of exponentials, of EXP_SUMS_BLOCK ids each */
    int32_t *order;     /* [n_vocab] */
} sampler_space;

typedef struct sample {
    int32_t id;
    float logprob;
    size_t n_top;
    token_logprob top[SAMPLER_TOP_MAX]; /* likeliest first */
} sample;

/* Nothing stays borrowed. SHOAL_EINVALID: out of range, or a biased id outside the vocabulary. */
int sampler_init(sampler *s, const sampling *how, int n_top, size_t n_vocab, const int32_t *prompt,
                 size_t n_prompt, shoal_err *err);
void sampler_done(sampler *s);

int sampler_space_init(sampler_space *sp, size_t n_vocab); /* SHOAL_ENOMEM */
void sampler_space_done(sampler_space *sp);

/* The distribution that raw logits mean: sp->prob[i] = exp(logits[i] - *ret_max), whose sum comes back. */
double sampler_weigh(const vec_kernels *v, sampler_space *sp, const float *logits, size_t n, float *ret_max);
/* Choose from logits[n_vocab] (left as they are). g may be NULL; with it, ids that it forbids are
 * never chosen. Position is the number of the new token in its reply. */
void sampler_choose(const sampler *s, const vec_kernels *v, sampler_space *sp, const float *logits,
                    uint64_t position, grammar *g, const int32_t *eos_ids, size_t n_eos, sample *ret);
/* What raw logits say of one token, and of the likeliest ones: ret as sampler_choose fills it. */
void sampler_judge(const sampler *s, const vec_kernels *v, sampler_space *sp, const float *logits, int32_t id,
                   sample *ret);
/* The reply grew by this token. */
void sampler_accept(sampler *s, int32_t id);

#endif
