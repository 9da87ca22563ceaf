/* jinja_go_print.c: values as Go's text/template, fmt and encoding/json write them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/jinja_go.h"

enum { DEPTH_MAX = 64 };

jvalue go_take(jrun *r, jtext *t)
{
    jinja_charge(r, jinja_str("", t->bytes.len));
    return jinja_text_take(r, t);
}

static bool is_too_much(jrun *r, const jtext *out, int depth)
{
    if (depth > DEPTH_MAX || out->bytes.len > (size_t)JINJA_MAX_OUTPUT * 2)
        jinja_fail(r, SHOAL_ELIMIT, "a value is too long or too deep to print");
    return r->rc != 0;
}

/* ---- numbers ------------------------------------------------------------------------------------ */

/* f as the shortest digits that read back as f: s[0] is before the point, *ret_exponent its power of ten. */
static size_t shortest(double f, char s[32], int *ret_exponent)
{
    size_t n = 0;
    for (int more = jinja_float_digits(f) - 1; more < 17; more++) {
        snprintf(s, 32, "%.*e", more, f);
        if (strtod(s, NULL) == f) break;
    }
    char *e = strchr(s, 'e');
    *ret_exponent = (int)strtol(e + 1, NULL, 10);
    for (char *c = s; c < e; c++)
        if (*c != '.') s[n++] = *c;
    while (n > 1 && s[n - 1] == '0') n--;
    return n;
}

/* JSON's numbers have an exponent below 1e-6 and from 1e21 on, those of %v below 1e-4 and from 1e6 on, of
 * two digits at least. */
static void put_double(jtext *out, double f, bool json)
{
    char s[32], e[8];
    int exponent;
    if (!isfinite(f)) {
        jinja_text_puts(out, isnan(f) ? "NaN" : f < 0 ? "-Inf" : "+Inf");
        return;
    }
    if (f < 0 || (f == 0 && signbit(f))) jinja_text_puts(out, "-");
    size_t n = shortest(fabs(f), s, &exponent);
    bool scientific = f != 0 && (exponent < (json ? -6 : -4) || exponent >= (json ? 21 : 6));
    int whole = scientific ? 1 : exponent + 1;
    if (whole <= 0) jinja_text_puts(out, "0.");
    for (; whole < 0; whole++) jinja_text_puts(out, "0");
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (int)i == whole) jinja_text_puts(out, ".");
        jinja_text_put(out, s + i, 1, NULL);
    }
    for (size_t i = n; (int)i < whole; i++) jinja_text_puts(out, "0");
    snprintf(e, sizeof e, json && exponent < 0 ? "e-%d" : exponent < 0 ? "e-%02d" : "e+%02d", abs(exponent));
    if (scientific) jinja_text_puts(out, e);
}

static void put_number(jtext *out, jvalue v, bool json)
{
    char s[24];
    snprintf(s, sizeof s, "%lld", (long long)v.i);
    if (v.kind == V_INT)
        jinja_text_puts(out, s);
    else
        put_double(out, v.f, json);
}

/* ---- JSON --------------------------------------------------------------------------------------- */

/* encoding/json also escapes what HTML and JavaScript might read otherwise. */
static void put_json_string(jtext *out, jvalue v)
{
    static const char PLAIN[] = "\"\\\b\f\n\r\t", ESCAPED[] = "\"\\bfnrt";
    jinja_text_puts(out, "\"");
    for (size_t i = 0, n; i < v.n; i += n) {
        uint32_t cp = (uint8_t)v.s[i];
        char as[8] = {(char)cp};
        n = utf8_decode(v.s + i, v.n - i, &cp);
        const char *hit = n == 1 && cp ? strchr(PLAIN, (int)cp) : NULL;
        bool coded = n == 0 || cp < 32 || cp == '<' || cp == '>' || cp == '&' || cp == 0x2028 || cp == 0x2029;
        if (hit)
            snprintf(as, sizeof as, "\\%c", ESCAPED[hit - PLAIN]);
        else if (coded)
            snprintf(as, sizeof as, "\\u%04x", n == 0 ? 0xfffdu : cp);
        else
            memcpy(as, v.s + i, n);
        jinja_text_put_for(out, as, hit || coded ? strlen(as) : n, v, i);
        n = n ? n : 1;
    }
    jinja_text_puts(out, "\"");
}

