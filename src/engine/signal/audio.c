#include "signal/audio.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "signal/audio_internal.h"

#define CODEC_ROOM ((size_t)8 << 20)

typedef enum reader_kind { KIND_UNKNOWN, KIND_WAV, KIND_WHOLE } reader_kind;

struct audio_reader {
    reader_kind kind;
    const char *family; /* of a file that is kept whole */
    audio_sink sink;
    wav_parser wav;
    buf kept; /* until the kind is known; the whole file where it is decoded at its end */
    bool finished;
    shoal_err failed; /* code != 0: for good */
};

/* ---- what the bytes are ----------------------------------------------------------------------------- */

typedef struct magic {
    const char *name;
    size_t at, n;
    const char *bytes;
    bool supported;
} magic;

static const magic MAGICS[] = {
    {"WAV", 0, 4, "RIFX", true},
    {"FLAC", 0, 4, "fLaC", true},
    {"Ogg", 0, 4, "OggS", true},
    {"MP3", 0, 3, "ID3", true},
    {"AIFF", 0, 4, "FORM", true},
    {"MP4 (M4A, AAC)", 4, 4, "ftyp", false},
    {"WebM or Matroska", 0, 4, "\x1a\x45\xdf\xa3", false},
    {"AMR", 0, 5, "#!AMR", false},
    {"ASF (WMA)", 0, 4, "\x30\x26\xb2\x75", false},
    {"Core Audio", 0, 4, "caff", false},
    {"AU", 0, 4, ".snd", false},
    {"MIDI", 0, 4, "MThd", false},
};

/* MPEG audio without a tag: eleven bits set, then a version, layer III, a bit rate and a sampling rate that
 * exist. */
static bool is_mpeg_frame(const uint8_t *p)
{
    return p[0] == 0xFF && (p[1] & 0xE6) == 0xE2 && (p[1] & 0x18) != 0x08 && (p[2] & 0xF0) != 0xF0 &&
           (p[2] & 0x0C) != 0x0C;
}

int audio_family(const uint8_t *p, const char **ret, bool *ret_wav, shoal_err *err)
{
    *ret_wav = memcmp(p, "RIFF", 4) == 0 || memcmp(p, "RF64", 4) == 0;
    *ret = *ret_wav ? "WAV" : "MP3";
    if (*ret_wav || is_mpeg_frame(p)) return 0;
    for (size_t i = 0; i < sizeof MAGICS / sizeof *MAGICS; i++) {
        const magic *m = &MAGICS[i];
        if (memcmp(p + m->at, m->bytes, m->n) != 0) continue;
        *ret = m->name;
        if (m->supported) return 0;
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "sound in %s is not supported: convert it to FLAC, WAV, Ogg or MP3 "
                       "(for example ffmpeg -i IN out.flac)",
                       m->name);
    }
    return err_set(err, SHOAL_EUNSUPPORTED,
                   "not a supported audio file (WAV, FLAC, Ogg Vorbis or Opus, MP3, AIFF)");
}

int audio_too_short(size_t n_bytes, shoal_err *err)
{
    return err_set(err, SHOAL_EFORMAT, "the sound file has only %zu bytes", n_bytes);
}

static int find_kind(audio_reader *r, shoal_err *err)
{
    bool is_wav = false;
    int rc = audio_family((const uint8_t *)r->kept.data, &r->family, &is_wav, err);
    r->kind = is_wav ? KIND_WAV : KIND_WHOLE;
    if (is_wav) wav_init(&r->wav);
    return rc;
}

/* ---- the reader ------------------------------------------------------------------------------------- */

int audio_settle_options(audio_options *o, shoal_err *err)
{
    if (!o->rate) o->rate = 16000;
    if (!(o->max_seconds > 0)) o->max_seconds = 3600;
    if (!o->max_bytes) o->max_bytes = (size_t)64 << 20;
    if (!o->raw_channels) o->raw_channels = 1;
    if (o->rate < RESAMPLE_RATE_MIN || o->rate > RESAMPLE_RATE_MAX)
        return err_set(err, SHOAL_EINVALID, "sound is wanted at %u samples a second: it must be %d to %d",
                       o->rate, RESAMPLE_RATE_MIN, RESAMPLE_RATE_MAX);
    return 0;
}

int audio_reader_new(audio_reader **ret, const audio_options *options, shoal_err *err)
{
    audio_options o = options ? *options : (audio_options){0};
    int rc = audio_settle_options(&o, err);
    if (rc != 0) return rc;
    audio_reader *r = calloc(1, sizeof *r);
    if (!r) return err_nomem(err);
    r->sink.o = o;
    r->sink.info.format = "";
    if (o.raw_rate) {
        rc = audio_sink_open(&r->sink, "raw", o.raw_rate, o.raw_channels, err);
        r->kind = KIND_WAV;
        if (rc == 0) wav_init_raw(&r->wav, o.raw_channels);
    }
    if (rc != 0) {
        audio_reader_free(r);
        return rc;
    }
    *ret = r;
    return 0;
}

void audio_reader_free(audio_reader *r)
{
    if (!r) return;
    audio_sink_done(&r->sink);
    buf_done(&r->kept);
    free(r);
}

static int audio_keep(audio_reader *r, const void *bytes, size_t n, shoal_err *err)
{
    if (n > r->sink.o.max_bytes - r->kept.len)
        return err_set(err, SHOAL_ELIMIT,
                       "the sound file has more than %zu bytes, the most that is taken in %s",
                       r->sink.o.max_bytes, r->family ? r->family : "its format");
    return buf_append(&r->kept, bytes, n) == 0 ? 0 : err_nomem(err);
}

