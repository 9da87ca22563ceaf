#include "signal/mel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "json/json.h"
#include "base/progress.h"
#include "compute/compute.h"
#include "signal/fft.h"

#define LOG_FLOOR 1e-10
#define INV_LN10  0x1.bcb7b1526e50ep-2 /* 1 / ln 10 */
#define PI        3.14159265358979323846

/* One triangle: the bins that it touches. */
typedef struct mel_filter {
    size_t first, n;
    const double *weight; /* [n], in mel.weights */
} mel_filter;

struct mel {
    mel_options o;
    size_t n_bins;
    fft *fft;
    double *window;      /* [n_fft] */
    double *weights;     /* [n_mels][n_bins], of which each filter uses its part */
    mel_filter *filters; /* [n_mels] */
    double *frames;      /* [n_fft][FFT_LANES] */
    double *power;       /* [n_bins][FFT_LANES] */
};

/* ---- tables ----------------------------------------------------------------------------------------- */

/* Slaney: 3 mel for 200 Hz up to 1 kHz, from there 27 mel for each factor of 6.4. */
static double mel_of_hz(double f)
{
    return f < 1000 ? 3 * f / 200 : 15 + math_log(f / 1000) * 27 / math_log(6.4);
}

static double hz_of_mel(double m)
{
    return m < 15 ? 200 * m / 3 : 1000 * math_exp(math_log(6.4) / 27 * (m - 15));
}

static double edge_hz(const mel *m, size_t i)
{
    double lo = mel_of_hz(m->o.f_min), hi = mel_of_hz(m->o.f_max);
    return hz_of_mel(lo + (hi - lo) * (double)i / (double)(m->o.n_mels + 1));
}

static void make_filter(mel *m, size_t i)
{
    double left = edge_hz(m, i), top = edge_hz(m, i + 1), right = edge_hz(m, i + 2);
    double *w = m->weights + i * m->n_bins;
    mel_filter *f = &m->filters[i];
    for (size_t k = 0; k < m->n_bins; k++) {
        double hz = (double)k * m->o.rate / m->o.n_fft;
        double up = (hz - left) / (top - left), down = (right - hz) / (right - top);
        double height = up < down ? up : down;
        if (!(height > 0)) continue;
        if (f->n == 0) f->first = k;
        f->n = k + 1 - f->first;
        w[k] = height * 2 / (right - left);
    }
    f->weight = w + f->first;
}

static void make_window(mel *m)
{
    for (size_t i = 0; i < m->o.n_fft; i++) {
        double s, c;
        math_sincos(2 * PI * (double)i / m->o.n_fft, &s, &c);
        m->window[i] = 0.5 - 0.5 * c;
    }
}

static int settle_options(mel_options *o, shoal_err *err)
{
    if (!o->rate) o->rate = 16000;
    if (!o->n_fft) o->n_fft = 400;
    if (!o->hop) o->hop = 160;
    if (!o->n_mels) o->n_mels = 80;
    if (o->f_max == 0) o->f_max = o->rate / 2.0;
    if (o->rate > 768000)
        return err_set(err, SHOAL_EINVALID, "mel features at %u Hz: at most 768000", o->rate);
    if (o->hop > o->n_fft)
        return err_set(err, SHOAL_EINVALID, "mel hop %u is longer than the frame of %u samples", o->hop,
                       o->n_fft);
    if (o->n_mels > 512) return err_set(err, SHOAL_EINVALID, "%u mel filters: at most 512", o->n_mels);
    if (!(o->f_min >= 0 && o->f_min < o->f_max && o->f_max <= o->rate / 2.0))
        return err_set(err, SHOAL_EINVALID, "mel filters from %g to %g Hz do not fit into 0 to %g Hz",
                       o->f_min, o->f_max, o->rate / 2.0);
    return 0;
}

