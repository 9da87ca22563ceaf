/* grammar_facts.h: what a set of parts (grammar_parts.h) says about each type of value, added up. */
#ifndef GRAMMAR_FACTS_H
#define GRAMMAR_FACTS_H

#include "grammar/automaton/grammar_dfa.h"
#include "grammar/grammar_number.h"
#include "grammar/grammar_parts.h"

enum {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INTEGER = 4,
    TYPE_FRACTION = 8, /* with TYPE_INTEGER: "number" */
    TYPE_NUMBER = TYPE_INTEGER | TYPE_FRACTION,
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64,
    TYPE_ALL = 127,
};

/* Which types all parts allow. `implied`: where no part says a "type", the other keywords do ("properties"
 * means an object), else they leave all types open, as JSON Schema has it. */
unsigned facts_types(schema_ctx *c, const parts *p, bool implied);

/* What one schema says itself: its types, TYPE_ALL without "type"; a "min..." or "max...", `none` without;
 * what its "pattern" matches, NULL with c->rc set on failure, freed by facts_done; whether a property may
 * have this name. */
unsigned facts_types_of(schema_ctx *c, const json_t *schema);
int64_t facts_count_of(schema_ctx *c, const json_t *schema, const char *key, int64_t none);
const dfa *facts_pattern_of(schema_ctx *c, const json_t *schema);
bool facts_admit_name(schema_ctx *c, const json_t *schema, const char *name);

/* The array of the first "enum", or *ret_const for a "const"; false when there is neither. */
bool facts_values(schema_ctx *c, const parts *p, const json_t **ret_enum, const json_t **ret_const);

/* The largest of a "min..." or the smallest of a "max..."; `none` when no part has it. */
int64_t facts_count(schema_ctx *c, const parts *p, const char *key, int64_t none);

/* Bounds of all parts; false when no number can be within. *ret_any: there are no bounds at all. */
bool facts_numbers(schema_ctx *c, const parts *p, bool integer, number_bounds *ret, bool *ret_any);

/* Patterns, formats and lengths; *ret NULL when there are only lengths. The caller frees it. */
typedef struct string_facts {
    dfa *texts; /* lengths are in it when it is there */
    int64_t least, most;
    bool has_format;
} string_facts;
int facts_strings(schema_ctx *c, const parts *p, string_facts *ret);

/* The "unevaluated..." (`key`) of the parts, NULL where `all` of one of them evaluates everything, or
 * there is none. */
const json_t *facts_unevaluated(const parts *p, const char *key, const char *all);
/* What must hold for the property `name`, resp. item i. False: it must not be there. *ret_declared: some part
 * has it in "properties" or "patternProperties", resp. "prefixItems". */
bool facts_property(schema_ctx *c, const parts *p, const char *name, parts *ret, bool *ret_declared);
/* The same of one part: adds to *ret and may set *ret_declared. */
bool facts_property_of(schema_ctx *c, const json_t *schema, const char *name, parts *ret, bool *ret_declared);
/* The names that a key of "patternProperties" matches; NULL with c->rc set. Kept until facts_done. */
const dfa *facts_name_pattern(schema_ctx *c, const json_t *schema, const char *pattern);
bool facts_has_name_patterns(const parts *p);
bool facts_item(schema_ctx *c, const parts *p, size_t i, parts *ret, bool *ret_declared);
/* How many items have a schema of their own in some part. */
size_t facts_n_prefix(const parts *p);
/* "items" behind them, which in old drafts is "additionalItems". */
const json_t *facts_rest_of_items(const json_t *schema);
const json_t *facts_prefix_items(const json_t *schema);
/* Properties that no part names, or has a pattern for, are written: none forbids them, and
 * "additionalProperties" asks for them, or there are neither "properties" nor patterns, or the schema is
 * `open`. */
bool facts_asks_for_more(const parts *p, bool open);
bool facts_is_required(const parts *p, const char *name);

/* grammar_judge.c. Does the value satisfy the schema, as JSON Schema has it? ("format" is not looked at.) */
bool facts_admit(schema_ctx *c, const json_t *schema, const json_t *value);
/* All of them, which were taken apart already; `from` is the "enum" that the value was taken from, or NULL.
 */
bool facts_all_admit(schema_ctx *c, const parts *p, const json_t *value, const json_t *from);

/* Nothing that is written for `mine` satisfies `schema`: surely, as far as types, values, bounds, texts and
 * required properties show it. */
bool facts_are_apart(schema_ctx *c, const parts *mine, const json_t *schema);

/* Frees the patterns that were compiled on the way. */
void facts_done(schema_ctx *c);

#endif
