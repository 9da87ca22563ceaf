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
    bool cut; /* there were more */
} units;

/* Put typing errors right in place: words that neither lexicon nor devices know. */
void units_mend(words *w, const devices *d);

/* Units of words [from, to). */
void units_make(units *ret, const words *w, size_t from, size_t to, const devices *d);

#endif
