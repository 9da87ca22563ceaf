/* edits.h: how far a word is from one that somebody may have meant.
 *
 *     if (edits("quantise", "quantize", 2) <= 2) ... did you mean ...
 *
 * Pure. */
#ifndef BASE_EDITS_H
#define BASE_EDITS_H

#include <stddef.h>

enum { EDITS_LETTERS_MAX = 96 };

/* How many letters (bytes) are added, dropped, changed or swapped with their neighbour between a and b
 * (optimal string alignment; Damerau 1964, Levenshtein 1966); most + 1 when it is more than `most`, or one of
 * them is longer than EDITS_LETTERS_MAX. Whoever asks for nonsense all day costs little: a row in which all
 * is more ends it. */
size_t edits(const char *a, const char *b, size_t most);

#endif
