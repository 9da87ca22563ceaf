/* audio_vorbis.c: Ogg Vorbis by libvorbisfile itself: libsndfile 1.2 leaks memory where the headers are
 * damaged. */
#define OV_EXCLUDE_STATIC_CALLBACKS
#include <string.h>
#include <vorbis/vorbisfile.h>

#include "base/cur.h"
#include "signal/audio_internal.h"

#define BLOCK_FRAMES 64 /* of up to AUDIO_CHANNELS_MAX samples */
#define PAGE_HEADER  27

static size_t read_memory(void *to, size_t size, size_t n, void *user)
{
    cur *c = user;
    size_t bytes = size * n < cur_left(c) ? size * n : cur_left(c);
    memcpy(to, cur_take(c, bytes), bytes);
    return size ? bytes / size : 0;
}

/* Whether the last page that begins in the file says that it is the last of its stream. */
static bool has_end(const uint8_t *bytes, size_t n)
{
    for (size_t at = n < PAGE_HEADER ? 0 : n - PAGE_HEADER + 1; at-- > 0;)
        if (memcmp(bytes + at, "OggS", 4) == 0) return bytes[at + 5] & 4;
    return false;
}

/* A file may be several streams one after the other; they must be alike. */
static int take_format(OggVorbis_File *f, audio_sink *sink, shoal_err *err)
{
    const vorbis_info *v = ov_info(f, -1);
    if (!v || v->rate <= 0 || v->channels <= 0)
        return err_set(err, SHOAL_EFORMAT, "the Ogg file has no known format");
    uint32_t rate = v->rate > RESAMPLE_RATE_MAX ? UINT32_MAX : (uint32_t)v->rate,
             channels = (uint32_t)v->channels;
    if (!sink->resampler) return audio_sink_open(sink, "Ogg Vorbis", rate, channels, err);
    if (sink->info.rate == rate && sink->info.channels == channels) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "the Ogg file changes its rate or channels midway");
}

static int take_block(audio_sink *sink, float **planes, size_t n, shoal_err *err)
{
    float x[BLOCK_FRAMES * AUDIO_CHANNELS_MAX];
    size_t channels = sink->info.channels;
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < n; i++) x[i * channels + c] = planes[c][i];
    return audio_sink_frames(sink, x, n, err);
}

static int decode_all(OggVorbis_File *f, audio_sink *sink, shoal_err *err)
{
    int rc = take_format(f, sink, err), stream = 0, now = 0;
    while (rc == 0) {
        float **planes = NULL;
        long n = ov_read_float(f, &planes, BLOCK_FRAMES, &now);
        if (n == 0) break;
        if (n == OV_HOLE) {
            sink->info.cut = true;
            continue;
        }
        if (n < 0)
            return err_set(err, SHOAL_EFORMAT, "the Ogg file is damaged at %.3f seconds", sink->info.seconds);
        if (now != stream) rc = take_format(f, sink, err);
        stream = now;
        if (rc == 0) rc = take_block(sink, planes, (size_t)n, err);
    }
    return rc;
}

int vorbis_decode(audio_sink *sink, const void *bytes, size_t n, shoal_err *err)
{
    OggVorbis_File f;
    cur c = cur_over(bytes, n);
    ov_callbacks callbacks = {.read_func = read_memory};
    if (ov_open_callbacks(&c, &f, NULL, 0, callbacks) != 0)
        return err_set(err, SHOAL_EFORMAT, "the Ogg file cannot be opened: its Vorbis headers are damaged");
    int rc = decode_all(&f, sink, err);
    if (!has_end(bytes, n)) sink->info.cut = true;
    ov_clear(&f);
    return rc;
}
