/* audio_wav.c: RIFF/WAVE and RF64, byte by byte as they arrive.
 *
 *     "RIFF" size "WAVE" { id[4] size body[size] pad-to-even }
 *
 * (Multimedia Programming Interface and Data Specifications 1.0; EBU Tech 3306 for RF64.) A recorder that
 * writes into a pipe cannot know the size and leaves 0 or 0xFFFFFFFF: the samples then go on to the end of
 * the file. */
#include <string.h>

#include "base/cur.h"
#include "signal/audio_internal.h"

#define FORMAT_PCM        1
#define FORMAT_FLOAT      3
#define FORMAT_ALAW       6
#define FORMAT_ULAW       7
#define FORMAT_EXTENSIBLE 0xFFFE
#define SIZE_UNKNOWN      0xFFFFFFFFu
#define CONVERT_SAMPLES   2048

static void expect(wav_parser *w, wav_state state, size_t want)
{
    w->state = state;
    w->have = 0;
    w->want = want;
}

void wav_init(wav_parser *w)
{
    memset(w, 0, sizeof *w);
    expect(w, WAV_RIFF, 12);
}

void wav_init_raw(wav_parser *w, uint32_t channels)
{
    memset(w, 0, sizeof *w);
    w->kind = PCM_S16;
    w->channels = channels;
    w->left = UINT64_MAX;
    expect(w, WAV_DATA, 2 * (size_t)channels);
}

static int damaged(shoal_err *err, const char *what)
{
    return err_set(err, SHOAL_EFORMAT, "the WAV file is damaged: %s", what);
}

/* Bits of a PCM sample as it lies in its bytes. */
static bool pcm_of_bits(unsigned bits, pcm_kind *ret)
{
    static const pcm_kind kinds[] = {PCM_U8, PCM_S16, PCM_S24, PCM_S32};
    if (bits < 1 || bits > 32) return false;
    *ret = kinds[(bits + 7) / 8 - 1];
    return true;
}

static bool audio_wav_kind_of(unsigned format, unsigned bits, pcm_kind *ret)
{
    switch (format) {
    case FORMAT_PCM: return pcm_of_bits(bits, ret);
    case FORMAT_FLOAT: *ret = bits == 64 ? PCM_F64 : PCM_F32; return bits == 32 || bits == 64;
    case FORMAT_ALAW: *ret = PCM_ALAW; return bits == 8;
    case FORMAT_ULAW: *ret = PCM_ULAW; return bits == 8;
    default: return false;
    }
}

/* format u16, channels u16, rate u32, bytes a second u32, bytes a frame u16, bits u16; extensible: size u16,
 * valid bits u16, speakers u32, and a GUID that begins with the true format. */
static int read_fmt(wav_parser *w, audio_sink *sink, shoal_err *err)
{
    cur c = cur_over(w->part, w->have);
    unsigned format = cur_u16(&c), channels = cur_u16(&c);
    uint32_t rate = cur_u32(&c);
    cur_u32(&c);
    unsigned frame_bytes = cur_u16(&c), bits = cur_u16(&c);
    if (c.failed) return damaged(err, "its fmt chunk is too short");
    if (w->has_fmt) return damaged(err, "it has two fmt chunks");
    if (format == FORMAT_EXTENSIBLE) {
        cur_take(&c, 8);
        format = cur_u16(&c);
        if (c.failed) return damaged(err, "its extensible fmt chunk is too short");
    }
    if (!audio_wav_kind_of(format, bits, &w->kind)) {
        w->state = WAV_OTHER;
        return 0;
    }
    if (frame_bytes != channels * pcm_bytes(w->kind))
        return damaged(err, "the bytes a frame do not go with channels and bits");
    w->has_fmt = true;
    w->channels = channels;
    return audio_sink_open(sink, "WAV", rate, channels, err);
}

static void skip_chunk(wav_parser *w)
{
    if (w->left)
        w->state = WAV_SKIP;
    else
        expect(w, WAV_CHUNK, 8);
}

static int begin_data(wav_parser *w, uint32_t size, shoal_err *err)
{
    if (!w->has_fmt) return damaged(err, "its samples come before the fmt chunk that explains them");
    expect(w, WAV_DATA, w->channels * pcm_bytes(w->kind));
    w->left = size;
    if (size == SIZE_UNKNOWN && w->ds64_data) w->left = w->ds64_data;
    if ((size == SIZE_UNKNOWN && !w->ds64_data) || size == 0) w->left = UINT64_MAX;
    return 0;
}