/* Until the codec of a WAV file is known, its bytes are kept as well: another decoder may have to begin anew.
 */
static int push_wav(audio_reader *r, const uint8_t *bytes, size_t n, shoal_err *err)
{
    int rc = wav_push(&r->wav, &r->sink, bytes, n, err);
    if (rc != 0) return rc;
    if (r->wav.state == WAV_OTHER) r->kind = KIND_WHOLE;
    if (r->wav.has_fmt) buf_done(&r->kept);
    return 0;
}

static int audio_push(audio_reader *r, const uint8_t *bytes, size_t n, shoal_err *err)
{
    int rc;
    bool raw = r->sink.o.raw_rate != 0;
    if (r->kind == KIND_WHOLE || (r->kind == KIND_WAV && !r->wav.has_fmt && !raw)) {
        if ((rc = audio_keep(r, bytes, n, err)) != 0 || r->kind == KIND_WHOLE) return rc;
    }
    if (r->kind == KIND_WAV) return push_wav(r, bytes, n, err);
    if ((rc = audio_keep(r, bytes, n, err)) != 0 || r->kept.len < AUDIO_SNIFF_BYTES) return rc;
    if ((rc = find_kind(r, err)) != 0 || r->kind == KIND_WHOLE) return rc;
    return push_wav(r, (const uint8_t *)r->kept.data, r->kept.len, err);
}

static int audio_settle(audio_reader *r, int rc, const shoal_err *said, shoal_err *err)
{
    if (rc != 0 && r->failed.code == 0) r->failed = *said;
    if (rc != 0 && err) *err = r->failed;
    return rc;
}

int audio_reader_push(audio_reader *r, const void *bytes, size_t n, shoal_err *err)
{
    shoal_err said = {0};
    if (r->failed.code != 0) return audio_settle(r, r->failed.code, NULL, err);
    if (r->finished) return err_set(err, SHOAL_EINVALID, "the sound has already been finished");
    return audio_settle(r, n > 0 ? audio_push(r, bytes, n, &said) : 0, &said, err);
}

/* The first page of an Ogg stream has one packet, which names the codec: 27 bytes and one length before it.
 */
static bool is_vorbis(const buf *b)
{
    return b->len >= 35 && memcmp(b->data, "OggS", 4) == 0 && memcmp(b->data + 28, "\x01vorbis", 7) == 0;
}

/* libvorbis and libsndfile do not look whether they got memory: see beforehand that there is some. */
static bool have_codec_room(void)
{
    void *volatile p = malloc(CODEC_ROOM); /* volatile: a compiler may drop malloc with its free */
    free(p);
    return p != NULL;
}

int codec_open(codec *ret, audio_sink *sink, const char *family, const void *bytes, size_t n, shoal_err *err)
{
    buf whole = {.data = (char *)bytes, .len = n};
    if (!have_codec_room()) return err_nomem(err);
    if (strcmp(family, "MP3") == 0) return mp3_open(ret, sink, bytes, n, err);
    if (is_vorbis(&whole)) return vorbis_open(ret, sink, bytes, n, err);
    return sndfile_open(ret, sink, family, bytes, n, err);
}

void codec_close(codec *c)
{
    if (c->close) c->close(c->state);
    *c = (codec){0};
}

static int decode_kept(audio_reader *r, shoal_err *err)
{
    codec c = {0};
    int rc = codec_open(&c, &r->sink, r->family, r->kept.data, r->kept.len, err);
    if (rc == 0)
        while ((rc = c.more(c.state, &r->sink, err)) > 0) continue;
    codec_close(&c);
    return rc;
}

static int audio_finish(audio_reader *r, shoal_err *err)
{
    if (r->kind == KIND_UNKNOWN) return audio_too_short(r->kept.len, err);
    int rc = r->kind == KIND_WAV ? wav_finish(&r->wav, &r->sink, err) : decode_kept(r, err);
    buf_done(&r->kept);
    return rc != 0 ? rc : audio_sink_finish(&r->sink, err);
}

int audio_reader_finish(audio_reader *r, shoal_err *err)
{
    shoal_err said = {0};
    if (r->failed.code != 0) return audio_settle(r, r->failed.code, NULL, err);
    if (r->finished) return 0;
    r->finished = true;
    return audio_settle(r, audio_finish(r, &said), &said, err);
}

const float *audio_reader_samples(const audio_reader *r, size_t *ret_n)
{
    *ret_n = r->sink.n;
    return r->sink.out ? r->sink.out + r->sink.from : NULL;
}

void audio_reader_drop(audio_reader *r, size_t n)
{
    r->sink.from += n;
    r->sink.n -= n;
}

int audio_decode(float **ret, size_t *ret_n, audio_info *ret_info, const void *bytes, size_t n,
                 const audio_options *options, shoal_err *err)
{
    audio_reader *r = NULL;
    int rc = audio_reader_new(&r, options, err);
    if (rc == 0) rc = audio_reader_push(r, bytes, n, err);
    if (rc == 0) rc = audio_reader_finish(r, err);
    if (rc == 0) {
        *ret = r->sink.out;
        *ret_n = r->sink.n;
        if (ret_info) *ret_info = r->sink.info;
        r->sink.out = NULL;
    }
    audio_reader_free(r);
    return rc;
}
