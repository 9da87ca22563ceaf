/* jinja_value.c: values of a template run: making, comparing, printing. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/progress.h"
#include "base/utf8.h"
#include "jinja/jinja.h"

jvalue jinja_fail(jrun *r, int code, const char *fmt, ...)
{
    if (r->rc == 0) {
        char message[400];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(message, sizeof message, fmt, ap);
        va_end(ap);
        r->rc = err_set(r->err, code, "line %d: %s", r->line, message);
    }
    return (jvalue){.kind = V_UNDEFINED};
}

void jinja_charge(jrun *r, jvalue v)
{
    size_t work = v.kind == V_STRING ? v.n / 64 : v.kind == V_LIST && v.list ? v.list->n / 16 : 0;
    progress_add(work * 64);
    r->steps += (unsigned)work; /* a value is smaller than JINJA_MAX_MEMORY: no wrap before the check */
    if (r->steps > JINJA_MAX_STEPS) jinja_fail(r, SHOAL_ELIMIT, "the template runs for too long");
}

void *jinja_alloc(jrun *r, size_t n)
{
    if (r->rc) return NULL;
    if (n > JINJA_MAX_MEMORY || r->used + n > JINJA_MAX_MEMORY) {
        jinja_fail(r, SHOAL_ELIMIT, "the template needs more than %d bytes", JINJA_MAX_MEMORY);
        return NULL;
    }
    r->used += n + 16;
    void *p = arena_alloc(r->mem, n ? n : 1);
    if (!p) jinja_fail(r, SHOAL_ENOMEM, "out of memory");
    return p;
}

jvalue jinja_str(const char *s, size_t n)
{
    return (jvalue){.kind = V_STRING, .s = s, .n = n};
}

jvalue jinja_strdup(jrun *r, const char *s, size_t n)
{
    char *p = jinja_alloc(r, n + 1);
    if (!p) return (jvalue){0};
    if (n) memcpy(p, s, n);
    return jinja_str(p, n);
}

jvalue jinja_int(int64_t i)
{
    return (jvalue){.kind = V_INT, .i = i};
}

jvalue jinja_float(double f)
{
    return (jvalue){.kind = V_FLOAT, .f = f};
}

jvalue jinja_bool(bool b)
{
    return (jvalue){.kind = V_BOOL, .b = b};
}

jvalue jinja_list(jrun *r)
{
    jvalue v = {.kind = V_LIST, .list = jinja_alloc(r, sizeof *v.list)};
    return v.list ? v : (jvalue){0};
}

jvalue jinja_dict(jrun *r, jkind kind)
{
    jvalue v = {.kind = kind, .dict = jinja_alloc(r, sizeof *v.dict)};
    return v.dict ? v : (jvalue){0};
}

void jinja_push(jrun *r, jvalue list, jvalue v)
{
    jlist *l = list.list;
    if (r->rc || !l) return;
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4;
        jvalue *at = jinja_alloc(r, cap * sizeof *at);
        if (!at) return;
        if (l->n) memcpy(at, l->at, l->n * sizeof *at);
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n++] = v;
}

const jvalue *jinja_get(jrun *r, const jdict *d, jvalue key)
{
    for (size_t i = 0; d && i < d->n; i++)
        if (jinja_equal(r, d->keys[i], key)) return &d->values[i];
    return NULL;
}

static void dict_add(jrun *r, jdict *d, jvalue key, jvalue v)
{
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 4;
        jvalue *keys = jinja_alloc(r, cap * sizeof *keys), *values = jinja_alloc(r, cap * sizeof *values);
        if (!keys || !values) return;
        if (d->n) memcpy(keys, d->keys, d->n * sizeof *keys);
        if (d->n) memcpy(values, d->values, d->n * sizeof *values);
        d->keys = keys;
        d->values = values;
        d->cap = cap;
    }
    d->keys[d->n] = key;
    d->values[d->n++] = v;
}

void jinja_put(jrun *r, jdict *d, jvalue key, jvalue v)
{
    if (r->rc || !d) return;
    r->steps += (unsigned)(d->n / 16);
    jvalue *old = (jvalue *)(uintptr_t)jinja_get(r, d, key);
    if (old)
        *old = v;
    else
        dict_add(r, d, key, v);
}

