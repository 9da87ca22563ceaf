/* poly.h: coefficients shared by the scalar and the vector forms of exp, tanh and erf.
 *
 * Fitted by interpolation at Chebyshev nodes and rounded to float; the error named is that of the
 * rounded polynomial, relative to the result. Horner order, highest first. */
#ifndef COMPUTE_POLY_H
#define COMPUTE_POLY_H

/* exp: x = n ln2 + r, |r| <= ln2/2, e^r = 1 + (r + r² P(r)); 8.5e-9.
 * Adding 1.5 * 2^23 rounds to an integer that the low bits of the sum then hold. */
#define EXP_LO     (-104.0f) /* e^-104 rounds to 0, e^89 to infinity */
#define EXP_HI     89.0f
#define EXP_LOG2E  0x1.715476p+0f
#define EXP_MAGIC  0x1.8p+23f
#define EXP_LN2_HI 0x1.62e4p-1f
#define EXP_LN2_LO 0x1.7f7d1cp-20f
#define EXP_P4     0x1.6d1606p-10f
#define EXP_P3     0x1.12106cp-7f
#define EXP_P2     0x1.555516p-5f
#define EXP_P1     0x1.5554d8p-3f
#define EXP_P0     0x1p-1f

/* tanh, |x| < 0.625: x + x z P(z), z = x²; 4e-9. Above: 1 - 2 / (e^2|x| + 1). */
#define TANH_SMALL 0.625f
#define TANH_P5    0x1.2c83c2p-9f
#define TANH_P4    -0x1.116a16p-7f
#define TANH_P3    0x1.64a976p-6f
#define TANH_P2    -0x1.ba08c4p-5f
#define TANH_P1    0x1.1110eap-3f
#define TANH_P0    -0x1.555556p-2f

/* erf, |x| < 0.9375: x + x P(x²); 7e-9. Above, up to 4: 1 - exp(-Q(|x|)); 1.4e-8. */
#define ERF_SMALL 0.9375f
#define ERF_BIG   4.0f
#define ERF_P6    0x1.5ad934p-14f
#define ERF_P5    -0x1.a9ab5ap-11f
#define ERF_P4    0x1.54b814p-8f
#define ERF_P3    -0x1.b80d08p-6f
#define ERF_P2    0x1.ce2df8p-4f
#define ERF_P1    -0x1.812742p-2f
#define ERF_P0    0x1.06eba8p-3f
#define ERF_Q8    -0x1.b90e7ap-20f
#define ERF_Q7    0x1.834022p-15f
#define ERF_Q6    -0x1.394e9ap-11f
#define ERF_Q5    0x1.381f9ap-8f
#define ERF_Q4    -0x1.b0fd8cp-6f
#define ERF_Q3    0x1.c2eac2p-4f
#define ERF_Q2    0x1.437e6cp-1f
#define ERF_Q1    0x1.2156d2p+0f
#define ERF_Q0    -0x1.4e0356p-12f

#define GELU_SQRT_HALF 0x1.6a09e6p-1f /* 1/sqrt(2) */
#define GELU_C0        0x1.988454p-1f /* sqrt(2/pi) */
#define GELU_C1        0.044715f

#endif
