/* batch.h: who computes how many tokens in the next step. Pure: no clock, no engine.
 *
 * Every running stream gets its one decode token; prefills share a budget, so that streams keep their
 * pace while a long prompt comes in. The budget is dealt out evenly, from another one on each step,
 * and what short ones leave goes to the others. */
#ifndef INFER_BATCH_H
#define INFER_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#define BATCH_GRAIN 16 /* smallest share of a prefill, tokens */

typedef struct batch_entry {
    size_t pending; /* tokens still to compute, at least 1; 1 is a decode step */
    bool probe;     /* wants logits of all tokens after the first n_quiet pending ones */
    size_t n_quiet;
    size_t n; /* out: tokens in this step, 0 for none */
} batch_entry;

typedef struct batch_limits {
    size_t alone, shared; /* prefill budget in tokens without and with decode steps beside it */
    size_t probe_rows;    /* rows of logits for probes */
    size_t turn;          /* number of the step */
} batch_limits;

void batch_plan(batch_entry *entries, size_t n, const batch_limits *limits);

#endif
