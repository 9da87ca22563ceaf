/* grammar_number.h: numbers between bounds -> the set of their decimal texts.
 *
 * Texts have no exponent. Integers have up to 18 digits; others have 15 in all where any stand behind the point, so
 * that comparing digits is comparing doubles: decimals of up to 15 digits survive a trip through one. */
#ifndef GRAMMAR_NUMBER_H
#define GRAMMAR_NUMBER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "grammar/automaton/grammar_dfa.h"

#define NUMBER_DIGITS   15
#define MULTIPLE_MAX    1000 /* the automaton knows the remainder, so it has this many times the states */
#define DECIMAL_INT_MAX 18

/* digits[0..n_int) before the point, digits[n_int..n_int+n_frac) behind it; no needless zeros. */
typedef struct decimal {
    bool negative;
    int n_int, n_frac;
    char digits[DECIMAL_INT_MAX + NUMBER_DIGITS];
} decimal;

/* false: it has more digits than can be compared. Magnitudes of 10^18 and more become *ret_huge. */
bool decimal_of(const json_t *number, decimal *ret, bool *ret_huge);
int decimal_compare(const decimal *a, const decimal *b); /* < 0, 0, > 0 */

typedef struct number_bounds {
    bool integer;
    bool has_min, has_max, above_min, below_max; /* above, below: the bound itself is out */
    bool far; /* some bound lies beyond all texts that are written here: there is one all the same */
    decimal min, max;
    int multiple, multiple_frac; /* of multiple * 10^-multiple_frac; multiple 0: of anything */
} number_bounds;

/* p * 10^-k of a "multipleOf"; false when p would be over MULTIPLE_MAX (and no power of ten) or not positive.
 */
bool number_multiple(const json_t *number, int *ret_multiple, int *ret_frac);
int number_compile(dfa **ret, const number_bounds *b, uint64_t *work, shoal_err *err);
bool number_is_within(const number_bounds *b, const json_t *number);

#endif
