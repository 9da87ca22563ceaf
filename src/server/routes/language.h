/* language.h: which language a text seems to be in: a guess that costs microseconds and no model.
 *
 * A script that one language has (kana, Hangul, ...) decides; in Latin letters the short words that every
 * sentence has (the, und, que, ...) are counted. Rules of a route want no more than to tell a German request
 * from an English one; for anything beyond there are models.
 *
 *     language_guess("mach das licht aus", 18)      "de"
 *     language_guess("42", 2)                       "" */
#ifndef ROUTES_LANGUAGE_H
#define ROUTES_LANGUAGE_H

#include <stddef.h>

enum { LANGUAGE_BYTES = 4096 }; /* so much of a text is looked at */

/* An ISO 639-1 code, or "" when nothing speaks for any. */
const char *language_guess(const char *text, size_t len);
/* May language_guess say this? */
int language_is_known(const char *code);
/* All of them, with NULL at the end. */
extern const char *const LANGUAGE_CODES[];

#endif
