/* schema_check.h: does a value satisfy a JSON schema? For what no grammar enforces ("strict": false).
 *
 *     schema_verdict v;
 *     schema_check(&v, schema, value);
 *     v.outcome == SCHEMA_BROKEN, v.where "/items/3", v.why "it is there twice (\"uniqueItems\")"
 *
 * Drafts 4 to 2020-12 (json-schema.org), with these bounds: "format" annotates; references lead within the
 * schema; "unevaluated..." and "$dynamicRef" are not looked at. Where one of them, or a pattern that PCRE2
 * does not know or gives up on, or too much work stands in the way of a verdict, the outcome is
 * SCHEMA_UNKNOWN, never a guess. Pure. */
#ifndef MESSAGES_SCHEMA_CHECK_H
#define MESSAGES_SCHEMA_CHECK_H

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
/* The same of a text that has to be one JSON document. */
void schema_check_text(schema_verdict *ret, const json_t *schema, const char *text, size_t n);
/* {"valid":true}, {"valid":false,"at":"/a","why":"..."}, and null where it is not known. */
void schema_verdict_put(buf *out, const schema_verdict *v);

#endif
