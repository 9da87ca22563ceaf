/* tok_onig.c: regular expressions as tokenizer files spell them (Oniguruma with Unicode, doc/RE of
 * kkos/oniguruma) into PCRE2's spelling, where the two would silently differ:
 *
 *     \w      letters, marks, digits, connectors; PCRE2 10.42 knows no marks
 *     \s      Unicode's White_Space; PCRE2 has U+180E as well
 *     \h      a hexadecimal digit; PCRE2: a horizontal space
 *     \p{Han} the script; PCRE2: whatever is used with it, too
 *     [a&&[^b]]  a but not b
 *
 * Other sets within sets are refused. */
#include <string.h>

#include "tokenizer/tok_regex.h"

#define WORD  "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define SPACE "\\x{9}-\\x{d}\\x{85}\\p{Z}"
#define HEX   "0-9a-fA-F"

typedef struct onig {
    const char *s;
    size_t n, at;
    buf *out;
    const char *what;
    shoal_err *err;
} onig;

static const char *class_of(char c)
{
    switch (c) {
    case 'w':
    case 'W': return WORD;
    case 's':
    case 'S': return SPACE;
    case 'h':
    case 'H': return HEX;
    default: return NULL;
    }
}

/* "\p{Name}" or "\P{Name}" of a script. */
static bool put_script(onig *o)
{
    const char *p = o->s + o->at;
    size_t left = o->n - o->at, skip = left > 3 && p[3] == '^' ? 4 : 3;
    if (left < 5 || (p[1] != 'p' && p[1] != 'P') || p[2] != '{') return false;
    const char *end = memchr(p, '}', left);
    if (!end || !tok_scripts_has(p + skip, (size_t)(end - p) - skip)) return false;
    buf_append(o->out, p, skip);
    buf_puts(o->out, "sc:");
    buf_append(o->out, p + skip, (size_t)(end - p) - skip + 1);
    o->at += (size_t)(end - p) + 1;
    return true;
}

/* A backslash and what belongs to it. Within a set, what is not of a class has no spelling but PCRE2's. */
static void put_escape(onig *o, bool in_set)
{
    char c = o->at + 1 < o->n ? o->s[o->at + 1] : 0;
    const char *class = class_of(c);
    bool negated = c >= 'A' && c <= 'Z';
    if (put_script(o)) return;
    if (class && !(in_set && negated)) {
        buf_printf(o->out, in_set ? "%s%s" : "[%s%s]", negated ? "^" : "", class);
        o->at += 2;
        return;
    }
    buf_append(o->out, o->s + o->at, c ? 2 : 1);
    o->at += c ? 2 : 1;
}

static int put_set(onig *o);

/* After "[a" at "&&[^b]]": b may not follow, then one of a must. */
static int put_but_not(onig *o, size_t start)
{
    buf first = {0};
    o->at += 2;
    bool fits = o->at + 1 < o->n && o->s[o->at] == '[' && o->s[o->at + 1] == '^';
    if (!fits || o->out->failed)
        return err_set(o->err, SHOAL_EUNSUPPORTED,
                       "%s: regular expression, at byte %zu: \"&&\" is only supported before \"[^...]\"",
                       o->what, o->at);
    buf_append(&first, o->out->data + start, o->out->len - start);
    o->out->len = start;
    buf_puts(o->out, "(?:(?!");
    size_t set = o->out->len;
    int rc = put_set(o);
    if (rc == 0) {
        memmove(o->out->data + set + 1, o->out->data + set + 2, o->out->len - set - 2); /* the '^' */
        o->out->len--;
        buf_puts(o->out, ")");
        buf_append(o->out, first.data, first.len);
        buf_puts(o->out, "])");
        if (o->at < o->n && o->s[o->at] == ']')
            o->at++;
        else
            rc = err_set(o->err, SHOAL_EUNSUPPORTED,
                         "%s: regular expression, at byte %zu: this set is not supported", o->what, o->at);
    }
    o->out->failed |= first.failed;
    buf_done(&first);
    return rc;
}

/* A set from its '[' to its ']'. */
static int put_set(onig *o)
{
    size_t start = o->out->len, first = o->at + 1;
    buf_putc(o->out, o->s[o->at++]);
    if (o->at < o->n && o->s[o->at] == '^') {
        buf_putc(o->out, o->s[o->at++]);
        first++;
    }
    while (o->at < o->n) {
        const char *p = o->s + o->at;
        size_t left = o->n - o->at;
        if (*p == ']' && o->at > first) {
            buf_putc(o->out, *p);
            o->at++;
            return 0;
        }
        if (left > 1 && p[0] == '&' && p[1] == '&') return put_but_not(o, start);
        const char *posix_end = left > 3 && p[0] == '[' && p[1] == ':' ? memchr(p + 2, ']', left - 2) : NULL;
        if (posix_end && posix_end[-1] == ':') {
            buf_append(o->out, p, (size_t)(posix_end - p) + 1);
            o->at += (size_t)(posix_end - p) + 1;
        } else if (*p == '[') {
            return err_set(o->err, SHOAL_EUNSUPPORTED,
                           "%s: regular expression, at byte %zu: a set within a set is not supported",
                           o->what, o->at);
        } else if (*p == '\\') {
            put_escape(o, true);
        } else {
            buf_putc(o->out, *p);
            o->at++;
        }
    }
    return 0; /* PCRE2 says that it does not end */
}

int tok_onig_to_pcre(buf *out, const char *pattern, size_t len, const char *what, shoal_err *err)
{
    onig o = {.s = pattern, .n = len, .out = out, .what = what, .err = err};
    int rc = 0;
    while (rc == 0 && o.at < len) {
        if (pattern[o.at] == '\\')
            put_escape(&o, false);
        else if (pattern[o.at] == '[')
            rc = put_set(&o);
        else
            buf_putc(out, pattern[o.at++]);
    }
    return rc ? rc : out->failed ? err_nomem(err) : 0;
}
