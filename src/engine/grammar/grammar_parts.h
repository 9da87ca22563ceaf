/* grammar_parts.h: a JSON schema taken apart into what has to hold together.
 *
 * "allOf", "$ref" and what stands beside them all have to hold: they become `parts`, a set of schema objects
 * whose other keywords are read one by one (grammar_facts.h). "anyOf" and "oneOf" are choices: every way to
 * choose gives one set of parts. So keywords beside a choice or a reference are never lost:
 *
 *     {"type": "object", "required": ["a"], "anyOf": [A, {"$ref": B}]}  ->  {this, A} and {this, second, B}
 *
 * "not", "if" and "dependent..." become choices first (grammar_not.c). Everything is borrowed from the schema, which
 * must stay, or made for it and freed by facts_done. */
#ifndef GRAMMAR_PARTS_H
#define GRAMMAR_PARTS_H

#include "base/err.h"
#include "json/json.h"

#define PARTS_MAX   64
#define CHOICES_MAX 16

/* One schema being compiled. The first failure sticks in rc and err. */
typedef struct schema_ctx {
    const json_t *root;
    const char *what; /* begins every message */
    shoal_err *err;
    int rc;
    bool open;     /* SCHEMA_OPEN of grammar_schema.h */
    uint64_t work; /* left for everything that may grow faster than the schema */
    arena *memory;
    struct pattern_memo *patterns; /* of grammar_facts.c, facts_done frees them */
    struct made_schema *made;      /* of grammar_not.c, likewise */
    const json_t *negated;         /* whose "not" or "if" is being turned around, for messages */
    const char *negated_key;
} schema_ctx;

/* SHOAL_E... with the JSON pointer of `at`, an object within the root, and `key` of it (NULL: itself). */
int schema_fail(schema_ctx *c, int code, const json_t *at, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* False, with c->rc set, when the work is used up. */
bool schema_works(schema_ctx *c, uint64_t work);

typedef struct parts {
    const json_t *of[PARTS_MAX];
    size_t n;
} parts;

/* false, or zod's "never": {"not": {}}. */
bool schema_admits_nothing(const json_t *schema);

/* Add a schema unless it is there; "true" holds always and is left out. */
int parts_add(schema_ctx *c, parts *p, const json_t *schema);

/* One way to choose: all of `parts` are objects without open references. */
typedef struct parts_case {
    parts parts;
    struct {
        const json_t *list; /* of a "oneOf" */
        size_t index;       /* the branch that is taken */
    } only[CHOICES_MAX];
    size_t n_only;
} parts_case;

/* fn sees every way to choose among `raw`, whose schemas are as they stand in the document; ways in which a
 * "false" would have to hold are left out. Refuses keywords that would change what is valid and are not
 * enforced. Returns c->rc. */
typedef void (*parts_fn)(void *user, const parts_case *one);
int parts_cases(schema_ctx *c, const parts *raw, parts_fn fn, void *user);
/* The same, but that a branch of a "oneOf" comes with the negations of those that it might not be apart from; `only`
 * has the "oneOf"s of which some branch has no negation. */
typedef bool (*parts_apart_fn)(schema_ctx *c, const parts *mine, const json_t *schema);
int parts_exact_cases(schema_ctx *c, const parts *raw, parts_apart_fn are_apart, parts_fn fn, void *user);
/* A schema that grammar_not.c made has this member. */
#define SCHEMA_MADE "\x01made"
/* What the schema's "not", "if" and "dependent..." ask for, as a schema without them; NULL: it has none, or c->rc is
 * set. */
const json_t *schema_conditions(schema_ctx *c, const json_t *schema);
/* A schema of what does not satisfy this one. NULL: that cannot be said, or c->rc is set. */
const json_t *schema_negation(schema_ctx *c, const json_t *schema);
void schema_conditions_done(schema_ctx *c);
/* What a "$ref" leads to; NULL with c->rc set when it leads nowhere. */
const json_t *schema_resolve(schema_ctx *c, const json_t *schema);
/* No part has any of these keys. */
bool parts_lack(const parts *p, const char *const *keys, size_t n_keys);

#endif
