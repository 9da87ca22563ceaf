/* toolcall_args.c: arguments that are not JSON -> JSON.
 *
 *     f(a=1, b="x", c=[True, None])          keyword arguments of Python, literals only
 *     call:f{a:1,b:<escape>x<escape>}        unquoted keys, texts between two <escape>
 *
 * Read with one cursor that never passes the end; nesting is bounded. Numbers and words that JSON writes in
 * another way are rewritten, what has no JSON form (a name, a call, a position without its name) is refused.
 */
#include <ctype.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "chat/toolcall.h"

enum { MAX_DEPTH = 64 };

typedef struct reader {
    const char *s;
    size_t n, at;
    toolcall_form form;
    const char *quote; /* of CALL_BRACES */
    int depth;
    buf *out;
} reader;

static bool value(reader *r);

static void spaces(reader *r)
{
    while (r->at < r->n && isspace((unsigned char)r->s[r->at])) r->at++;
}

/* The next character that is no white space, 0 at the end. */
static char toolcall_args_peek(reader *r)
{
    spaces(r);
    return r->at < r->n ? r->s[r->at] : '\0';
}

static bool toolcall_args_take(reader *r, char c)
{
    if (toolcall_args_peek(r) != c || r->at == r->n) return false;
    r->at++;
    return true;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-' || c == '+';
}

static size_t word(reader *r, const char **ret)
{
    spaces(r);
    size_t from = r->at;
    while (r->at < r->n && is_word(r->s[r->at])) r->at++;
    *ret = r->s + from;
    return r->at - from;
}

/* ---- texts --------------------------------------------------------------------------------------- */

static uint32_t hex(reader *r, size_t digits)
{
    uint32_t v = 0;
    for (; digits > 0 && r->at < r->n && isxdigit((unsigned char)r->s[r->at]); digits--, r->at++) {
        char c = (char)tolower((unsigned char)r->s[r->at]);
        v = v << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return v;
}

static void put_char(buf *text, uint32_t cp)
{
    char c[4];
    bool none = cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000);
    buf_append(text, c, utf8_encode(none ? 0xfffd : cp, c));
}

/* Behind a backslash. */
static void escape(reader *r, buf *text)
{
    static const char from[] = "ntrbfav0", to[] = "\n\t\r\b\f\a\v";
    char c = r->at < r->n ? r->s[r->at++] : '\\';
    const char *hit = c ? strchr(from, c) : NULL;
    if (hit) {
        buf_append(text, to + (hit - from), 1);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        uint32_t v = hex(r, c == 'x' ? 2 : c == 'u' ? 4 : 8);
        bool pair =
            v >= 0xd800 && v < 0xdc00 && r->n - r->at >= 6 && r->s[r->at] == '\\' && r->s[r->at + 1] == 'u';
        if (pair) {
            r->at += 2;
            v = 0x10000 + ((v - 0xd800) << 10) + ((hex(r, 4) - 0xdc00) & 0x3ff);
        }
        put_char(text, v);
    } else if (c == '\\' || c == '\'' || c == '"' || c == '/') {
        buf_putc(text, c);
    } else if (c != '\n') { /* Python keeps what it does not know; a line end is skipped */
        buf_putc(text, '\\');
        buf_putc(text, c);
    }
}

/* 'text' or "text"; those that follow each other are one, as in Python. */
static bool quoted(reader *r)
{
    buf text = {0};
    bool ok = true;
    for (char q = toolcall_args_peek(r); ok && (q == '"' || q == '\''); q = toolcall_args_peek(r)) {
        r->at++;
        while (r->at < r->n && r->s[r->at] != q) {
            char c = r->s[r->at++];
            if (c == '\\')
                escape(r, &text);
            else
                buf_putc(&text, c);
        }
        ok = r->at < r->n;
        r->at++;
    }
    if (ok) json_put_string(r->out, text.data ? text.data : "", text.len);
    r->out->failed |= text.failed;
    buf_done(&text);
    return ok;
}

/* <escape>text<escape> */
static bool escaped(reader *r)
{
    size_t mark = strlen(r->quote), from = r->at + mark;
    if (r->n - r->at < mark || memcmp(r->s + r->at, r->quote, mark) != 0) return false;
    for (size_t at = from; r->n - at >= mark; at++) {
        if (memcmp(r->s + at, r->quote, mark) != 0) continue;
        json_put_string(r->out, r->s + from, at - from);
        r->at = at + mark;
        return true;
    }
    return false;
}

/* ---- numbers and words --------------------------------------------------------------------------- */

static bool is_json_number(const char *s, size_t n)
{
    size_t i = n > 0 && s[0] == '-', whole = i;
    while (i < n && isdigit((unsigned char)s[i])) i++;
    if (i == whole || (s[whole] == '0' && i - whole > 1)) return false;
    if (i < n && s[i] == '.') {
        size_t part = ++i;
        while (i < n && isdigit((unsigned char)s[i])) i++;
        if (i == part) return false;
    }
    if (i < n && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        if (i < n && (s[i] == '-' || s[i] == '+')) i++;
        size_t digits = i;
        while (i < n && isdigit((unsigned char)s[i])) i++;
        if (i == digits) return false;
    }
    return i == n;
}

