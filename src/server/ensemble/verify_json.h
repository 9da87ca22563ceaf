/* verify_json.h: is a text JSON, and of this schema?
 *
 * A schema is a file of JSON Schema with the keywords of VERIFY_SCHEMA_WORDS; one that has others is refused
 * when it is loaded, so that no demand is passed over in silence. Words that demand nothing (title,
 * description, default, examples, $schema, $id, $comment) may stand in it.
 *
 *     verify_schema *s;
 *     rc = verify_schema_load(&s, "alert.schema.json", err);
 *     rc = verify_json(&why, s, "{\"level\": 3}");
 *     verify_schema_free(s);
 *
 * Source: JSON Schema 2020-12, Validation, sections 6.1 to 6.5. Pure but for the load. */
#ifndef ENSEMBLE_VERIFY_JSON_H
#define ENSEMBLE_VERIFY_JSON_H

#include "json/json.h"
#include "ensemble/verify.h"

#define VERIFY_SCHEMA_BYTES_MAX (1u << 20)

typedef struct verify_schema verify_schema;

/* SHOAL_EINVALID, SHOAL_EIO...: the sentence begins with the file's name. */
int verify_schema_load(verify_schema **ret, const char *path, shoal_err *err);
int verify_schema_parse(verify_schema **ret, const char *text, size_t len, const char *what, shoal_err *err);
void verify_schema_free(verify_schema *s); /* accepts NULL */

/* *ret: VERIFY_FINE, VERIFY_NO_JSON or VERIFY_NO_FIT. s NULL: any JSON. SHOAL_ENOMEM, or 0. */
int verify_json(verify_why *ret, const verify_schema *s, const char *text);

#endif
