/* series.c: running order statistics and windows; see series.h. */
#include "forest/series.h"
#include "base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The values of one channel's baseline in ascending order. */
typedef struct sorted {
    double *v;
    size_t n, cap;
} sorted;

struct series {
    const series_spec *spec;
    size_t count, cap; /* rows taken; rows that `ring` has room for, at most window + baseline */
    double *ring;      /* row i at i % (window + baseline) */
    sorted base[];     /* [n_channels] */
};

int series_new(series **ret, const series_spec *spec, shoal_err *err)
{
    series *s = calloc(1, sizeof *s + spec->n_channels * sizeof *s->base);
    if (!s) return err_nomem(err);
    s->spec = spec;
    *ret = s;
    return 0;
}

void series_free(series *s)
{
    if (!s) return;
    for (size_t c = 0; c < s->spec->n_channels; c++) free(s->base[c].v);
    free(s->ring);
    free(s);
}

size_t series_count(const series *s)
{
    return s->count;
}

/* ---- sorted values ------------------------------------------------------------------------------------- */

/* The first place whose value is not below x. */
static size_t place(const sorted *b, double x)
{
    size_t lo = 0, hi = b->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (b->v[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* There is room. */
static void insert(sorted *b, double x)
{
    if (isnan(x)) return;
    size_t i = place(b, x);
    memmove(b->v + i + 1, b->v + i, (b->n - i) * sizeof x);
    b->v[i] = x;
    b->n++;
}

static void withdraw(sorted *b, double x)
{
    if (isnan(x)) return;
    size_t i = place(b, x);
    b->n--;
    memmove(b->v + i, b->v + i + 1, (b->n - i) * sizeof x);
}

/* The k-th smallest |v - v[mid]|, k from 0. To both sides of mid the distances ascend: find how many of the k
 * + 1 smallest lie to the left. */
static double nth_distance(const sorted *b, size_t mid, size_t k)
{
    double m = b->v[mid];
    size_t right = b->n - mid, lo = k + 1 > right ? k + 1 - right : 0, hi = k + 1 < mid ? k + 1 : mid;
    while (lo < hi) {
        size_t i = (lo + hi) / 2, j = k + 1 - i; /* is the i-th to the left, from 0, among them? */
        if (m - b->v[mid - 1 - i] < b->v[mid + j - 1] - m)
            lo = i + 1;
        else
            hi = i;
    }
    double left_most = lo ? m - b->v[mid - lo] : 0, right_most = lo <= k ? b->v[mid + k - lo] - m : 0;
    return left_most > right_most ? left_most : right_most;
}

static double scale_of(const sorted *b, double floor_)
{
    size_t low = (size_t)floor(0.05 * (double)(b->n - 1)), high = (size_t)ceil(0.95 * (double)(b->n - 1));
    double mad = 1.4826 * nth_distance(b, b->n / 2, b->n / 2), spread = (b->v[high] - b->v[low]) / 3.29;
    double scale = mad > spread ? mad : spread;
    return scale > floor_ ? scale : floor_;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static bool grow_sorted(sorted *b, size_t most)
{
    if (b->n < b->cap || b->cap == most) return true;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap > most) cap = most;
    double *v = realloc(b->v, cap * sizeof *v);
    if (!v) return false;
    b->v = v;
    b->cap = cap;
    return true;
}

/* Room for one row more, so that taking it cannot fail. */
static bool series_make_room(series *s)
{
    const series_spec *spec = s->spec;
    size_t full = spec->window + spec->baseline;
    for (size_t c = 0; s->count >= spec->window && c < spec->n_channels; c++)
        if (!grow_sorted(&s->base[c], spec->baseline)) return false;
    if (s->count < s->cap || s->cap == full) return true;
    size_t cap = s->cap ? s->cap * 2 : 64;
    if (cap > full) cap = full;
    double *ring = realloc(s->ring, cap * spec->n_channels * sizeof *ring);
    if (!ring) return false;
    s->ring = ring;
    s->cap = cap;
    return true;
}

static double *row_at(series *s, size_t i)
{
    return s->ring + i % (s->spec->window + s->spec->baseline) * s->spec->n_channels;
}

/* The row that leaves the window enters the baseline, and the oldest, in whose place the new one goes,
 * leaves. */
static void series_take(series *s, const double *row)
{
    const series_spec *spec = s->spec;
    size_t t = s->count++, n = spec->n_channels;
    for (size_t c = 0; t >= spec->window + spec->baseline && c < n; c++)
        withdraw(&s->base[c], row_at(s, t)[c]);
    for (size_t c = 0; t >= spec->window && c < n; c++) insert(&s->base[c], row_at(s, t - spec->window)[c]);
    memcpy(row_at(s, t), row, n * sizeof *row);
    progress_add(n * (64 + spec->baseline));
}

static bool window_due(const series *s)
{
    const series_spec *spec = s->spec;
    size_t first = spec->window + spec->least_baseline, t = s->count - 1;
    if (t < first || (t - first) % spec->stride != 0) return false;
    for (size_t c = 0; c < spec->n_channels; c++)
        if (s->base[c].n < spec->least_baseline || s->base[c].n == 0) return false;
    return true;
}

static void normalise(series *s, size_t channel, float *z)
{
    const series_spec *spec = s->spec;
    const sorted *b = &s->base[channel];
    double m = b->v[b->n / 2], scale = scale_of(b, spec->floor[channel]), last = 0;
    for (size_t i = 0; i < spec->window; i++) {
        double x = row_at(s, s->count - spec->window + i)[channel];
        if (!isnan(x)) last = fmin(spec->clip, fmax(-spec->clip, (x - m) / scale));
        z[i * spec->n_channels + channel] = (float)last;
    }
}

int series_push(series *s, const double *row, float *z, shoal_err *err)
{
    if (!series_make_room(s)) return err_nomem(err);
    series_take(s, row);
    if (!window_due(s)) return 0;
    for (size_t c = 0; c < s->spec->n_channels; c++) normalise(s, c, z);
    return 1;
}

/* ---- features ------------------------------------------------------------------------------------------ */

static void channel_stats(const series_spec *spec, const float *z, double ret[STAT_COUNT])
{
    size_t n = spec->window, step = spec->n_channels;
    double sum = 0, m2 = 0, m4 = 0, rise = 0, spread = 0, most = z[0], middle = ((double)n - 1) / 2;
    for (size_t i = 0; i < n; i++) sum += z[i * step];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double v = z[i * step], d = v - mean, at = (double)i - middle;
        m2 += d * d;
        m4 += d * d * (d * d);
        rise += at * v;
        spread += at * at;
        if (v > most) most = v;
    }
    m2 /= (double)n;
    m4 /= (double)n;
    ret[STAT_MEAN] = mean;
    ret[STAT_STD] = sqrt(m2);
    ret[STAT_SLOPE] = spread > 0 ? ((double)n - 1) * rise / spread : 0;
    ret[STAT_MAX] = most;
    ret[STAT_KURTOSIS] = m2 < 1e-9 ? 0 : m4 / (m2 * m2) - 3;
}

void series_features(const series_spec *spec, const float *z, double *ret)
{
    double stats[STAT_COUNT] = {0};
    size_t of = (size_t)-1;
    for (size_t i = 0; i < spec->n_features; i++) {
        const series_feature *f = &spec->features[i];
        if (f->channel != of) channel_stats(spec, z + f->channel, stats);
        of = f->channel;
        ret[i] = (float)stats[f->stat];
    }
}
