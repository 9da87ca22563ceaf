/* gotemplate_lex.c: the tokens inside a template's actions. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "gotemplate/gotemplate_impl.h"

static bool at(const gt_parser *p, const char *what)
{
    size_t n = strlen(what);
    return p->len - p->in.at >= n && memcmp(p->s + p->in.at, what, n) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Of a name: a letter of any alphabet, a digit or '_'. */
static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

static size_t letters(const gt_parser *p, size_t from)
{
    size_t end = from;
    while (end < p->len && is_letter(p->s[end])) end++;
    return end - from;
}

void gt_put_string(buf *out, const char *s, size_t n, bool keep_lines)
{
    buf_putc(out, '\'');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\'' || s[i] == '\\') buf_putc(out, '\\');
        if (s[i] == '\n' && !keep_lines)
            buf_puts(out, "\\n");
        else
            buf_putc(out, s[i]);
    }
    buf_putc(out, '\'');
}

/* What must not follow a name or a number directly. */
static bool ends_token(const gt_parser *p)
{
    return p->in.at >= p->len || is_space(p->s[p->in.at]) || strchr(".,|:()", p->s[p->in.at]) || at(p, "}}");
}

static void take(gt_parser *p, gt_kind kind, size_t n)
{
    p->in.tok = kind;
    p->in.text = p->s + p->in.at;
    p->in.n = n;
    p->in.at += n;
}

static void take_word(gt_parser *p, gt_kind kind, size_t n_before)
{
    size_t n = letters(p, p->in.at + n_before);
    take(p, kind, n_before + n);
    if (!ends_token(p)) gt_fail(p, SHOAL_EINVALID, "\"%c\" cannot follow a name", p->s[p->in.at]);
}

/* ---- strings ------------------------------------------------------------------------------------ */

static int digits(const char *s, size_t n, int base)
{
    int v = 0;
    for (size_t i = 0; i < n; i++) {
        int d = hex_digit(s[i]);
        if (d < 0 || d >= base || v > 0x110000) return -1;
        v = v * base + d;
    }
    return v;
}

/* Behind a backslash at s[0..n): append what it stands for, return how many bytes were read; 0: nothing
 * known. */
static size_t unescape(buf *out, const char *s, size_t n, char quote)
{
    static const char FROM[] = "abfnrtv\\", TO[] = "\a\b\f\n\r\t\v\\";
    const char *hit = n > 0 && *s ? strchr(FROM, *s) : NULL;
    size_t wide = n == 0 ? 0 : *s == 'x' ? 2 : *s == 'u' ? 4 : *s == 'U' ? 8 : 0;
    bool octal = n >= 3 && *s >= '0' && *s < '8';
    char utf8[4];
    if (hit || (n > 0 && *s == quote)) {
        buf_putc(out, hit ? TO[hit - FROM] : quote);
        return 1;
    }
    int v = octal ? digits(s, 3, 8) : wide && n > wide ? digits(s + 1, wide, 16) : -1;
    if (v < 0 || ((octal || wide == 2) && v > 255)) return 0;
    size_t len = octal || wide == 2 ? 1 : utf8_encode((uint32_t)v, utf8);
    if (octal || wide == 2) utf8[0] = (char)v;
    buf_append(out, utf8, len);
    return len == 0 ? 0 : octal ? 3 : wide + 1;
}

/* The text between two quotes, its escapes read, into out; the lexer steps behind the second. */
static void read_quoted(gt_parser *p, char quote, buf *out)
{
    const char *s = p->s;
    size_t i = p->in.at + 1;
    while (p->rc == 0 && i < p->len && s[i] != quote && s[i] != '\n') {
        size_t n = 1;
        if (s[i] != '\\')
            buf_putc(out, s[i]);
        else if ((n = unescape(out, s + i + 1, p->len - i - 1, quote)) == 0)
            gt_fail(p, SHOAL_EINVALID, "a string has an unknown escape \"\\%.1s\"",
                    i + 1 < p->len ? s + i + 1 : "");
        else
            n++;
        i += n;
    }
    if (i >= p->len || s[i] != quote) gt_fail(p, SHOAL_EINVALID, "a string has no end");
    p->in.at = i + 1;
}

