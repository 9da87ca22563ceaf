#include "signal/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/progress.h"
#include "compute/compute.h"

#define PI          3.14159265358979323846
#define CROSSINGS   64        /* zero crossings to each side, at the lower rate */
#define CUTOFF      0.95      /* of the lower Nyquist frequency: the middle of the transition */
#define KAISER_BETA 10.06     /* 0.1102 (A - 8.7) for A = 100 dB */
#define EXACT_MAX   (1 << 18) /* floats of weights, up to which every phase has its row */
#define BLEND_ROWS  512       /* rows for one zero crossing's way, otherwise */
#define BLOCK       1024      /* input samples taken in at once */
#define LANES       16

struct resampler {
    size_t up, down; /* output k stands at input k * down / up; they have no common factor */
    size_t half;     /* input samples that an output sees to each side; a multiple of 8 */
    size_t n_rows;   /* == up: exact; else n_rows + 1 rows of phases i / n_rows are blended */
    float *weights;  /* [n_rows or n_rows + 1][2 * half] */
    float *kept;     /* [2 * half + BLOCK]: input not done with, from `half - 1` before the next output on */
    size_t n;        /* samples in it */
    size_t phase;    /* of the next output, in 1 / up */
    uint64_t heard, given;
};

/* The modified Bessel function of order zero, for |x| <= 11: sum of (x² / 4)^k / k!², whose last term is
 * below 1e-18 of the sum. */
static double bessel0(double x)
{
#define PART(k) 1.0 / ((k) * (k))
    static const double parts[] = {
        PART(30), PART(29), PART(28), PART(27), PART(26), PART(25), PART(24), PART(23), PART(22), PART(21),
        PART(20), PART(19), PART(18), PART(17), PART(16), PART(15), PART(14), PART(13), PART(12), PART(11),
        PART(10), PART(9),  PART(8),  PART(7),  PART(6),  PART(5),  PART(4),  PART(3),  PART(2),  PART(1),
    };
#undef PART
    double q = x * x / 4, sum = 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) sum = 1 + sum * (q * parts[i]);
    return sum;
}

/* t in input samples, |t| <= half; cutoff in units of the input's Nyquist frequency. */
static double weight_at(double t, double half, double cutoff)
{
    double s, c, u = t / half, x = PI * cutoff * t;
    if (u <= -1 || u >= 1) return 0;
    math_sincos(x, &s, &c);
    return (t == 0 ? 1 : s / x) * bessel0(KAISER_BETA * sqrt(1 - u * u));
}

/* The row for an output `phase` behind the input sample at place half - 1: its weights add up to 1. */
static void make_row(const resampler *r, float *row, double phase, double cutoff, double *work)
{
    size_t n = 2 * r->half;
    double sum = 0;
    for (size_t j = 0; j < n; j++) {
        work[j] = weight_at((double)j + 1 - (double)r->half - phase, (double)r->half, cutoff);
        sum += work[j];
    }
    for (size_t j = 0; j < n; j++) row[j] = (float)(work[j] / sum);
}

static void turn_row(float *row, const float *other, size_t n)
{
    for (size_t j = 0; j < n; j++) row[j] = other[n - 1 - j];
}

static int make_rows(resampler *r, shoal_err *err)
{
    double shrink = r->down > r->up ? (double)r->down / (double)r->up : 1; /* input samples a zero crossing */
    r->half = ((size_t)(CROSSINGS * shrink) + 8) / 8 * 8;
    size_t n = 2 * r->half, n_rows = r->up;
    r->n_rows = r->up;
    if (r->up * n > EXACT_MAX) {
        r->n_rows = (size_t)(BLEND_ROWS / shrink) + 1;
        n_rows = r->n_rows + 1;
    }
    r->weights = mem_calloc64(n_rows * n, sizeof *r->weights);
    r->kept = mem_calloc64(n + BLOCK, sizeof *r->kept);
    double *work = calloc(n, sizeof *work);
    if (!r->weights || !r->kept || !work) {
        free(work);
        return err_nomem(err);
    }
    for (size_t i = 0; i < n_rows; i++) {
        float *row = r->weights + i * n;
        if (i > r->n_rows / 2) /* phase 1 - p is phase p the other way round */
            turn_row(row, r->weights + (r->n_rows - i) * n, n);
        else
            make_row(r, row, (double)i / (double)r->n_rows, CUTOFF / shrink, work);
    }
    free(work);
    return 0;
}

