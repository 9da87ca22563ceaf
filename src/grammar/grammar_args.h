/* grammar_args.h: the arguments of a call -> automaton, for syntaxes that do not write them as JSON
 * (text/toolcall.h), and text up to a marker. */
#ifndef GRAMMAR_ARGS_H
#define GRAMMAR_ARGS_H

#include "base/err.h"
#include "base/json.h"
#include "grammar/grammar_nfa.h"
#include "text/toolcall.h"

/* nfa_mark: where these may be control tokens. */
enum { MARK_OPEN = 1, MARK_CLOSE = 2, MARK_MIDDLE = 4, MARK_THINK = 8, MARK_THOUGHT = 16 };

/* From `at`, behind the function's name: brackets and, in the order of the schema's "properties", the
 * arguments that satisfy them; to `end`. parameters NULL: any. What is no plain object of properties, or a
 * text with conditions where texts are not JSON, is SHOAL_EUNSUPPORTED with the JSON pointer, which begins
 * with `what`. */
int args_compile(nfa *a, const toolcall_syntax *syntax, const json_t *parameters, const char *what, int at,
                 int end, shoal_err *err);

/* From `from` any text up to and with the first `marker`, which ends in `to`; all states on the way bear
 * `mark`. may_end: a reply may end there. `from` gets all its edges here. */
void text_until(nfa *a, int from, const char *marker, uint8_t mark, bool may_end, int to);

#endif