jvalue jinja_from_json(jrun *r, const json_t *v)
{
    const char *key;
    json_t *item;
    size_t i;
    jvalue out = {.kind = V_NONE};
    if (r->rc) return out;
    switch (json_typeof(v)) {
    case JSON_STRING: return jinja_foreign(r, jinja_strdup(r, json_string_value(v), json_string_length(v)));
    case JSON_INTEGER: return jinja_int(json_integer_value(v));
    case JSON_REAL: return jinja_float(json_real_value(v));
    case JSON_TRUE: return jinja_bool(true);
    case JSON_FALSE: return jinja_bool(false);
    case JSON_NULL: return out;
    case JSON_ARRAY:
        out = jinja_list(r);
        json_array_foreach(v, i, item) jinja_push(r, out, jinja_from_json(r, item));
        return out;
    case JSON_OBJECT:
        out = jinja_dict(r, V_DICT);
        json_object_foreach((json_t *)(uintptr_t)v, key, item)
        {
            jvalue k = jinja_foreign(r, jinja_strdup(r, key, strlen(key))), x = jinja_from_json(r, item);
            if (r->rc == 0) dict_add(r, out.dict, k, x); /* JSON's keys are unique already */
        }
        return out;
    }
    return out;
}

bool jinja_truth(jvalue v)
{
    switch (v.kind) {
    case V_UNDEFINED:
    case V_NONE: return false;
    case V_BOOL: return v.b;
    case V_INT: return v.i != 0;
    case V_FLOAT: return v.f != 0;
    case V_STRING: return v.n > 0;
    case V_LIST: return v.list->n > 0;
    case V_DICT: return v.dict->n > 0;
    default: return true;
    }
}

static bool is_number(jvalue v)
{
    return v.kind == V_INT || v.kind == V_FLOAT || v.kind == V_BOOL;
}

static double jinja_value_number(jvalue v)
{
    return v.kind == V_FLOAT ? v.f : v.kind == V_INT ? (double)v.i : v.b;
}

/* Depth bounds what a list that holds itself could do, steps what lists that share their parts could:
 * sixty doublings of one list are sixty lists and 2^60 comparisons. */
static bool equal(jrun *r, jvalue a, jvalue b, int depth)
{
    if (depth > 0) {
        r->steps++;
        jinja_charge(r, a);
    }
    if (r->rc) return false;
    if (is_number(a) && is_number(b))
        return a.kind == V_INT && b.kind == V_INT ? a.i == b.i
                                                  : jinja_value_number(a) == jinja_value_number(b);
    if (a.kind != b.kind || depth > 64) return false;
    if (a.kind == V_STRING) return a.n == b.n && (a.n == 0 || !memcmp(a.s, b.s, a.n));
    if (a.kind == V_LIST) {
        if (a.list == b.list) return true;
        if (a.list->n != b.list->n) return false;
        for (size_t i = 0; i < a.list->n; i++)
            if (!equal(r, a.list->at[i], b.list->at[i], depth + 1)) return false;
        return true;
    }
    if (a.kind != V_DICT)
        return a.kind == V_NONE || a.kind == V_UNDEFINED || (a.kind == V_NAMESPACE && a.dict == b.dict);
    if (a.dict == b.dict) return true;
    if (a.dict->n != b.dict->n) return false;
    for (size_t i = 0; i < a.dict->n; i++) {
        const jvalue *v = jinja_get(r, b.dict, a.dict->keys[i]);
        if (!v || !equal(r, a.dict->values[i], *v, depth + 1)) return false;
    }
    return true;
}

bool jinja_equal(jrun *r, jvalue a, jvalue b)
{
    return equal(r, a, b, 0);
}

int jinja_order(jrun *r, jvalue a, jvalue b)
{
    if (is_number(a) && is_number(b))
        return (jinja_value_number(a) > jinja_value_number(b)) -
               (jinja_value_number(a) < jinja_value_number(b));
    if (a.kind == V_STRING && b.kind == V_STRING) {
        size_t n = a.n < b.n ? a.n : b.n;
        int c = n ? memcmp(a.s, b.s, n) : 0;
        return c ? c : (a.n > b.n) - (a.n < b.n);
    }
    if (a.kind == V_NONE && b.kind == V_NONE) return 0;
    jinja_fail(r, SHOAL_EINVALID, "%s and %s have no order", jinja_kind_name(a), jinja_kind_name(b));
    return 0;
}

const char *jinja_kind_name(jvalue v)
{
    static const char *const names[] = {"undefined", "none",       "a boolean", "an integer",  "a float",
                                        "a string",  "a list",     "a dict",    "a namespace", "a loop",
                                        "a macro",   "a function", "a method"};
    return names[v.kind];
}

/* ---- printing ---- */

int jinja_float_digits(double f)
{
    progress_add(4096);
    return isnormal(f) ? DBL_DIG : 1;
}

