/* A model and its engine from their start, with a store of packed weights or without, and what they say. */
#ifndef TESTS_INFER_START_H
#define TESTS_INFER_START_H

#include "helper.h"
#include "infer/engine_impl.h"
#include "model/packed/packed_store.h"

enum { N_IDS = 40, RECENT = 8 };

typedef struct start {
    model *m;
    engine *e;
} start;

static inline start open_start(const char *path, const model_options *o, int n_threads)
{
    start x;
    must(model_open(&x.m, path, o, &err));
    must(engine_new(&x.e, x.m, &(engine_options){.n_threads = n_threads}, &err));
    return x;
}

static inline void close_start(start *x)
{
    weights_mapping_settle(&x->e->mapping);
    engine_free(x->e);
    model_free(x->m);
}

static inline float *logits(start *x, size_t *ret_n)
{
    int32_t ids[N_IDS];
    size_t n_vocab = model_get_config(x->m)->n_vocab;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)(rng_mix(i) % n_vocab);
    *ret_n = RECENT * n_vocab;
    float *out = malloc(*ret_n * sizeof *out);
    must(engine_logits(x->e, NULL, ids, N_IDS, RECENT, out, &err));
    return out;
}

#endif
