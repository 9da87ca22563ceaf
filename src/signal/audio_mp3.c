/* audio_mp3.c: MPEG audio by libmpg123 itself: through libsndfile it writes its warnings to stderr. */
#include <mpg123.h>

#include "signal/audio_internal.h"

#define FEED_BYTES    16384
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

static int decode_all(mpg123_handle *h, audio_sink *sink, const unsigned char *bytes, size_t n,
                      shoal_err *err)
{
    int rc = 0;
    if (mpg123_param(h, MPG123_ADD_FLAGS, MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_GAPLESS, 0) !=
            MPG123_OK ||
        mpg123_open_feed(h) != MPG123_OK)
        return damaged(h, err);
    for (size_t at = 0; rc == 0 && at < n; at += FEED_BYTES)
        rc = decode_piece(h, sink, bytes + at, n - at < FEED_BYTES ? n - at : FEED_BYTES, err);
    if (rc == 0 && !sink->resampler) return err_set(err, SHOAL_EFORMAT, "the MP3 file holds no sound");
    off_t all = rc == 0 ? mpg123_length(h) : 0; /* known when the encoder wrote it in front */
    sink->info.cut = all > ENCODER_DELAY && sink->n_frames < (uint64_t)(all - ENCODER_DELAY);
    return rc;
}

int mp3_decode(audio_sink *sink, const void *bytes, size_t n, shoal_err *err)
{
    int why = MPG123_OK;
    mpg123_handle *h = mpg123_new(NULL, &why);
    if (!h) return err_nomem(err);
    int rc = decode_all(h, sink, bytes, n, err);
    mpg123_delete(h);
    return rc;
}
