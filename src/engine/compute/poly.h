/* poly.h: coefficients shared by the scalar and the vector forms of exp, tanh and gelu.
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

/* gelu: see gelu.c. Adding the magic number rounds to a whole one, as for exp. */
#define GELU_TERMS 8
#define GELU_KNOTS 8
#define GELU_STEP  0.8125f
#define GELU_END   5.6875f /* GELU_STEP * (GELU_KNOTS - 1) */
#define GELU_MAGIC EXP_MAGIC
extern const float gelu_erf_terms[GELU_TERMS][GELU_KNOTS], gelu_tanh_terms[GELU_TERMS][GELU_KNOTS];
float gelu(float x, const float terms[GELU_TERMS][GELU_KNOTS]);

#endif
