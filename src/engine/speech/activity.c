/* activity.c: see activity.h. Frames come eight at a time (fft.h); what later frames decide about earlier
 * ones lies in a ring, and each stage of the decision has its own cursor behind the last frame. */
#include "speech/activity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "compute/compute.h"
#include "signal/fft.h"

enum {
    HOPS_A_SECOND = 50,
    N_LAGS = 116,    /* pitches that are tried */
    N_BANDS = 14,    /* of the envelope */
    SMOOTH_HZ = 330, /* the envelope's width */
    RING = 1024,     /* frames that are remembered */
    PUSH_HOPS = 50,
};
/* In frames of 20 ms. */
enum { SMOOTHED = 2, FLOOR = 75, CHANGE = 4, SUSTAINED = 3, GATHERED = 15, REACH = 50, MARGIN = 8 };

#define FINE_LOW_HZ    80
#define FINE_HIGH_HZ   2600
#define LEVEL_LOW_HZ   150
#define LEVEL_HIGH_HZ  4000
#define AUDIBLE_DB     (-75) /* of full scale */
#define ABOVE_FLOOR_DB 6
#define RICH_DB        30
#define RICH_BANDS     4
#define ENVELOPE_DB    35
#define STEADY_DB      1.6f  /* an envelope that moves no further does not change; noise's does by 1.3 */
#define CHANGING_DB    2.6f  /* and from here on it does wholly */
#define NOISE_PITCH    0.22f /* the periodicity of noise */
#define PITCH_MAX      0.3f  /* over it: as much as counts */
/* Evidence of 0.6 s. Hoarse speech in noise 10 dB below it has 0.58, other speech 2 and more; 60 s of noise
 * have at most 0.06, chords 0.27. */
#define STRONG 0.45f
#define WEAK   0.1f /* what belongs to speech near it */

static const float BAND_HZ[N_BANDS + 1] = {80,   200,  330,  480,  660,  870,  1120, 1420,
                                           1780, 2200, 2700, 3400, 4200, 5200, 6500};

typedef struct moment {   /* a frame, in the ring */
    float level, smooth;  /* dB of full scale */
    float pitch;          /* how periodic: 0 to 1 */
    float bands[N_BANDS]; /* the envelope, relative to the loudest */
    bool rich;
    float evidence, sustained, gathered;
    bool on;
} moment;

struct activity {
    const vec_kernels *k;
    size_t hop, n_fft, first_bin, n_fine, half_width;
    size_t level_from, level_to, band_from[N_BANDS + 1];
    fft *fft;
    double *window, *x, *power; /* [n_fft], [n_fft][FFT_LANES], [n_fft / 2 + 1][FFT_LANES] */
    float *cosines;             /* [N_LAGS][n_fine] */
    float *amplitude, *fine;    /* [n_fine] */
    moment ring[RING];
    buf in; /* float: from the next frame's first sample on */
    size_t n_pushed;
    bool ended;
    size_t n_frames, n_smooth, n_evidence, n_sustained, n_gathered, n_on, n_taken;
};

/* ---- life ---------------------------------------------------------------------------------------- */

static size_t bin_of(const activity *a, uint32_t rate, float hz)
{
    size_t bin = (size_t)((double)hz * (double)a->n_fft / rate + 0.5), last = a->n_fft / 2;
    return bin < last ? bin : last;
}

static size_t fft_size_for(uint32_t rate)
{
    size_t n = 512;
    while (n * 1000 < (size_t)rate * 64) n *= 2;
    return n;
}

static bool activity_make_room(activity *a)
{
    a->window = mem_calloc64(a->n_fft, sizeof *a->window);
    a->x = mem_calloc64(a->n_fft * FFT_LANES, sizeof *a->x);
    a->power = mem_calloc64((a->n_fft / 2 + 1) * FFT_LANES, sizeof *a->power);
    a->cosines = mem_calloc64(N_LAGS * a->n_fine, sizeof *a->cosines);
    a->amplitude = mem_calloc64(a->n_fine, sizeof *a->amplitude);
    a->fine = mem_calloc64(a->n_fine, sizeof *a->fine);
    return a->window && a->x && a->power && a->cosines && a->amplitude && a->fine;
}