int mel_new(mel **ret, const mel_options *options, shoal_err *err)
{
    mel_options o = options ? *options : (mel_options){0};
    int rc = settle_options(&o, err);
    if (rc != 0) return rc;
    mel *m = calloc(1, sizeof *m);
    if (!m) return err_nomem(err);
    m->o = o;
    m->n_bins = o.n_fft / 2 + 1;
    rc = fft_new(&m->fft, o.n_fft, err);
    if (rc != 0) goto out;
    m->window = calloc(o.n_fft, sizeof *m->window);
    m->weights = calloc((size_t)o.n_mels * m->n_bins, sizeof *m->weights);
    m->filters = calloc(o.n_mels, sizeof *m->filters);
    m->frames = mem_calloc64((size_t)o.n_fft * FFT_LANES, sizeof *m->frames);
    m->power = mem_calloc64(m->n_bins * FFT_LANES, sizeof *m->power);
    if (!m->window || !m->weights || !m->filters || !m->frames || !m->power) {
        rc = err_nomem(err);
        goto out;
    }
    make_window(m);
    for (size_t i = 0; i < o.n_mels; i++) make_filter(m, i);
    *ret = m;
out:
    if (rc != 0) mel_free(m);
    return rc;
}

void mel_free(mel *m)
{
    if (!m) return;
    fft_free(m->fft);
    free(m->window);
    free(m->weights);
    free(m->filters);
    free(m->frames);
    free(m->power);
    free(m);
}

const mel_options *mel_settings(const mel *m)
{
    return &m->o;
}

/* ---- frames ----------------------------------------------------------------------------------------- */

/* A signal of n_all samples: x[n], then silence; before its start and behind its end it is mirrored. */
typedef struct source {
    const float *x;
    size_t n, n_all;
} source;

static float sample_at(const source *s, ptrdiff_t i)
{
    if (i < 0) i = -i;
    if (i >= (ptrdiff_t)s->n_all) i = 2 * ((ptrdiff_t)s->n_all - 1) - i;
    return i < (ptrdiff_t)s->n ? s->x[i] : 0.0f;
}

static void load_lane(mel *m, const source *s, ptrdiff_t from, size_t lane)
{
    double *to = m->frames + lane;
    size_t n = m->o.n_fft;
    if (from >= 0 && (size_t)from + n <= s->n) {
        for (size_t i = 0; i < n; i++) to[i * FFT_LANES] = s->x[(size_t)from + i] * m->window[i];
    } else {
        for (size_t i = 0; i < n; i++) to[i * FFT_LANES] = sample_at(s, from + (ptrdiff_t)i) * m->window[i];
    }
}

/* out[FFT_LANES] = log10 of one filter over the frames in m->power. */
static void filter_logs(const mel *m, const mel_filter *f, float *out)
{
    double sum[FFT_LANES] = {0};
    const double *p = m->power + f->first * FFT_LANES;
    for (size_t k = 0; k < f->n; k++, p += FFT_LANES)
        for (size_t l = 0; l < FFT_LANES; l++) sum[l] += f->weight[k] * p[l];
    for (size_t l = 0; l < FFT_LANES; l++)
        out[l] = (float)(math_log(sum[l] > LOG_FLOOR ? sum[l] : LOG_FLOOR) * INV_LN10);
}

/* out[frame * frame_step + mel * mel_step] = log10 for `n` frames that begin at from, from + hop, ... */
static void log_frames(mel *m, const source *s, ptrdiff_t from, size_t n, float *out, size_t frame_step,
                       size_t mel_step)
{
    for (size_t at = 0; at < n; at += FFT_LANES) {
        size_t lanes = n - at < FFT_LANES ? n - at : FFT_LANES;
        memset(m->frames, 0, (size_t)m->o.n_fft * FFT_LANES * sizeof *m->frames);
        for (size_t l = 0; l < lanes; l++) load_lane(m, s, from + (ptrdiff_t)((at + l) * m->o.hop), l);
        fft_power(m->fft, m->frames, m->power);
        for (size_t i = 0; i < m->o.n_mels; i++) {
            float logs[FFT_LANES];
            filter_logs(m, &m->filters[i], logs);
            for (size_t l = 0; l < lanes; l++) out[(at + l) * frame_step + i * mel_step] = logs[l];
        }
        progress_add(32 * (size_t)m->o.n_fft * FFT_LANES);
    }
}

