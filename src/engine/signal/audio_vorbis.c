/* audio_vorbis.c: Ogg Vorbis by libvorbisfile itself: libsndfile 1.2 leaks memory where the headers are
 * damaged. */
#define OV_EXCLUDE_STATIC_CALLBACKS
#include <stdlib.h>
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

typedef struct vorbis_state {
    OggVorbis_File f;
    cur in;
    const uint8_t *bytes;
    size_t n;
    bool is_open;
    int stream;
} vorbis_state;

static int more(void *state, audio_sink *sink, shoal_err *err)
{
    vorbis_state *s = state;
    float **planes = NULL;
    int now = s->stream, rc = cancel_ask(&sink->o.cancel, err);
    if (rc != 0) return rc;
    long n = ov_read_float(&s->f, &planes, BLOCK_FRAMES, &now);
    if (n == 0) {
        if (!has_end(s->bytes, s->n)) sink->info.cut = true;
        return 0;
    }
    if (n == OV_HOLE) {
        sink->info.cut = true;
        return 1;
    }
    if (n < 0)
        return err_set(err, SHOAL_EFORMAT, "the Ogg file is damaged at %.3f seconds", sink->info.seconds);
    if (now != s->stream) rc = take_format(&s->f, sink, err);
    s->stream = now;
    if (rc == 0) rc = take_block(sink, planes, (size_t)n, err);
    return rc == 0 ? 1 : rc;
}

static void close_state(void *state)
{
    vorbis_state *s = state;
    if (s->is_open) ov_clear(&s->f);
    free(s);
}

static int open_file(vorbis_state *s, audio_sink *sink, shoal_err *err)
{
    ov_callbacks callbacks = {.read_func = read_memory};
    if (ov_open_callbacks(&s->in, &s->f, NULL, 0, callbacks) != 0)
        return err_set(err, SHOAL_EFORMAT, "the Ogg file cannot be opened: its Vorbis headers are damaged");
    s->is_open = true;
    return take_format(&s->f, sink, err);
}

int vorbis_open(codec *ret, audio_sink *sink, const void *bytes, size_t n, shoal_err *err)
{
    vorbis_state *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->in = cur_over(bytes, n);
    s->bytes = bytes;
    s->n = n;
    int rc = open_file(s, sink, err);
    if (rc == 0)
        *ret = (codec){more, close_state, s};
    else
        close_state(s);
    return rc;
}
