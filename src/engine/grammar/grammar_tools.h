/* grammar_tools.h: forms of reply that are no bare JSON document -> automaton (grammar_nfa.h). */
#ifndef GRAMMAR_TOOLS_H
#define GRAMMAR_TOOLS_H

#include "base/err.h"
#include "grammar/grammar.h"
#include "grammar/grammar_args.h"
#include "grammar/automaton/grammar_nfa.h"

/* Add the automaton of spec's tools, with the thought that may come first, resp. of its choices; *ret_start
 * is its first state. What may begin with a control token is marked (nfa_mark). Errors as at grammar_new. */
int tools_compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err);
/* A thought before a reply without tools that begins at `start`: its first state, where either may begin. */
int thought_compile(nfa *a, const grammar_spec *spec, int start);
/* Where the control token with the text s[0..n) may come, in states with one of these MARK_ bits; 0: nowhere.
 */
uint8_t tools_marks(const grammar_spec *spec, const char *s, size_t n);
int choices_compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err);

#endif
