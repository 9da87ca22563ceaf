/* table.h: how far outputs are from their reference, over every row of a model: for tests/engine/infer/test_table.c.
 * Include once, after helper.h. */
#ifndef TESTS_INFER_TABLE_H
#define TESTS_INFER_TABLE_H

#include "helper.h"

/* A row is decided when its first value leads the second by so many standard deviations of the row. Random
 * weights leave many that are not: which of two equals is larger says nothing of an engine. */
#define DECIDED 0.1

/* Sums over every row of a model. Zeros before the first. */
typedef struct score {
    /* Sums of squares of the difference, of products, of our values, of the reference's. */
    double off, ab, aa, all;
    double least;          /* cosine of the row that is farthest; of n_rows > 0 */
    size_t n_rows, n_same; /* the same largest value */
    size_t n_decided, n_decided_same;
    size_t n_greedy, n_greedy_same;
    double divergence; /* sum over rows, where they are logits */
} score;

/* ---- rows ------------------------------------------------------------------------------------------- */

static size_t largest(const float *x, size_t n)
{
    return vec_kernels_for(ISA_SCALAR)->argmax(x, n);
}

static bool is_decided(const float *x, size_t n)
{
    double mean = 0, square = 0, first = (double)x[largest(x, n)], second = -INFINITY;
    for (size_t i = 0, top = largest(x, n); i < n; i++) {
        mean += (double)x[i] / (double)n;
        square += (double)x[i] * (double)x[i] / (double)n;
        if (i != top && (double)x[i] > second) second = (double)x[i];
    }
    return first - second >= DECIDED * sqrt(square - mean * mean);
}

static void add_row(score *s, const float *got, const float *ref, size_t cols)
{
    double ab = 0, aa = 0, all = 0;
    bool same = largest(got, cols) == largest(ref, cols), decided = is_decided(ref, cols);
    for (size_t k = 0; k < cols; k++) {
        double a = (double)got[k], b = (double)ref[k];
        s->off += (a - b) * (a - b);
        ab += a * b;
        aa += a * a;
        all += b * b;
    }
    double c = ab / sqrt(aa * all);
    if (s->n_rows == 0 || !(c >= s->least)) s->least = c;
    s->ab += ab;
    s->aa += aa;
    s->all += all;
    s->n_rows++;
    s->n_same += same;
    s->n_decided += decided;
    s->n_decided_same += decided && same;
}

/* KL(softmax(ref) || softmax(got)) in nats */
static double divergence(const float *got, const float *ref, size_t n)
{
    double sums[2] = {0}, kl = 0, top[2] = {(double)got[largest(got, n)], (double)ref[largest(ref, n)]};
    for (size_t i = 0; i < n; i++) {
        sums[0] += exp((double)got[i] - top[0]);
        sums[1] += exp((double)ref[i] - top[1]);
    }
    for (size_t i = 0; i < n; i++) {
        double a = (double)got[i] - top[0] - log(sums[0]), b = (double)ref[i] - top[1] - log(sums[1]);
        kl += exp(b) * (b - a);
    }
    return kl;
}

static void add_rows(score *s, const float *got, const float *ref, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++) add_row(s, got + i * cols, ref + i * cols, cols);
}

static double cosine(const score *s)
{
    return s->ab / sqrt(s->aa * s->all);
}

#endif
