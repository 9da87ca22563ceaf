/* openai_near.h: what a generation is asked last, and everything else.
 *
 * A cache that finds answers by likeness compares the last words of a user, and demands that all the rest be
 * the same: the messages before them, parameters, model. Requests with tools, several choices or
 * probabilities are not compared, nor what is no plain text. */
#ifndef DIALECTS_OPENAI_NEAR_H
#define DIALECTS_OPENAI_NEAR_H

#include "dialects/openai.h"

typedef struct openai_near {
    const char *text;        /* the spec's */
    sha256_digest partition; /* of all the rest */
} openai_near;

/* As openai_spec_key; sampled: with a temperature and a seed, too. False: it is not to be compared. */
bool openai_near_of(openai_near *ret, const gen_spec *s, const Shoal__V1__ModelInfo *model,
                    const char *adapter_digest, bool sampled);

#endif
