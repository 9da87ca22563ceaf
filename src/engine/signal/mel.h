/* mel.h: log-mel features of speech: what Whisper and keyword spotters see.
 *
 * Frame k is n_fft samples from 160 k on under a periodic Hann window; the power of its spectrum is gathered
 * by triangular filters on Slaney's mel scale (Slaney's norm), then log10 with a floor of 1e-10. Whisper
 * centres frame k on sample 160 k (the ends reflected), lifts what is 8 below the chunk's maximum and maps x
 * to (x + 4) / 4; a streaming spotter takes frames as they come, without a maximum.
 *
 *     mel *m;
 *     mel_new(&m, NULL, &err);                                // Whisper's: 16 kHz, 400, 160, 80
 *     mel_whisper(m, samples, n, 480000, features, &err);     // features[80][3000]
 *
 *     mel_stream *s;                                          // any block sizes give the same rows
 *     mel_stream_new(&s, m, &err);
 *     n_rows = mel_stream_push(s, block, n, rows);            // rows[n_rows][80]
 *
 * Sums are in double and nothing is fused: the same bits on every machine and for every way to cut a stream.
 * Sources: openai/whisper audio.py; the Hugging Face WhisperFeatureExtractor; M. Slaney, Auditory Toolbox
 * (1998). */
#ifndef SIGNAL_MEL_H
#define SIGNAL_MEL_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/err.h"

/* Zero means the default in brackets. */
typedef struct mel_options {
    uint32_t rate;       /* samples a second [16000] */
    uint32_t n_fft;      /* samples a frame [400]; even, factors 2, 3 and 5 only */
    uint32_t hop;        /* samples from frame to frame [160] */
    uint32_t n_mels;     /* filters [80]; Whisper large-v3 has 128 */
    double f_min, f_max; /* Hz, where the first filter begins and the last ends [0, rate / 2] */
} mel_options;

/* Fill in what a preprocessor_config.json of a WhisperFeatureExtractor, or the "feature" object of a keyword
 * spotter's config.json, says: sampling_rate, n_fft, hop_length, feature_size or num_mel_bins, min_frequency,
 * max_frequency. *ret_chunk (may be NULL) is n_samples, or chunk_length seconds, or 0 when there is neither.
 * What would give other features than ours (another window, scale, norm, power, dither) is
 * SHOAL_EUNSUPPORTED. */
int mel_read_config(mel_options *ret, size_t *ret_chunk, const json_t *config, shoal_err *err);

/* Tables and scratch for one thread at a time. NULL options are all defaults. */
typedef struct mel mel;
int mel_new(mel **ret, const mel_options *options, shoal_err *err);
void mel_free(mel *m);                         /* NULL is fine */
const mel_options *mel_settings(const mel *m); /* with the defaults filled in */

/* out[n_mels][n_chunk / hop] for the first n_chunk samples of x[n]; what is missing is silence. The last
 * frame of the centred transform is dropped, as Whisper does. SHOAL_EINVALID when n_chunk is no multiple of
 * hop or not longer than half a frame. */
int mel_whisper(mel *m, const float *x, size_t n, size_t n_chunk, float *out, shoal_err *err);

/* Frames that fit whole into n samples, and their rows as (log10 + 4) / 4: out[mel_frames(m, n)][n_mels]. */
size_t mel_frames(const mel *m, size_t n);
void mel_rows(mel *m, const float *x, size_t n, float *out);

/* The same for samples that arrive in blocks. The stream borrows m, which may serve other streams in between.
 */
typedef struct mel_stream mel_stream;
int mel_stream_new(mel_stream **ret, mel *m, shoal_err *err);
void mel_stream_free(mel_stream *s);                   /* NULL is fine */
size_t mel_stream_room(const mel_stream *s, size_t n); /* rows that a push of n samples gives */
size_t mel_stream_push(mel_stream *s, const float *x, size_t n, float *out); /* returns these rows */

#endif
