/* grammar_args.h: the arguments of a call -> automaton, for syntaxes that do not write them as JSON
 * (chat/toolcall.h), and text up to a marker. */
#ifndef GRAMMAR_ARGS_H
#define GRAMMAR_ARGS_H

#include "base/err.h"
#include "json/json.h"
#include "grammar/automaton/grammar_nfa.h"
#include "chat/toolcall.h"

/* nfa_mark: where these may be control tokens. */
enum {
    MARK_OPEN = 1,    /* a marker before calls, or a frame of answers */
    MARK_WITHIN = 2,  /* a piece of what is being written, whichever */
    MARK_VALUE = 4,   /* what ends a text among the arguments */
    MARK_THINK = 8,   /* a thought's opening marker */
    MARK_THOUGHT = 16 /* and its closing one, or a call's that ends it, too */
};

/* From `at`, behind the function's name: brackets and, in the order of the schema's "properties", the
 * arguments that satisfy them; to `end`. parameters NULL: any. What is no plain object of properties, or a
 * text with conditions where texts are not JSON, is SHOAL_EUNSUPPORTED with the JSON pointer, which begins
 * with `what`. */
int args_compile(nfa *a, const toolcall_syntax *syntax, const json_t *parameters, const char *what, int at,
                 int end, shoal_err *err);

/* From `from` any text up to and with the first of n markers (UNTIL_MAX at most), each of which ends in a
 * state of its own; all states on the way bear `mark`. may_end: a reply may end there. `from` gets all its
 * edges here. */
enum { UNTIL_MAX = 4 };
typedef struct until {
    const char *marker;
    int to;
} until;
void text_until(nfa *a, int from, const until *ends, size_t n, uint8_t mark, bool may_end);

/* What a syntax writes, from `from` to the state that is returned: control tokens of its own may stand for
 * pieces of it (MARK_WITHIN), and "#" is a number. */
int written(nfa *a, int from, const char *s);

#endif