/* The lags are 2.25 to 16.6 ms, an eighth of a millisecond apart. */
static void fill_tables(activity *a, uint32_t rate)
{
    double s, turn = 6.283185307179586 / (double)a->n_fft;
    for (size_t i = 0; i < a->n_fft; i++) {
        math_sincos(turn * (double)i, &s, &a->window[i]);
        a->window[i] = 0.5 - 0.5 * a->window[i];
    }
    for (size_t l = 0; l < N_LAGS; l++)
        for (size_t i = 0; i < a->n_fine; i++) {
            double lag = (18 + (double)l) / 8000 * rate, c;
            math_sincos(turn * lag * (double)(a->first_bin + i), &s, &c);
            a->cosines[l * a->n_fine + i] = (float)c;
        }
}

/* The first frame is centred on the first hop, so there is silence in front of it. */
static int open_input(activity *a)
{
    size_t bytes = (a->n_fft - a->hop) / 2 * sizeof(float);
    if (buf_reserve(&a->in, bytes)) return SHOAL_ENOMEM;
    memset(a->in.data, 0, bytes);
    a->in.len = bytes;
    return 0;
}

int activity_new(activity **ret, uint32_t rate, shoal_err *err)
{
    isa kernels = ISA_SCALAR;
    if (rate < 8000 || rate > 192000)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "speech is looked for at 8,000 to 192,000 samples a second, not %u", rate);
    int rc = isa_choose(&kernels, err);
    activity *a = rc == 0 ? calloc(1, sizeof *a) : NULL;
    if (!a) return rc ? rc : err_nomem(err);
    a->k = vec_kernels_for(kernels);
    a->hop = rate / HOPS_A_SECOND;
    a->n_fft = fft_size_for(rate);
    a->first_bin = bin_of(a, rate, FINE_LOW_HZ);
    a->n_fine = bin_of(a, rate, FINE_HIGH_HZ) - a->first_bin + 1;
    a->half_width = (size_t)((double)SMOOTH_HZ * (double)a->n_fft / rate / 2);
    a->level_from = bin_of(a, rate, LEVEL_LOW_HZ);
    a->level_to = bin_of(a, rate, LEVEL_HIGH_HZ);
    for (size_t i = 0; i <= N_BANDS; i++) a->band_from[i] = bin_of(a, rate, BAND_HZ[i]);
    rc = fft_new(&a->fft, a->n_fft, err);
    if (rc == 0 && (!activity_make_room(a) || open_input(a) != 0)) rc = err_nomem(err);
    if (rc != 0) {
        activity_free(a);
        return rc;
    }
    fill_tables(a, rate);
    *ret = a;
    return 0;
}

void activity_free(activity *a)
{
    if (!a) return;
    fft_free(a->fft);
    free(a->window);
    free(a->x);
    free(a->power);
    free(a->cosines);
    free(a->amplitude);
    free(a->fine);
    buf_done(&a->in);
    free(a);
}

size_t activity_hop(const activity *a)
{
    return a->hop;
}

size_t activity_push_max(const activity *a)
{
    return a->hop * PUSH_HOPS;
}

size_t activity_behind(const activity *a)
{
    size_t frames = SMOOTHED + FLOOR + SUSTAINED + GATHERED + REACH + MARGIN + FFT_LANES;
    return frames * a->hop + a->n_fft;
}

/* ---- a frame's spectrum -------------------------------------------------------------------------- */

static moment *at(activity *a, size_t frame)
{
    return &a->ring[frame % RING];
}

static float decibels(double power)
{
    return (float)(4.342944819032518 * math_log(power + 1e-14));
}

static double power_between(const activity *a, size_t lane, size_t from, size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++) sum += a->power[i * FFT_LANES + lane];
    return sum * 8 / (3.0 * (double)a->n_fft * (double)a->n_fft) * 2; /* Hann's mean square is 3/8 */
}

/* Bands by hertz, relative to the loudest, none more than ENVELOPE_DB below it. */
static bool read_bands(const activity *a, size_t lane, moment *s)
{
    float loudest = -1000;
    size_t n = 0;
    for (size_t b = 0; b < N_BANDS; b++) {
        size_t from = a->band_from[b], to = a->band_from[b + 1], width = to > from ? to - from : 1;
        s->bands[b] = decibels(power_between(a, lane, from, to) / (double)width);
        if (s->bands[b] > loudest) loudest = s->bands[b];
    }
    for (size_t b = 0; b < N_BANDS; b++) {
        s->bands[b] -= loudest;
        n += s->bands[b] > -RICH_DB;
        if (s->bands[b] < -ENVELOPE_DB) s->bands[b] = -ENVELOPE_DB;
    }
    return n >= RICH_BANDS;
}