/* ---- Whisper's chunks ------------------------------------------------------------------------------- */

int mel_whisper(mel *m, const float *x, size_t n, size_t n_chunk, float *out, shoal_err *err)
{
    size_t hop = m->o.hop, edge = m->o.n_fft / 2;
    if (n_chunk % hop != 0 || n_chunk <= edge || n_chunk > PTRDIFF_MAX / 4)
        return err_set(err, SHOAL_EINVALID, "a chunk of %zu samples is no multiple of %zu over %zu", n_chunk,
                       hop, edge);
    source s = {x, n < n_chunk ? n : n_chunk, n_chunk};
    size_t n_frames = n_chunk / hop, heard = (s.n + edge + hop - 1) / hop;
    if (heard > n_frames || s.n + edge >= n_chunk)
        heard = n_frames; /* near the end the mirror sounds again */
    log_frames(m, &s, -(ptrdiff_t)edge, heard, out, 1, n_frames);
    float silence = (float)(math_log(LOG_FLOOR) * INV_LN10), top = silence;
    for (size_t i = 0; i < m->o.n_mels; i++)
        for (size_t k = 0; k < n_frames; k++) {
            float *v = &out[i * n_frames + k];
            if (k >= heard) *v = silence;
            if (*v > top) top = *v;
        }
    for (size_t i = 0; i < m->o.n_mels * n_frames; i++)
        out[i] = ((out[i] > top - 8 ? out[i] : top - 8) + 4) / 4;
    return 0;
}

/* ---- frames as they come ---------------------------------------------------------------------------- */

size_t mel_frames(const mel *m, size_t n)
{
    return n < m->o.n_fft ? 0 : (n - m->o.n_fft) / m->o.hop + 1;
}

void mel_rows(mel *m, const float *x, size_t n, float *out)
{
    source s = {x, n, n};
    size_t n_frames = mel_frames(m, n), n_out = n_frames * m->o.n_mels;
    log_frames(m, &s, 0, n_frames, out, m->o.n_mels, 1);
    for (size_t i = 0; i < n_out; i++) out[i] = (out[i] + 4) / 4;
}

struct mel_stream {
    mel *m;
    size_t n;    /* samples kept: the start of frames to come, fewer than n_fft */
    float *kept; /* [2 * n_fft] */
};

int mel_stream_new(mel_stream **ret, mel *m, shoal_err *err)
{
    mel_stream *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->m = m;
    s->kept = calloc(2 * (size_t)m->o.n_fft, sizeof *s->kept);
    if (!s->kept) {
        free(s);
        return err_nomem(err);
    }
    *ret = s;
    return 0;
}

void mel_stream_free(mel_stream *s)
{
    if (!s) return;
    free(s->kept);
    free(s);
}

size_t mel_stream_room(const mel_stream *s, size_t n)
{
    return mel_frames(s->m, s->n + n);
}

/* What is kept is completed from the block until a frame begins inside the block; the rest is read in place.
 */
size_t mel_stream_push(mel_stream *s, const float *x, size_t n, float *out)
{
    size_t n_fft = s->m->o.n_fft, hop = s->m->o.hop, n_mels = s->m->o.n_mels, rows = 0;
    size_t kept = s->n, more = n < n_fft ? n : n_fft;
    if (n == 0) return 0;
    memcpy(s->kept + kept, x, more * sizeof *x);
    size_t spanning = mel_frames(s->m, kept + more), starts = (kept + hop - 1) / hop;
    if (more == n_fft && spanning > starts) spanning = starts;
    mel_rows(s->m, s->kept, spanning ? n_fft + (spanning - 1) * hop : 0, out);
    rows = spanning;
    size_t at = spanning * hop; /* where the next frame begins, counted from the first kept sample */
    if (at >= kept) {
        x += at - kept;
        n -= at - kept;
        size_t n_rows = mel_frames(s->m, n);
        mel_rows(s->m, x, n, out + rows * n_mels);
        rows += n_rows;
        s->n = n - n_rows * hop;
        memcpy(s->kept, x + n_rows * hop, s->n * sizeof *x);
    } else {
        s->n = kept + more - at;
        memmove(s->kept, s->kept + at, s->n * sizeof *x);
    }
    return rows;
}

