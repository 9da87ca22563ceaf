/* jinja_parse.c: template source -> tree. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja.h"

typedef enum { T_TEXT, T_EXPR, T_STMT, T_END, T_NAME, T_STRING, T_INT, T_FLOAT, T_OP, T_CLOSE } tkind;

typedef struct parser {
    arena *mem;
    const char *what, *s;
    size_t len, at;
    int line, depth;
    bool in_tag, trim_next; /* the last tag asked to drop the white space after it */
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

static void fail(parser *p, const char *message)
{
    if (p->rc == 0) p->rc = err_set(p->err, SHOAL_EINVALID, "%s: line %d: %s", p->what, p->line, message);
    p->tok = T_END;
}

static jnode *node(parser *p, jnode_kind kind)
{
    jnode *n = arena_alloc(p->mem, sizeof *n);
    if (!n) {
        if (p->rc == 0) p->rc = err_nomem(p->err);
        return NULL;
    }
    n->kind = kind;
    n->line = p->line;
    return n;
}

/* ---- tokens inside tags ---- */

/* One escape; p->at is at the character after the backslash. Returns the bytes written. */
static size_t unescape(parser *p, char *out)
{
    static const char from[] = "ntr\\'\"", to[] = "\n\t\r\\'\"";
    char c = p->s[p->at];
    const char *hit = c ? strchr(from, c) : NULL;
    if (hit) {
        *out = to[hit - from];
        return 1;
    }
    if (c == '\n') return 0;
    if (c == 'u' && p->len - p->at > 4) {
        char hex[5] = {0};
        memcpy(hex, p->s + p->at + 1, 4);
        p->at += 4;
        return utf8_encode((uint32_t)strtoul(hex, NULL, 16), out);
    }
    out[0] = '\\';
    out[1] = c;
    return 2;
}

static void lex_string(parser *p, char quote)
{
    size_t end = p->at + 1, n = 0;
    while (end < p->len && p->s[end] != quote) end += p->s[end] == '\\' ? 2 : 1;
    char *out = end < p->len ? arena_alloc(p->mem, end - p->at + 1) : NULL;
    if (!out) {
        fail(p, "a string has no end");
        return;
    }
    for (p->at++; p->at < end; p->at++) {
        p->line += p->s[p->at] == '\n';
        if (p->s[p->at] != '\\') {
            out[n++] = p->s[p->at];
            continue;
        }
        p->at++;
        n += unescape(p, out + n);
    }
    p->at = end + 1;
    p->tok = T_STRING;
    p->text = out;
    p->n = n;
}

static void lex_number(parser *p)
{
    char digits[64];
    size_t n = 0;
    bool is_float = false;
    while (p->at < p->len && n < 60) {
        char c = p->s[p->at];
        bool dot = c == '.' && !is_float && p->at + 1 < p->len && isdigit((unsigned char)p->s[p->at + 1]);
        bool e = (c == 'e' || c == 'E') && n;
        if (!isdigit((unsigned char)c) && c != '_' && !dot && !e) break;
        is_float |= dot || e;
        if (c != '_') digits[n++] = c;
        p->at++;
        if (e && p->at < p->len && (p->s[p->at] == '-' || p->s[p->at] == '+')) digits[n++] = p->s[p->at++];
    }
    digits[n] = '\0';
    p->tok = is_float ? T_FLOAT : T_INT;
    p->f = strtod(digits, NULL);
    p->i = (int64_t)strtoll(digits, NULL, 10);
}

static bool at_close(const parser *p)
{
    const char *s = p->s + p->at;
    size_t left = p->len - p->at;
    if (left >= 3 && s[0] == '-' && (s[1] == '%' || s[1] == '}') && s[2] == '}') return true;
    if (left >= 3 && s[0] == '+' && s[1] == '%' && s[2] == '}') return true;
    return left >= 2 && ((s[0] == '%' && s[1] == '}') || (s[0] == '}' && s[1] == '}'));
}

