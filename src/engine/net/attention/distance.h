/* distance.h: what the distance between two tokens means to attention, apart from rotation: a learned bias of
 * each head (T5, MPNet), or learned vectors that queries and keys are compared with (DeBERTa). Made once a
 * model.
 *
 * The distance from a query at i to a key at j is j - i. Tables hold -(n_ctx - 1) .. n_ctx - 1 in this order,
 * so that a query's row of them begins at distance_at(d, i, 0) and goes on with j. */
#ifndef NET_ATTENTION_DISTANCE_H
#define NET_ATTENTION_DISTANCE_H

#include "base/err.h"
#include "model/model.h"

typedef struct distance {
    size_t n_ctx;
    float *bias;     /* [n_head][2 n_ctx - 1], or NULL */
    uint16_t *index; /* [2 n_ctx - 1]: number of the relative vector, or NULL */
    size_t n_vectors;
} distance;

static inline size_t distance_at(const distance *d, size_t i, size_t j)
{
    return d->n_ctx - 1 + j - i;
}

/* From "<prefix>attn_rel_b.weight" [buckets][n_head]. both_ways: half of the buckets are for keys behind the
 * query; else those all share one. */
int distance_load_bias(distance *d, const model *m, const bucket_conf *c, const char *prefix, size_t n_head,
                       size_t n_ctx, bool both_ways, shoal_err *err);
/* For a model with pos.relative: 2 * relative vectors. */
int distance_load_index(distance *d, const pos_conf *c, size_t n_ctx, shoal_err *err);
void distance_done(distance *d); /* a zeroed one is fine */

/* T5's bucket of a key `by` further on: exact near zero, logarithmic up to max_distance (Raffel et al. 2019,
 * arXiv:1910.10683, section 2.1). */
size_t distance_bucket(const bucket_conf *c, long by, bool both_ways);
/* DeBERTa's, signed: `buckets` a side for distances up to max (He et al. 2021, arXiv:2006.03654). */
long distance_log_bucket(long by, long buckets, long max);

#endif
