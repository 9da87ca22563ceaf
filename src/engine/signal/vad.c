#include "signal/vad.h"

/* ---- options ---------------------------------------------------------------------------------------- */

static void default_to(double *v, double otherwise)
{
    if (*v == 0) *v = otherwise;
    if (*v < 0) *v = 0;
}

static int settle_options(vad_options *o, shoal_err *err)
{
    if (!o->rate) o->rate = 16000;
    if (!o->window) o->window = 512;
    if (o->threshold == 0) o->threshold = 0.5;
    if (o->end_threshold == 0) o->end_threshold = o->threshold - 0.15 < 0.01 ? 0.01 : o->threshold - 0.15;
    default_to(&o->min_speech_ms, 250);
    default_to(&o->min_silence_ms, 100);
    default_to(&o->max_speech_ms, -1);
    default_to(&o->min_cut_ms, 98);
    default_to(&o->pad_ms, 30);
    if (!(o->threshold > 0 && o->threshold <= 1))
        return err_set(err, SHOAL_EINVALID, "the speech threshold %g is not between 0 and 1", o->threshold);
    if (!(o->end_threshold > 0 && o->end_threshold <= o->threshold))
        return err_set(err, SHOAL_EINVALID, "the threshold %g for the end of speech is not between 0 and %g",
                       o->end_threshold, o->threshold);
    const double times[] = {o->min_speech_ms, o->min_silence_ms, o->max_speech_ms, o->min_cut_ms, o->pad_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (!(times[i] <= 1e9))
            return err_set(err, SHOAL_EINVALID, "%g ms of speech or silence is too long", times[i]);
    double shortest = (o->window * 1000.0 / o->rate + 2 * o->pad_ms);
    if (o->max_speech_ms > 0 && o->max_speech_ms <= shortest)
        return err_set(err, SHOAL_EINVALID,
                       "speech cannot be cut to %g ms: a window with its padding is %g ms", o->max_speech_ms,
                       shortest);
    return 0;
}

/* ---- stretches of a whole recording ----------------------------------------------------------------- */

/* The longest silence of the current stretch in which it could be cut. */
typedef struct silence {
    size_t at, n; /* n == 0: none */
} silence;

typedef struct cutter {
    const vad_options *o;
    const float *p;
    double min_speech, min_silence, max_speech, min_cut; /* samples */
    bool speaking;
    size_t start; /* of the current stretch */
    bool quiet;   /* below the end threshold since quiet_at */
    size_t quiet_at;
    silence longest;
    vad_segment *ret;
    size_t cap, n;
} cutter;

static void add_segment(cutter *c, size_t end)
{
    if (c->n < c->cap) c->ret[c->n] = (vad_segment){c->start, end};
    c->n++;
}

static void stop_speaking(cutter *c)
{
    c->speaking = c->quiet = false;
    c->longest.n = 0;
}

/* Silences end with sound: the longest one, the first among equals, is where the stretch could be cut. */
static void note_silence(cutter *c, float p, size_t now)
{
    if (p >= c->o->threshold) {
        size_t n = c->quiet ? now - c->quiet_at : 0;
        if ((double)n > c->min_cut && n > c->longest.n) c->longest = (silence){c->quiet_at, n};
        c->quiet = false;
    } else if (p < c->o->end_threshold && !c->quiet) {
        c->quiet = true;
        c->quiet_at = now;
    }
}

/* A stretch that is too long ends in its longest silence and goes on behind it; without one it ends here. */
static void vad_cut(cutter *c, size_t now)
{
    if (c->longest.n == 0) {
        add_segment(c, now);
        stop_speaking(c);
        return;
    }
    add_segment(c, c->longest.at);
    c->start = c->longest.at + c->longest.n;
    c->longest.n = 0;
    c->quiet = false;
    for (size_t at = c->start; at <= now; at += c->o->window) note_silence(c, c->p[at / c->o->window], at);
    c->quiet = false; /* a silence that is going on counts from here */
}

static void vad_step(cutter *c, size_t now)
{
    float p = c->p[now / c->o->window];
    if (!c->speaking) {
        c->speaking = p >= c->o->threshold;
        c->start = now;
        return;
    }
    if (p >= c->o->threshold) note_silence(c, p, now);
    if (c->max_speech > 0 && (double)(now - c->start) > c->max_speech) {
        vad_cut(c, now);
        if (!c->speaking) return;
    }
    note_silence(c, p, now);
    if (!c->quiet || !(p < c->o->end_threshold) || (double)(now - c->quiet_at) < c->min_silence) return;
    if ((double)(c->quiet_at - c->start) > c->min_speech) add_segment(c, c->quiet_at);
    stop_speaking(c);
}

/* Neighbours share a gap that is too small for both paddings. */
static void pad(vad_segment *s, size_t n, size_t n_samples, size_t padding)
{
    for (size_t i = 0; i < n; i++) {
        if (i == 0) s[i].start = s[i].start > padding ? s[i].start - padding : 0;
        size_t room = i + 1 < n ? s[i + 1].start - s[i].end : n_samples - s[i].end;
        size_t more = i + 1 < n && room < 2 * padding ? room / 2 : room < padding ? room : padding;
        s[i].end += more;
        if (i + 1 < n) s[i + 1].start -= more;
    }
}

int vad_segments(const float *p, size_t n, size_t n_samples, const vad_options *options, vad_segment *ret,
                 size_t cap, size_t *ret_n, shoal_err *err)
{
    vad_options o = options ? *options : (vad_options){0};
    int rc = settle_options(&o, err);
    if (rc != 0) return rc;
    if (n > SIZE_MAX / o.window / 2 || n_samples > n * o.window || (n > 0 && n_samples <= (n - 1) * o.window))
        return err_set(err, SHOAL_EINVALID, "%zu windows of %u samples do not go with %zu samples", n,
                       o.window, n_samples);
    double ms = o.rate / 1000.0;
    cutter c = {.o = &o,
                .p = p,
                .min_speech = o.min_speech_ms * ms,
                .min_silence = o.min_silence_ms * ms,
                .max_speech = o.max_speech_ms > 0 ? (o.max_speech_ms - 2 * o.pad_ms) * ms - o.window : 0,
                .min_cut = o.min_cut_ms * ms,
                .ret = ret,
                .cap = cap};
    for (size_t i = 0; i < n; i++) vad_step(&c, i * o.window);
    if (c.speaking && (double)(n_samples - c.start) > c.min_speech) add_segment(&c, n_samples);
    *ret_n = c.n;
    pad(ret, c.n < cap ? c.n : cap, n_samples, (size_t)(o.pad_ms * ms));
    if (c.n > cap)
        return err_set(err, SHOAL_EFULL, "%zu stretches of speech: there is room for %zu", c.n, cap);
    return 0;
}

/* ---- while sound arrives ---------------------------------------------------------------------------- */

int vad_tracker_init(vad_tracker *t, const vad_options *options, shoal_err *err)
{
    vad_options o = options ? *options : (vad_options){0};
    int rc = settle_options(&o, err);
    if (rc == 0) *t = (vad_tracker){.o = o};
    return rc;
}

vad_event vad_tracker_push(vad_tracker *t, float p, uint64_t *ret_sample)
{
    uint64_t padding = (uint64_t)(t->o.pad_ms * t->o.rate / 1000), before = t->heard;
    t->heard += t->o.window;
    if (p >= t->o.threshold) t->quiet_at = 0;
    if (p >= t->o.threshold && !t->speaking) {
        t->speaking = true;
        *ret_sample = before > padding ? before - padding : 0;
        return VAD_START;
    }
    if (!t->speaking || !(p < t->o.end_threshold)) return VAD_NOTHING;
    if (!t->quiet_at) t->quiet_at = t->heard;
    if ((double)(t->heard - t->quiet_at) < t->o.min_silence_ms * t->o.rate / 1000) return VAD_NOTHING;
    *ret_sample = t->quiet_at - t->o.window + padding;
    t->speaking = false;
    t->quiet_at = 0;
    return VAD_END;
}
