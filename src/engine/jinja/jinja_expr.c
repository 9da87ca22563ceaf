/* jinja_expr.c: expressions of a template -> tree, from the loosest binding to the tightest. */
#include <stdlib.h>
#include <string.h>

#include "jinja/jinja_parse.h"

static jnode *postfix(parser *p, jnode *n);

jnode *jp_with(parser *p, jnode_kind kind, const char *name, jnode *a, jnode *b)
{
    jnode *n = jp_node(p, kind);
    if (!n) return NULL;
    n->name = arena_strdup(p->mem, name);
    n->a = a;
    n->b = b;
    return n;
}

static jnode *literal(parser *p, jvalue v)
{
    jnode *n = jp_node(p, N_LITERAL);
    if (n) n->value = v;
    return n;
}

jnode *jp_arguments(parser *p)
{
    jnode *first = NULL, **tail = &first;
    while (p->rc == 0 && !jp_is_op(p, ")")) {
        const char *keyword = NULL;
        jnode_kind kind = jp_accept(p, "*") ? N_SPREAD : N_COND;
        if (p->tok == T_NAME && kind == N_COND) { /* name=value? */
            parser back = *p;
            const char *name = p->text;
            jp_next(p);
            if (jp_accept(p, "="))
                keyword = name;
            else
                *p = back;
        }
        jnode *a = jp_expression(p);
        if (!a) return first;
        jnode *wrap = jp_with(p, kind, "", a, NULL);
        if (!wrap) return first;
        wrap->keyword = keyword;
        *tail = wrap;
        tail = &wrap->next;
        if (!jp_accept(p, ",")) break;
    }
    jp_expect(p, ")");
    return first;
}

static jnode *sequence(parser *p, const char *close, jnode *first)
{
    jnode *list = jp_node(p, N_LIST), **tail;
    if (!list) return NULL;
    tail = &list->items;
    if (first) {
        *tail = jp_with(p, N_COND, "", first, NULL);
        if (*tail) tail = &(*tail)->next;
    }
    while (p->rc == 0 && !jp_is_op(p, close)) {
        jnode *wrap = jp_with(p, N_COND, "", jp_expression(p), NULL);
        if (!wrap || p->rc) return list;
        *tail = wrap;
        tail = &wrap->next;
        if (!jp_accept(p, ",")) break;
    }
    jp_expect(p, close);
    return list;
}

static jnode *dict_literal(parser *p)
{
    jnode *dict = jp_node(p, N_DICT), **tail = dict ? &dict->items : NULL;
    jp_advance(p, true);
    while (dict && p->rc == 0 && !jp_is_op(p, "}")) {
        jnode *key = jp_expression(p);
        jp_expect(p, ":");
        jnode *pair = jp_with(p, N_COND, "", key, jp_expression(p));
        if (!pair || p->rc) return dict;
        *tail = pair;
        tail = &pair->next;
        if (p->tok == T_CLOSE && p->s[p->at] == '}') jp_advance(p, true);
        if (!jp_is_op(p, ",")) break;
        jp_advance(p, true);
    }
    if (p->rc == 0 && p->tok == T_CLOSE && p->s[p->at] == '}') jp_advance(p, true);
    jp_expect(p, "}");
    return dict;
}

static jnode *named(parser *p)
{
    const char *s = p->text;
    jvalue v = {.kind = V_UNDEFINED};
    if (!strcmp(s, "true") || !strcmp(s, "True"))
        v = (jvalue){.kind = V_BOOL, .b = true};
    else if (!strcmp(s, "false") || !strcmp(s, "False"))
        v = (jvalue){.kind = V_BOOL};
    else if (!strcmp(s, "none") || !strcmp(s, "None"))
        v = (jvalue){.kind = V_NONE};
    jnode *n = v.kind ? literal(p, v) : jp_with(p, N_NAME, s, NULL, NULL);
    jp_next(p);
    return n;
}

