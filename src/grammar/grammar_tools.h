/* grammar_tools.h: forms of reply that are no bare JSON document -> automaton (grammar_nfa.h). */
#ifndef GRAMMAR_TOOLS_H
#define GRAMMAR_TOOLS_H

#include "base/err.h"
#include "grammar/grammar.h"
#include "grammar/grammar_args.h"
#include "grammar/grammar_nfa.h"

/* Add the automaton of spec's tools, resp. choices; *ret_start is its first state. What may begin with a
 * control token is marked (nfa_mark). Errors as at grammar_new. */
int tools_compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err);
/* A thought before the reply that begins at `start`: its first state, where either may begin. */
int thought_compile(nfa *a, const grammar_spec *spec, int start);
/* The text of the control token for one MARK_ bit; NULL: none here. */
const char *tools_marker(const grammar_spec *spec, uint8_t mark);
int choices_compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err);

#endif
