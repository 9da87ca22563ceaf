/* log_scan.c: one pass over a line of JSON, without memory; stricter than JSON, so that other readers take what it takes. */
#include "logging/log_scan.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"

enum {
    DIGITS_MAX = 18 /* any such number is an int64_t */,
    EXPONENT_MAX = 2 /* and any such a finite double */,
    HEADS = 4
};

typedef struct scan {
    const char *s, *end;
} scan;

static bool skip(scan *c, const char *text, size_t n)
{
    if ((size_t)(c->end - c->s) < n || memcmp(c->s, text, n) != 0) return false;
    c->s += n;
    return true;
}

static bool skip_char(scan *c, char x)
{
    if (c->s == c->end || *c->s != x) return false;
    c->s++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t skip_digits(scan *c)
{
    const char *from = c->s;
    while (c->s < c->end && is_digit(*c->s)) c->s++;
    return (size_t)(c->s - from);
}

/* "2026-11-21T02:25:42.123Z"; d: a digit. */
static bool skip_time(scan *c)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    size_t n = sizeof form - 1;
    if ((size_t)(c->end - c->s) < n) return false;
    for (size_t i = 0; i < n; i++)
        if (form[i] == 'd' ? !is_digit(c->s[i]) : form[i] != c->s[i]) return false;
    if (memcmp(c->s, "1970", 4) < 0) return false;
    c->s += n;
    return true;
}

/* A name and the quote behind it. */
static bool skip_name(scan *c)
{
    const char *from = c->s;
    for (; c->s < c->end && *c->s != '"'; c->s++)
        if (*c->s <= ' ' || *c->s > '~' || *c->s == '\\' || *c->s == '=') return false;
    return c->s > from && skip_char(c, '"');
}

static bool skip_level(scan *c, log_level *ret)
{
    const char *from = c->s;
    if (!skip_name(c)) return false;
    for (int l = LOG_DEBUG; l < LOG_OFF; l++) {
        const char *name = log_level_name((log_level)l);
        size_t n = strlen(name);
        *ret = (log_level)l;
        if ((size_t)(c->s - from) == n + 1 && memcmp(from, name, n) == 0) return true;
    }
    return false;
}

/* Behind the backslash. Halves of pairs and U+0000 are left to a whole reader. */
static bool skip_escape(scan *c)
{
    if (c->s == c->end) return false;
    if (*c->s != 'u') return *c->s && strchr("\"\\/bfnrt", *c->s++);
    unsigned code = 0;
    if (c->end - c->s < 5) return false;
    for (int i = 1; i <= 4; i++) {
        int digit = hex_digit(c->s[i]);
        if (digit < 0) return false;
        code = code << 4 | (unsigned)digit;
    }
    c->s += 5;
    return code != 0 && (code < 0xD800 || code > 0xDFFF);
}

/* Behind the quote. */
static bool skip_string(scan *c)
{
    const char *from = c->s;
    unsigned char seen = 0;
    for (; c->s < c->end && *c->s != '"'; c->s++) {
        unsigned char byte = (unsigned char)*c->s;
        if (byte < ' ') return false;
        seen |= byte;
        if (byte != '\\') continue;
        c->s++;
        if (!skip_escape(c)) return false;
        c->s--;
    }
    if (seen >= 0x80 && !utf8_valid(from, (size_t)(c->s - from), NULL)) return false;
    return skip_char(c, '"');
}

static bool skip_number(scan *c)
{
    skip_char(c, '-');
    bool zero = c->s < c->end && *c->s == '0';
    size_t n = skip_digits(c);
    if (n == 0 || n > DIGITS_MAX || (zero && n > 1)) return false;
    if (skip_char(c, '.') && skip_digits(c) == 0) return false;
    if (!skip_char(c, 'e') && !skip_char(c, 'E')) return true;
    if (!skip_char(c, '-')) skip_char(c, '+');
    n = skip_digits(c);
    return n > 0 && n <= EXPONENT_MAX;
}

/* Keys so far; case does not count, as to the journal. */
typedef struct keys {
    size_t n;
    struct {
        const char *s;
        size_t n;
    } of[LOG_SCAN_FIELDS + HEADS + 1];
} keys;

static bool add_key(keys *k, const char *s, size_t n)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->of[i].n == n && strncasecmp(k->of[i].s, s, n) == 0) return false;
    if (k->n == sizeof k->of / sizeof *k->of) return false;
    k->of[k->n].s = s;
    k->of[k->n++].n = n;
    return true;
}

static bool skip_field(scan *c, keys *k)
{
    if (!skip_char(c, '"')) return false;
    const char *name = c->s;
    if (!skip_name(c) || !add_key(k, name, (size_t)(c->s - name - 1)) || !skip_char(c, ':')) return false;
    return skip_char(c, '"') ? skip_string(c) : skip_number(c);
}

#define SKIP(c, text) skip(c, text, sizeof(text) - 1)

bool log_scan(log_scanned *ret, const char *line, size_t n, const char *absent)
{
    static const char *const heads[HEADS] = {"time", "level", "component", "event"};
    keys k;
    k.n = 0;
    scan c = {line, line + n};
    log_scanned r;
    if (!SKIP(&c, "{\"time\":\"") || !skip_time(&c)) return false;
    if (!SKIP(&c, "\",\"level\":\"") || !skip_level(&c, &r.level)) return false;
    if (!SKIP(&c, ",\"component\":\"") || !skip_name(&c)) return false;
    if (!SKIP(&c, ",\"event\":\"") || !skip_name(&c)) return false;
    r.head = (size_t)(c.s - line);
    for (size_t i = 0; i < HEADS; i++) add_key(&k, heads[i], strlen(heads[i]));
    if (absent) add_key(&k, absent, strlen(absent));
    while (skip_char(&c, ','))
        if (!skip_field(&c, &k)) return false;
    if (!skip_char(&c, '}') || c.s != c.end) return false;
    *ret = r;
    return true;
}
