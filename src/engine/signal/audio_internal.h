/* audio_internal.h: between the reader, which knows what kind of file comes, and what takes it apart. */
#ifndef SIGNAL_AUDIO_INTERNAL_H
#define SIGNAL_AUDIO_INTERNAL_H

#include "base/buf.h"
#include "signal/audio.h"
#include "signal/resample.h"

/* ---- where frames of all channels end: mono, at the wanted rate, within the limits (audio_sink.c) ---- */

typedef struct audio_sink {
    audio_options o; /* settled: no zeros but raw_* */
    audio_info info;
    resampler *resampler; /* once the file's rate is known */
    uint64_t n_frames;    /* heard */
    bool counts_only;     /* frames are checked and counted; nothing comes out */
    float *out;           /* [cap]; what is ready is at [from, from + n) */
    size_t from, n, cap;
} audio_sink;

/* The file says what it holds, once; refused when it is out of bounds. */
int audio_sink_open(audio_sink *s, const char *format, uint32_t rate, uint32_t channels, shoal_err *err);
/* The file announces so many frames: SHOAL_ELIMIT when they are too many. After open. */
int audio_sink_announce(const audio_sink *s, uint64_t n_frames, shoal_err *err);
int audio_sink_frames(audio_sink *s, const float *x, size_t n_frames,
                      shoal_err *err); /* x[n_frames][channels] */
int audio_sink_finish(audio_sink *s,
                      shoal_err *err); /* `out` is there from then on, however little it holds */
void audio_sink_done(audio_sink *s);

/* ---- samples as files spell them, little-endian (audio_pcm.c) -------------------------------------------- */

/* X(enum, bytes a sample) */
#define PCM_TABLE(X) \
    X(PCM_U8, 1)     \
    X(PCM_S16, 2)    \
    X(PCM_S24, 3)    \
    X(PCM_S32, 4)    \
    X(PCM_F32, 4)    \
    X(PCM_F64, 8)    \
    X(PCM_ALAW, 1)   \
    X(PCM_ULAW, 1)
typedef enum pcm_kind {
#define PCM_ENUM(e, bytes) e,
    PCM_TABLE(PCM_ENUM)
#undef PCM_ENUM
} pcm_kind;

size_t pcm_bytes(pcm_kind k);
void pcm_to_float(pcm_kind k, const uint8_t *bytes, float *out, size_t n); /* n samples */

/* ---- WAV as it arrives (audio_wav.c) --------------------------------------------------------------------- */

typedef enum wav_state {
    WAV_RIFF,
    WAV_CHUNK,
    WAV_FMT,
    WAV_DS64,
    WAV_SKIP,
    WAV_DATA,
    WAV_END,
    WAV_OTHER
} wav_state;

typedef struct wav_parser {
    wav_state state; /* WAV_OTHER: a codec that is not taken apart here */
    pcm_kind kind;   /* with has_fmt */
    bool has_fmt;
    uint32_t rate, channels;
    uint64_t left;      /* bytes of the chunk that are still to come; UINT64_MAX: up to the end of the file */
    uint64_t ds64_data; /* RF64: the true size of the data chunk */
    size_t have, want;  /* bytes of `part`: a header, or a frame cut by a push */
    uint8_t part[AUDIO_CHANNELS_MAX * 8];
} wav_parser;

void wav_init(wav_parser *w);
void wav_init_raw(wav_parser *w, uint32_t channels); /* samples from the first byte on */
int wav_push(wav_parser *w, audio_sink *sink, const uint8_t *bytes, size_t n, shoal_err *err);
int wav_finish(const wav_parser *w, audio_sink *sink, shoal_err *err);

/* ---- whole files by the codecs' libraries, block by block ------------------------------------------- */

/* A file in memory that is being decoded. */
typedef struct codec {
    /* Decode some more into the sink: 1 if there may be more, 0 at the end, or an error. One call decodes a
     * bounded piece, of some thousand samples or some kilobytes of the file. */
    int (*more)(void *state, audio_sink *sink, shoal_err *err);
    void (*close)(void *state);
    void *state;
} codec;

/* The bytes are borrowed until close. On failure *ret is untouched. */
int sndfile_open(codec *ret, audio_sink *sink, const char *format, const void *bytes, size_t n,
                 shoal_err *err);
int mp3_open(codec *ret, audio_sink *sink, const void *bytes, size_t n, shoal_err *err);
int vorbis_open(codec *ret, audio_sink *sink, const void *bytes, size_t n, shoal_err *err);
/* The codec of a file of such a family ("MP3", "Ogg", ...; audio_family's). */
int codec_open(codec *ret, audio_sink *sink, const char *family, const void *bytes, size_t n, shoal_err *err);
void codec_close(codec *c); /* a zeroed one is fine */

/* ---- what the bytes are (audio.c) ------------------------------------------------------------------------ */

#define AUDIO_SNIFF_BYTES 12

/* p[AUDIO_SNIFF_BYTES] begins a file of this family; "WAV" with *ret_wav is one that wav_push reads. */
int audio_family(const uint8_t *p, const char **ret, bool *ret_wav, shoal_err *err);
int audio_too_short(size_t n_bytes, shoal_err *err); /* SHOAL_EFORMAT */
/* Defaults for what is zero; SHOAL_EINVALID. */
int audio_settle_options(audio_options *o, shoal_err *err);

#endif
