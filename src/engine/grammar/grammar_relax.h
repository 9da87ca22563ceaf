/* grammar_relax.h: what is left of a schema when one keyword that cannot be enforced goes.
 *
 *     do rc = schema_compile_json(a, schema, what, 0, &start, err);
 *     while (rc == SHOAL_EUNSUPPORTED && schema_relax(schema, err, false));
 *
 * What remains admits all that the schema admits, and more: whoever relaxes looks at the reply himself. */
#ifndef GRAMMAR_RELAX_H
#define GRAMMAR_RELAX_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

/* Changes `schema` where the refusal's JSON pointer leads: a keyword goes (`everywhere`: from all of the
 * schema), "oneOf" becomes "anyOf", a schema becomes one that takes everything. False: the pointer leads to
 * nothing that could go, and nothing has changed. */
bool schema_relax(json_t *schema, const shoal_err *why, bool everywhere);

#endif
