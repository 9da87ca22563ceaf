/* json_quick.c: a scanner and a parser by recursion, bounded by JSON_DEPTH_MAX (RFC 8259). */
#include "json/json_quick.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"

enum { WHOLE_DIGITS = 18 /* fit an int64_t */, REAL_CHARS = 64 };

typedef struct reader {
    const char *at, *end;
    buf plain; /* a string without its escapes */
    int depth;
} reader;

static json_t *read_value(reader *r);

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) r->at++;
}

static bool json_quick_take(reader *r, char c)
{
    skip_blanks(r);
    bool there = r->at < r->end && *r->at == c;
    r->at += there;
    return there;
}

/* ---- strings ---------------------------------------------------------------------------------- */

/* Bytes that stand for themselves. */
static size_t count_plain(const reader *r, bool *ret_wide)
{
    const char *s = r->at;
    unsigned char all = 0;
    for (; s < r->end && (unsigned char)*s >= ' ' && *s != '"' && *s != '\\'; s++) all |= (unsigned char)*s;
    *ret_wide |= all >= 0x80;
    return (size_t)(s - r->at);
}

static char unescape(char c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *p = c ? strchr(from, c) : NULL;
    return p ? to[p - from] : '\0';
}

/* The rest of a string, of which n bytes were plain, up to its second quote: with escapes, in r->plain. */
static bool read_escaped(reader *r, size_t n, bool *ret_wide)
{
    r->plain.len = 0;
    for (;; n = count_plain(r, ret_wide)) {
        buf_append(&r->plain, r->at, n);
        r->at += n;
        if (r->at == r->end || (unsigned char)*r->at < ' ') return false;
        if (*r->at++ == '"') return !r->plain.failed;
        char c = r->at < r->end ? unescape(*r->at++) : '\0';
        if (!c) return false;
        buf_putc(&r->plain, c);
    }
}

/* Behind the first quote; *ret lies in the text or in r->plain. */
static bool read_string(reader *r, const char **ret, size_t *ret_n)
{
    bool wide = false;
    size_t n = count_plain(r, &wide);
    *ret = r->at;
    *ret_n = n;
    if (r->at + n < r->end && r->at[n] == '"') {
        r->at += n + 1;
    } else {
        if (!read_escaped(r, n, &wide)) return false;
        *ret = r->plain.len ? r->plain.data : "";
        *ret_n = r->plain.len;
    }
    return !wide || utf8_valid(*ret, *ret_n, NULL);
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static size_t count_digits(const reader *r)
{
    size_t n = 0;
    while (r->at + n < r->end && r->at[n] >= '0' && r->at[n] <= '9') n++;
    return n;
}

/* Digits behind '.' and behind 'e', where those are. */
static bool skip_fraction(reader *r)
{
    size_t n = 1;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        r->at += n = count_digits(r);
    }
    if (n > 0 && r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-')) r->at++;
        r->at += n = count_digits(r);
    }
    return n > 0;
}

static json_t *real_of(const char *s, size_t n)
{
    char text[REAL_CHARS];
    if (n >= sizeof text) return NULL;
    memcpy(text, s, n);
    text[n] = '\0';
    double v = strtod(text, NULL);
    return isfinite(v) ? json_real(v) : NULL;
}

static json_t *read_number(reader *r)
{
    const char *begin = r->at;
    bool minus = *r->at == '-';
    json_int_t v = 0;
    r->at += minus;
    size_t n = count_digits(r);
    if (n == 0 || n > WHOLE_DIGITS || (n > 1 && *r->at == '0')) return NULL;
    for (const char *end = r->at + n; r->at < end; r->at++) v = v * 10 + (*r->at - '0');
    const char *whole = r->at;
    if (!skip_fraction(r)) return NULL;
    return r->at == whole ? json_integer(minus ? -v : v) : real_of(begin, (size_t)(r->at - begin));
}

/* ---- values ----------------------------------------------------------------------------------- */

/* One pair more; its value is taken in any case. */
static bool read_pair(reader *r, json_t *object)
{
    const char *key;
    size_t n;
    if (!json_quick_take(r, '"') || !read_string(r, &key, &n)) return false;
    char *own = key == r->plain.data ? buf_take(&r->plain) : NULL; /* its value may have escapes, too */
    json_t *v = json_quick_take(r, ':') ? read_value(r) : NULL;
    bool done = v && json_object_setn_new_nocheck(object, key, n, v) == 0;
    free(own);
    return done;
}

/* A key that comes twice is one member. */
static bool read_object(reader *r, json_t *object)
{
    size_t n = 0;
    if (json_quick_take(r, '}')) return true;
    do {
        if (!read_pair(r, object) || json_object_size(object) != ++n) return false;
    } while (json_quick_take(r, ','));
    return json_quick_take(r, '}');
}

static bool read_array(reader *r, json_t *array)
{
    if (json_quick_take(r, ']')) return true;
    do {
        json_t *v = read_value(r);
        if (!v || json_array_append_new(array, v) != 0) return false;
    } while (json_quick_take(r, ','));
    return json_quick_take(r, ']');
}

static json_t *read_inside(reader *r, json_t *v, bool (*inside)(reader *, json_t *))
{
    bool done = v && ++r->depth <= JSON_DEPTH_MAX && inside(r, v);
    r->depth--;
    if (done) return v;
    json_decref(v);
    return NULL;
}

static json_t *read_word(reader *r, const char *word, json_t *v)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return NULL;
    r->at += n;
    return v;
}

static json_t *read_value(reader *r)
{
    const char *s;
    size_t n;
    skip_blanks(r);
    switch (r->at < r->end ? *r->at : '\0') {
    case '{': r->at++; return read_inside(r, json_object(), read_object);
    case '[': r->at++; return read_inside(r, json_array(), read_array);
    case '"': r->at++; return read_string(r, &s, &n) ? json_stringn_nocheck(s, n) : NULL;
    case 't': return read_word(r, "true", json_true());
    case 'f': return read_word(r, "false", json_false());
    case 'n': return read_word(r, "null", json_null());
    default: return r->at < r->end && (*r->at == '-' || count_digits(r) > 0) ? read_number(r) : NULL;
    }
}

json_t *json_quick(const char *text, size_t len)
{
    reader r = {.at = text, .end = text + len};
    json_t *v = len > 0 ? read_value(&r) : NULL;
    skip_blanks(&r);
    if (v && r.at < r.end) {
        json_decref(v);
        v = NULL;
    }
    buf_done(&r.plain);
    return v;
}
