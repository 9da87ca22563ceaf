/* jinja_lex.c: the tokens inside a template's tags, and the nodes they become. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/jinja_parse.h"

void jp_fail(parser *p, const char *message)
{
    if (p->rc == 0) p->rc = err_set(p->err, SHOAL_EINVALID, "%s: line %d: %s", p->what, p->line, message);
    p->tok = T_END;
}

jnode *jp_node(parser *p, jnode_kind kind)
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
        jp_fail(p, "a string has no end");
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
    bool is_index = p->at > 0 && p->s[p->at - 1] == '.'; /* m.0.1 has no float */
    while (p->at < p->len && n < 60) {
        char c = p->s[p->at];
        bool dot = c == '.' && !is_float && !is_index && p->at + 1 < p->len &&
                   isdigit((unsigned char)p->s[p->at + 1]);
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
        jp_fail(p, "an unexpected character in a tag");
        return;
    }
    memcpy(p->op, s, n);
    p->op[n] = '\0';
    p->at += n;
    p->tok = T_OP;
}

void jp_advance(parser *p, bool dict)
{
    if (p->rc) return;
    while (p->at < p->len && isspace((unsigned char)p->s[p->at])) p->line += p->s[p->at++] == '\n';
    if (p->at >= p->len) {
        jp_fail(p, "a tag has no end");
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
        if (!p->text) jp_fail(p, "out of memory");
    } else {
        lex_op(p);
    }
}

void jp_next(parser *p)
{
    jp_advance(p, false);
}

bool jp_is_op(const parser *p, const char *op)
{
    return p->rc == 0 && p->tok == T_OP && !strcmp(p->op, op);
}

bool jp_is_name(const parser *p, const char *name)
{
    return p->rc == 0 && p->tok == T_NAME && !strcmp(p->text, name);
}

bool jp_is_end(const parser *p, const char *const *ends)
{
    for (; *ends; ends++)
        if (jp_is_name(p, *ends)) return true;
    return false;
}

bool jp_accept(parser *p, const char *op)
{
    if (!jp_is_op(p, op)) return false;
    jp_next(p);
    return true;
}

bool jp_accept_name(parser *p, const char *name)
{
    if (!jp_is_name(p, name)) return false;
    jp_next(p);
    return true;
}

void jp_expect(parser *p, const char *op)
{
    char message[48];
    snprintf(message, sizeof message, "\"%s\" is expected here", op);
    if (!jp_accept(p, op)) jp_fail(p, message);
}