static void lex_op(parser *p)
{
    static const char *const two[] = {"==", "!=", "<=", ">=", "//", "**"};
    const char *s = p->s + p->at;
    size_t n = 1;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (p->len - p->at >= 2 && !memcmp(s, two[i], 2)) n = 2;
    if (!strchr("+-*/%~=!<>()[]{}.,:|", s[0]) || s[0] == '\0') {
        fail(p, "an unexpected character in a tag");
        return;
    }
    memcpy(p->op, s, n);
    p->op[n] = '\0';
    p->at += n;
    p->tok = T_OP;
}

/* A '}' that closes a dict literal comes before the tag's own "}}" is looked for. */
static void advance(parser *p, bool dict)
{
    if (p->rc) return;
    while (p->at < p->len && isspace((unsigned char)p->s[p->at])) p->line += p->s[p->at++] == '\n';
    if (p->at >= p->len) {
        fail(p, "a tag has no end");
        return;
    }
    char c = p->s[p->at];
    if (!(dict && c == '}') && at_close(p)) {
        p->tok = T_CLOSE;
    } else if (c == '"' || c == '\'') {
        lex_string(p, c);
    } else if (isdigit((unsigned char)c)) {
        lex_number(p);
    } else if (isalpha((unsigned char)c) || c == '_') {
        size_t b = p->at;
        while (p->at < p->len && (isalnum((unsigned char)p->s[p->at]) || p->s[p->at] == '_')) p->at++;
        p->tok = T_NAME;
        p->n = p->at - b;
        p->text = arena_strndup(p->mem, p->s + b, p->n);
        if (!p->text) fail(p, "out of memory");
    } else {
        lex_op(p);
    }
}

static void next(parser *p)
{
    advance(p, false);
}

static bool is_op(const parser *p, const char *op)
{
    return p->rc == 0 && p->tok == T_OP && !strcmp(p->op, op);
}

static bool is_name(const parser *p, const char *name)
{
    return p->rc == 0 && p->tok == T_NAME && !strcmp(p->text, name);
}

static bool is_end(const parser *p, const char *const *ends)
{
    for (; *ends; ends++)
        if (is_name(p, *ends)) return true;
    return false;
}

static bool accept(parser *p, const char *op)
{
    if (!is_op(p, op)) return false;
    next(p);
    return true;
}

static bool accept_name(parser *p, const char *name)
{
    if (!is_name(p, name)) return false;
    next(p);
    return true;
}

static void expect(parser *p, const char *op)
{
    char message[48];
    snprintf(message, sizeof message, "\"%s\" is expected here", op);
    if (!accept(p, op)) fail(p, message);
}

/* ---- expressions, from the loosest binding to the tightest ---- */

static jnode *expression(parser *p);
static jnode *unary(parser *p);
static jnode *postfix(parser *p);

static jnode *with(parser *p, jnode_kind kind, const char *name, jnode *a, jnode *b)
{
    jnode *n = node(p, kind);
    if (!n) return NULL;
    n->name = arena_strdup(p->mem, name);
    n->a = a;
    n->b = b;
    return n;
}

static jnode *literal(parser *p, jvalue v)
{
    jnode *n = node(p, N_LITERAL);
    if (n) n->value = v;
    return n;
}

static jnode *arguments(parser *p)
{
    jnode *first = NULL, **tail = &first;
    while (p->rc == 0 && !is_op(p, ")")) {
        const char *keyword = NULL;
        if (p->tok == T_NAME) { /* name=value? */
            parser back = *p;
            const char *name = p->text;
            next(p);
            if (accept(p, "="))
                keyword = name;
            else
                *p = back;
        }
        jnode *a = expression(p);
        if (!a) return first;
        jnode *wrap = with(p, N_COND, "", a, NULL);
        if (!wrap) return first;
        wrap->keyword = keyword;
        *tail = wrap;
        tail = &wrap->next;
        if (!accept(p, ",")) break;
    }
    expect(p, ")");
    return first;
}

