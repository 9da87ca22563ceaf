/* words.h: a text as words that can be compared.
 *
 * A word is a run of letters and digits, a number, or one sign (% ° , . ? ! : ;). Each knows where it stands
 * in the text, so that what a person wrote can be copied exactly, and its folded form: lower case without
 * accents, "Küchenlicht" and "KUCHENLICHT" are "kuchenlicht". Contractions stay whole ("don't"), numbers come
 * apart from their units ("40%", "8am", "5min"); ids in hex are one word ("0x00158d0001a2b3c4").
 *
 *     words w;
 *     if (words_split(&w, a, text, strlen(text))) return err_nomem(err);
 *
 * Memory is the caller's arena. Pure: no locale, no files. */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define WORDS_MAX 4096 /* of one text; what follows is left out and words.cut says so */

typedef struct word {
    const char *s;     /* folded, NUL-terminated, in the arena */
    size_t begin, end; /* bytes in the text */
    bool sign;         /* neither letter nor digit */
    bool number;       /* digits, perhaps with a decimal point: value holds it */
    bool glued;        /* nothing stands between it and the word before */
    double value;
} word;

typedef struct words {
    const char *text;
    size_t n;
    word *at;
    bool cut;
} words;

/* 0 or SHOAL_ENOMEM. Text that is no UTF-8 gives words of its valid parts. */
int words_split(words *ret, arena *a, const char *text, size_t len);

/* The same word. Most differ in their first letter, and there are very many to compare. */
static inline bool words_same(const char *a, const char *b)
{
    return *a == *b && strcmp(a, b) == 0;
}
/* The first eight bytes of a word, behind a shorter one zeros: words that differ in them are not the same. */
static inline uint64_t words_key(const char *s)
{
    uint64_t key = 0;
    memcpy(&key, s, strnlen(s, sizeof key));
    return key;
}
/* words_same of words whose keys are known. */
static inline bool words_same_keyed(uint64_t key_a, const char *a, uint64_t key_b, const char *b)
{
    return key_a == key_b &&
           (!((const char *)&key_a)[sizeof key_a - 1] || strcmp(a + sizeof key_a, b + sizeof key_b) == 0);
}
/* Are these the same word but for an ending: plural s, es, ies? Both folded. */
bool words_same_stem(const char *a, const char *b);
/* The plural of `singular` as English and most names build it; `s` is folded. */
bool words_is_plural_of(const char *s, const char *singular);

/* May `typed` be `meant` with a typing error? Two letters changed about in four, one error from five letters
 * on, two from nine; the first letter stands, and digits are never taken for letters. */
bool words_is_typo(const char *typed, const char *meant);

#endif