/* After the header of a chunk: what its body is. */
static int begin_chunk(wav_parser *w, shoal_err *err)
{
    cur c = cur_over(w->part, 8);
    const uint8_t *id = cur_take(&c, 4);
    uint32_t size = cur_u32(&c);
    if (memcmp(id, "data", 4) == 0) return begin_data(w, size, err);
    w->left = (uint64_t)size + (size & 1);
    if (memcmp(id, "fmt ", 4) == 0) {
        expect(w, WAV_FMT, size < 40 ? size : 40);
    } else if (memcmp(id, "ds64", 4) == 0 && size >= 16) {
        expect(w, WAV_DS64, 16);
    } else {
        skip_chunk(w);
        return 0;
    }
    if (w->want == 0) return damaged(err, "its fmt chunk is empty");
    w->left -= w->want;
    return 0;
}

/* `part` is complete. */
static int take_part(wav_parser *w, audio_sink *sink, shoal_err *err)
{
    int rc = 0;
    cur c = cur_over(w->part, w->have);
    switch (w->state) {
    case WAV_RIFF:
        if (memcmp(w->part + 8, "WAVE", 4) != 0) return damaged(err, "it is a RIFF file of another kind");
        expect(w, WAV_CHUNK, 8);
        break;
    case WAV_CHUNK: return begin_chunk(w, err);
    case WAV_DS64:
        cur_u64(&c);
        w->ds64_data = cur_u64(&c);
        skip_chunk(w);
        break;
    case WAV_FMT:
        rc = read_fmt(w, sink, err);
        if (rc == 0 && w->state == WAV_FMT) skip_chunk(w);
        break;
    default: break;
    }
    return rc;
}

/* Whole frames of bytes[n] straight from there. */
static int take_frames(wav_parser *w, audio_sink *sink, const uint8_t *bytes, size_t n_frames, shoal_err *err)
{
    float x[CONVERT_SAMPLES];
    size_t block = CONVERT_SAMPLES / w->channels;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < n_frames; at += block) {
        size_t n = n_frames - at < block ? n_frames - at : block;
        pcm_to_float(w->kind, bytes + at * w->want, x, n * w->channels);
        rc = audio_sink_frames(sink, x, n, err);
    }
    return rc;
}

/* Complete the frame that the last push cut, then take all whole ones, then keep the rest. */
static int take_data(wav_parser *w, audio_sink *sink, const uint8_t *bytes, size_t n, shoal_err *err)
{
    int rc = 0;
    if (w->have > 0) {
        size_t more = w->want - w->have < n ? w->want - w->have : n;
        memcpy(w->part + w->have, bytes, more);
        w->have += more;
        bytes += more;
        n -= more;
        if (w->have < w->want) return 0;
        w->have = 0;
        rc = take_frames(w, sink, w->part, 1, err);
    }
    if (rc == 0) rc = take_frames(w, sink, bytes, n / w->want, err);
    if (rc == 0) {
        w->have = n % w->want;
        memcpy(w->part, bytes + n - w->have, w->have);
    }
    return rc;
}

/* How many of n bytes belong to the body that is being read. */
static size_t of_body(wav_parser *w, size_t n)
{
    if (w->left == UINT64_MAX) return n;
    if (n > w->left) n = (size_t)w->left;
    w->left -= n;
    return n;
}

int wav_push(wav_parser *w, audio_sink *sink, const uint8_t *bytes, size_t n, shoal_err *err)
{
    int rc = 0;
    while (rc == 0 && n > 0 && w->state != WAV_END && w->state != WAV_OTHER) {
        size_t used;
        if (w->state == WAV_DATA) {
            used = of_body(w, n);
            rc = take_data(w, sink, bytes, used, err);
            if (w->left == 0) w->state = WAV_END;
        } else if (w->state == WAV_SKIP) {
            used = of_body(w, n);
            if (w->left == 0) expect(w, WAV_CHUNK, 8);
        } else {
            used = w->want - w->have < n ? w->want - w->have : n;
            memcpy(w->part + w->have, bytes, used);
            w->have += used;
            if (w->have == w->want) rc = take_part(w, sink, err);
        }
        bytes += used;
        n -= used;
    }
    return rc;
}

int wav_finish(const wav_parser *w, audio_sink *sink, shoal_err *err)
{
    if (w->state != WAV_DATA && w->state != WAV_END) return damaged(err, "it ends before its samples");
    sink->info.cut = w->state == WAV_DATA && (w->have > 0 || w->left != UINT64_MAX);
    return 0;
}