/* y[n] = the mean of x over half_width values on both sides, the ends repeated. */
static float mean_around(const activity *a, const float *x, size_t i)
{
    size_t w = a->half_width, last = a->n_fine - 1;
    float sum = 0;
    for (size_t k = 0; k <= 2 * w; k++) {
        size_t j = i + k < w ? 0 : i + k - w;
        sum += x[j < last ? j : last];
    }
    return sum / (float)(2 * w + 1);
}

/* Amplitudes over their envelope, the mean around taken off: the fine structure. Bins 50 dB below the
 * loudest are nothing but leakage. */
static void read_fine(activity *a, size_t lane)
{
    float loudest = 0, *x = a->amplitude, *y = a->fine;
    float scale = (float)(1 / (double)a->n_fft);
    for (size_t i = 0; i < a->n_fine; i++) {
        x[i] = sqrtf((float)a->power[(a->first_bin + i) * FFT_LANES + lane]) * scale;
        if (x[i] > loudest) loudest = x[i];
    }
    float floor = loudest * 0.00316f + 1e-9f;
    for (size_t i = 0; i < a->n_fine; i++) y[i] = x[i] / (mean_around(a, x, i) + floor);
    memcpy(x, y, a->n_fine * sizeof *x);
    for (size_t i = 0; i < a->n_fine; i++) y[i] -= mean_around(a, x, i);
}

/* The largest share of the fine structure that lies on a comb of some pitch. */
static float pitch_of(const activity *a)
{
    float all = 0, most = 0;
    for (size_t i = 0; i < a->n_fine; i++) all += fabsf(a->fine[i]);
    for (size_t l = 0; l < N_LAGS; l++) {
        float c = a->k->dot(a->cosines + l * a->n_fine, a->fine, a->n_fine);
        if (c > most) most = c;
    }
    return all > 0 ? most / all : 0;
}

static void read_frame(activity *a, size_t lane)
{
    moment *m = at(a, a->n_frames++);
    *m = (moment){.level = decibels(power_between(a, lane, a->level_from, a->level_to))};
    m->rich = read_bands(a, lane, m);
    read_fine(a, lane);
    m->pitch = pitch_of(a);
}

/* ---- decisions ----------------------------------------------------------------------------------- */

/* Whether a stage may decide about its frame i, for which it needs the n behind it. */
static bool has(const activity *a, size_t i, size_t n, size_t n_before)
{
    return i + n < n_before || (a->ended && i < a->n_frames);
}

static size_t first_of(size_t i, size_t n)
{
    return i > n ? i - n : 0;
}

static size_t end_of(const activity *a, size_t i, size_t n)
{
    return i + n + 1 < a->n_frames ? i + n + 1 : a->n_frames;
}

static void smooth(activity *a, size_t i)
{
    size_t from = first_of(i, SMOOTHED), end = end_of(a, i, SMOOTHED);
    float sum = 0;
    for (size_t k = from; k < end; k++) sum += at(a, k)->level;
    at(a, i)->smooth = sum / (float)(end - from);
}

static float median_of(const float *x)
{
    float y[N_BANDS];
    for (size_t i = 0, j; i < N_BANDS; i++) {
        for (j = i; j > 0 && y[j - 1] > x[i]; j--) y[j] = y[j - 1];
        y[j] = x[i];
    }
    return (y[N_BANDS / 2 - 1] + y[N_BANDS / 2]) / 2;
}

/* How far two envelopes are apart in the mean, however loud each is, in dB. */
static float apart(const moment *m, const moment *other)
{
    float x[N_BANDS], sum = 0;
    for (size_t b = 0; b < N_BANDS; b++) x[b] = m->bands[b] - other->bands[b];
    float middle = median_of(x);
    for (size_t b = 0; b < N_BANDS; b++) sum += fabsf(x[b] - middle);
    return sum / N_BANDS;
}

/* 0: as CHANGE before or as CHANGE behind, as far as there are such frames; 1: like neither. */
static float change(activity *a, size_t i)
{
    float least = i >= CHANGE ? apart(at(a, i), at(a, i - CHANGE)) : INFINITY;
    float behind = i + CHANGE < a->n_frames ? apart(at(a, i), at(a, i + CHANGE)) : INFINITY;
    if (behind < least) least = behind;
    if (least == INFINITY || least <= STEADY_DB) return 0;
    return least < CHANGING_DB ? (least - STEADY_DB) / (CHANGING_DB - STEADY_DB) : 1;
}

