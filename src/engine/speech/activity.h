/* activity.h: where in a sound somebody speaks, found without a model: a voice activity detector.
 *
 * A frame is 64 ms under a Hann window, one each 20 ms. Four properties together are evidence of a voice:
 *
 *     periodic      the fine structure of the spectrum (80 to 2,600 Hz, its envelope divided out) repeats at
 *                   a voice's pitch, 60 to 444 Hz; noise, hiss and clicks do not
 *     rich          at least four of 14 bands lie within 30 dB of the loudest; a pure tone has one or two
 *     changing      the envelope in 14 bands differs by 1.6 dB and more from those 80 ms before and 80 ms
 *                   behind; noise, hum, tones and chords for the length of a note stay as they are
 *     above floor   6 dB over the quietest moment within 1.5 s; steady sound is never above its own floor
 *
 * A frame's evidence counts as far as a frame 60 ms away has as much, so bursts (claps, keys) have little.
 * There is speech where the evidence of 0.6 s reaches a threshold, and around it as far as there is any, with
 * 160 ms at both ends for consonants without a voice. Whispering has no pitch and is not found.
 *
 *     activity *a;
 *     activity_new(&a, 16000, &err);
 *     while (samples are left) {
 *         activity_push(a, x, n);                        // n <= activity_push_max(a)
 *         while (activity_next(a, &speech)) ...          // one decision for each activity_hop(a) samples
 *     }
 *     activity_end(a);                                   // then the decisions that are left
 *
 * A decision comes about three seconds of sound behind its samples. One thread at a time; no clock. The bits
 * are the same on every machine and for every way to cut the sound into pushes. */
#ifndef SPEECH_ACTIVITY_H
#define SPEECH_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct activity activity;

/* SHOAL_EUNSUPPORTED for a rate below 8,000 or over 192,000 samples a second. */
int activity_new(activity **ret, uint32_t rate, shoal_err *err);
void activity_free(activity *a);             /* NULL is fine */
size_t activity_hop(const activity *a);      /* samples that one decision is for */
size_t activity_push_max(const activity *a); /* samples that one push may bring */
size_t activity_behind(const activity *a);   /* samples at most between a push's end and a decision */

/* Every decision that there is must have been taken before. 0 or SHOAL_ENOMEM. */
int activity_push(activity *a, const float *x, size_t n);
void activity_end(activity *a);
/* The next decision, in order; false: it needs more samples, or there is none left. The last one stands for
 * what is left of the sound, which may be less than a hop. */
bool activity_next(activity *a, bool *ret_speech);

#endif
