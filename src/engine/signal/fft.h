/* fft.h: power spectra of short frames of real samples, eight frames at a time.
 *
 * The lanes run over frames, so that a compiler makes vectors of them while every frame is computed by the
 * same operations in the same order, alone or among others, on any machine: mixed radix (2, 3, 4, 5) in
 * double, twiddles from compute's sin and cos, nothing fused. kissfft does the same job, but Debian compiles
 * it with leave to fuse multiply and add, which AArch64 then does and x86-64 does not: other bits, so not
 * under the numerics contract.
 *
 *     fft *f;
 *     fft_new(&f, 400, &err);
 *     fft_power(f, x, power);   // x[400][8] -> power[201][8]
 *
 * Method: Stockham's autosort (Van Loan, Computational Frameworks for the FFT, 1.7); n real samples are n/2
 * complex ones whose spectrum is taken apart at the end. */
#ifndef SIGNAL_FFT_H
#define SIGNAL_FFT_H

#include <stddef.h>

#include "base/err.h"

#define FFT_LANES 8
#define FFT_N_MAX 16384

typedef struct fft fft;

/* n is even, 4..FFT_N_MAX, and has no prime factor over 5; else SHOAL_EUNSUPPORTED. */
int fft_new(fft **ret, size_t n, shoal_err *err);
void fft_free(fft *f); /* NULL is fine */

/* power[n/2 + 1][FFT_LANES] = |DFT of x[n][FFT_LANES]|² per lane; x is overwritten. One thread at a time. */
void fft_power(fft *f, double *x, double *power);

#endif
