/* grammar_write.h: how a JSON schema's cases become states of an automaton; for grammar_schema.c and its
 * hands.
 *
 * grammar_schema.c has the rules and chooses what a case may be; grammar_value.c writes literals, numbers and
 * strings, grammar_array.c and grammar_object.c what has insides, whose places are rules again:
 *
 *     value v = {.c = c, .from = start, .end = nfa_state(c->a), .literals = NFA_DEAD};
 *     array_write(&v, parts);   // '[' from v.from ... ']' to v.end, each item a call of schema_rule(c, item)
 *
 * Failures stay in c->x.rc, with the words of the first. */
#ifndef GRAMMAR_WRITE_H
#define GRAMMAR_WRITE_H

#include "base/buf.h"
#include "grammar/grammar_facts.h"
#include "grammar/grammar_json.h"

typedef struct rule {
    parts raw;          /* in the order of the schema, which is that of its properties */
    const json_t **key; /* the same, sorted */
    int start;
} rule;

typedef struct compiler {
    schema_ctx x;
    nfa *a;
    json_rules json;
    rule **rules; /* in the arena of x */
    size_t n_rules;
    int *index; /* open addressing over rules */
    size_t index_cap;
} compiler;

/* What is being written: one rule. */
typedef struct value {
    compiler *c;
    int from, end;
    int literals; /* the tree of literals, NFA_DEAD before the first one */
    buf lengths;  /* string_facts without texts */
} value;

/* The rule of what satisfies all of `p`: a state to call, NFA_DEAD with c->x.rc set on failure. */
int schema_rule(compiler *c, const parts *p);

/* A value as JSON, numbers as short as they are exact. */
void value_put(buf *out, const json_t *one);
/* False, with c->x.rc set: it has a number whose text is not known any more. */
bool value_is_exact(compiler *c, const json_t *one);
/* These n bytes are one of the value's texts. */
void value_literal(value *v, const char *text, size_t n);
/* One value of the "enum" `list`, or of a "const" (list NULL). */
void value_one(value *v, const parts *p, const json_t *one, const json_t *list);
void value_number(value *v, const parts *p, bool integer);
/* Strings of a form are written at once, those that only have lengths are kept for value_lengths. */
void value_string(value *v, const parts *p);
/* All strings that only have lengths, as one chain of characters. */
void value_lengths(value *v);

void array_write(value *v, const parts *p);
/* No part says anything about an array's insides. */
bool array_is_any(const parts *p);
void object_write(value *v, const parts *p);
/* No part says anything about an object's insides. */
bool object_is_any(const parts *p);

#endif