static bool is_empty(jvalue v)
{
    return v.kind == V_UNDEFINED || (v.kind == V_STRING && v.n == 0) || (v.kind == V_LIST && v.list->n == 0);
}

static void put_json(jrun *r, jtext *out, jvalue v, int depth);

static void put_member(jrun *r, jtext *out, jvalue key, jvalue v, bool *any, int depth)
{
    if (*any) jinja_text_puts(out, ",");
    *any = true;
    put_json_string(out, key);
    jinja_text_puts(out, ":");
    put_json(r, out, v, depth + 1);
}

/* A struct's members are those of its fields, in their order. */
static void put_object(jrun *r, jtext *out, jvalue v, int depth)
{
    size_t n = 0;
    bool any = false;
    const go_field *f = go_fields((go_type)v.i, &n);
    jinja_text_puts(out, "{");
    for (size_t i = 0; r->rc == 0 && i < v.dict->n; i++) {
        bool own = f && i < n;
        if (own && f[i].omits_empty && is_empty(v.dict->values[i])) continue;
        jvalue key = own ? jinja_str(f[i].json, strlen(f[i].json)) : v.dict->keys[i];
        put_member(r, out, key, v.dict->values[i], &any, depth);
    }
    jinja_text_puts(out, "}");
}

static void put_array(jrun *r, jtext *out, jvalue v, int depth)
{
    jinja_text_puts(out, "[");
    for (size_t i = 0; r->rc == 0 && i < v.list->n; i++) {
        if (i) jinja_text_puts(out, ",");
        put_json(r, out, v.list->at[i], depth + 1);
    }
    jinja_text_puts(out, "]");
}

static void put_json(jrun *r, jtext *out, jvalue v, int depth)
{
    bool one_type = v.kind == V_LIST && v.i == GO_TYPE && v.list->n == 1;
    if (is_too_much(r, out, depth)) return;
    if (v.kind == V_STRING)
        put_json_string(out, v);
    else if (v.kind == V_BOOL)
        jinja_text_puts(out, v.b ? "true" : "false");
    else if (v.kind == V_INT || v.kind == V_FLOAT)
        put_number(out, v, true);
    else if (one_type)
        put_json(r, out, v.list->at[0], depth + 1);
    else if (v.kind == V_LIST && !v.b)
        put_array(r, out, v, depth);
    else if (v.kind == V_DICT && !v.b)
        put_object(r, out, v, depth);
    else
        jinja_text_puts(out, "null");
}

void go_print_json(jrun *r, jtext *out, jvalue v)
{
    put_json(r, out, v, 0);
}

/* ---- %v ----------------------------------------------------------------------------------------- */

static void put_value(jrun *r, jtext *out, jvalue v, bool inner, int depth);

static void put_values(jrun *r, jtext *out, const char *begin, jvalue v, const char *end, int depth)
{
    bool map = v.kind == V_DICT && v.i != GO_PLAIN && v.i != GO_ARGUMENTS ? false : v.kind == V_DICT;
    size_t n = v.kind == V_DICT ? v.dict->n : v.list->n;
    jinja_text_puts(out, begin);
    for (size_t i = 0; r->rc == 0 && i < n; i++) {
        if (i) jinja_text_puts(out, " ");
        if (map) put_value(r, out, v.dict->keys[i], true, depth + 1);
        if (map) jinja_text_puts(out, ":");
        put_value(r, out, v.kind == V_DICT ? v.dict->values[i] : v.list->at[i], true, depth + 1);
    }
    jinja_text_puts(out, end);
}

/* Types with a String method for their values print by it everywhere, those with one for pointers only
 * where the template prints them. */