/* ---- configurations --------------------------------------------------------------------------------- */

/* Say so when `key` is there and is not one of the values that we compute. */
static int refuse_other(const json_t *config, const char *key, const char *only, shoal_err *err)
{
    const char *s = NULL;
    int rc = json_get_str(config, key, &s, err);
    if (rc != 0 || !s || strncmp(s, only, strlen(only)) == 0) return rc;
    return err_set(err, SHOAL_EUNSUPPORTED, "features with %s \"%s\" are not supported, only \"%s\"", key, s,
                   only);
}

static int get_u32(const json_t *config, const char *key, uint32_t *ret, shoal_err *err)
{
    int64_t v = *ret;
    int rc = json_get_int(config, key, 1, 1000000, &v, err);
    if (rc == 0) *ret = (uint32_t)v;
    return rc;
}

static int read_kind(const json_t *config, shoal_err *err)
{
    double power = 2, dither = 0;
    int rc;
    if ((rc = refuse_other(config, "feature_extractor_type", "WhisperFeatureExtractor", err)) != 0 ||
        (rc = refuse_other(config, "window", "hann", err)) != 0 ||
        (rc = refuse_other(config, "mel_scale", "slaney", err)) != 0 ||
        (rc = refuse_other(config, "mel_norm", "slaney", err)) != 0 ||
        (rc = json_get_num(config, "power", 0, 10, &power, err)) != 0 ||
        (rc = json_get_num(config, "dither", 0, 1e9, &dither, err)) != 0)
        return rc;
    if (power != 2)
        return err_set(err, SHOAL_EUNSUPPORTED, "features of power %g are not supported, only 2", power);
    if (dither != 0)
        return err_set(err, SHOAL_EUNSUPPORTED, "dither %g adds noise, which is not supported: set it to 0",
                       dither);
    return 0;
}

int mel_read_config(mel_options *ret, size_t *ret_chunk, const json_t *config, shoal_err *err)
{
    mel_options o = {0};
    double chunk_seconds = 0;
    int64_t n_samples = 0;
    int rc;
    if (!json_is_object(config))
        return err_set(err, SHOAL_EINVALID, "the feature configuration is no JSON object");
    if ((rc = read_kind(config, err)) != 0 || (rc = get_u32(config, "sampling_rate", &o.rate, err)) != 0 ||
        (rc = get_u32(config, "n_fft", &o.n_fft, err)) != 0 ||
        (rc = get_u32(config, "hop_length", &o.hop, err)) != 0 ||
        (rc = get_u32(config, "num_mel_bins", &o.n_mels, err)) != 0 ||
        (rc = get_u32(config, "feature_size", &o.n_mels, err)) != 0 ||
        (rc = json_get_num(config, "min_frequency", 0, 1e6, &o.f_min, err)) != 0 ||
        (rc = json_get_num(config, "max_frequency", 0, 1e6, &o.f_max, err)) != 0 ||
        (rc = json_get_num(config, "chunk_length", 0, 3600, &chunk_seconds, err)) != 0 ||
        (rc = json_get_int(config, "n_samples", 0, 1 << 30, &n_samples, err)) != 0)
        return rc;
    if ((rc = settle_options(&o, err)) != 0) return rc;
    *ret = o;
    if (ret_chunk) *ret_chunk = n_samples ? (size_t)n_samples : (size_t)(chunk_seconds * o.rate);
    return 0;
}
