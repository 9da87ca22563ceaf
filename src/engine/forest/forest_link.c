/* forest_link.c: see forest_link.h. exp by x = k ln 2 + r and Taylor's series, log by atanh's. */
#include "forest/forest_link.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ln 2 in two parts: the first has 32 trailing zero bits, so that k times it is exact. */
static const double LN2_HIGH = 0x1.62e42fee00000p-1, LN2_LOW = 0x1.a39ef35793c76p-33,
                    LN2_INVERSE = 0x1.71547652b82fep0;

static double power_of_two(int k)
{
    uint64_t bits = (uint64_t)(k + 1023) << 52;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

double forest_exp(double x)
{
    /* 1/k! for k = 13 .. 2: the next term is below 2^-57 for |r| <= ln 2 / 2. */
    static const double c[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                               1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                               1.0 / 120,        1.0 / 24,        1.0 / 6,        0.5};
    if (x != x) return x;
    if (x > 709.782712893384) return INFINITY;
    if (x < -745.2) return 0;
    double k = nearbyint(x * LN2_INVERSE);
    double r = fma(-k, LN2_LOW, fma(-k, LN2_HIGH, x));
    double p = c[0];
    for (size_t i = 1; i < sizeof c / sizeof *c; i++) p = fma(p, r, c[i]);
    p = 1 + fma(p * r, r, r);
    int n = (int)k, half = n / 2;
    return p * power_of_two(half) * power_of_two(n - half);
}

double forest_log(double x)
{
    if (!(x > 0)) return x == 0 ? -INFINITY : NAN;
    if (isinf(x)) return x;
    int e;
    double m = frexp(x, &e);
    if (m < 0.7071067811865476) {
        m *= 2;
        e--;
    }
    double s = (m - 1) / (m + 1), s2 = s * s, p = 0;
    for (int k = 23; k >= 3; k -= 2) p = fma(p, s2, 1.0 / k);
    double log_m = 2 * fma(s * s2, p, s);
    return fma(e, LN2_HIGH, fma(e, LN2_LOW, log_m));
}

static double sigmoid(double x)
{
    return 1 / (1 + forest_exp(-x));
}

static double log1p_exp(double x)
{
    double e = forest_exp(x), s = e / (2 + e), s2 = s * s, p = 0;
    if (x > 40) return x;
    if (e > 0.4) return forest_log(1 + e);
    for (int k = 23; k >= 3; k -= 2) p = fma(p, s2, 1.0 / k);
    return 2 * fma(s * s2, p, s);
}

static void softmax(const double *raw, size_t n, double *score)
{
    double most = raw[0], sum = 0;
    for (size_t i = 1; i < n; i++) most = raw[i] > most ? raw[i] : most;
    for (size_t i = 0; i < n; i++) sum += score[i] = forest_exp(raw[i] - most);
    for (size_t i = 0; i < n; i++) score[i] /= sum;
}

static void ascending(const double *raw, size_t n, double *score)
{
    for (size_t i = 0; i < n; i++) {
        double x = raw[i];
        size_t at = i;
        for (; at > 0 && score[at - 1] > x; at--) score[at] = score[at - 1];
        score[at] = x;
    }
}

void forest_link_apply(forest_link link, double slope, const double *raw, size_t n, double *score)
{
    if (link == LINK_SOFTMAX) {
        softmax(raw, n, score);
        return;
    }
    if (link == LINK_SORT) {
        ascending(raw, n, score);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double x = raw[i];
        switch (link) {
        case LINK_SIGMOID: score[i] = sigmoid(slope * x); break;
        case LINK_EXP: score[i] = forest_exp(x); break;
        case LINK_SQUARE: score[i] = x < 0 ? -x * x : x * x; break;
        case LINK_LOG1P_EXP: score[i] = log1p_exp(x); break;
        case LINK_STEP: score[i] = x > 0; break;
        case LINK_NONE:
        case LINK_SORT:
        case LINK_SOFTMAX: score[i] = x; break;
        }
    }
}
