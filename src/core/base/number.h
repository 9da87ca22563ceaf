/* number.h: numbers as people write them, read strictly: the whole text is one, and nothing is guessed. And
 * written: what printf writes, at a fraction of its price.
 *
 * Reading takes digits alone without a leading zero, '-' where the type has a sign, one '.' between digits
 * for a double. No blanks, '+', '_', exponent, hexadecimal, infinity; on false *ret is untouched.
 *
 *     number_put(&out, score, 9);     // 0.549727499, 9.13670228e-05: every float comes back exactly
 *     number_put(&out, score, 17);    // every double comes back exactly */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define NUMBER_SIZE 32 /* what number_write may write, its NUL included */

/* False also for a whole number that the type does not hold. */
bool number_u64(const char *text, uint64_t *ret);
bool number_i64(const char *text, int64_t *ret);
bool number_double(const char *text, double *ret); /* in the C locale, which Shoal's programs never leave */

/* v as printf's "%.*g" with so many digits (1 to 17) writes it, byte for byte; returns the length. */
size_t number_write(char ret[NUMBER_SIZE], double v, int digits);
/* A whole number in decimal, as it is; returns the length. */
size_t number_write_i64(char ret[NUMBER_SIZE], int64_t v);
size_t number_write_u64(char ret[NUMBER_SIZE], uint64_t v);
/* The same, appended. 0 or SHOAL_ENOMEM, as buf's own. */
int number_put(buf *out, double v, int digits);
int number_put_i64(buf *out, int64_t v);
int number_put_u64(buf *out, uint64_t v);

/* Of qsort, for doubles in ascending order. */
int number_compare_doubles(const void *a, const void *b);

/* The q-quantile by nearest rank; sorts values[n]. Negative ones (failures) are left out; 0 when none is left. */
double number_quantile(double *values, size_t n, double q);

#endif
