/* number.h: numbers as people write them, read strictly: the whole text is one, and nothing is guessed.
 *
 * Digits alone without a leading zero, '-' where the type has a sign, one '.' between digits for a double. No
 * blanks, '+', '_', exponent, hexadecimal, infinity; on false *ret is untouched. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* False also for a whole number that the type does not hold. */
bool number_u64(const char *text, uint64_t *ret);
bool number_i64(const char *text, int64_t *ret);
bool number_double(const char *text, double *ret); /* in the C locale, which Shoal's programs never leave */

#endif
