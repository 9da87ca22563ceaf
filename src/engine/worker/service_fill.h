/* service_fill.h: one text of a FillMask call: its gaps, then the best words for them. Inside service_*.c. */
#ifndef WORKER_SERVICE_FILL_H
#define WORKER_SERVICE_FILL_H

#include "base/arena.h"
#include "infer/decoding/mask_slots.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/service.h"

typedef struct service_fill { /* zeroed: none */
    mask_slots gaps;
    size_t k;            /* words for each gap */
    mask_guess *guesses; /* [gaps.n][k]; NULL until the engine has answered */
} service_fill;

/* SHOAL_EINVALID (no gap, a pair), SHOAL_ELIMIT, ... as mask_slots_encode. top_k 0: GAPS_TOP. */
int service_fill_prepare(service_fill *f, const worker *w, const Shoal__V1__TextInput *in, size_t top_k,
                         shoal_err *err);
/* logits[gaps.n][n_vocab], which become scores. SHOAL_ENOMEM. */
int service_fill_take(const worker *w, service_fill *f, float *logits);
/* The message, in a's memory. SHOAL_ENOMEM. */
int service_fill_put(const worker *w, const service_fill *f, arena *a, Shoal__V1__Filling *ret);
void service_fill_done(service_fill *f);

#endif
