/* grammar_pattern.h: a regular expression as JSON Schema has them -> the set of texts that it matches.
 *
 * ECMA-262 with the "u" flag, less what is no regular set or rarely seen: anchors, . classes with ranges and
 * \d \w \s (and their complements), escapes, groups, alternation, quantifiers, lookahead and \b (which may be
 * repeated up to 64 times). It searches: what is not anchored may stand anywhere. Backreferences, lookbehind,
 * \p{..}, flags: SHOAL_EUNSUPPORTED, by name. */
#ifndef GRAMMAR_AUTOMATON_GRAMMAR_PATTERN_H
#define GRAMMAR_AUTOMATON_GRAMMAR_PATTERN_H

#include "base/err.h"
#include "grammar/automaton/grammar_dfa.h"

/* pattern[0..n) is UTF-8. SHOAL_EINVALID for what is malformed, SHOAL_ELIMIT as in grammar_dfa.h. */
int pattern_compile(dfa **ret, const char *pattern, size_t n, uint64_t *work, shoal_err *err);
/* A "format" of JSON Schema as such an expression; NULL when it is not one that we know. all: every text of
 * it, for one beside a "pattern"; else a "hostname" has one of some shapes, of 253 characters at most. */
const char *pattern_of_format(const char *format, bool all);

/* Some texts of a format, for lengths that are too much to count beside those of pattern_of_format. */
typedef struct format_shape {
    const char *format, *pattern;
    int64_t most; /* characters: a larger "maxLength" is as good as this one; 0: only itself is */
} format_shape;
/* The next shape of `format`, best first; *n counts on. NULL: there is no other. */
const format_shape *pattern_shape(const char *format, size_t *n);

#endif