static jnode *primary(parser *p)
{
    jnode *n = NULL;
    if (p->rc) return NULL;
    if (p->tok == T_STRING) {
        buf joined = {0};
        buf_append(&joined, p->text, p->n);
        jp_next(p);
        for (; p->rc == 0 && p->tok == T_STRING; jp_next(p)) buf_append(&joined, p->text, p->n);
        char *s = joined.failed ? NULL : arena_strndup(p->mem, joined.data, joined.len);
        n = s ? literal(p, (jvalue){.kind = V_STRING, .s = s, .n = joined.len}) : NULL;
        buf_done(&joined);
        return n;
    }
    if (p->tok == T_INT || p->tok == T_FLOAT) {
        n = literal(p, p->tok == T_INT ? (jvalue){.kind = V_INT, .i = p->i}
                                       : (jvalue){.kind = V_FLOAT, .f = p->f});
        jp_next(p);
        return n;
    }
    if (p->tok == T_NAME) return named(p);
    if (jp_is_op(p, "{")) return dict_literal(p);
    if (jp_accept(p, "[")) return sequence(p, "]", NULL);
    if (!jp_accept(p, "(")) {
        jp_fail(p, "an expression is expected here");
        return NULL;
    }
    if (jp_is_op(p, ")")) return sequence(p, ")", NULL);
    n = jp_expression(p);
    if (jp_accept(p, ",")) return sequence(p, ")", n);
    jp_expect(p, ")");
    return n;
}

static jnode *subscript(parser *p, jnode *of)
{
    jnode *part[3] = {NULL, NULL, NULL};
    int n = 0;
    bool slice = false;
    for (;; n++) {
        if (n == 3) jp_fail(p, "too many colons");
        if (p->rc) return NULL;
        if (!jp_is_op(p, ":") && !jp_is_op(p, "]")) part[n] = jp_expression(p);
        if (!jp_accept(p, ":")) break;
        slice = true;
    }
    jp_expect(p, "]");
    jnode *s = jp_with(p, slice ? N_SLICE : N_INDEX, "", of, part[0]);
    if (!s) return NULL;
    if (!slice) return s;
    s->c = part[1];
    s->other = part[2];
    return s;
}

/* True when the token in hand begins a test's argument without parentheses: "x is equalto 3". */
static bool test_argument(const parser *p)
{
    static const char *const words[] = {"and", "or", "else", "if", "is", "in", "not", NULL};
    if (p->rc) return false;
    if (p->tok == T_NAME) return !jp_is_end(p, words);
    return p->tok == T_STRING || p->tok == T_INT || p->tok == T_FLOAT || jp_is_op(p, "[");
}

static jnode *test(parser *p, jnode *of)
{
    bool inverted = jp_accept_name(p, "not");
    if (p->rc || p->tok != T_NAME) {
        jp_fail(p, "a test is expected after \"is\"");
        return NULL;
    }
    jnode *t = jp_with(p, N_TEST, p->text, of, NULL);
    jp_next(p);
    if (!t) return NULL;
    if (jp_accept(p, "(")) {
        t->items = jp_arguments(p);
    } else if (test_argument(p)) {
        t->items = jp_with(p, N_COND, "", postfix(p, primary(p)), NULL);
    }
    return inverted ? jp_with(p, N_NOT, "not", t, NULL) : t;
}

/* Behind n: attributes, subscripts, calls. */
static jnode *postfix(parser *p, jnode *n)
{
    while (p->rc == 0 && n) {
        if (jp_accept(p, ".")) {
            if (p->tok == T_INT) {
                n = jp_with(p, N_INDEX, "", n, literal(p, (jvalue){.kind = V_INT, .i = p->i}));
            } else if (p->tok == T_NAME) {
                n = jp_with(p, N_ATTR, p->text, n, NULL);
            } else {
                jp_fail(p, "a name is expected after \".\"");
            }
            jp_next(p);
        } else if (jp_accept(p, "[")) {
            n = subscript(p, n);
        } else if (jp_accept(p, "(")) {
            n = jp_with(p, N_CALL, "", n, NULL);
            if (n) n->items = jp_arguments(p);
        } else {
            break;
        }
    }
    return n;
}

/* One filter, its name in hand. */
static jnode *filter(parser *p, jnode *of)
{
    if (p->tok != T_NAME) jp_fail(p, "a filter's name is expected here");
    if (p->rc) return NULL;
    jnode *n = jp_with(p, N_FILTER, p->text, of, NULL);
    jp_next(p);
    if (n && jp_accept(p, "(")) n->items = jp_arguments(p);
    return n;
}

