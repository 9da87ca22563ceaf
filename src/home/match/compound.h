/* compound.h: words that are several: "Küchenlicht" is "Küche" and "Licht".
 *
 * A compound is parts that somebody knows, with what a language puts between them ("n", "s"). All of it has
 * to be known, or it is none: "Küchenlichterkette" is no light of the kitchen, nor is "Kultur" a door. Pure.
 */
#ifndef MATCH_COMPOUND_H
#define MATCH_COMPOUND_H

#include "match/device_lexicon.h"

#define COMPOUND_PARTS_MAX  4
#define COMPOUND_BYTES_MAX  64
#define COMPOUND_PART_BYTES 3 /* shorter words are parts of too many */

typedef bool (*compound_known_fn)(void *user, const char *word);

typedef struct compound {
    size_t n;
    char parts[COMPOUND_PARTS_MAX][COMPOUND_BYTES_MAX]; /* without what stands between them */
} compound;

/* Take a folded word apart as `t` builds compounds, into two parts or more, the first as long as can be.
 * False: it is none, or the language has none. */
bool compound_split(compound *ret, const language *t, const char *word, compound_known_fn known, void *user);

#endif
