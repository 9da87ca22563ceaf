/* units.h: a sentence as units: whole device names, numbers with their measure, durations, words.
 *
 * What a person typed wrong is put right where just one known word is near ("kitchn"); synonyms are replaced,
 * so that the rest sees one word for one thing. */
#ifndef NLU_UNITS_H
#define NLU_UNITS_H

#include "nlu/devices.h"

typedef struct units {
    size_t n;
    unit at[UNITS_MAX];
    bool cut;                   /* there were more */
    char digits[UNITS_MAX][24]; /* how numbers of several words are written: "one hundred" as 100 */
} units;

/* Put typing errors right in place: words that neither lexicon nor devices know. True: there were some. */
bool units_mend(words *w, const devices *d);

/* Units of words [from, to). */
void units_make(units *ret, const words *w, size_t from, size_t to, const devices *d);

#endif
