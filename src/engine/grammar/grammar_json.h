/* grammar_json.h: the rules of JSON itself, which every schema shares, and how regular sets of texts
 * (grammar_dfa.h) are written in JSON.
 *
 * White space is bounded (build_spaces in grammar_json.c). Characters of free strings may
 * be written raw or escaped; those of strings with a pattern only raw, unless JSON wants an escape. */
#ifndef GRAMMAR_JSON_H
#define GRAMMAR_JSON_H

#include "base/buf.h"
#include "grammar/automaton/grammar_dfa.h"
#include "grammar/automaton/grammar_nfa.h"

typedef struct json_rules {
    nfa *a;
    /* The rules' first states, for nfa_call. */
    int value, object, array, string, string_char, number, integer, space, gap, line;
    buf classes, ranges; /* sets of characters that have a rule already */
} json_rules;

/* Adds the rules to `a`, whose failures stick there; done leaves `a` alone. */
void json_rules_init(json_rules *r, nfa *a);
void json_rules_done(json_rules *r);

/* White space and a closing bracket. */
void json_close(json_rules *r, int from, char bracket, int to);
/* Each begins at `from` and returns where it ends. */
int json_literal(json_rules *r, int from, const char *s);
/* A string of them, quotes included; `marks` are those of its states, NFA_OPTIONAL comes where it may be long. */
int json_texts(json_rules *r, int from, const dfa *texts, uint8_t marks);
int json_numbers(json_rules *r, int from, const dfa *texts); /* bare */
/* Texts as they are, without quotes or escapes, less those with U+0000; no rules of JSON are needed. */
int json_raw_texts(nfa *a, int from, const dfa *texts);

#endif
