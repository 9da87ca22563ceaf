/* grammar_pattern_impl.h: the tree of a regular expression, for the two files that make texts of it. */
#ifndef GRAMMAR_AUTOMATON_GRAMMAR_PATTERN_IMPL_H
#define GRAMMAR_AUTOMATON_GRAMMAR_PATTERN_IMPL_H

#include "base/buf.h"
#include "grammar/automaton/grammar_pattern.h"

#define NO_MAX (-1)

typedef enum {
    N_EMPTY,
    N_CLASS,
    N_BEGIN,
    N_END,
    N_THEN,
    N_OR,
    N_REPEAT,
    N_AHEAD,
    N_NOT_AHEAD,
    N_EDGE,   /* \b */
    N_NO_EDGE /* \B */
} node_kind;

typedef struct node {
    node_kind kind;
    int a, b;     /* N_THEN, N_OR: parts; N_REPEAT, N_AHEAD, N_NOT_AHEAD: a; N_CLASS: ranges a .. b - 1 */
    int min, max; /* N_REPEAT */
    bool asserts; /* it is, or holds, something that reads no character */
} node;

typedef struct range {
    uint32_t lo, hi;
} range;

typedef struct regex {
    const char *s;
    size_t n, at;
    int depth;
    buf nodes, ranges;
    bool asserts; /* some node is N_AHEAD or one of those behind it */
    uint64_t *work;
    int rc;
    shoal_err *err;
} regex;

node pattern_node(const regex *r, int i);
/* Write node i, which asserts nothing but ^ and $, behind state `from`; returns where it ends. Each node and
 * range takes of r->work; when that is used up the rest is left out, and fsm_determine fails. */
int pattern_write(const regex *r, fsm *f, int i, int from);
/* The texts in which the tree matches somewhere (grammar_ahead.c). */
int ahead_compile(dfa **ret, const regex *r, int root, uint64_t *work, shoal_err *err);

#endif
