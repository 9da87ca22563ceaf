/* eval_text.h: text as words, for judging replies whatever their case, punctuation and spacing.
 *
 * A word is a run of letters or a number; whatever lies between words does not count, so that "Oven-3" and
 * "oven 3" are the same two words. "18.5" is one word, "30s" is two. Bytes of other scripts are letters. */
#ifndef EVAL_EVAL_TEXT_H
#define EVAL_EVAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct eval_word {
    const char *at; /* borrowed from the text */
    size_t len;
    bool number;
    bool capital; /* begins with an upper-case letter (of ASCII or Latin-1) */
    bool first;   /* begins the text or a sentence */
} eval_word;

typedef struct eval_words {
    eval_word *v;
    size_t n;
} eval_words;

/* Words borrow from text, which must outlive them. */
int eval_words_init(eval_words *ret, const char *text, shoal_err *err);
void eval_words_done(eval_words *w); /* accepts a zeroed one */

/* Where `part` stands in `w` as consecutive words, from word `from` on; (size_t)-1: nowhere. A part without
 * words stands nowhere. Letter case does not matter. */
size_t eval_words_find(const eval_words *w, size_t from, const eval_words *part);

/* Does the phrase stand in the text? "^Turning on": at its beginning. */
bool eval_text_has(const char *text, const char *phrase);

#endif