static void read_raw(gt_parser *p, buf *out)
{
    const char *begin = p->s + p->in.at + 1, *end = memchr(begin, '`', p->len - p->in.at - 1);
    if (!end) {
        gt_fail(p, SHOAL_EINVALID, "a string has no end");
        return;
    }
    for (const char *c = begin; c < end; c++) {
        if (*c != '\r') buf_putc(out, *c);
        p->in.line += *c == '\n';
    }
    p->in.at = (size_t)(end + 1 - p->s);
}

static void lex_string(gt_parser *p, char quote)
{
    buf text = {0};
    if (quote == '`')
        read_raw(p, &text);
    else
        read_quoted(p, quote, &text);
    if (p->rc == 0 &&
        (!utf8_valid(buf_text(&text), text.len, NULL) || memchr(buf_text(&text), '\0', text.len)))
        gt_fail(p, SHOAL_EINVALID, "a string's escapes make no text");
    p->in.tok = GT_STRING;
    p->in.n = text.len;
    p->in.text = p->rc == 0 ? arena_strndup(p->mem, buf_text(&text), text.len) : "";
    if (text.failed || !p->in.text) gt_nomem(p);
    buf_done(&text);
}

/* 'x': the number of a character. */
static void lex_character(gt_parser *p)
{
    buf text = {0};
    uint32_t c = 0;
    read_quoted(p, '\'', &text);
    size_t n = utf8_decode(buf_text(&text), text.len, &c);
    if (p->rc == 0 && (n == 0 || n != text.len))
        gt_fail(p, SHOAL_EINVALID, "a character in single quotes must be one; a text has double quotes");
    buf_done(&text);
    p->in.tok = GT_NUMBER;
    p->in.text = gt_printf(p, "%u", c);
}

/* ---- numbers ------------------------------------------------------------------------------------ */

/* Its characters without '_', as C reads them; false: too many. */
static bool copy_number(gt_parser *p, char ret[64])
{
    size_t n = 0;
    for (size_t i = p->in.at; i < p->len; i++) {
        char c = p->s[i];
        bool exponent = n > 0 && strchr("eE", ret[n - 1]) && !(n > 2 && strchr("xX", ret[1]));
        bool sign = (c == '+' || c == '-') && (n == 0 || exponent);
        if (!is_letter(c) && c != '.' && !sign) break;
        if (n == 63) return false;
        if (c != '_') ret[n++] = c;
        p->in.at++;
    }
    ret[n] = '\0';
    return n > 0;
}

/* Go has 0b1 and 0o7 beside C's forms. */
static bool read_integer(const char *s, int64_t *ret)
{
    bool negative = *s == '-';
    int base = 0;
    char *end;
    s += *s == '-' || *s == '+';
    if (*s == '0' && s[1] && strchr("bBoO", s[1])) {
        base = strchr("bB", s[1]) ? 2 : 8;
        s += 2;
    }
    if (!isalnum((unsigned char)*s)) return false;
    errno = 0;
    *ret = strtoll(s, &end, base);
    if (negative) *ret = -*ret;
    return errno == 0 && !*end;
}

static bool read_float(const char *s, double *ret)
{
    char *end;
    if (!*s || s[strspn(s, "+-.0123456789eE")] || !strpbrk(s, "0123456789")) return false;
    *ret = strtod(s, &end);
    return !*end && *ret - *ret == 0; /* finite */
}

