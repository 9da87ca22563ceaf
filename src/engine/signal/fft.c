#include "signal/fft.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "compute/compute.h"

#define STAGES_MAX 16
#define EACH_LANE  for (size_t l = 0; l < FFT_LANES; l++)

/* A complex number a lane. Arrays of them are the frames' samples as they lie: even ones re, odd ones im. */
typedef struct cx {
    double re[FFT_LANES], im[FFT_LANES];
} cx;

struct fft {
    size_t n;      /* real samples */
    size_t half;   /* complex ones: n / 2 */
    double *turns; /* [n][2]: cos and -sin of 2 pi k / n */
    cx *other;     /* [half], the second buffer */
    size_t n_stages, radix[STAGES_MAX];
};

static bool split_radices(fft *f)
{
    static const size_t radices[] = {5, 4, 3, 2};
    size_t left = f->half;
    for (size_t i = 0; i < 4; i++)
        while (left % radices[i] == 0 && f->n_stages < STAGES_MAX) {
            f->radix[f->n_stages++] = radices[i];
            left /= radices[i];
        }
    return left == 1;
}

int fft_new(fft **ret, size_t n, shoal_err *err)
{
    if (n < 4 || n > FFT_N_MAX || n % 2)
        return err_set(err, SHOAL_EUNSUPPORTED, "an FFT of %zu points: it needs an even number from 4 to %d",
                       n, FFT_N_MAX);
    fft *f = calloc(1, sizeof *f);
    if (!f) return err_nomem(err);
    f->n = n;
    f->half = n / 2;
    int rc = 0;
    if (!split_radices(f)) {
        rc = err_set(err, SHOAL_EUNSUPPORTED, "an FFT of %zu points: only factors 2, 3 and 5 are supported",
                     n);
        goto out;
    }
    f->turns = calloc(2 * n, sizeof *f->turns);
    f->other = mem_calloc64(f->half, sizeof *f->other);
    if (!f->turns || !f->other) {
        rc = err_nomem(err);
        goto out;
    }
    for (size_t k = 0; k < n; k++) {
        double s, c;
        math_sincos(2 * 3.14159265358979323846 * (double)k / (double)n, &s, &c);
        f->turns[2 * k] = c;
        f->turns[2 * k + 1] = -s;
    }
    *ret = f;
out:
    if (rc != 0) fft_free(f);
    return rc;
}

void fft_free(fft *f)
{
    if (!f) return;
    free(f->turns);
    free(f->other);
    free(f);
}

/* ---- butterflies: v becomes its own DFT ------------------------------------------------------------- */

static void butterfly2(cx v[5])
{
    EACH_LANE
    {
        double re = v[0].re[l] - v[1].re[l], im = v[0].im[l] - v[1].im[l];
        v[0].re[l] += v[1].re[l];
        v[0].im[l] += v[1].im[l];
        v[1].re[l] = re;
        v[1].im[l] = im;
    }
}

static void butterfly3(cx v[5])
{
    const double s = 0x1.bb67ae8584caap-1; /* sin(2 pi / 3) */
    EACH_LANE
    {
        double ar = v[1].re[l] + v[2].re[l], ai = v[1].im[l] + v[2].im[l];
        double br = s * (v[1].re[l] - v[2].re[l]), bi = s * (v[1].im[l] - v[2].im[l]);
        double mr = v[0].re[l] - 0.5 * ar, mi = v[0].im[l] - 0.5 * ai;
        v[0].re[l] += ar;
        v[0].im[l] += ai;
        v[1].re[l] = mr + bi;
        v[1].im[l] = mi - br;
        v[2].re[l] = mr - bi;
        v[2].im[l] = mi + br;
    }
}

static void butterfly4(cx v[5])
{
    EACH_LANE
    {
        double ar = v[0].re[l] + v[2].re[l], ai = v[0].im[l] + v[2].im[l];
        double br = v[0].re[l] - v[2].re[l], bi = v[0].im[l] - v[2].im[l];
        double cr = v[1].re[l] + v[3].re[l], ci = v[1].im[l] + v[3].im[l];
        double dr = v[1].re[l] - v[3].re[l], di = v[1].im[l] - v[3].im[l];
        v[0].re[l] = ar + cr;
        v[0].im[l] = ai + ci;
        v[1].re[l] = br + di;
        v[1].im[l] = bi - dr;
        v[2].re[l] = ar - cr;
        v[2].im[l] = ai - ci;
        v[3].re[l] = br - di;
        v[3].im[l] = bi + dr;
    }
}