static void rewind_to_start(resampler *r)
{
    memset(r->kept, 0, (r->half - 1) * sizeof *r->kept);
    r->n = r->half - 1;
    r->phase = 0;
    r->heard = r->given = 0;
}

int resampler_new(resampler **ret, uint32_t from, uint32_t to, shoal_err *err)
{
    uint32_t lo = from < to ? from : to, hi = from < to ? to : from, a = from, b = to;
    if (lo < RESAMPLE_RATE_MIN || hi > RESAMPLE_RATE_MAX)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "sound cannot be brought from %u to %u Hz: rates go from %d to %d", from, to,
                       RESAMPLE_RATE_MIN, RESAMPLE_RATE_MAX);
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    resampler *r = calloc(1, sizeof *r);
    if (!r) return err_nomem(err);
    r->up = to / a;
    r->down = from / a;
    int rc = r->up == r->down ? 0 : make_rows(r, err);
    if (rc != 0) {
        resampler_free(r);
        return rc;
    }
    if (r->kept) rewind_to_start(r);
    *ret = r;
    return 0;
}

void resampler_free(resampler *r)
{
    if (!r) return;
    free(r->weights);
    free(r->kept);
    free(r);
}

uint64_t resampler_length(const resampler *r, uint64_t n)
{
    return (n * r->up + r->down - 1) / r->down;
}

size_t resampler_room(const resampler *r, size_t n)
{
    if (r->up == r->down) return n;
    return (size_t)(((double)n + 2.0 * (double)r->half) * (double)r->up / (double)r->down) + 2;
}

/* n is a multiple of LANES. */
static float weigh(const float *x, const float *w, size_t n)
{
    float lane[LANES] = {0};
    for (size_t i = 0; i < n; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += x[i + l] * w[i + l];
    for (size_t width = LANES / 2; width; width /= 2)
        for (size_t l = 0; l < width; l++) lane[l] += lane[l + width];
    return lane[0];
}

static float sample_now(const resampler *r, const float *x)
{
    size_t n = 2 * r->half;
    if (r->n_rows == r->up) return weigh(x, r->weights + r->phase * n, n);
    size_t at = r->phase * r->n_rows, row = at / r->up;
    float part = (float)((double)(at % r->up) / (double)r->up);
    float a = weigh(x, r->weights + row * n, n), b = weigh(x, r->weights + (row + 1) * n, n);
    return a + part * (b - a);
}

/* Up to n_max outputs whose input is there; what no later one needs goes. An output steps over fewer samples
 * than it looks at, so that it never steps past what is kept. */
static size_t drain(resampler *r, float *out, uint64_t n_max)
{
    size_t n_out = 0, at = 0, n = 2 * r->half;
    while (at + n <= r->n && n_out < n_max) {
        out[n_out++] = sample_now(r, r->kept + at);
        progress_add(2 * n);
        r->phase += r->down;
        at += r->phase / r->up;
        r->phase %= r->up;
    }
    r->n -= at;
    memmove(r->kept, r->kept + at, r->n * sizeof *r->kept);
    r->given += n_out;
    return n_out;
}

size_t resampler_push(resampler *r, const float *x, size_t n, float *out)
{
    size_t n_out = 0;
    if (r->up == r->down) {
        if (n > 0) memmove(out, x, n * sizeof *x);
        return n;
    }
    r->heard += n;
    while (n > 0) {
        size_t block = n < BLOCK ? n : BLOCK;
        memcpy(r->kept + r->n, x, block * sizeof *x);
        r->n += block;
        x += block;
        n -= block;
        n_out += drain(r, out + n_out, UINT64_MAX);
    }
    return n_out;
}

/* Silence behind the end, until ceil(heard * up / down) samples have been given. */
size_t resampler_finish(resampler *r, float *out)
{
    if (r->up == r->down) return 0;
    size_t n_out = 0;
    uint64_t want = resampler_length(r, r->heard);
    while (r->given < want) {
        memset(r->kept + r->n, 0, BLOCK * sizeof *r->kept);
        r->n += BLOCK;
        n_out += drain(r, out + n_out, want - r->given);
    }
    rewind_to_start(r);
    return n_out;
}
