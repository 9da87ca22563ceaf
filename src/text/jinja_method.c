/* jinja_method.c: methods of strings, lists and dicts, attributes, and global functions. */
#define _GNU_SOURCE
#include <ctype.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/jinja.h"

static jvalue arg(const jargs *a, size_t i)
{
    return i < a->n ? a->at[i] : (jvalue){.kind = V_UNDEFINED};
}

/* ---- strings ---- */

static bool in_set(char c, jvalue set)
{
    if (set.kind != V_STRING) return isspace((unsigned char)c);
    return set.n && memchr(set.s, c, set.n);
}

static jvalue strip(jvalue s, const jargs *a, bool left, bool right)
{
    size_t b = 0, e = s.n;
    while (left && b < e && in_set(s.s[b], arg(a, 0))) b++;
    while (right && b < e && in_set(s.s[e - 1], arg(a, 0))) e--;
    return jinja_part(s, b, e - b);
}

static jvalue m_strip(jrun *r, jvalue s, const jargs *a)
{
    return strip(s, a, true, true);
}
static jvalue m_lstrip(jrun *r, jvalue s, const jargs *a)
{
    return strip(s, a, true, false);
}
static jvalue m_rstrip(jrun *r, jvalue s, const jargs *a)
{
    return strip(s, a, false, true);
}

/* Case by character: `first` of a word, and the others. */
static jvalue recase(jrun *r, jvalue s, bool upper_first, bool upper_rest, bool every_word)
{
    jtext out = {0};
    bool first = true;
    for (size_t at = 0; at < s.n;) {
        uint32_t cp;
        char c[4];
        size_t n = utf8_decode(s.s + at, s.n - at, &cp);
        if (n == 0) {
            jinja_text_add(&out, jinja_part(s, at++, 1));
            continue;
        }
        bool upper = first ? upper_first : upper_rest;
        utf8proc_int32_t x = (utf8proc_int32_t)cp;
        uint32_t y = (uint32_t)(upper ? utf8proc_toupper(x) : utf8proc_tolower(x));
        jinja_text_put_for(&out, c, utf8_encode(y, c), s, at);
        at += n;
        bool letter =
            utf8proc_category(x) >= UTF8PROC_CATEGORY_LU && utf8proc_category(x) <= UTF8PROC_CATEGORY_LO;
        first = every_word && !letter;
    }
    return jinja_text_take(r, &out);
}

static jvalue m_upper(jrun *r, jvalue s, const jargs *a)
{
    return recase(r, s, true, true, false);
}
static jvalue m_lower(jrun *r, jvalue s, const jargs *a)
{
    return recase(r, s, false, false, false);
}
static jvalue m_title(jrun *r, jvalue s, const jargs *a)
{
    return recase(r, s, true, false, true);
}
static jvalue m_capitalize(jrun *r, jvalue s, const jargs *a)
{
    return recase(r, s, true, false, false);
}

static jvalue m_startswith(jrun *r, jvalue s, const jargs *a)
{
    jvalue x = arg(a, 0);
    return jinja_bool(x.kind == V_STRING && x.n <= s.n && (!x.n || !memcmp(s.s, x.s, x.n)));
}

static jvalue m_endswith(jrun *r, jvalue s, const jargs *a)
{
    jvalue x = arg(a, 0);
    return jinja_bool(x.kind == V_STRING && x.n <= s.n && (!x.n || !memcmp(s.s + s.n - x.n, x.s, x.n)));
}

/* The next place of x in s from byte `at`; s.n when there is none. x is not empty. */
static size_t find(jvalue s, jvalue x, size_t at)
{
    const char *p = at < s.n ? memmem(s.s + at, s.n - at, x.s, x.n) : NULL;
    return p ? (size_t)(p - s.s) : s.n;
}

static jvalue m_find(jrun *r, jvalue s, const jargs *a)
{
    jvalue x = arg(a, 0);
    if (x.kind != V_STRING) return jinja_fail(r, SHOAL_EINVALID, "find needs a string");
    size_t at = x.n ? find(s, x, 0) : 0;
    return jinja_int(at < s.n || x.n == 0 ? (int64_t)utf8_count(s.s, at) : -1);
}

static jvalue m_split(jrun *r, jvalue s, const jargs *a)
{
    jvalue by = arg(a, 0), limit = arg(a, 1), out = jinja_list(r);
    size_t at = 0, left = limit.kind == V_INT && limit.i >= 0 ? (size_t)limit.i : SIZE_MAX;
    if (by.kind == V_STRING && by.n == 0)
        return jinja_fail(r, SHOAL_EINVALID, "split needs a separator that is not empty");
    if (by.kind == V_STRING) {
        for (; left > 0 && r->rc == 0; left--) {
            size_t hit = find(s, by, at);
            if (hit == s.n) break;
            jinja_push(r, out, jinja_part(s, at, hit - at));
            at = hit + by.n;
        }
        jinja_push(r, out, jinja_part(s, at, s.n - at));
        return out;
    }
    while (r->rc == 0) { /* runs of white space */
        while (at < s.n && isspace((unsigned char)s.s[at])) at++;
        if (at == s.n) break;
        size_t b = at;
        while (at < s.n && (left == 0 || !isspace((unsigned char)s.s[at]))) at++;
        jinja_push(r, out, jinja_part(s, b, at - b));
        if (left) left--;
    }
    return out;
}