static jnode *sequence(parser *p, const char *close, jnode *first)
{
    jnode *list = node(p, N_LIST), **tail;
    if (!list) return NULL;
    tail = &list->items;
    if (first) {
        *tail = with(p, N_COND, "", first, NULL);
        if (*tail) tail = &(*tail)->next;
    }
    while (p->rc == 0 && !is_op(p, close)) {
        jnode *wrap = with(p, N_COND, "", expression(p), NULL);
        if (!wrap || p->rc) return list;
        *tail = wrap;
        tail = &wrap->next;
        if (!accept(p, ",")) break;
    }
    expect(p, close);
    return list;
}

static jnode *dict_literal(parser *p)
{
    jnode *dict = node(p, N_DICT), **tail = dict ? &dict->items : NULL;
    advance(p, true);
    while (dict && p->rc == 0 && !is_op(p, "}")) {
        jnode *key = expression(p);
        expect(p, ":");
        jnode *pair = with(p, N_COND, "", key, expression(p));
        if (!pair || p->rc) return dict;
        *tail = pair;
        tail = &pair->next;
        if (p->tok == T_CLOSE && p->s[p->at] == '}') advance(p, true);
        if (!is_op(p, ",")) break;
        advance(p, true);
    }
    if (p->rc == 0 && p->tok == T_CLOSE && p->s[p->at] == '}') advance(p, true);
    expect(p, "}");
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
    jnode *n = v.kind ? literal(p, v) : with(p, N_NAME, s, NULL, NULL);
    next(p);
    return n;
}

static jnode *primary(parser *p)
{
    jnode *n = NULL;
    if (p->rc) return NULL;
    if (p->tok == T_STRING) {
        buf joined = {0};
        buf_append(&joined, p->text, p->n);
        next(p);
        for (; p->rc == 0 && p->tok == T_STRING; next(p)) buf_append(&joined, p->text, p->n);
        char *s = joined.failed ? NULL : arena_strndup(p->mem, joined.data, joined.len);
        n = s ? literal(p, (jvalue){.kind = V_STRING, .s = s, .n = joined.len}) : NULL;
        buf_done(&joined);
        return n;
    }
    if (p->tok == T_INT || p->tok == T_FLOAT) {
        n = literal(p, p->tok == T_INT ? (jvalue){.kind = V_INT, .i = p->i}
                                       : (jvalue){.kind = V_FLOAT, .f = p->f});
        next(p);
        return n;
    }
    if (p->tok == T_NAME) return named(p);
    if (is_op(p, "{")) return dict_literal(p);
    if (accept(p, "[")) return sequence(p, "]", NULL);
    if (!accept(p, "(")) {
        fail(p, "an expression is expected here");
        return NULL;
    }
    if (is_op(p, ")")) return sequence(p, ")", NULL);
    n = expression(p);
    if (accept(p, ",")) return sequence(p, ")", n);
    expect(p, ")");
    return n;
}

static jnode *subscript(parser *p, jnode *of)
{
    jnode *part[3] = {NULL, NULL, NULL};
    int n = 0;
    bool slice = false;
    for (;; n++) {
        if (n == 3) fail(p, "too many colons");
        if (p->rc) return NULL;
        if (!is_op(p, ":") && !is_op(p, "]")) part[n] = expression(p);
        if (!accept(p, ":")) break;
        slice = true;
    }
    expect(p, "]");
    jnode *s = with(p, slice ? N_SLICE : N_INDEX, "", of, part[0]);
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
    if (p->tok == T_NAME) return !is_end(p, words);
    return p->tok == T_STRING || p->tok == T_INT || p->tok == T_FLOAT || is_op(p, "[");
}