jnode *jp_filters(parser *p, jnode *of)
{
    jnode *n = filter(p, of);
    while (n && jp_accept(p, "|")) n = filter(p, n);
    return n;
}

/* Filters and tests bind tighter than any operator. */
static jnode *filters(parser *p, jnode *n)
{
    while (p->rc == 0 && n) {
        if (jp_accept_name(p, "is"))
            n = test(p, n);
        else if (jp_accept(p, "|"))
            n = filter(p, n);
        else
            break;
    }
    return n;
}

/* A sign binds before filters, as in Jinja: -1 | abs is 1. */
static jnode *unary(parser *p, bool with_filters)
{
    if (p->rc || ++p->depth > JINJA_MAX_DEPTH) {
        jp_fail(p, "nested too deep");
        return NULL;
    }
    jnode *n;
    if (jp_accept(p, "-"))
        n = jp_with(p, N_UNARY, "-", unary(p, false), NULL);
    else if (jp_accept(p, "+"))
        n = unary(p, false);
    else
        n = primary(p);
    n = postfix(p, n);
    if (with_filters) n = filters(p, n);
    p->depth--;
    return n;
}

static jnode *power(parser *p)
{
    jnode *n = unary(p, true);
    while (p->rc == 0 && jp_accept(p, "**")) n = jp_with(p, N_BINARY, "**", n, unary(p, true));
    return n;
}

/* Left-associative levels: each row is the operators of one level. */
static jnode *binary(parser *p, int level)
{
    static const char *const ops[3][5] = {{"~", NULL}, {"+", "-", NULL}, {"*", "//", "/", "%", NULL}};
    if (level == 3) return power(p);
    jnode *n = binary(p, level + 1);
    for (bool more = true; p->rc == 0 && more;) {
        more = false;
        for (int i = 0; ops[level][i]; i++) {
            if (!jp_accept(p, ops[level][i])) continue;
            n = jp_with(p, N_BINARY, ops[level][i], n, binary(p, level + 1));
            more = true;
            break;
        }
    }
    return n;
}

static jnode *comparison(parser *p)
{
    static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">", NULL};
    jnode *n = binary(p, 0);
    for (bool more = true; p->rc == 0 && more;) {
        more = true;
        const char *op = NULL;
        for (int i = 0; ops[i] && !op; i++)
            if (jp_accept(p, ops[i])) op = ops[i];
        if (op) {
            n = jp_with(p, N_COMPARE, op, n, binary(p, 0));
        } else if (jp_accept_name(p, "in")) {
            n = jp_with(p, N_COMPARE, "in", n, binary(p, 0));
        } else if (jp_is_name(p, "not")) {
            jp_next(p);
            if (!jp_accept_name(p, "in")) jp_fail(p, "\"in\" is expected after \"not\"");
            n = jp_with(p, N_NOT, "not", jp_with(p, N_COMPARE, "in", n, binary(p, 0)), NULL);
        } else {
            more = false;
        }
    }
    return n;
}

static jnode *not_level(parser *p)
{
    if (!jp_is_name(p, "not")) return comparison(p);
    if (++p->depth > JINJA_MAX_DEPTH) jp_fail(p, "nested too deep");
    jp_next(p);
    jnode *n = jp_with(p, N_NOT, "not", not_level(p), NULL);
    p->depth--;
    return n;
}

static jnode *and_level(parser *p)
{
    jnode *n = not_level(p);
    while (jp_accept_name(p, "and")) n = jp_with(p, N_AND, "and", n, not_level(p));
    return n;
}

jnode *jp_or_level(parser *p)
{
    jnode *n = and_level(p);
    while (jp_accept_name(p, "or")) n = jp_with(p, N_OR, "or", n, and_level(p));
    return n;
}

jnode *jp_expression(parser *p)
{
    if (p->rc || ++p->depth > JINJA_MAX_DEPTH) {
        jp_fail(p, "nested too deep");
        return NULL;
    }
    jnode *n = jp_or_level(p);
    while (jp_accept_name(p, "if")) {
        jnode *cond = jp_or_level(p);
        jnode *other = jp_accept_name(p, "else") ? jp_expression(p) : NULL;
        n = jp_with(p, N_COND, "if", n, cond);
        if (n) n->c = other;
    }
    p->depth--;
    return n;
}
