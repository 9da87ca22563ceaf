/* resample.h: sound at another rate, by a windowed sinc.
 *
 * Output k stands at input time k * from / to, exactly (whole-number arithmetic); n samples give
 * ceil(n * to / from), and what lies before the first and behind the last is silence. The filter is a sinc
 * under a Kaiser window, 64 zero crossings to each side at the lower rate: flat within 0.01 dB up to 0.9 of
 * the lower Nyquist frequency, below -92 dB from 1.0 of it on, so that nothing folds back audibly. There is
 * one row of weights for each phase of the ratio; where a ratio has too many phases (44099 to 16000),
 * neighbouring rows of a coarser table are blended, with errors below -90 dB.
 *
 *     resampler *r;
 *     resampler_new(&r, 44100, 16000, &err);
 *     n = resampler_push(r, block, n_block, out);   // out has room for resampler_room(r, n_block)
 *     n = resampler_finish(r, out);                 // room: resampler_room(r, 0)
 *
 * The same bits on every machine and for every way to cut a stream: weights from compute's sine, products
 * summed in sixteen lanes and a tree, nothing fused. Method: J. O. Smith, Digital Audio Resampling (2002);
 * window length and shape after J. F. Kaiser (1974). */
#ifndef SIGNAL_RESAMPLE_H
#define SIGNAL_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define RESAMPLE_RATE_MIN 1000
#define RESAMPLE_RATE_MAX 768000

typedef struct resampler resampler;

/* Rates in Hz, RESAMPLE_RATE_MIN..RESAMPLE_RATE_MAX, else SHOAL_EUNSUPPORTED. Equal rates copy. */
int resampler_new(resampler **ret, uint32_t from, uint32_t to, shoal_err *err);
void resampler_free(resampler *r); /* NULL is fine */

/* How many samples n give in all. */
uint64_t resampler_length(const resampler *r, uint64_t n);
/* The most samples that a push of n, or a finish when n is 0, may give. */
size_t resampler_room(const resampler *r, size_t n);

/* Both return how many samples they wrote to out. After finish the stream may begin again. */
size_t resampler_push(resampler *r, const float *x, size_t n, float *out);
size_t resampler_finish(resampler *r, float *out);

#endif
