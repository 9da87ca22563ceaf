/* schema_check.h: does a value satisfy a JSON schema?
 *
 *     schema_verdict v;
 *     schema_check(&v, schema, value);
 *     v.outcome == SCHEMA_BROKEN, v.where "/items/3", v.why "it is there twice (\"uniqueItems\")"
 *
 * Drafts 4 to 2020-12 (json-schema.org), with these bounds: "format" annotates; references lead within the
 * schema; "unevaluated..." and "$dynamicRef" are not looked at. Where one of them, or a pattern that PCRE2
 * does not know or gives up on, or too much work stands in the way of a verdict, the outcome is
 * SCHEMA_UNKNOWN, never a guess. Pure.
 *
 * One other judge remains, and has to: engine/grammar/grammar_judge.c decides which values of "enum" and
 * "const" a grammar writes. It judges by the same compiled facts as the grammar's walk (patterns as
 * automata, bounds as decimal digits), so that both agree on what is allowed; PCRE2 and doubles would not.
 * What both call the same value is json_same below. */
#ifndef JSON_SCHEMA_CHECK_H
#define JSON_SCHEMA_CHECK_H

#include <jansson.h>

#include "base/buf.h"

typedef enum schema_outcome { SCHEMA_OBEYED, SCHEMA_BROKEN, SCHEMA_UNKNOWN } schema_outcome;

typedef struct schema_verdict {
    schema_outcome outcome;
    bool out_of_memory; /* why the outcome is SCHEMA_UNKNOWN */
    char where[160];    /* JSON pointer into the value; cut where it is longer */
    char why[160];      /* "" when it is obeyed */
} schema_verdict;

void schema_check(schema_verdict *ret, const json_t *schema, const json_t *value);
/* The same for a schema of the operator's that has no references; the work is not bounded, so the verdict is
 * unknown without memory alone. */
void schema_check_own(schema_verdict *ret, const json_t *schema, const json_t *value);
/* The same of a text that has to be one JSON document. */
void schema_check_text(schema_verdict *ret, const json_t *schema, const char *text, size_t n);
/* {"valid":true}, {"valid":false,"at":"/a","why":"..."}, and null where it is not known. */
void schema_verdict_put(buf *out, const schema_verdict *v);

/* As JSON Schema compares: 1 is 1.0, however large, and the order of members says nothing. *steps: how many
 * looks it may take, and what is left of them; false with 0 left where they do not suffice. NULL: no bound. */
bool json_same(const json_t *a, const json_t *b, size_t *steps);

#endif