static jvalue m_splitlines(jrun *r, jvalue s, const jargs *a)
{
    jvalue out = jinja_list(r), newline = jinja_str("\n", 1);
    for (size_t at = 0; r->rc == 0 && at < s.n;) {
        size_t hit = find(s, newline, at);
        jinja_push(r, out, jinja_part(s, at, hit - at));
        at = hit + 1;
    }
    return out;
}

static jvalue m_replace(jrun *r, jvalue s, const jargs *a)
{
    jvalue from = arg(a, 0), to = arg(a, 1), limit = arg(a, 2);
    if (from.kind != V_STRING || to.kind != V_STRING)
        return jinja_fail(r, SHOAL_EINVALID, "replace needs two strings");
    if (from.n == 0) return s;
    size_t at = 0, left = limit.kind == V_INT && limit.i >= 0 ? (size_t)limit.i : SIZE_MAX;
    jtext out = {0};
    for (; left > 0 && out.bytes.len <= JINJA_MAX_MEMORY; left--) {
        size_t hit = find(s, from, at);
        if (hit == s.n) break;
        jinja_text_add(&out, jinja_part(s, at, hit - at));
        jinja_text_add(&out, to);
        at = hit + from.n;
    }
    jinja_text_add(&out, jinja_part(s, at, s.n - at));
    return jinja_text_take(r, &out);
}

static jvalue m_join(jrun *r, jvalue s, const jargs *a)
{
    jargs by = {.n = 1, .at = {s}};
    return jinja_filter(r, "join", arg(a, 0), &by);
}

/* ---- dicts and lists ---- */

static jvalue m_items(jrun *r, jvalue d, const jargs *a)
{
    jvalue out = jinja_list(r);
    for (size_t i = 0; r->rc == 0 && i < d.dict->n; i++) {
        jvalue pair = jinja_list(r);
        jinja_push(r, pair, d.dict->keys[i]);
        if (r->rc == 0) jinja_push(r, pair, d.dict->values[i]);
        jinja_push(r, out, pair);
    }
    return out;
}

static jvalue m_keys(jrun *r, jvalue d, const jargs *a)
{
    return jinja_items(r, d);
}

static jvalue m_values(jrun *r, jvalue d, const jargs *a)
{
    jvalue out = jinja_list(r);
    for (size_t i = 0; r->rc == 0 && i < d.dict->n; i++) jinja_push(r, out, d.dict->values[i]);
    return out;
}

static jvalue m_get(jrun *r, jvalue d, const jargs *a)
{
    const jvalue *v = jinja_get(r, d.dict, arg(a, 0));
    return v ? *v : a->n > 1 ? a->at[1] : (jvalue){.kind = V_NONE};
}

static jvalue m_update(jrun *r, jvalue d, const jargs *a)
{
    jvalue from = arg(a, 0);
    for (size_t i = 0; from.kind == V_DICT && from.dict != d.dict && r->rc == 0 && i < from.dict->n; i++)
        jinja_put(r, d.dict, from.dict->keys[i], from.dict->values[i]);
    return (jvalue){.kind = V_NONE};
}

static jvalue m_append(jrun *r, jvalue l, const jargs *a)
{
    jinja_push(r, l, arg(a, 0));
    return (jvalue){.kind = V_NONE};
}

static jvalue m_pop(jrun *r, jvalue l, const jargs *a)
{
    if (l.list->n == 0) return jinja_fail(r, SHOAL_EINVALID, "pop from an empty list");
    return l.list->at[--l.list->n];
}

static const struct method {
    jkind of;
    const char *name;
    jvalue (*fn)(jrun *r, jvalue self, const jargs *a);
} methods[] = {
    {V_STRING, "strip", m_strip},
    {V_STRING, "lstrip", m_lstrip},
    {V_STRING, "rstrip", m_rstrip},
    {V_STRING, "upper", m_upper},
    {V_STRING, "lower", m_lower},
    {V_STRING, "title", m_title},
    {V_STRING, "capitalize", m_capitalize},
    {V_STRING, "startswith", m_startswith},
    {V_STRING, "endswith", m_endswith},
    {V_STRING, "find", m_find},
    {V_STRING, "split", m_split},
    {V_STRING, "splitlines", m_splitlines},
    {V_STRING, "replace", m_replace},
    {V_STRING, "join", m_join},
    {V_DICT, "items", m_items},
    {V_DICT, "keys", m_keys},
    {V_DICT, "values", m_values},
    {V_DICT, "get", m_get},
    {V_DICT, "update", m_update},
    {V_LIST, "append", m_append},
    {V_LIST, "pop", m_pop},
};

static const struct method *method_of(jvalue self, const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].of == self.kind && !strcmp(methods[i].name, name)) return &methods[i];
    return NULL;
}

bool jinja_has_method(jvalue self, const char *name)
{
    return method_of(self, name) != NULL;
}

