/* grammar_schema.h: JSON schema -> automaton (grammar_nfa.h). */
#ifndef INFER_GRAMMAR_SCHEMA_H
#define INFER_GRAMMAR_SCHEMA_H

#include "base/err.h"
#include "infer/grammar_nfa.h"

/* Add the automaton of `schema` (JSON text; NULL: any JSON object) to `a`; *ret_start is its first
 * state. What it supports is listed at grammar_new. SHOAL_EINVALID for a malformed schema,
 * SHOAL_EUNSUPPORTED with the JSON pointer for a keyword that would have to be enforced. */
int schema_compile(nfa *a, const char *schema, int *ret_start, shoal_err *err);

#endif
