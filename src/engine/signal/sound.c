/* sound.c: see sound.h. A file is a source of frames (WAV or a codec) before a sink; what lies before the
 * window is dropped from the sink. */
#include "signal/sound.h"

#include <stdlib.h>

#include "signal/audio_internal.h"

#define WAV_PIECE_BYTES 8192

/* One pass over the file. */
typedef struct pass {
    audio_sink sink;
    codec codec; /* of a file that is no plain WAV */
    wav_parser wav;
    bool is_wav, ended;
    size_t at; /* of a WAV: bytes that were read */
} pass;

struct sound {
    const uint8_t *bytes;
    size_t n_bytes;
    const char *family;
    bool is_wav; /* RIFF: wav_push reads it, unless its codec is another */
    audio_options o;
    pass now;
    size_t from;   /* the place of the sink's first sample in the sound */
    size_t length; /* with measured */
    bool measured;
};

/* ---- a pass ------------------------------------------------------------------------------------------- */

static int open_codec(sound *s, pass *p, shoal_err *err)
{
    p->is_wav = false;
    if (s->n_bytes > s->o.max_bytes)
        return err_set(err, SHOAL_ELIMIT,
                       "the sound file has more than %zu bytes, the most that is taken in %s", s->o.max_bytes,
                       s->family);
    return codec_open(&p->codec, &p->sink, s->family, s->bytes, s->n_bytes, err);
}

static int more_wav(sound *s, pass *p, shoal_err *err)
{
    size_t left = s->n_bytes - p->at, n = left < WAV_PIECE_BYTES ? left : WAV_PIECE_BYTES;
    if (left == 0 || p->wav.state == WAV_END) return wav_finish(&p->wav, &p->sink, err);
    int rc = wav_push(&p->wav, &p->sink, s->bytes + p->at, n, err);
    p->at += n;
    if (rc == 0 && p->wav.state == WAV_OTHER) rc = open_codec(s, p, err);
    return rc == 0 ? 1 : rc;
}

static int sound_begin(sound *s, pass *p, bool counts_only, shoal_err *err)
{
    p->sink.o = s->o;
    p->sink.info.format = "";
    p->sink.counts_only = counts_only;
    p->is_wav = s->is_wav;
    wav_init(&p->wav);
    return s->is_wav ? 0 : open_codec(s, p, err);
}

/* Decode a piece. At the end the sink gives what its resampler held back. */
static int sound_step(sound *s, pass *p, shoal_err *err)
{
    int rc = p->is_wav ? more_wav(s, p, err) : p->codec.more(p->codec.state, &p->sink, err);
    if (rc != 0) return rc > 0 ? 0 : rc;
    p->ended = true;
    return p->sink.counts_only ? 0 : audio_sink_finish(&p->sink, err);
}

static void done(pass *p)
{
    codec_close(&p->codec);
    audio_sink_done(&p->sink);
    *p = (pass){0};
}

static size_t length_of(const pass *p)
{
    return (size_t)resampler_length(p->sink.resampler, p->sink.n_frames);
}

/* ---- the sound ---------------------------------------------------------------------------------------- */

static void note_end(sound *s)
{
    s->measured = true;
    s->length = s->from + s->now.sink.n;
}

static int sound_start(sound *s, shoal_err *err)
{
    int rc = audio_settle_options(&s->o, err);
    if (rc == 0 && s->n_bytes < AUDIO_SNIFF_BYTES) rc = audio_too_short(s->n_bytes, err);
    if (rc == 0) rc = audio_family(s->bytes, &s->family, &s->is_wav, err);
    return rc == 0 ? sound_begin(s, &s->now, false, err) : rc;
}

int sound_open(sound **ret, const void *bytes, size_t n, const audio_options *options, shoal_err *err)
{
    sound *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    *s = (sound){.bytes = bytes, .n_bytes = n};
    if (options) s->o = *options;
    int rc = sound_start(s, err);
    if (rc == 0)
        *ret = s;
    else
        sound_free(s);
    return rc;
}

int sound_of_samples(sound **ret, float *samples, size_t n, shoal_err *err)
{
    sound *s = calloc(1, sizeof *s);
    if (!s) {
        free(samples);
        return err_nomem(err);
    }
    s->now.sink.out = samples;
    s->now.sink.n = s->now.sink.cap = n;
    s->now.ended = true;
    note_end(s);
    *ret = s;
    return 0;
}

void sound_free(sound *s)
{
    if (!s) return;
    done(&s->now);
    free(s);
}

/* What lies before `at`, as far as it is decoded. */
static void sound_drop(sound *s, size_t at)
{
    audio_sink *k = &s->now.sink;
    size_t n = at - s->from < k->n ? at - s->from : k->n;
    k->from += n;
    k->n -= n;
    s->from += n;
}

int sound_view(sound *s, size_t at, size_t n, const float **ret, size_t *ret_n, shoal_err *err)
{
    int rc = 0;
    if (at < s->from) return err_set(err, SHOAL_EINVALID, "a sound is not heard backwards");
    sound_drop(s, at);
    while (rc == 0 && !s->now.ended && s->from + s->now.sink.n < at + n) {
        rc = sound_step(s, &s->now, err);
        sound_drop(s, at);
    }
    if (rc != 0) return rc;
    if (s->now.ended) note_end(s);
    size_t there = s->from == at ? s->now.sink.n : 0;
    *ret = s->now.sink.out ? s->now.sink.out + s->now.sink.from : NULL;
    *ret_n = there < n ? there : n;
    return 0;
}

int sound_measure(sound *s, shoal_err *err)
{
    pass count = {0};
    if (s->measured) return 0;
    int rc = sound_begin(s, &count, true, err);
    while (rc == 0 && !count.ended) rc = sound_step(s, &count, err);
    if (rc == 0) {
        s->measured = true;
        s->length = length_of(&count);
    }
    done(&count);
    return rc;
}

bool sound_is_measured(const sound *s)
{
    return s->measured;
}

size_t sound_length(const sound *s)
{
    return s->length;
}

void sound_set_cancel(sound *s, const cancel_check *c)
{
    s->o.cancel = s->now.sink.o.cancel = *c;
}

size_t sound_bytes(const sound *s)
{
    return s->now.sink.cap * sizeof *s->now.sink.out;
}