static jnode *test(parser *p, jnode *of)
{
    bool inverted = accept_name(p, "not");
    if (p->rc || p->tok != T_NAME) {
        fail(p, "a test is expected after \"is\"");
        return NULL;
    }
    jnode *t = with(p, N_TEST, p->text, of, NULL);
    next(p);
    if (!t) return NULL;
    if (accept(p, "(")) {
        t->items = arguments(p);
    } else if (test_argument(p)) {
        t->items = with(p, N_COND, "", postfix(p), NULL);
    }
    return inverted ? with(p, N_NOT, "not", t, NULL) : t;
}

static jnode *postfix(parser *p)
{
    jnode *n = primary(p);
    while (p->rc == 0 && n) {
        if (accept(p, ".")) {
            if (p->tok == T_INT) {
                n = with(p, N_INDEX, "", n, literal(p, (jvalue){.kind = V_INT, .i = p->i}));
            } else if (p->tok == T_NAME) {
                n = with(p, N_ATTR, p->text, n, NULL);
            } else {
                fail(p, "a name is expected after \".\"");
            }
            next(p);
        } else if (accept(p, "[")) {
            n = subscript(p, n);
        } else if (accept(p, "(")) {
            n = with(p, N_CALL, "", n, NULL);
            if (n) n->items = arguments(p);
        } else {
            break;
        }
    }
    return n;
}

/* Filters and tests bind tighter than any operator. */
static jnode *filters(parser *p, jnode *n)
{
    while (p->rc == 0 && n) {
        if (accept_name(p, "is")) {
            n = test(p, n);
            continue;
        }
        if (!accept(p, "|")) break;
        if (p->tok != T_NAME) fail(p, "a filter's name is expected after \"|\"");
        if (p->rc) return NULL;
        n = with(p, N_FILTER, p->text, n, NULL);
        next(p);
        if (n && accept(p, "(")) n->items = arguments(p);
    }
    return n;
}

static jnode *power(parser *p)
{
    jnode *n = filters(p, postfix(p));
    if (accept(p, "**")) n = with(p, N_BINARY, "**", n, unary(p));
    return n;
}

static jnode *unary(parser *p)
{
    if (p->rc || ++p->depth > JINJA_MAX_DEPTH) {
        fail(p, "nested too deep");
        return NULL;
    }
    jnode *n;
    if (accept(p, "-"))
        n = with(p, N_UNARY, "-", unary(p), NULL);
    else if (accept(p, "+"))
        n = unary(p);
    else
        n = power(p);
    p->depth--;
    return n;
}