static void weigh(activity *a, size_t i)
{
    moment *m = at(a, i);
    float floor = m->smooth, over = m->pitch - NOISE_PITCH;
    for (size_t k = first_of(i, FLOOR), end = end_of(a, i, FLOOR); k < end; k++)
        if (at(a, k)->smooth < floor) floor = at(a, k)->smooth;
    bool may = m->rich && m->level > AUDIBLE_DB && m->level > floor + ABOVE_FLOOR_DB && over > 0;
    m->evidence = may ? (over < PITCH_MAX ? over : PITCH_MAX) * change(a, i) : 0;
}

static float activity_least(float x, float y)
{
    return x < y ? x : y;
}

static void sustain(activity *a, size_t i)
{
    float before = i >= SUSTAINED ? at(a, i - SUSTAINED)->evidence : 0;
    float behind = i + SUSTAINED < a->n_frames ? at(a, i + SUSTAINED)->evidence : 0;
    at(a, i)->sustained = activity_least(at(a, i)->evidence, before > behind ? before : behind);
}

static void activity_gather(activity *a, size_t i)
{
    float sum = 0;
    for (size_t k = first_of(i, GATHERED), end = end_of(a, i, GATHERED); k < end; k++)
        sum += at(a, k)->sustained;
    at(a, i)->gathered = sum;
}

static void turn_on(activity *a, size_t i)
{
    moment *m = at(a, i);
    m->on = false;
    if (m->gathered < WEAK) return;
    for (size_t k = first_of(i, REACH), end = end_of(a, i, REACH); k < end; k++)
        m->on |= at(a, k)->gathered >= STRONG;
}

static void decide(activity *a)
{
    for (; has(a, a->n_smooth, SMOOTHED, a->n_frames); a->n_smooth++) smooth(a, a->n_smooth);
    for (; has(a, a->n_evidence, FLOOR, a->n_smooth); a->n_evidence++) weigh(a, a->n_evidence);
    for (; has(a, a->n_sustained, SUSTAINED, a->n_evidence); a->n_sustained++) sustain(a, a->n_sustained);
    for (; has(a, a->n_gathered, GATHERED, a->n_sustained); a->n_gathered++)
        activity_gather(a, a->n_gathered);
    for (; has(a, a->n_on, REACH, a->n_gathered); a->n_on++) turn_on(a, a->n_on);
}

/* ---- samples ------------------------------------------------------------------------------------- */

/* Up to eight frames of the input, silence behind it; a frame begins where the one before has its hop. */
static void read_frames(activity *a, size_t n)
{
    const float *in = (const float *)(const void *)a->in.data;
    size_t n_in = a->in.len / sizeof *in;
    memset(a->x, 0, a->n_fft * FFT_LANES * sizeof *a->x);
    for (size_t lane = 0; lane < n; lane++)
        for (size_t i = 0; i < a->n_fft && lane * a->hop + i < n_in; i++)
            a->x[i * FFT_LANES + lane] = a->window[i] * (double)in[lane * a->hop + i];
    fft_power(a->fft, a->x, a->power);
    for (size_t lane = 0; lane < n; lane++) read_frame(a, lane);
    size_t used = n * a->hop < n_in ? n * a->hop : n_in;
    buf_consume(&a->in, used * sizeof *in);
}

int activity_push(activity *a, const float *x, size_t n)
{
    size_t batch = (a->n_fft + (FFT_LANES - 1) * a->hop) * sizeof *x;
    if (buf_append(&a->in, x, n * sizeof *x)) return SHOAL_ENOMEM;
    a->n_pushed += n;
    while (a->in.len >= batch) read_frames(a, FFT_LANES);
    decide(a);
    return 0;
}

/* A hop that is not whole has no frame of its own, unless it is all there is. */
void activity_end(activity *a)
{
    size_t all = a->n_pushed / a->hop;
    if (all == 0 && a->n_pushed > 0) all = 1;
    while (a->n_frames < all) {
        size_t left = all - a->n_frames;
        read_frames(a, left < FFT_LANES ? left : FFT_LANES);
    }
    a->ended = true;
    decide(a);
}

bool activity_next(activity *a, bool *ret_speech)
{
    size_t i = a->n_taken;
    if (!has(a, i, MARGIN, a->n_on)) return false;
    *ret_speech = false;
    for (size_t k = first_of(i, MARGIN), end = end_of(a, i, MARGIN); k < end; k++)
        *ret_speech |= at(a, k)->on;
    a->n_taken++;
    return true;
}
