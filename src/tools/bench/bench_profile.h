/* bench_profile.h: `shoal profile MODEL`: where the time of a model's steps goes. */
#ifndef BENCH_BENCH_PROFILE_H
#define BENCH_BENCH_PROFILE_H

#include "command/cli_model.h"

typedef struct bench_profile_options {
    cli_model_options model;
    long long prompt_tokens, decode, repeat;
    const char *svg; /* NULL: no chart */
    bool layers, json;
} bench_profile_options;

/* Prints to stdout. SHOAL_EUNSUPPORTED: neither a generator nor a reader of texts; SHOAL_ELIMIT: longer than its context. */
int bench_profile(const bench_profile_options *o, const char *name, shoal_err *err);

#endif
