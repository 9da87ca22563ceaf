/* codes.h: an embedding as int8: d codes of -127 to 127 and one scale. x[i] is about scale * codes[i].
 *
 * Vectors are made as long as 1 first, so that the product of two is the cosine of their angle:
 *     cosine = float(codes · codes') * scale * scale'
 * The sum is a whole number, so a score is the same on every machine. */
#ifndef RETRIEVE_CODES_H
#define RETRIEVE_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CODES_DIMS_MAX = 8192 };

/* codes[d] and *ret_scale of x[d]. False: x has no direction (zeros, NaN, infinity); then both are zeros. */
bool codes_of(const float *x, size_t d, int8_t *codes, float *ret_scale);

#endif
