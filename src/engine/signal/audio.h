/* audio.h: sound files as mono floats at the rate a model wants.
 *
 * WAV (PCM of 8 to 32 bits, float, A-law, mu-law) and raw 16-bit PCM are decoded as their bytes arrive. FLAC,
 * Ogg (Vorbis, Opus), MP3, AIFF and WAV in other codecs are kept until the end and decoded from memory (by
 * libsndfile; Vorbis by libvorbisfile, MP3 by libmpg123). All channels are averaged; 1.0 is full scale, and
 * nothing is clipped.
 *
 *     audio_reader *r;
 *     audio_reader_new(&r, NULL, &err);                  // 16 kHz comes out
 *     while (more) audio_reader_push(r, bytes, n, &err); // as they arrive
 *     audio_reader_finish(r, &err);
 *     const float *x = audio_reader_samples(r, &n);
 *
 * WAV, raw, FLAC and AIFF give the same bits on every machine, however the bytes are cut. What lossy formats
 * decode to is up to the codecs' libraries.
 *
 * Hostile files cost at most max_bytes of memory for the file and 8 bytes for each of the max_seconds * rate
 * samples; work is bounded too: at most max_seconds of sound and max_seconds * 384000 samples of all channels
 * together (stereo at 192 kHz). A file whose header already says more is refused before it is decoded. Who
 * needs no more than a few seconds at a time decodes by sound.h, in constant memory. */
#ifndef SIGNAL_AUDIO_H
#define SIGNAL_AUDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cancel.h"

#define AUDIO_CHANNELS_MAX 64

/* Zero means the default in brackets. */
typedef struct audio_options {
    uint32_t rate;      /* samples a second that come out [16000] */
    double max_seconds; /* [3600] */
    size_t max_bytes;   /* of a file that is kept until its end [64 MiB] */
    /* The bytes are signed 16-bit little-endian PCM of this rate [find out what they are]. */
    uint32_t raw_rate;
    uint32_t raw_channels; /* interleaved, with raw_rate [1] */
    cancel_check cancel;   /* asked between blocks of a few thousand samples [never] */
} audio_options;

typedef struct audio_info {
    const char *format; /* "WAV", "FLAC", ...; static; "" as long as it is not known */
    uint32_t rate;      /* of the file */
    uint32_t channels;
    double seconds; /* heard so far */
    bool cut;       /* the file promised more sound than came: it is incomplete */
} audio_info;

typedef struct audio_reader audio_reader;

/* One thread at a time. NULL options are all defaults. */
int audio_reader_new(audio_reader **ret, const audio_options *options, shoal_err *err);
void audio_reader_free(audio_reader *r); /* NULL is fine */

/* The next bytes of the file, and its end. SHOAL_EUNSUPPORTED for a format we do not read, SHOAL_EFORMAT for
 * a damaged file, SHOAL_ELIMIT for too long a one, SHOAL_ENOMEM. After an error they give the same error
 * again; what was decoded before stays readable. */
int audio_reader_push(audio_reader *r, const void *bytes, size_t n, shoal_err *err);
int audio_reader_finish(audio_reader *r, shoal_err *err);

/* What has been decoded and not been dropped; valid until the next push, finish or drop. Drop n <= *ret_n of
 * the oldest: a long stream then needs little memory. */
const float *audio_reader_samples(const audio_reader *r, size_t *ret_n);
void audio_reader_drop(audio_reader *r, size_t n);

/* A whole file at once: *ret[*ret_n] is the caller's to free(), never NULL. ret_info may be NULL. */
int audio_decode(float **ret, size_t *ret_n, audio_info *ret_info, const void *bytes, size_t n,
                 const audio_options *options, shoal_err *err);

#endif
