/* tok_regex.h: pcre2 with bounds, for texts that are known to be UTF-8.
 *
 * A tok_regex is immutable; a tok_match is the state of one call on one thread. Just-in-time code is
 * used where the machine allows it, the interpreter otherwise. */
#ifndef TOKENIZER_TOK_REGEX_H
#define TOKENIZER_TOK_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct tok_regex tok_regex;
typedef struct tok_match {
    void *data, *context; /* made at first use */
} tok_match;

/* The pattern is spelled as for Oniguruma, as tokenizer files spell theirs. SHOAL_EUNSUPPORTED with the
 * reason when it does not compile. */
int tok_regex_compile(tok_regex **ret, const char *pattern, size_t len, const char *what, shoal_err *err);
void tok_regex_free(tok_regex *re);
/* One that finds the longest stretches of one script, from a character that has one; spaces belong to every
 * script, Hiragana, Katakana and U+30FC to Han (SentencePiece's rule for what a piece may hold). */
int tok_scripts_compile(tok_regex **ret, const char *what, shoal_err *err);
bool tok_scripts_has(const char *name, size_t len); /* the name of a script (Unicode 9) */

/* tok_onig.c: append PCRE2's spelling of an Oniguruma pattern. */
int tok_onig_to_pcre(buf *out, const char *pattern, size_t len, const char *what, shoal_err *err);

/* The next match at or after byte `from`: 1 with its range, 0 when there is none, else a code
 * (SHOAL_ELIMIT when the pattern backtracks too much). */
int tok_regex_find(const tok_regex *re, tok_match *m, const char *s, size_t len, size_t from,
                   size_t *ret_begin, size_t *ret_end, shoal_err *err);
void tok_match_done(tok_match *m);

#endif