/* Left-associative levels: each row is the operators of one level. */
static jnode *binary(parser *p, int level)
{
    static const char *const ops[3][5] = {{"~", NULL}, {"+", "-", NULL}, {"*", "//", "/", "%", NULL}};
    if (level == 3) return unary(p);
    jnode *n = binary(p, level + 1);
    for (bool more = true; p->rc == 0 && more;) {
        more = false;
        for (int i = 0; ops[level][i]; i++) {
            if (!accept(p, ops[level][i])) continue;
            n = with(p, N_BINARY, ops[level][i], n, binary(p, level + 1));
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
            if (accept(p, ops[i])) op = ops[i];
        if (op) {
            n = with(p, N_COMPARE, op, n, binary(p, 0));
        } else if (accept_name(p, "in")) {
            n = with(p, N_COMPARE, "in", n, binary(p, 0));
        } else if (is_name(p, "not")) {
            next(p);
            if (!accept_name(p, "in")) fail(p, "\"in\" is expected after \"not\"");
            n = with(p, N_NOT, "not", with(p, N_COMPARE, "in", n, binary(p, 0)), NULL);
        } else {
            more = false;
        }
    }
    return n;
}

static jnode *not_level(parser *p)
{
    if (!is_name(p, "not")) return comparison(p);
    if (++p->depth > JINJA_MAX_DEPTH) fail(p, "nested too deep");
    next(p);
    jnode *n = with(p, N_NOT, "not", not_level(p), NULL);
    p->depth--;
    return n;
}

static jnode *and_level(parser *p)
{
    jnode *n = not_level(p);
    while (accept_name(p, "and")) n = with(p, N_AND, "and", n, not_level(p));
    return n;
}

static jnode *or_level(parser *p)
{
    jnode *n = and_level(p);
    while (accept_name(p, "or")) n = with(p, N_OR, "or", n, and_level(p));
    return n;
}

static jnode *expression(parser *p)
{
    if (p->rc || ++p->depth > JINJA_MAX_DEPTH) {
        fail(p, "nested too deep");
        return NULL;
    }
    jnode *n = or_level(p);
    while (accept_name(p, "if")) {
        jnode *cond = or_level(p);
        jnode *other = accept_name(p, "else") ? expression(p) : NULL;
        n = with(p, N_COND, "if", n, cond);
        if (n) n->c = other;
    }
    p->depth--;
    return n;
}

/* ---- text and tags ---- */

static bool starts(const parser *p, const char *mark)
{
    return p->len - p->at >= 2 && p->s[p->at] == mark[0] && p->s[p->at + 1] == mark[1];
}

/* End of tag: step over it, and over what white-space control says to drop behind it. */
static void close_tag(parser *p)
{
    if (p->rc) return;
    if (p->tok != T_CLOSE) {
        fail(p, "the tag's end is expected here");
        return;
    }
    bool dash = p->s[p->at] == '-', plus = p->s[p->at] == '+';
    p->at += dash || plus ? 1 : 0;
    bool block = p->s[p->at] == '%';
    p->at += 2;
    if (dash) {
        while (p->at < p->len && isspace((unsigned char)p->s[p->at])) p->line += p->s[p->at++] == '\n';
    } else if (block && !plus) { /* trim_blocks: the first newline goes */
        if (p->at < p->len && p->s[p->at] == '\r' && p->at + 1 < p->len && p->s[p->at + 1] == '\n') p->at++;
        if (p->at < p->len && p->s[p->at] == '\n') {
            p->at++;
            p->line++;
        }
    }
}

static void skip_comment(parser *p)
{
    size_t b = p->at;
    while (p->at < p->len && !starts(p, "#}")) p->line += p->s[p->at++] == '\n';
    if (p->at >= p->len) {
        fail(p, "a comment has no end");
        return;
    }
    bool dash = p->at > b + 2 && p->s[p->at - 1] == '-';
    p->at += 2;
    if (dash) {
        while (p->at < p->len && isspace((unsigned char)p->s[p->at])) p->line += p->s[p->at++] == '\n';
    } else if (p->at < p->len && p->s[p->at] == '\n') {
        p->at++;
        p->line++;
    }
}

/* Text up to the next tag, its end cut as the tag asks; NULL when nothing is left of it. */
static jnode *text(parser *p)
{
    size_t b = p->at;
    int line = p->line;
    while (p->at < p->len && !starts(p, "{{") && !starts(p, "{%") && !starts(p, "{#"))
        p->line += p->s[p->at++] == '\n';
    size_t e = p->at;
    bool tag = p->at < p->len, value = starts(p, "{{");
    char control = tag && p->at + 2 < p->len ? p->s[p->at + 2] : 0;
    if (tag && control == '-') {
        while (e > b && isspace((unsigned char)p->s[e - 1])) e--;
    } else if (tag && !value && control != '+') { /* lstrip_blocks: blanks before a block on its line */
        size_t k = e;
        while (k > b && (p->s[k - 1] == ' ' || p->s[k - 1] == '\t')) k--;
        if (k > b ? p->s[k - 1] == '\n' : b == 0 || p->s[b - 1] == '\n') e = k;
    }
    if (e == b) return NULL;
    jnode *n = node(p, N_TEXT);
    if (!n) return NULL;
    n->line = line;
    n->value = (jvalue){.kind = V_STRING, .s = arena_strndup(p->mem, p->s + b, e - b), .n = e - b};
    if (!n->value.s) p->rc = err_nomem(p->err);
    return n;
}

static jnode *body(parser *p);

/* The body of a block up to one of `ends`, whose name is then the token in hand. */
static jnode *block(parser *p, const char *const *ends)
{
    jnode *b = node(p, N_BLOCK), **tail = b ? &b->items : NULL;
    if (++p->depth > JINJA_MAX_DEPTH) fail(p, "nested too deep");
    while (b && p->rc == 0) {
        jnode *n = body(p);
        if (n) {
            *tail = n;
            tail = &n->next;
        }
        if (p->in_tag && is_end(p, ends)) break;
        if (p->in_tag)
            fail(p, "an end tag that nothing opened, or an unknown statement");
        else if (p->at >= p->len && p->rc == 0)
            fail(p, "a block has no end");
    }
    p->depth--;
    return b;
}

static void finish(parser *p)
{
    p->in_tag = false;
    close_tag(p);
}

static jnode *if_statement(parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
    jnode *n = with(p, N_IF, "if", expression(p), NULL);
    finish(p);
    if (!n) return NULL;
    n->items = block(p, ends);
    if (p->rc) return n;
    if (accept_name(p, "elif")) {
        if (++p->depth > JINJA_MAX_DEPTH) fail(p, "nested too deep");
        n->other = if_statement(p); /* takes the endif too */
        p->depth--;
        return n;
    }
    if (accept_name(p, "else")) {
        finish(p);
        n->other = block(p, last);
    }
    if (p->rc == 0) next(p);
    finish(p);
    return n;
}

/* Names to assign to: one, or several with commas. */
static jnode *targets(parser *p)
{
    jnode *first = NULL, **tail = &first;
    bool paren = accept(p, "(");
    do {
        if (p->rc || p->tok != T_NAME) {
            fail(p, "a name is expected here");
            return first;
        }
        jnode *n = with(p, N_NAME, p->text, NULL, NULL);
        next(p);
        if (!n) return first;
        if (accept(p, ".")) { /* namespace attribute */
            if (p->tok != T_NAME) fail(p, "a name is expected after \".\"");
            if (p->rc) return first;
            n->a = with(p, N_ATTR, p->text, NULL, NULL);
            next(p);
        }
        *tail = n;
        tail = &n->next;
    } while (accept(p, ",") && !is_op(p, ")"));
    if (paren) expect(p, ")");
    return first;
}

static jnode *for_statement(parser *p)
{
    static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
    jnode *n = node(p, N_FOR);
    if (!n) return NULL;
    n->b = targets(p);
    if (!accept_name(p, "in")) fail(p, "\"in\" is expected in a for");
    n->a = or_level(p);
    if (accept_name(p, "if")) n->c = expression(p);
    accept_name(p, "recursive");
    finish(p);
    n->items = block(p, ends);
    if (accept_name(p, "else")) {
        finish(p);
        n->other = block(p, last);
    }
    if (p->rc == 0) next(p);
    finish(p);
    return n;
}

static jnode *set_statement(parser *p)
{
    static const char *const ends[] = {"endset", NULL};
    jnode *n = node(p, N_SET);
    if (!n) return NULL;
    n->b = targets(p);
    if (accept(p, "=")) {
        n->a = expression(p);
        if (is_op(p, ",")) {
            next(p);
            jnode *list = node(p, N_LIST);
            if (!list) return NULL;
            list->items = with(p, N_COND, "", n->a, NULL);
            jnode **tail = list->items ? &list->items->next : NULL;
            while (tail && p->rc == 0 && p->tok != T_CLOSE) {
                *tail = with(p, N_COND, "", expression(p), NULL);
                tail = *tail ? &(*tail)->next : NULL;
                if (!accept(p, ",")) break;
            }
            n->a = list;
        }
        finish(p);
        return n;
    }
    finish(p);
    n->items = block(p, ends);
    if (p->rc == 0) next(p);
    finish(p);
    return n;
}

static jnode *macro_statement(parser *p)
{
    static const char *const ends[] = {"endmacro", NULL};
    if (p->rc || p->tok != T_NAME) {
        fail(p, "a macro needs a name");
        return NULL;
    }
    jnode *n = with(p, N_MACRO, p->text, NULL, NULL);
    next(p);
    if (!n) return NULL;
    expect(p, "(");
    jnode **tail = &n->b;
    while (p->rc == 0 && p->tok == T_NAME) {
        jnode *a = with(p, N_NAME, p->text, NULL, NULL);
        next(p);
        if (!a) return n;
        if (accept(p, "=")) a->a = expression(p);
        *tail = a;
        tail = &a->next;
        if (!accept(p, ",")) break;
    }
    expect(p, ")");
    finish(p);
    n->items = block(p, ends);
    if (p->rc == 0) next(p);
    finish(p);
    return n;
}

/* {% generation %} marks what the assistant wrote, for training: its body is printed as it is. */
static jnode *generation_statement(parser *p)
{
    static const char *const ends[] = {"endgeneration", NULL};
    finish(p);
    jnode *n = block(p, ends);
    if (p->rc == 0) next(p);
    finish(p);
    return n;
}

static jnode *simple_statement(parser *p, jnode_kind kind)
{
    jnode *n = node(p, kind);
    finish(p);
    return n;
}

/* The statement whose first word is in hand; NULL with in_tag still set when it is an end tag. */
static jnode *statement(parser *p)
{
    static const char *const unknown[] = {"include", "import", "from",       "extends", "block", "call",
                                          "filter",  "with",   "autoescape", "raw",     "do",    NULL};
    if (accept_name(p, "if")) return if_statement(p);
    if (accept_name(p, "for")) return for_statement(p);
    if (accept_name(p, "set")) return set_statement(p);
    if (accept_name(p, "macro")) return macro_statement(p);
    if (accept_name(p, "generation")) return generation_statement(p);
    if (accept_name(p, "break")) return simple_statement(p, N_BREAK);
    if (accept_name(p, "continue")) return simple_statement(p, N_CONTINUE);
    if (is_end(p, unknown) && p->rc == 0)
        p->rc = err_set(p->err, SHOAL_EUNSUPPORTED, "%s: line %d: statement \"%.20s\" is not supported",
                        p->what, p->line, p->text);
    return NULL;
}

/* The next thing of a template; NULL when it is nothing (a comment, the end, an end tag). */
static jnode *body(parser *p)
{
    jnode *n = text(p);
    if (n || p->rc || p->at >= p->len) return n;
    if (starts(p, "{#")) {
        skip_comment(p);
        return NULL;
    }
    bool value = starts(p, "{{");
    p->at += 2;
    if (p->at < p->len && (p->s[p->at] == '-' || (!value && p->s[p->at] == '+'))) p->at++;
    p->in_tag = true;
    next(p);
    if (!value) return statement(p);
    n = with(p, N_OUTPUT, "", expression(p), NULL);
    finish(p);
    return n;
}

int jinja_parse(jnode **ret, arena *mem, const char *source, size_t len, const char *what, shoal_err *err)
{
    parser p = {.mem = mem, .what = what, .s = source, .len = len, .line = 1, .err = err};
    if (len > JINJA_MAX_SOURCE)
        return err_set(err, SHOAL_ELIMIT, "%s: longer than %d bytes", what, JINJA_MAX_SOURCE);
    /* keep_trailing_newline is off: one newline at the end does not count. */
    if (len && source[len - 1] == '\n') p.len--;
    jnode *root = node(&p, N_BLOCK), **tail = root ? &root->items : NULL;
    while (p.rc == 0 && p.at < p.len) {
        jnode *n = body(&p);
        if (p.rc == 0 && p.in_tag) fail(&p, "an end tag that nothing opened, or an unknown statement");
        if (!n) continue;
        *tail = n;
        tail = &n->next;
    }
    if (p.rc == 0 && !root) p.rc = err_nomem(err);
    if (p.rc == 0) *ret = root;
    return p.rc;
}