/* The shortest digits that read back as the same number, as Python's repr. */
static void print_float(jtext *out, double f)
{
    char s[40];
    for (int digits = jinja_float_digits(f); digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, f);
        if (strtod(s, NULL) == f || isnan(f)) break;
    }
    if (fabs(f) >= 1e4 && fabs(f) < 1e16 && strchr(s, 'e')) snprintf(s, sizeof s, "%.1f", f);
    jinja_text_puts(out, s);
    if (!strpbrk(s, ".eni")) jinja_text_puts(out, ".0");
}

static void print_int(jtext *out, int64_t i)
{
    char s[24];
    snprintf(s, sizeof s, "%lld", (long long)i);
    jinja_text_puts(out, s);
}

/* repr() of a string, for lists and dicts. */
static void print_quoted(jtext *out, jvalue v)
{
    bool single = v.n && memchr(v.s, '\'', v.n) && !memchr(v.s, '"', v.n);
    const char *quote = single ? "\"" : "'";
    jinja_text_puts(out, quote);
    for (size_t i = 0; i < v.n; i++) {
        char c = v.s[i], hex[8] = {c};
        const char *as = c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : hex;
        if (c == *quote || c == '\\')
            snprintf(hex, sizeof hex, "\\%c", c);
        else if (as == hex && ((uint8_t)c < 32 || c == 127))
            snprintf(hex, sizeof hex, "\\x%02x", (unsigned)c);
        jinja_text_put_for(out, as, strlen(as), v, i);
    }
    jinja_text_puts(out, quote);
}

static void print(jrun *r, jtext *out, jvalue v, bool quoted, int depth)
{
    if (out->bytes.len > (size_t)JINJA_MAX_OUTPUT * 2 || depth > 64) {
        jinja_fail(r, SHOAL_ELIMIT, "a value is too long or too deep to print");
        return;
    }
    switch (v.kind) {
    case V_UNDEFINED: break;
    case V_NONE: jinja_text_puts(out, "None"); break;
    case V_BOOL: jinja_text_puts(out, v.b ? "True" : "False"); break;
    case V_INT: print_int(out, v.i); break;
    case V_FLOAT: print_float(out, v.f); break;
    case V_STRING:
        if (quoted)
            print_quoted(out, v);
        else
            jinja_text_add(out, v);
        break;
    case V_LIST:
        jinja_text_puts(out, "[");
        for (size_t i = 0; r->rc == 0 && i < v.list->n; i++) {
            if (i) jinja_text_puts(out, ", ");
            print(r, out, v.list->at[i], true, depth + 1);
        }
        jinja_text_puts(out, "]");
        break;
    case V_DICT:
        jinja_text_puts(out, "{");
        for (size_t i = 0; r->rc == 0 && i < v.dict->n; i++) {
            if (i) jinja_text_puts(out, ", ");
            print(r, out, v.dict->keys[i], true, depth + 1);
            jinja_text_puts(out, ": ");
            print(r, out, v.dict->values[i], true, depth + 1);
        }
        jinja_text_puts(out, "}");
        break;
    default: jinja_fail(r, SHOAL_EINVALID, "%s cannot be printed", jinja_kind_name(v));
    }
}

void jinja_print(jrun *r, jtext *out, jvalue v)
{
    print(r, out, v, false, 0);
}

/* The character at v.s[i] as \uXXXX, two of them beyond 16 bits; returns its bytes, 0 when it is none. */
static size_t ascii_out(jtext *out, jvalue v, size_t i)
{
    char as[16];
    uint32_t cp;
    size_t n = utf8_decode(v.s + i, v.n - i, &cp);
    if (n < 2) return 0;
    if (cp >= 0x10000)
        snprintf(as, sizeof as, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((cp - 0x10000) >> 10)),
                 (unsigned)(0xdc00 + ((cp - 0x10000) & 0x3ff)));
    else
        snprintf(as, sizeof as, "\\u%04x", (unsigned)cp);
    jinja_text_put_for(out, as, strlen(as), v, i);
    return n;
}

static void json_string_out(jtext *out, jvalue v, bool ascii)
{
    jinja_text_puts(out, "\"");
    for (size_t i = 0, n; i < v.n; i += n) {
        uint8_t c = (uint8_t)v.s[i];
        char as[8] = {(char)c};
        static const char plain[] = "\"\\\b\f\n\r\t", escaped[] = "\"\\bfnrt";
        const char *hit = c ? strchr(plain, c) : NULL;
        n = ascii && c >= 128 ? ascii_out(out, v, i) : 0;
        if (n) continue;
        n = 1;
        if (hit)
            snprintf(as, sizeof as, "\\%c", escaped[hit - plain]);
        else if (c < 32)
            snprintf(as, sizeof as, "\\u%04x", c);
        jinja_text_put_for(out, as, strlen(as), v, i);
    }
    jinja_text_puts(out, "\"");
}

