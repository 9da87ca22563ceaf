/* grammar_tools.h: forms of reply that are no bare JSON document -> automaton (grammar_nfa.h). */
#ifndef INFER_GRAMMAR_TOOLS_H
#define INFER_GRAMMAR_TOOLS_H

#include "base/err.h"
#include "infer/grammar.h"
#include "infer/grammar_nfa.h"

#define TOOL_OPEN  "<tool_call>"
#define TOOL_CLOSE "</tool_call>"

/* nfa_marks: where these may be control tokens. */
enum { MARK_OPEN = 1, MARK_CLOSE = 2 };

/* Add the automaton of spec's tools, resp. choices; *ret_start is its first state. What may begin with a
 * control token is marked (nfa_mark). Errors as at grammar_new. */
int tools_compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err);
int choices_compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err);

#endif