jvalue jinja_method(jrun *r, jvalue self, const char *name, const jargs *args)
{
    const struct method *m = method_of(self, name);
    if (!m)
        return jinja_fail(r, SHOAL_EUNSUPPORTED, "%s has no method \"%.40s\"", jinja_kind_name(self), name);
    jinja_charge(r, self);
    return r->rc ? self : m->fn(r, self, args);
}

jvalue jinja_attr(jrun *r, jvalue v, const char *name)
{
    if (v.kind == V_UNDEFINED) return jinja_fail(r, SHOAL_EINVALID, "\"%.40s\" of something undefined", name);
    if (v.kind != V_DICT && v.kind != V_NAMESPACE) return (jvalue){.kind = V_UNDEFINED};
    const jvalue *x = jinja_get(r, v.dict, jinja_str(name, strlen(name)));
    return x ? *x : (jvalue){.kind = V_UNDEFINED};
}

jvalue jinja_item(jrun *r, jvalue v, jvalue key)
{
    const jvalue *x = NULL;
    if (v.kind == V_UNDEFINED) return jinja_fail(r, SHOAL_EINVALID, "an item of something undefined");
    if (v.kind == V_DICT || v.kind == V_NAMESPACE) x = jinja_get(r, v.dict, key);
    if (x) return *x;
    if ((v.kind != V_LIST && v.kind != V_STRING) || key.kind != V_INT) return (jvalue){.kind = V_UNDEFINED};
    jvalue items = jinja_items(r, v);
    if (r->rc) return v;
    int64_t n = (int64_t)items.list->n, i = key.i < 0 ? key.i + n : key.i;
    return i >= 0 && i < n ? items.list->at[i] : (jvalue){.kind = V_UNDEFINED};
}

/* ---- functions ---- */

static jvalue fn_range(jrun *r, const jargs *a)
{
    int64_t from = 0, to, by = 1;
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i].kind != V_INT) return jinja_fail(r, SHOAL_EINVALID, "range needs integers");
    if (a->n == 0 || a->n > 3) return jinja_fail(r, SHOAL_EINVALID, "range needs one to three integers");
    to = a->at[a->n > 1].i;
    if (a->n > 1) from = a->at[0].i;
    if (a->n > 2) by = a->at[2].i;
    if (by == 0) return jinja_fail(r, SHOAL_EINVALID, "range's step is zero");
    jvalue out = jinja_list(r);
    while (r->rc == 0 && (by > 0 ? from < to : from > to)) {
        jinja_push(r, out, jinja_int(from));
        if (out.list && out.list->n > JINJA_MAX_STEPS) jinja_fail(r, SHOAL_ELIMIT, "a range is too long");
        if (__builtin_add_overflow(from, by, &from)) break;
    }
    return out;
}

static jvalue keywords(jrun *r, const jargs *a, jkind kind)
{
    jvalue d = jinja_dict(r, kind);
    if (r->rc == 0 && a->n && !a->keyword[0] && a->at[0].kind == V_DICT)
        for (size_t i = 0; i < a->at[0].dict->n; i++)
            jinja_put(r, d.dict, a->at[0].dict->keys[i], a->at[0].dict->values[i]);
    for (size_t i = 0; r->rc == 0 && i < a->n; i++)
        if (a->keyword[i]) jinja_put(r, d.dict, jinja_str(a->keyword[i], strlen(a->keyword[i])), a->at[i]);
    return d;
}

static jvalue fn_namespace(jrun *r, const jargs *a)
{
    return keywords(r, a, V_NAMESPACE);
}
static jvalue fn_dict(jrun *r, const jargs *a)
{
    return keywords(r, a, V_DICT);
}

static jvalue fn_raise(jrun *r, const jargs *a)
{
    jvalue v = jinja_text(r, arg(a, 0));
    return jinja_fail(r, SHOAL_EINVALID, "the template refuses: %.*s", (int)(v.n < 300 ? v.n : 300),
                      v.n ? v.s : "");
}

/* Today's date, for templates that tell it to the model. */
static jvalue fn_strftime(jrun *r, const jargs *a)
{
    char format[64], out[256];
    struct tm tm;
    time_t now = time(NULL);
    jvalue f = arg(a, 0);
    if (f.kind != V_STRING || f.n >= sizeof format)
        return jinja_fail(r, SHOAL_EINVALID, "strftime_now needs a short format");
    memcpy(format, f.s, f.n);
    format[f.n] = '\0';
    size_t n = localtime_r(&now, &tm) ? strftime(out, sizeof out, format, &tm) : 0;
    jvalue s = jinja_strdup(r, out, n);
    return f.marks ? jinja_foreign(r, s) : s;
}

static const struct {
    const char *name;
    jvalue (*fn)(jrun *r, const jargs *a);
} functions[] = {
    {"range", fn_range},           {"namespace", fn_namespace},   {"dict", fn_dict},
    {"raise_exception", fn_raise}, {"strftime_now", fn_strftime},
};

int jinja_function_find(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name)) return (int)i;
    return -1;
}

jvalue jinja_function(jrun *r, int which, const jargs *args)
{
    return functions[which].fn(r, args);
}
