/* jinja_parse.h: what the parts of the template parser share: jinja_lex.c reads tokens, jinja_expr.c
 * expressions, jinja_parse.c text and statements. One token is in hand; the first error sticks in rc, and
 * from then on every token is T_END. */
#ifndef JINJA_JINJA_PARSE_H
#define JINJA_JINJA_PARSE_H

#include "jinja/jinja.h"

typedef enum { T_TEXT, T_EXPR, T_STMT, T_END, T_NAME, T_STRING, T_INT, T_FLOAT, T_OP, T_CLOSE } tkind;

typedef struct parser {
    arena *mem;
    const char *what, *s;
    size_t len, at;
    int line, depth;
    bool in_tag;
    /* the token in hand, inside tags */
    tkind tok;
    char op[4];
    const char *text;
    size_t n;
    double f;
    int64_t i;
    shoal_err *err;
    int rc;
} parser;

void jp_fail(parser *p, const char *message);
jnode *jp_node(parser *p, jnode_kind kind); /* NULL when out of memory */
jnode *jp_with(parser *p, jnode_kind kind, const char *name, jnode *a, jnode *b);

/* jinja_lex.c */
/* Read a token. `dict`: a '}' that closes a dict literal comes before the tag's own "}}" is looked for. */
void jp_advance(parser *p, bool dict);
void jp_next(parser *p);
bool jp_is_op(const parser *p, const char *op);
bool jp_is_name(const parser *p, const char *name);
bool jp_is_end(const parser *p, const char *const *ends); /* the name in hand is one of them */
bool jp_accept(parser *p, const char *op);                /* step over it when it is in hand */
bool jp_accept_name(parser *p, const char *name);
void jp_expect(parser *p, const char *op);

/* jinja_expr.c */
jnode *jp_expression(parser *p);
jnode *jp_or_level(parser *p); /* an expression that no "if" follows */
/* A chain of filters, "upper | trim", whose first takes `of`. */
jnode *jp_filters(parser *p, jnode *of);
jnode *jp_arguments(parser *p); /* behind "(", through ")" */

#endif