static void lex_number(gt_parser *p)
{
    char s[64];
    int64_t i;
    double f;
    bool ok = copy_number(p, s);
    p->in.tok = GT_NUMBER;
    p->in.text = "0";
    if (ok && read_integer(s, &i)) {
        p->in.text = gt_printf(p, i < 0 ? "(%lld)" : "%lld", (long long)i);
    } else if (ok && read_float(s, &f)) {
        snprintf(s, sizeof s, "%.17g", f);
        p->in.text = gt_printf(p, "(%s%s)", s, strpbrk(s, ".e") ? "" : ".0");
    } else {
        gt_fail(p, SHOAL_EINVALID, "this is no number");
    }
    if (!ends_token(p)) gt_fail(p, SHOAL_EINVALID, "\"%c\" cannot follow a number", p->s[p->in.at]);
}

/* ---- all ---------------------------------------------------------------------------------------- */

static void lex_mark(gt_parser *p)
{
    char c = p->s[p->in.at];
    if (at(p, ":="))
        take(p, GT_DECLARE, 2);
    else if (c == '=')
        take(p, GT_ASSIGN, 1);
    else if (c == '|')
        take(p, GT_PIPE, 1);
    else if (c == '(')
        take(p, GT_OPEN, 1);
    else if (c == ')')
        take(p, GT_CLOSE, 1);
    else if (c == ',')
        take(p, GT_COMMA, 1);
    else
        gt_fail(p, SHOAL_EINVALID, "an unexpected character in an action: \"%c\"",
                isprint((unsigned char)c) ? c : '?');
}

static void lex_word(gt_parser *p)
{
    char c = p->s[p->in.at], after = p->in.at + 1 < p->len ? p->s[p->in.at + 1] : 0;
    bool digit =
        isdigit((unsigned char)c) || ((c == '+' || c == '-' || c == '.') && isdigit((unsigned char)after));
    if (digit || ((c == '+' || c == '-') && after == '.')) {
        lex_number(p);
    } else if (c == '.' && is_letter(after)) {
        take_word(p, GT_FIELD, 1);
        p->in.text++, p->in.n--;
    } else if (c == '.') {
        take_word(p, GT_DOT, 1);
    } else if (c == '$') {
        take_word(p, GT_VARIABLE, 1);
    } else if (is_letter(c)) {
        take_word(p, GT_NAME, 0);
    } else {
        lex_mark(p);
    }
}

void gt_next(gt_parser *p)
{
    size_t begin = p->in.at;
    p->in.tok = GT_END;
    if (p->rc) return;
    while (p->in.at < p->len && is_space(p->s[p->in.at])) p->in.line += p->s[p->in.at++] == '\n';
    p->in.spaced = p->in.at > begin;
    p->in.trims = p->in.spaced && at(p, "-}}");
    if (p->in.trims || at(p, "}}"))
        take(p, GT_END, p->in.trims ? 3 : 2);
    else if (p->in.at >= p->len)
        gt_fail(p, SHOAL_EINVALID, "an action has no end: \"}}\" is missing");
    else if (p->s[p->in.at] == '"' || p->s[p->in.at] == '`')
        lex_string(p, p->s[p->in.at]);
    else if (p->s[p->in.at] == '\'')
        lex_character(p);
    else
        lex_word(p);
    if (p->rc) p->in = (gt_lexer){.at = p->in.at, .line = p->in.line, .tok = GT_END, .text = ""};
}

bool gt_is_name(const gt_parser *p, const char *name)
{
    return p->rc == 0 && p->in.tok == GT_NAME && p->in.n == strlen(name) &&
           memcmp(p->in.text, name, p->in.n) == 0;
}

const char *gt_token_name(gt_parser *p)
{
    const char *mark = p->in.tok == GT_FIELD ? "." : "";
    if (p->in.tok == GT_END) return "\"}}\"";
    if (p->in.tok == GT_STRING) return "a string";
    if (p->in.tok == GT_NUMBER) return "a number";
    size_t max = p->in.n < 40 ? p->in.n : 40;
    return gt_printf(p, "\"%s%.*s\"", mark, (int)(max - utf8_incomplete_tail(p->in.text, max)), p->in.text);
}