static bool bare(reader *r)
{
    static const char *const words[][2] = {{"True", "true"},   {"true", "true"}, {"False", "false"},
                                           {"false", "false"}, {"None", "null"}, {"null", "null"}};
    const char *s;
    size_t n = word(r, &s);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i][0]) != n || memcmp(s, words[i][0], n) != 0) continue;
        buf_puts(r->out, words[i][1]);
        return true;
    }
    if (!is_json_number(s, n)) return false;
    buf_append(r->out, s, n);
    return true;
}

/* ---- what holds others --------------------------------------------------------------------------- */

static bool items(reader *r, char close)
{
    buf_putc(r->out, '[');
    for (bool first = true; !toolcall_args_take(r, close); first = false) {
        if (!first && !toolcall_args_take(r, ',')) return false;
        if (!first && toolcall_args_take(r, close)) break; /* a comma behind the last */
        if (!first) buf_puts(r->out, ", ");
        if (!value(r)) return false;
    }
    buf_putc(r->out, ']');
    return true;
}

/* A key: quoted, or a bare word. */
static bool key(reader *r)
{
    char c = toolcall_args_peek(r);
    const char *s;
    if (c == '"' || c == '\'') return quoted(r);
    if (c == '<' && r->quote) return escaped(r);
    size_t n = word(r, &s);
    if (n > 0) json_put_string(r->out, s, n);
    return n > 0;
}

/* Keys and values up to `close`, or to the end when that is 0. */
static bool pairs(reader *r, char colon, char close)
{
    buf_putc(r->out, '{');
    for (bool first = true;; first = false) {
        bool end = close ? toolcall_args_take(r, close) : toolcall_args_peek(r) == '\0' && r->at == r->n;
        if (end) break;
        if (!first && !toolcall_args_take(r, ',')) return false;
        if (!first && (close ? toolcall_args_take(r, close) : toolcall_args_peek(r) == '\0' && r->at == r->n))
            break;
        if (!first) buf_puts(r->out, ", ");
        if (!key(r) || !toolcall_args_take(r, colon)) return false;
        buf_puts(r->out, ": ");
        if (!value(r)) return false;
    }
    buf_putc(r->out, '}');
    return true;
}

static bool value(reader *r)
{
    bool ok = false;
    char c = toolcall_args_peek(r);
    if (++r->depth > MAX_DEPTH || r->out->failed) return false;
    if (c == '"' || c == '\'')
        ok = quoted(r);
    else if (c == '<' && r->form == CALL_BRACES)
        ok = escaped(r);
    else if (toolcall_args_take(r, '['))
        ok = items(r, ']');
    else if (r->form == CALL_PYTHON && toolcall_args_take(r, '('))
        ok = items(r, ')');
    else if (toolcall_args_take(r, '{'))
        ok = pairs(r, ':', '}');
    else
        ok = bare(r);
    r->depth--;
    return ok;
}

static reader reader_of(const toolcall_syntax *syntax, const char *s, size_t n, buf *out)
{
    bool braces = syntax->form == CALL_BRACES;
    return (reader){.s = s, .n = n, .form = syntax->form, .quote = braces ? syntax->quote : NULL, .out = out};
}

static bool read_pairs(reader *r)
{
    return pairs(r, r->form == CALL_PYTHON ? '=' : ':', '\0') && !r->out->failed;
}

bool toolcall_arguments(buf *out, const toolcall_syntax *syntax, const char *s, size_t n)
{
    reader r = reader_of(syntax, s, n, out);
    size_t from = out->len;
    bool ok = read_pairs(&r);
    /* Repeated keys, numbers beyond a double and U+0000 in a key are JSON that clients' parsers refuse. */
    if (ok) {
        json_t *v = NULL;
        int rc = json_parse(&v, out->data + from, out->len - from, "arguments", NULL);
        out->failed |= rc == SHOAL_ENOMEM;
        ok = rc == 0;
        json_decref(v);
    }
    if (!ok) out->len = from;
    return ok;
}

void toolcall_arguments_part(buf *out, const toolcall_syntax *syntax, const char *s, size_t n)
{
    reader r = reader_of(syntax, s, n, out);
    size_t from = out->len;
    bool whole = read_pairs(&r);
    if (whole && out->len > from) out->len--;  /* the bracket that has not come */
    if (!whole && r.at < r.n) out->len = from; /* not cut but broken */
}

bool toolcall_literal(buf *out, const char *s, size_t n)
{
    reader r = {.s = s, .n = n, .form = CALL_PYTHON, .out = out};
    size_t from = out->len;
    bool ok = value(&r) && toolcall_args_peek(&r) == '\0' && r.at == r.n && !out->failed;
    if (!ok) out->len = from;
    return ok;
}