static bool prints_json(jvalue v, bool inner)
{
    if (v.kind == V_LIST) return v.i == GO_TOOLS;
    if (v.kind != V_DICT) return false;
    return v.i == GO_TOOL || (!inner && (v.i == GO_ARGUMENTS || v.i == GO_FUNCTION || v.i == GO_PARAMETERS));
}

static void put_value(jrun *r, jtext *out, jvalue v, bool inner, int depth)
{
    if (is_too_much(r, out, depth)) return;
    if (v.kind == V_STRING)
        jinja_text_add(out, v);
    else if (v.kind == V_BOOL)
        jinja_text_puts(out, v.b ? "true" : "false");
    else if (v.kind == V_INT || v.kind == V_FLOAT)
        put_number(out, v, false);
    else if (v.kind == V_UNDEFINED || v.kind == V_NONE)
        jinja_text_puts(out, inner ? "<nil>" : "<no value>");
    else if (prints_json(v, inner))
        put_json(r, out, v, depth);
    else if (v.kind == V_LIST && v.i == GO_TYPE && v.list->n < 2)
        put_values(r, out, "", v, "", depth);
    else if (v.kind == V_LIST)
        put_values(r, out, "[", v, "]", depth);
    else if (v.kind == V_DICT && go_fields((go_type)v.i, &(size_t){0}))
        put_values(r, out, "{", v, "}", depth);
    else if (v.kind == V_DICT)
        put_values(r, out, "map[", v, "]", depth);
    else
        jinja_fail(r, SHOAL_EINVALID, "%s cannot be printed", jinja_kind_name(v));
}

void go_print(jrun *r, jtext *out, jvalue v, bool inner)
{
    put_value(r, out, v, inner, 0);
}

/* ---- printf ------------------------------------------------------------------------------------- */

typedef struct place { /* "%-08.3f" */
    bool minus, zero;
    int width, precision; /* -1: none */
    char verb;
} place;

/* A number of s[*at..n), at most 4096; -1: none stands there. */
static int read_count(jvalue s, size_t *at)
{
    int v = -1;
    for (; *at < s.n && s.s[*at] >= '0' && s.s[*at] <= '9' && v <= 4096; ++*at)
        v = (v < 0 ? 0 : v) * 10 + (s.s[*at] - '0');
    return v > 4096 ? 4096 : v;
}

/* *at is behind the '%', and gets behind the verb. */
static place read_place(jvalue s, size_t *at)
{
    place p = {.precision = -1};
    for (; *at < s.n && (s.s[*at] == '-' || s.s[*at] == '0'); ++*at) {
        if (s.s[*at] == '-') p.minus = true;
        if (s.s[*at] == '0') p.zero = true;
    }
    p.width = read_count(s, at);
    if (*at < s.n && s.s[*at] == '.') {
        ++*at;
        p.precision = read_count(s, at);
        if (p.precision < 0) p.precision = 0;
    }
    p.verb = *at < s.n ? s.s[(*at)++] : 0;
    return p;
}

/* A quoted text: what strconv.Quote makes of it, but that all of UTF-8 counts as printable. */
static void put_quoted(jtext *out, jvalue v)
{
    static const char PLAIN[] = "\"\\\a\b\f\n\r\t\v", ESCAPED[] = "\"\\abfnrtv";
    jinja_text_puts(out, "\"");
    for (size_t i = 0; i < v.n; i++) {
        char c = v.s[i], as[8] = {c};
        const char *hit = c ? strchr(PLAIN, c) : NULL;
        if (hit)
            snprintf(as, sizeof as, "\\%c", ESCAPED[hit - PLAIN]);
        else if ((uint8_t)c < 32 || c == 127)
            snprintf(as, sizeof as, "\\x%02x", (unsigned)c);
        jinja_text_put_for(out, as, strlen(as), v, i);
    }
    jinja_text_puts(out, "\"");
}