static void line_break(jtext *out, int indent, int level)
{
    if (indent < 0) return;
    jinja_text_puts(out, "\n");
    for (int i = 0; i < indent * level; i++) jinja_text_puts(out, " ");
}

static void separator(jtext *out, jvalue by, const char *when_absent)
{
    if (by.kind == V_STRING)
        jinja_text_add(out, by);
    else
        jinja_text_puts(out, when_absent);
}

/* The same dict with its keys in order. */
static jvalue sort_keys(jrun *r, jvalue v)
{
    const jargs exact = {.n = 1, .at = {jinja_bool(true)}, .keyword = {"case_sensitive"}};
    jvalue pairs = jinja_filter(r, "dictsort", v, &exact), out = jinja_dict(r, V_DICT);
    for (size_t i = 0; r->rc == 0 && i < pairs.list->n; i++) {
        const jlist *pair = pairs.list->at[i].list;
        jinja_put(r, out.dict, pair->at[0], pair->at[1]);
    }
    return out;
}

static void print_json_items(jrun *r, jtext *out, jvalue v, const jjson *how, int level)
{
    bool dict = v.kind != V_LIST;
    if (v.kind == V_DICT && how->sort_keys) v = sort_keys(r, v);
    if (r->rc) return;
    size_t n = dict ? v.dict->n : v.list->n;
    jinja_text_puts(out, dict ? "{" : "[");
    for (size_t i = 0; r->rc == 0 && i < n; i++) {
        if (i) separator(out, how->item, how->indent < 0 ? ", " : ",");
        line_break(out, how->indent, level + 1);
        if (dict) {
            jvalue key = jinja_text(r, v.dict->keys[i]);
            json_string_out(out, key, how->ascii);
            separator(out, how->key, ": ");
        }
        jinja_print_json(r, out, dict ? v.dict->values[i] : v.list->at[i], how, level + 1);
    }
    if (n) line_break(out, how->indent, level);
    jinja_text_puts(out, dict ? "}" : "]");
}

/* json.dumps(v, ensure_ascii=False, ...), which is what transformers' tojson is. */
void jinja_print_json(jrun *r, jtext *out, jvalue v, const jjson *how, int level)
{
    if (level > 64 || out->bytes.len > (size_t)JINJA_MAX_OUTPUT * 2) {
        jinja_fail(r, SHOAL_ELIMIT, "a value is too long or too deep for tojson");
        return;
    }
    switch (v.kind) {
    case V_NONE: jinja_text_puts(out, "null"); break;
    case V_BOOL: jinja_text_puts(out, v.b ? "true" : "false"); break;
    case V_INT: print_int(out, v.i); break;
    case V_FLOAT: print_float(out, v.f); break;
    case V_STRING: json_string_out(out, v, how->ascii); break;
    case V_LIST:
    case V_DICT: print_json_items(r, out, v, how, level); break;
    default: jinja_fail(r, SHOAL_EINVALID, "%s has no JSON form", jinja_kind_name(v));
    }
}

jvalue jinja_text(jrun *r, jvalue v)
{
    if (v.kind == V_STRING) return v;
    jtext out = {0};
    jinja_print(r, &out, v);
    return jinja_text_take(r, &out);
}

jvalue jinja_items(jrun *r, jvalue v)
{
    jvalue out;
    if (v.kind == V_LIST) return v;
    if (v.kind == V_UNDEFINED) return jinja_list(r);
    if (v.kind != V_DICT && v.kind != V_STRING)
        return jinja_fail(r, SHOAL_EINVALID, "%s cannot be iterated over", jinja_kind_name(v));
    out = jinja_list(r);
    if (v.kind == V_DICT) {
        for (size_t i = 0; r->rc == 0 && i < v.dict->n; i++) jinja_push(r, out, v.dict->keys[i]);
        return out;
    }
    for (size_t at = 0; r->rc == 0 && at < v.n;) {
        uint32_t cp;
        size_t n = utf8_decode(v.s + at, v.n - at, &cp);
        n = n ? n : 1;
        jinja_push(r, out, jinja_part(v, at, n));
        at += n;
    }
    return out;
}
