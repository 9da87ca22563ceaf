/* sound.h: a sound as windows of samples, decoded only as far as they are looked at.
 *
 * Eleven kilobytes of FLAC can be an hour of sound, which is 230 MB of samples. A reader that looks at some
 * seconds at a time needs no more than these: the decoder stops where the window ends and goes on when the
 * window moves.
 *
 *     sound *s;
 *     sound_open(&s, bytes, n, &options, &err);            // bytes are borrowed
 *     sound_measure(s, &err);                              // all of it is decoded once and counted
 *     for (size_t at = 0; at < sound_length(s); at += step)
 *         sound_view(s, at, window, &x, &n, &err);         // x[n]: the samples from `at` on
 *     sound_free(s);
 *
 * The samples are those of audio_decode (audio.h), bit for bit, and so are the errors of a measured sound.
 * Measuring costs the decoding and neither memory nor resampling; a sound that ends within the first view is
 * measured by it. One thread at a time. */
#ifndef SIGNAL_SOUND_H
#define SIGNAL_SOUND_H

#include "signal/audio.h"

typedef struct sound sound;

/* Of options, raw_rate is not taken. The header is read; audio.h's errors. NULL options are all defaults. */
int sound_open(sound **ret, const void *bytes, size_t n, const audio_options *options, shoal_err *err);
/* Samples that are there already, malloc'd: they are the sound's, whatever comes of it. SHOAL_ENOMEM. */
int sound_of_samples(sound **ret, float *samples, size_t n, shoal_err *err);
void sound_free(sound *s); /* NULL is fine */

/* *ret is n samples from `at` on, *ret_n of them: fewer than n at the end only. Good until the next call.
 * `at` never goes back. */
int sound_view(sound *s, size_t at, size_t n, const float **ret, size_t *ret_n, shoal_err *err);

int sound_measure(sound *s, shoal_err *err);
bool sound_is_measured(const sound *s);
size_t sound_length(const sound *s); /* in samples, once it is measured */

/* Who is asked from now on whether to go on (audio_options.cancel). */
void sound_set_cancel(sound *s, const cancel_check *c);

/* Bytes of samples that are in memory now. */
size_t sound_bytes(const sound *s);

#endif
