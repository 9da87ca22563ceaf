/* audio_mp3.c: MPEG audio by libmpg123 itself: through libsndfile it writes its warnings to stderr. */
#include <mpg123.h>
#include <stdlib.h>

#include "signal/audio_internal.h"

#define FEED_BYTES    4096 /* of the lowest bit rate (8 kbit/s) four seconds of sound */
#define BLOCK_SAMPLES 4608 /* two frames of stereo */
#define ENCODER_DELAY 4608 /* samples by which announced and decoded lengths may differ */

static int damaged(mpg123_handle *h, shoal_err *err)
{
    return err_set(err, SHOAL_EFORMAT, "the MP3 file cannot be decoded: %s", mpg123_strerror(h));
}

static int take_format(mpg123_handle *h, audio_sink *sink, shoal_err *err)
{
    long rate = 0;
    int channels = 0, encoding = 0;
    if (mpg123_getformat(h, &rate, &channels, &encoding) != MPG123_OK || rate <= 0 || channels <= 0)
        return damaged(h, err);
    if (!sink->resampler) return audio_sink_open(sink, "MP3", (uint32_t)rate, (uint32_t)channels, err);
    if (sink->info.rate == (uint32_t)rate && sink->info.channels == (uint32_t)channels) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "the MP3 file changes its rate or channels midway");
}

/* One piece of the file, and all sound that it completes. */
static int decode_piece(mpg123_handle *h, audio_sink *sink, const unsigned char *bytes, size_t n,
                        shoal_err *err)
{
    float x[BLOCK_SAMPLES];
    int rc = 0, said;
    do {
        size_t got = 0;
        said = mpg123_decode(h, bytes, n, x, sizeof x, &got);
        n = 0;
        if (said == MPG123_ERR) return damaged(h, err);
        if (said == MPG123_NEW_FORMAT) rc = take_format(h, sink, err);
        if (rc == 0 && got > 0 && sink->resampler)
            rc = audio_sink_frames(sink, x, got / sizeof *x / sink->info.channels, err);
    } while (rc == 0 && said != MPG123_NEED_MORE && said != MPG123_DONE);
    return rc;
}

typedef struct mp3_state {
    mpg123_handle *h;
    const unsigned char *bytes;
    size_t n, at;
} mp3_state;

static int at_end(mp3_state *s, audio_sink *sink, shoal_err *err)
{
    if (!sink->resampler) return err_set(err, SHOAL_EFORMAT, "the MP3 file holds no sound");
    off_t all = mpg123_length(s->h); /* known when the encoder wrote it in front */
    sink->info.cut = all > ENCODER_DELAY && sink->n_frames < (uint64_t)(all - ENCODER_DELAY);
    return 0;
}

static int more(void *state, audio_sink *sink, shoal_err *err)
{
    mp3_state *s = state;
    if (s->at >= s->n) return at_end(s, sink, err);
    size_t n = s->n - s->at < FEED_BYTES ? s->n - s->at : FEED_BYTES;
    int rc = cancel_ask(&sink->o.cancel, err); /* a piece may hold no frame */
    if (rc == 0) rc = decode_piece(s->h, sink, s->bytes + s->at, n, err);
    s->at += n;
    return rc == 0 ? 1 : rc;
}

static void close_state(void *state)
{
    mp3_state *s = state;
    if (s->h) mpg123_delete(s->h);
    free(s);
}

static int open_feed(mp3_state *s, shoal_err *err)
{
    int why = MPG123_OK;
    s->h = mpg123_new(NULL, &why);
    if (!s->h) return err_nomem(err);
    long flags = MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_GAPLESS;
    if (mpg123_param(s->h, MPG123_ADD_FLAGS, flags, 0) != MPG123_OK || mpg123_open_feed(s->h) != MPG123_OK)
        return damaged(s->h, err);
    return 0;
}

int mp3_open(codec *ret, audio_sink *sink, const void *bytes, size_t n, shoal_err *err)
{
    mp3_state *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    *s = (mp3_state){.bytes = bytes, .n = n};
    int rc = open_feed(s, err);
    if (rc == 0)
        *ret = (codec){more, close_state, s};
    else
        close_state(s);
    return rc;
}
