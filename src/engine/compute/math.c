/* math.c: the specification of exp, log, tanh, sin and cos; poly.h has the coefficients.
 *
 * The float forms are what every vector kernel must equal bit for bit, operation by operation. The
 * double forms (tables, samplers) are plain Taylor series after an exact reduction; they need no
 * vector twin. fma() is spelled out: the compiler fuses nothing on its own (-ffp-contract=off). */
#include <math.h>
#include <string.h>

#include "compute/bits.h"
#include "compute/compute.h"
#include "compute/poly.h"

/* As maxps and minps: the second operand when either is NaN, so a constant first lets NaN through. */
static float max2(float a, float b)
{
    return a > b ? a : b;
}
static float min2(float a, float b)
{
    return a < b ? a : b;
}

float math_expf(float x)
{
    x = min2(EXP_HI, max2(EXP_LO, x));
    float t = fmaf(x, EXP_LOG2E, EXP_MAGIC);
    float n = t - EXP_MAGIC;
    float r = fmaf(n, -EXP_LN2_HI, x);
    r = fmaf(n, -EXP_LN2_LO, r);
    float p = EXP_P4;
    p = fmaf(p, r, EXP_P3);
    p = fmaf(p, r, EXP_P2);
    p = fmaf(p, r, EXP_P1);
    p = fmaf(p, r, EXP_P0);
    p = fmaf(p, r * r, r) + 1.0f;
    /* 2^n in two factors, because n reaches from -150 to 128. */
    uint32_t k = bits_of(t) - bits_of(EXP_MAGIC);
    uint32_t half = (k >> 1) | (k & 0x80000000u);
    return p * float_of((half + 127u) << 23) * float_of((k - half + 127u) << 23);
}

float math_tanhf(float x)
{
    float a = float_of(bits_of(x) & 0x7FFFFFFFu);
    float z = x * x;
    float p = TANH_P5;
    p = fmaf(p, z, TANH_P4);
    p = fmaf(p, z, TANH_P3);
    p = fmaf(p, z, TANH_P2);
    p = fmaf(p, z, TANH_P1);
    p = fmaf(p, z, TANH_P0);
    float small = fmaf(x * z, p, x);
    float big = 1.0f - 2.0f / (math_expf(a + a) + 1.0f);
    big = float_of(bits_of(big) | (bits_of(x) & 0x80000000u));
    return a < TANH_SMALL ? small : big;
}

float math_logf(float x)
{
    return (float)math_log((double)x);
}

static double double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t bits_of_double(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

#define ROUND_MAGIC 0x1.8p+52
#define LN2_HI      0x1.62e42feep-1 /* 32 bits: n * LN2_HI is exact */
#define LN2_LO      0x1.a39ef35793c76p-33

/* sum of c[i] x^i by Horner */
static double poly(const double *c, int n, double x)
{
    double p = c[n - 1];
    for (int i = n - 2; i >= 0; i--) p = fma(p, x, c[i]);
    return p;
}

double math_exp(double x)
{
    if (!(x == x)) return x;
    if (x > 709.8) return (double)INFINITY;
    if (x < -745.2) return 0.0;
    static const double c[] = {1.0,
                               1.0,
                               1.0 / 2,
                               1.0 / 6,
                               1.0 / 24,
                               1.0 / 120,
                               1.0 / 720,
                               1.0 / 5040,
                               1.0 / 40320,
                               1.0 / 362880,
                               1.0 / 3628800,
                               1.0 / 39916800,
                               1.0 / 479001600,
                               1.0 / 6227020800.0};
    double n = fma(x, 0x1.71547652b82fep+0, ROUND_MAGIC) - ROUND_MAGIC;
    double r = fma(n, -LN2_LO, fma(n, -LN2_HI, x));
    return ldexp(poly(c, 14, r), (int)n);
}

double math_log(double x)
{
    if (!(x == x) || x < 0) return (double)NAN;
    if (x == 0) return -(double)INFINITY;
    if (x > 0x1.fffffffffffffp+1023) return x;
    /* x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1). */
    int e;
    double m = frexp(x, &e);
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        e--;
    }
    static const double c[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9, 2.0 / 11,
                               2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    double s = (m - 1) / (m + 1);
    return fma(e, LN2_HI, fma(e, LN2_LO, s * poly(c, 11, s * s)));
}

double math_pow(double base, double e)
{
    return math_exp(e * math_log(base));
}

/* |x| < 2^31 or so keeps full precision; a rotary table stays far below. */
void math_sincos(double x, double *ret_sin, double *ret_cos)
{
    static const double s[] = {1.0,
                               -1.0 / 6,
                               1.0 / 120,
                               -1.0 / 5040,
                               1.0 / 362880,
                               -1.0 / 39916800,
                               1.0 / 6227020800.0,
                               -1.0 / 1307674368000.0,
                               1.0 / 355687428096000.0};
    static const double c[] = {1.0,
                               -1.0 / 2,
                               1.0 / 24,
                               -1.0 / 720,
                               1.0 / 40320,
                               -1.0 / 3628800,
                               1.0 / 479001600,
                               -1.0 / 87178291200.0,
                               1.0 / 20922789888000.0};
    double t = fma(x, 0x1.45f306dc9c883p-1, ROUND_MAGIC); /* x * 2/pi */
    double n = t - ROUND_MAGIC;
    double r = fma(n, -0x1.921fb54442d18p+0, x); /* pi/2 in two parts */
    r = fma(n, -0x1.1a62633145c07p-54, r);
    double z = r * r, sin_r = r * poly(s, 9, z), cos_r = poly(c, 9, z);
    unsigned quadrant = (unsigned)bits_of_double(t) & 3u;
    double a = quadrant & 1 ? cos_r : sin_r, b = quadrant & 1 ? sin_r : cos_r;
    uint64_t neg_sin = (uint64_t)(quadrant >> 1) << 63, neg_cos = (uint64_t)((quadrant + 1) >> 1 & 1) << 63;
    *ret_sin = double_of(bits_of_double(a) ^ neg_sin);
    *ret_cos = double_of(bits_of_double(b) ^ neg_cos);
}
