/* grammar_schema.h: JSON schema -> automaton (grammar_nfa.h). */
#ifndef GRAMMAR_SCHEMA_H
#define GRAMMAR_SCHEMA_H

#include "base/err.h"
#include "json/json.h"
#include "grammar/automaton/grammar_nfa.h"

/* Add the automaton of `schema` (JSON text; NULL: any JSON object) to `a`; *ret_start is its first
 * state. What it supports is listed in docs/http.md. SHOAL_EINVALID for a malformed schema,
 * SHOAL_EUNSUPPORTED with the JSON pointer for a keyword that would have to be enforced. */
int schema_compile(nfa *a, const char *schema, unsigned flags, int *ret_start, shoal_err *err);
enum {
    SCHEMA_OBJECT = 1, /* only its objects count */
    /* Properties that it does not name are written, too, unless it forbids them; where it can only be
     * enforced without them (branches of a "oneOf" that differ in names), they are not. */
    SCHEMA_OPEN = 2,
};

/* Texts that satisfy the "pattern", "format" and lengths of a schema, written as they are, without quotes,
 * from `from` to *ret_end; none of them contains `without`. Errors as above. */
int schema_compile_text(nfa *a, const json_t *schema, const char *what, const char *without, int from,
                        int *ret_end, shoal_err *err);

/* The same for a parsed one, whose name in errors is `what`. */
int schema_compile_json(nfa *a, const json_t *root, const char *what, unsigned flags, int *ret_start,
                        shoal_err *err);
/* Does the value satisfy the schema, all of whose keywords the above takes? ("format" is not looked at.)
 * False also when that takes too much work or memory. */
bool schema_admits(const json_t *schema, const json_t *value);
/* JSON text that is an argument: what is malformed is SHOAL_EINVALID. The caller owns *ret. */
int schema_parse(json_t **ret, const char *text, const char *what, shoal_err *err);

#endif
