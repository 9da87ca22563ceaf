/* gotemplate_impl.h: what the parts of the translator share. gotemplate_lex.c reads tokens of actions,
 * gotemplate_expr.c makes expressions of pipelines, gotemplate.c the statements around them. One token is
 * in hand. The first error sticks in rc, and from then on every token is GT_END. */
#ifndef GOTEMPLATE_GOTEMPLATE_IMPL_H
#define GOTEMPLATE_GOTEMPLATE_IMPL_H

#include "base/arena.h"
#include "gotemplate/gotemplate.h"

typedef enum {
    GT_FIELD,    /* .Name, text without the dot */
    GT_VARIABLE, /* $name, text with the dollar */
    GT_DOT,
    GT_NAME, /* a function or a keyword */
    GT_STRING,
    GT_NUMBER, /* text as Jinja writes it */
    GT_OPEN,
    GT_CLOSE,
    GT_PIPE,
    GT_COMMA,
    GT_DECLARE,
    GT_ASSIGN,
    GT_END /* of the action */
} gt_kind;

/* Where the lexer is; a copy of it can be gone back to. */
typedef struct gt_lexer {
    size_t at;
    int line;
    gt_kind tok;
    bool spaced; /* white space stands before the token */
    bool trims;  /* a GT_END that eats the white space behind the action */
    const char *text;
    size_t n;
} gt_lexer;

typedef struct gt_variable {
    const char *name;
    unsigned id;
} gt_variable;

typedef struct gt_block {
    enum { GT_IF, GT_WITH, GT_RANGE } kind;
    int line;
    bool in_else;
    bool has_cut;         /* the last turn's end lies within */
    size_t n_vars, depth; /* before it */
    size_t n_head_vars;   /* with those of its head */
    const char *dot;      /* outside of it */
} gt_block;

typedef struct gt_parser {
    arena *mem;
    const char *s;
    size_t len;
    gt_lexer in;
    buf *out;
    int out_line;
    gt_block blocks[GOTEMPLATE_MAX_DEPTH];
    size_t n_blocks, n_ranges, depth;
    gt_variable *vars;
    size_t n_vars, cap_vars;
    unsigned n_ids;
    const char *dot;     /* the expression for "." */
    bool in_turns;       /* it is run once a turn */
    bool shows_response; /* the action in hand prints .Response ... */
    bool pipes_response; /* ... through more commands */
    bool is_cut;         /* one did */
    gotemplate_uses uses;
    shoal_err *err;
    int rc;
} gt_parser;

/* Set the error, unless there is one: "line N: ...". */
void gt_fail(gt_parser *p, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void gt_nomem(gt_parser *p);
void gt_deepen(gt_parser *p, size_t levels); /* p->depth grows, and has a bound */
const char *gt_printf(gt_parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* never NULL */

/* gotemplate_lex.c */
void gt_next(gt_parser *p);
bool gt_is_name(const gt_parser *p, const char *name);
const char *gt_token_name(gt_parser *p); /* the token in hand, for sentences */
/* Append s[0..n) as a string of Jinja. A line break stays one, or becomes "\n". */
void gt_put_string(buf *out, const char *s, size_t n, bool keep_lines);

/* gotemplate_expr.c */
/* A pipeline up to the end of the action or to ")", which is then in hand. */
typedef struct gt_pipeline {
    const char *value;       /* an expression, never NULL */
    gt_variable declared[2]; /* what it is put into; [1] only in a range */
    size_t n_declared;
    bool assigns; /* "=": they were there before */
} gt_pipeline;
gt_pipeline gt_read_pipeline(gt_parser *p, bool in_range);
/* Its value as an expression that also sets the variable. */
const char *gt_set_and_get(gt_parser *p, const gt_pipeline *pipe);
/* New ones are known from here on. */
void gt_declare(gt_parser *p, const gt_pipeline *pipe);

#endif
