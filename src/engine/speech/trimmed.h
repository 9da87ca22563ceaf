/* trimmed.h: a sound without the parts in which nobody speaks (activity.h), as one run of samples.
 *
 * The pieces with speech lie one behind the other. Short pauses stay, so that sentences keep their rhythm.
 * Each place in the trimmed sound has one in the original; the first sample of a piece and the end of the one
 * before it are the same place here and two places there.
 *
 *     trimmed *t;
 *     trimmed_new(&t, sound, 16000, 16000, true, &err);  // false: nothing is taken out
 *     while (trimmed_view(t, at, window, &x, &n, &err) == 0 && n > 0) {
 *         start = trimmed_origin(t, at);
 *         at += n;
 *     }
 *
 * What is in memory: the view, and the few seconds that activity.h decides about. One thread at a time. */
#ifndef SPEECH_TRIMMED_H
#define SPEECH_TRIMMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "signal/sound.h"

typedef struct trimmed trimmed;

/* The sound is borrowed. Of what is no speech between two pieces, `pause` samples and less stay. */
int trimmed_new(trimmed **ret, sound *s, uint32_t rate, size_t pause, bool trims, shoal_err *err);
void trimmed_free(trimmed *t); /* NULL is fine */

/* *ret is n samples from `at` on, *ret_n of them: fewer than n at the end only. Good until the next call.
 * `at` never goes back; 0 samples at it mean that no speech is left. The sound's errors, SHOAL_ENOMEM. */
int trimmed_view(trimmed *t, size_t at, size_t n, const float **ret, size_t *ret_n, shoal_err *err);

/* The original's sample at a place of the last view, and of a place that ends something there. */
size_t trimmed_origin(const trimmed *t, size_t at);
size_t trimmed_origin_of_end(const trimmed *t, size_t at);
/* The first place in (from, to] of the last view at which a piece ends and another begins; 0: there is none.
 */
size_t trimmed_seam(const trimmed *t, size_t from, size_t to);
/* Samples of the original that no later view has. */
size_t trimmed_passed(const trimmed *t, size_t at);

#endif
