#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "signal/audio_internal.h"
#include "base/progress.h"

#define WORK_RATE 384000.0 /* samples of all channels a second of max_seconds */
#define BLOCK     1024     /* frames */
#define LOUDEST   1e9f     /* times full scale: some write floats from -32768 to 32767, nobody more */

int audio_sink_open(audio_sink *s, const char *format, uint32_t rate, uint32_t channels, shoal_err *err)
{
    if (channels < 1 || channels > AUDIO_CHANNELS_MAX)
        return err_set(err, SHOAL_EUNSUPPORTED, "the %s sound has %u channels: 1 to %d are supported", format,
                       channels, AUDIO_CHANNELS_MAX);
    if (rate < RESAMPLE_RATE_MIN || rate > RESAMPLE_RATE_MAX)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "the %s sound has %u samples a second: %d to %d are supported", format, rate,
                       RESAMPLE_RATE_MIN, RESAMPLE_RATE_MAX);
    int rc = resampler_new(&s->resampler, rate, s->o.rate, err);
    if (rc != 0) return rc;
    s->info.format = format;
    s->info.rate = rate;
    s->info.channels = channels;
    return 0;
}

static int check_length(const audio_sink *s, uint64_t more, shoal_err *err)
{
    double frames = (double)s->n_frames + (double)more;
    if (frames > s->o.max_seconds * s->info.rate)
        return err_set(err, SHOAL_ELIMIT,
                       "the sound is longer than %g seconds, the most that is taken: send it in parts",
                       s->o.max_seconds);
    if (frames * s->info.channels > s->o.max_seconds * WORK_RATE)
        return err_set(err, SHOAL_ELIMIT,
                       "%u channels of %u samples a second are more than is taken for so long a sound: "
                       "send it as mono at 16000",
                       s->info.channels, s->info.rate);
    return 0;
}

int audio_sink_announce(const audio_sink *s, uint64_t n_frames, shoal_err *err)
{
    return n_frames > s->n_frames ? check_length(s, n_frames - s->n_frames, err) : 0;
}

/* Room for n more samples behind those that are ready. */
static int reserve(audio_sink *s, size_t n, shoal_err *err)
{
    if (s->from > 0 && s->from + s->n + n > s->cap) {
        memmove(s->out, s->out + s->from, s->n * sizeof *s->out);
        s->from = 0;
    }
    size_t need = s->n + n, cap = s->cap ? s->cap : 16384, bytes;
    if (s->out && need <= s->cap) return 0;
    while (cap < need) cap *= 2;
    if (size_mul(cap, sizeof *s->out, &bytes)) return err_nomem(err);
    float *out = realloc(s->out, bytes);
    if (!out) return err_nomem(err);
    s->out = out;
    s->cap = cap;
    return 0;
}

/* The channels' mean, summed in their order. */
static int mix(const audio_sink *s, const float *x, float *mono, size_t n, shoal_err *err)
{
    size_t c = s->info.channels;
    float part = 1.0f / (float)c;
    for (size_t i = 0; i < n; i++) {
        float sum = x[i * c];
        for (size_t k = 1; k < c; k++) sum += x[i * c + k];
        mono[i] = c == 1 ? sum : sum * part;
        if (!(fabsf(mono[i]) <= LOUDEST))
            return err_set(err, SHOAL_EFORMAT,
                           "the sound has a sample that is no number or out of all range, at %.3f seconds",
                           (double)(s->n_frames + i) / s->info.rate);
    }
    return 0;
}

int audio_sink_frames(audio_sink *s, const float *x, size_t n_frames, shoal_err *err)
{
    float mono[BLOCK];
    int rc = cancel_ask(&s->o.cancel, err);
    if (rc == 0) rc = check_length(s, n_frames, err);
    for (size_t at = 0; rc == 0 && at < n_frames; at += BLOCK) {
        size_t n = n_frames - at < BLOCK ? n_frames - at : BLOCK;
        rc = mix(s, x + at * s->info.channels, mono, n, err);
        if (rc == 0 && !s->counts_only) rc = reserve(s, resampler_room(s->resampler, n), err);
        if (rc != 0) break;
        if (!s->counts_only) s->n += resampler_push(s->resampler, mono, n, s->out + s->from + s->n);
        s->n_frames += n;
        progress_add(64 * n); /* and its decoding */
        s->info.seconds = (double)s->n_frames / s->info.rate;
    }
    return rc;
}

int audio_sink_finish(audio_sink *s, shoal_err *err)
{
    int rc = reserve(s, resampler_room(s->resampler, 0), err);
    if (rc == 0) s->n += resampler_finish(s->resampler, s->out + s->from + s->n);
    return rc;
}

void audio_sink_done(audio_sink *s)
{
    resampler_free(s->resampler);
    free(s->out);
}