static void butterfly5(cx v[5])
{
    const double c1 = 0x1.3c6ef372fe95p-2, c2 = -0x1.9e3779b97f4a8p-1; /* cos(2 pi / 5), cos(4 pi / 5) */
    const double s1 = 0x1.e6f0e134454ffp-1, s2 = 0x1.2cf2304755a5ep-1; /* sin of them */
    EACH_LANE
    {
        double ar = v[1].re[l] + v[4].re[l], ai = v[1].im[l] + v[4].im[l];
        double br = v[2].re[l] + v[3].re[l], bi = v[2].im[l] + v[3].im[l];
        double cr = v[1].re[l] - v[4].re[l], ci = v[1].im[l] - v[4].im[l];
        double dr = v[2].re[l] - v[3].re[l], di = v[2].im[l] - v[3].im[l];
        double mr = v[0].re[l] + c1 * ar + c2 * br, mi = v[0].im[l] + c1 * ai + c2 * bi;
        double nr = v[0].re[l] + c2 * ar + c1 * br, ni = v[0].im[l] + c2 * ai + c1 * bi;
        double pr = s1 * cr + s2 * dr, pi = s1 * ci + s2 * di;
        double qr = s2 * cr - s1 * dr, qi = s2 * ci - s1 * di;
        v[0].re[l] += ar + br;
        v[0].im[l] += ai + bi;
        v[1].re[l] = mr + pi;
        v[1].im[l] = mi - pr;
        v[2].re[l] = nr + qi;
        v[2].im[l] = ni - qr;
        v[3].re[l] = nr - qi;
        v[3].im[l] = ni + qr;
        v[4].re[l] = mr - pi;
        v[4].im[l] = mi + pr;
    }
}

static void butterfly(cx v[5], size_t radix)
{
    switch (radix) {
    case 2: butterfly2(v); break;
    case 3: butterfly3(v); break;
    case 4: butterfly4(v); break;
    default: butterfly5(v); break;
    }
}

static void turn(cx *to, const cx *v, const double *w)
{
    EACH_LANE
    {
        to->re[l] = v->re[l] * w[0] - v->im[l] * w[1];
        to->im[l] = v->re[l] * w[1] + v->im[l] * w[0];
    }
}

/* One stage: transforms of length n at stride s become `radix` times shorter ones, sorted as they go. */
static void stage(const fft *f, size_t radix, size_t n, size_t s, const cx *in, cx *out)
{
    size_t m = n / radix;
    cx v[5];
    for (size_t p = 0; p < m; p++) {
        for (size_t q = 0; q < s; q++) {
            for (size_t k = 0; k < radix; k++) v[k] = in[q + s * (p + m * k)];
            butterfly(v, radix);
            out[q + s * radix * p] = v[0];
            for (size_t j = 1; j < radix; j++)
                turn(&out[q + s * (radix * p + j)], &v[j], f->turns + 4 * j * p * s);
        }
    }
}

/* Bin k of the real transform from bins k and half - k of the complex one:
 * X[k] = (Z[k] + Z*[half-k]) / 2 - i w^k (Z[k] - Z*[half-k]) / 2. */
static void bin_power(const cx *a, const cx *b, const double *w, double *power)
{
    EACH_LANE
    {
        double er = 0.5 * (a->re[l] + b->re[l]), ei = 0.5 * (a->im[l] - b->im[l]);
        double or = 0.5 * (a->im[l] + b->im[l]), oi = 0.5 * (b->re[l] - a->re[l]);
        double re = er + (or *w[0] - oi * w[1]), im = ei + (or *w[1] + oi * w[0]);
        power[l] = re * re + im * im;
    }
}

void fft_power(fft *f, double *x, double *power)
{
    cx *in = (cx *)x, *out = f->other;
    size_t n = f->half, s = 1;
    for (size_t i = 0; i < f->n_stages; i++) {
        stage(f, f->radix[i], n, s, in, out);
        n /= f->radix[i];
        s *= f->radix[i];
        cx *swap = in;
        in = out;
        out = swap;
    }
    for (size_t k = 0; k <= f->half; k++)
        bin_power(&in[k % f->half], &in[(f->half - k) % f->half], f->turns + 2 * (k % f->n),
                  power + k * FFT_LANES);
}