/* The beginning of a text, so many characters long. */
static jvalue cut(jvalue v, int precision)
{
    size_t at = 0;
    for (int i = 0; i < precision && at < v.n; i++) {
        size_t n = utf8_decode(v.s + at, v.n - at, &(uint32_t){0});
        at += n ? n : 1;
    }
    return precision < 0 ? v : jinja_part(v, 0, at);
}

static void put_float(jtext *out, const place *p, jvalue v)
{
    char s[400];
    int precision = p->precision < 0 ? 6 : p->precision > 40 ? 40 : p->precision;
    snprintf(s, sizeof s, "%.*f", precision, v.f);
    jinja_text_puts(out, s);
}

static const char *type_name(jvalue v)
{
    switch (v.kind) {
    case V_BOOL: return "bool=";
    case V_INT: return "int=";
    case V_FLOAT: return "float64=";
    case V_STRING: return "string=";
    default: return "";
    }
}

/* What fmt writes for a verb that the value does not have. */
static void put_bad_verb(jrun *r, jtext *out, const place *p, jvalue v)
{
    const char verb[] = {'%', '!', p->verb > 32 && p->verb < 127 ? p->verb : '?', '(', '\0'};
    jinja_text_puts(out, verb);
    jinja_text_puts(out, type_name(v));
    go_print(r, out, v, true);
    jinja_text_puts(out, ")");
}

static void put_verb(jrun *r, jtext *out, const place *p, jvalue v)
{
    bool number = v.kind == V_INT || v.kind == V_FLOAT, scalar = number || v.kind == V_BOOL;
    if (p->verb == 'v' || (p->verb == 's' && !scalar && v.kind != V_UNDEFINED))
        go_print(r, out, v.kind == V_STRING ? cut(v, p->precision) : v, true);
    else if (p->verb == 'd' && v.kind == V_INT)
        put_number(out, v, false);
    else if (p->verb == 'q' && v.kind == V_STRING)
        put_quoted(out, cut(v, p->precision));
    else if (p->verb == 't' && v.kind == V_BOOL)
        jinja_text_puts(out, v.b ? "true" : "false");
    else if (p->verb == 'f' && v.kind == V_FLOAT)
        put_float(out, p, v);
    else
        put_bad_verb(r, out, p, v);
}

/* `text` where it has its width. */
static void put_padded(jtext *out, const place *p, jvalue text)
{
    bool number = p->verb == 'd' || p->verb == 'f', zero = p->zero && !p->minus,
         sign = text.n && text.s[0] == '-';
    int n = p->width - (int)utf8_count(text.s ? text.s : "", text.n);
    if (zero && number && sign && n > 0) {
        jinja_text_puts(out, "-");
        text = jinja_part(text, 1, text.n - 1);
    }
    for (int i = 0; !p->minus && i < n; i++) jinja_text_puts(out, zero ? "0" : " ");
    jinja_text_add(out, text);
    for (int i = 0; p->minus && i < n; i++) jinja_text_puts(out, " ");
}

jvalue go_fn_sprintf(jrun *r, const jargs *a)
{
    jtext out = {0};
    jvalue format = jinja_arg(a, 0);
    size_t used = 1;
    if (format.kind != V_STRING) return jinja_fail(r, SHOAL_EINVALID, "printf needs a format");
    for (size_t at = 0; at < format.n && r->rc == 0 && !is_too_much(r, &out, 0);) {
        const char *percent = memchr(format.s + at, '%', format.n - at);
        size_t n = percent ? (size_t)(percent - format.s) - at : format.n - at;
        jinja_text_add(&out, jinja_part(format, at, n));
        at += n + 1;
        if (!percent) break;
        place p = read_place(format, &at);
        jtext one = {0};
        if (p.verb == '%')
            jinja_text_puts(&one, "%");
        else if (used >= a->n)
            jinja_fail(r, SHOAL_EINVALID, "printf has more places than values");
        else
            put_verb(r, &one, &p, a->at[used++]);
        put_padded(&out, &p, go_take(r, &one));
    }
    if (r->rc == 0 && used < a->n) jinja_fail(r, SHOAL_EINVALID, "printf has more values than places");
    return go_take(r, &out);
}
