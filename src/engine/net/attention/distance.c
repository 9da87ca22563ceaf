/* distance.c: tables of what distances mean; see distance.h. */
#include "net/attention/distance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "net/proj.h"

/* Whole quotients of logarithms are bucket borders; a last bit too few must not move them. */
#define BORDER 1e-9

size_t distance_bucket(const bucket_conf *c, long by, bool both_ways)
{
    size_t n = both_ways ? c->n / 2 : c->n, base = both_ways && by > 0 ? n : 0;
    size_t away = both_ways ? (size_t)labs(by) : by < 0 ? (size_t)-by : 0, exact = n / 2;
    if (away < exact || exact == 0) return base + away;
    double part = math_log((double)away / (double)exact) / math_log((double)c->max_distance / (double)exact);
    size_t b = exact + (size_t)(part * (double)(n - exact) + BORDER);
    return base + (b < n ? b : n - 1);
}

long distance_log_bucket(long by, long buckets, long max)
{
    long middle = buckets / 2, away = labs(by);
    if (away <= middle || middle < 2) return by;
    double part = math_log((double)away / (double)middle) / math_log((double)(max - 1) / (double)middle);
    long b = (long)ceil(part * (double)(middle - 1) - BORDER) + middle;
    return by < 0 ? -b : b;
}

int distance_load_bias(distance *d, const model *m, const bucket_conf *c, const char *prefix, size_t n_head,
                       size_t n_ctx, bool both_ways, shoal_err *err)
{
    float *learned = NULL;
    char name[64];
    size_t n = 2 * n_ctx - 1, all;
    d->n_ctx = n_ctx;
    snprintf(name, sizeof name, "%sattn_rel_b.weight", prefix);
    int rc = proj_load_table(&learned, m, name, c->n, n_head, err);
    if (rc) return rc;
    d->bias = size_mul(n, n_head, &all) ? NULL : mem_calloc64(all, sizeof *d->bias);
    for (size_t i = 0; d->bias && i < n; i++) {
        size_t b = distance_bucket(c, (long)i - (long)(n_ctx - 1), both_ways);
        for (size_t h = 0; h < n_head; h++) d->bias[h * n + i] = learned[b * n_head + h];
    }
    free(learned);
    return d->bias ? 0 : err_nomem(err);
}

/* Vectors are numbered by the bucket of i - j. */
int distance_load_index(distance *d, const pos_conf *c, size_t n_ctx, shoal_err *err)
{
    long span = (long)c->relative, max = (long)c->relative_max;
    size_t n = 2 * n_ctx - 1;
    if (c->relative > UINT16_MAX / 2)
        return err_set(err, SHOAL_ELIMIT, "%zu relative positions a side; at most %d are allowed",
                       c->relative, UINT16_MAX / 2);
    d->n_ctx = n_ctx;
    d->n_vectors = 2 * c->relative;
    d->index = calloc(n, sizeof *d->index);
    if (!d->index) return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        long back = (long)(n_ctx - 1) - (long)i;
        long at = (max > 0 ? distance_log_bucket(back, span, max) : back) + span;
        d->index[i] = (uint16_t)(at < 0 ? 0 : at > 2 * span - 1 ? 2 * span - 1 : at);
    }
    return 0;
}

void distance_done(distance *d)
{
    free(d->bias);
    free(d->index);
    *d = (distance){0};
}
