/* jinja_method.c: methods of strings, lists, dicts and loops, and attributes. */
#define _GNU_SOURCE
#include <ctype.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "jinja/jinja.h"

/* ---- strings ---- */

static bool in_set(char c, jvalue set)
{
    if (set.kind != V_STRING) return isspace((unsigned char)c);
    return set.n && memchr(set.s, c, set.n);
}

static jvalue strip(jvalue s, const jargs *a, bool left, bool right)
{
    size_t b = 0, e = s.n;
    while (left && b < e && in_set(s.s[b], jinja_arg(a, 0))) b++;
    while (right && b < e && in_set(s.s[e - 1], jinja_arg(a, 0))) e--;
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

static bool begins_with(jvalue s, jvalue x)
{
    return x.kind == V_STRING && x.n <= s.n && (!x.n || !memcmp(s.s, x.s, x.n));
}

static bool jinja_method_ends_with(jvalue s, jvalue x)
{
    return x.kind == V_STRING && x.n <= s.n && (!x.n || !memcmp(s.s + s.n - x.n, x.s, x.n));
}

/* x is a text, or several of which one will do. */
static bool any_affix(jvalue s, jvalue x, bool (*has)(jvalue s, jvalue x))
{
    if (x.kind != V_LIST) return has(s, x);
    for (size_t i = 0; i < x.list->n; i++)
        if (has(s, x.list->at[i])) return true;
    return false;
}

static jvalue m_removeprefix(jrun *r, jvalue s, const jargs *a)
{
    jvalue x = jinja_arg(a, 0);
    return begins_with(s, x) ? jinja_part(s, x.n, s.n - x.n) : s;
}

static jvalue m_removesuffix(jrun *r, jvalue s, const jargs *a)
{
    jvalue x = jinja_arg(a, 0);
    return jinja_method_ends_with(s, x) ? jinja_part(s, 0, s.n - x.n) : s;
}

static jvalue m_startswith(jrun *r, jvalue s, const jargs *a)
{
    return jinja_bool(any_affix(s, jinja_arg(a, 0), begins_with));
}

static jvalue m_endswith(jrun *r, jvalue s, const jargs *a)
{
    return jinja_bool(any_affix(s, jinja_arg(a, 0), jinja_method_ends_with));
}

/* The next place of x in s from byte `at`; s.n when there is none. x is not empty. */
static size_t jinja_method_find(jvalue s, jvalue x, size_t at)
{
    const char *p = at < s.n ? memmem(s.s + at, s.n - at, x.s, x.n) : NULL;
    return p ? (size_t)(p - s.s) : s.n;
}

static jvalue m_find(jrun *r, jvalue s, const jargs *a)
{
    jvalue x = jinja_arg(a, 0);
    if (x.kind != V_STRING) return jinja_fail(r, SHOAL_EINVALID, "find needs a string");
    size_t at = x.n ? jinja_method_find(s, x, 0) : 0;
    return jinja_int(at < s.n || x.n == 0 ? (int64_t)utf8_count(s.s, at) : -1);
}

/* The last place of x in s, whole before byte `end`; SIZE_MAX when there is none. x is not empty. */
static size_t find_last(jvalue s, jvalue x, size_t end)
{
    for (size_t at = end; at-- > 0;)
        if (end - at >= x.n && !memcmp(s.s + at, x.s, x.n)) return at;
    return SIZE_MAX;
}

static jvalue m_rfind(jrun *r, jvalue s, const jargs *a)
{
    jvalue x = jinja_arg(a, 0);
    if (x.kind != V_STRING) return jinja_fail(r, SHOAL_EINVALID, "rfind needs a string");
    size_t at = x.n ? find_last(s, x, s.n) : s.n;
    return jinja_int(at == SIZE_MAX ? -1 : (int64_t)utf8_count(s.s, at));
}

static jvalue m_index(jrun *r, jvalue s, const jargs *a)
{
    jvalue at = m_find(r, s, a);
    return r->rc == 0 && at.i < 0 ? jinja_fail(r, SHOAL_EINVALID, "index: the text is not there") : at;
}

static jvalue m_count(jrun *r, jvalue s, const jargs *a)
{
    jvalue x = jinja_arg(a, 0);
    int64_t n = 0;
    if (x.kind != V_STRING || x.n == 0) return jinja_fail(r, SHOAL_EINVALID, "count needs a text");
    for (size_t at = 0; (at = jinja_method_find(s, x, at)) < s.n; at += x.n) n++;
    return jinja_int(n);
}

static jvalue triple(jrun *r, jvalue x, jvalue y, jvalue z)
{
    jvalue out = jinja_list(r);
    jinja_push(r, out, x);
    jinja_push(r, out, y);
    jinja_push(r, out, z);
    return out;
}

static jvalue m_partition(jrun *r, jvalue s, const jargs *a)
{
    jvalue by = jinja_arg(a, 0), empty = jinja_str("", 0);
    if (by.kind != V_STRING || !by.n) return jinja_fail(r, SHOAL_EINVALID, "partition needs a separator");
    size_t at = jinja_method_find(s, by, 0);
    if (at == s.n) return triple(r, s, empty, empty);
    return triple(r, jinja_part(s, 0, at), by, jinja_part(s, at + by.n, s.n - at - by.n));
}

static jvalue m_rpartition(jrun *r, jvalue s, const jargs *a)
{
    jvalue by = jinja_arg(a, 0), empty = jinja_str("", 0);
    if (by.kind != V_STRING || !by.n) return jinja_fail(r, SHOAL_EINVALID, "rpartition needs a separator");
    size_t at = find_last(s, by, s.n);
    if (at == SIZE_MAX) return triple(r, empty, empty, s);
    return triple(r, jinja_part(s, 0, at), by, jinja_part(s, at + by.n, s.n - at - by.n));
}

static jvalue m_split(jrun *r, jvalue s, const jargs *a)
{
    jvalue by = jinja_arg(a, 0), limit = jinja_arg(a, 1), out = jinja_list(r);
    size_t at = 0, left = limit.kind == V_INT && limit.i >= 0 ? (size_t)limit.i : SIZE_MAX;
    if (by.kind == V_STRING && by.n == 0)
        return jinja_fail(r, SHOAL_EINVALID, "split needs a separator that is not empty");
    if (by.kind == V_STRING) {
        for (; left > 0 && r->rc == 0; left--) {
            size_t hit = jinja_method_find(s, by, at);
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

/* From the end: only with a separator, as templates use it. */
static jvalue m_rsplit(jrun *r, jvalue s, const jargs *a)
{
    jvalue by = jinja_arg(a, 0), limit = jinja_arg(a, 1), out = jinja_list(r);
    if (by.kind != V_STRING || !by.n) return jinja_fail(r, SHOAL_EINVALID, "rsplit needs a separator");
    size_t end = s.n, left = limit.kind == V_INT && limit.i >= 0 ? (size_t)limit.i : SIZE_MAX;
    for (; left > 0 && r->rc == 0; left--) {
        size_t at = find_last(s, by, end);
        if (at == SIZE_MAX) break;
        jinja_push(r, out, jinja_part(s, at + by.n, end - at - by.n));
        end = at;
    }
    jinja_push(r, out, jinja_part(s, 0, end));
    return jinja_filter(r, "reverse", out, &(jargs){.n = 0});
}

static jvalue m_splitlines(jrun *r, jvalue s, const jargs *a)
{
    jvalue out = jinja_list(r), newline = jinja_str("\n", 1);
    for (size_t at = 0; r->rc == 0 && at < s.n;) {
        size_t hit = jinja_method_find(s, newline, at);
        jinja_push(r, out, jinja_part(s, at, hit - at));
        at = hit + 1;
    }
    return out;
}

static jvalue m_replace(jrun *r, jvalue s, const jargs *a)
{
    jvalue from = jinja_arg(a, 0), to = jinja_arg(a, 1), limit = jinja_arg(a, 2);
    if (from.kind != V_STRING || to.kind != V_STRING)
        return jinja_fail(r, SHOAL_EINVALID, "replace needs two strings");
    if (from.n == 0) return s;
    size_t at = 0, left = limit.kind == V_INT && limit.i >= 0 ? (size_t)limit.i : SIZE_MAX;
    jtext out = {0};
    for (; left > 0 && out.bytes.len <= JINJA_MAX_MEMORY; left--) {
        size_t hit = jinja_method_find(s, from, at);
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
    return jinja_filter(r, "join", jinja_arg(a, 0), &by);
}

/* Are all characters of s of the class, and is there one? */
static jvalue all_are(jvalue s, int (*is)(int c))
{
    for (size_t i = 0; i < s.n; i++)
        if (!is((unsigned char)s.s[i])) return jinja_bool(false);
    return jinja_bool(s.n > 0);
}

static jvalue m_isdigit(jrun *r, jvalue s, const jargs *a)
{
    return all_are(s, isdigit);
}
static jvalue m_isalpha(jrun *r, jvalue s, const jargs *a)
{
    return all_are(s, isalpha);
}
static jvalue m_isalnum(jrun *r, jvalue s, const jargs *a)
{
    return all_are(s, isalnum);
}
static jvalue m_isspace(jrun *r, jvalue s, const jargs *a)
{
    return all_are(s, isspace);
}

static jvalue m_isupper(jrun *r, jvalue s, const jargs *a)
{
    return jinja_bool(jinja_test(r, "upper", s, a) && !jinja_test(r, "lower", s, a));
}
static jvalue m_islower(jrun *r, jvalue s, const jargs *a)
{
    return jinja_bool(jinja_test(r, "lower", s, a) && !jinja_test(r, "upper", s, a));
}

/* s within `width` characters of `fill`, so many of the missing ones before it as `share` says of two. */
static jvalue pad(jrun *r, jvalue s, const jargs *a, int share, const char *fill)
{
    jvalue width = jinja_arg(a, 0), with = jinja_arg(a, 1);
    size_t have = utf8_count(s.s, s.n);
    if (width.kind != V_INT || width.i > 10000)
        return jinja_fail(r, SHOAL_EINVALID, "a width is a number up to 10000");
    size_t lack = width.i > (int64_t)have ? (size_t)width.i - have : 0, before = lack * (size_t)share / 2;
    if (with.kind != V_STRING) with = jinja_str(fill, strlen(fill));
    jtext out = {0};
    for (size_t i = 0; i < before; i++) jinja_text_add(&out, with);
    jinja_text_add(&out, s);
    for (size_t i = before; i < lack; i++) jinja_text_add(&out, with);
    return jinja_text_take(r, &out);
}

static jvalue m_center(jrun *r, jvalue s, const jargs *a)
{
    return pad(r, s, a, 1, " ");
}
static jvalue m_ljust(jrun *r, jvalue s, const jargs *a)
{
    return pad(r, s, a, 0, " ");
}
static jvalue m_rjust(jrun *r, jvalue s, const jargs *a)
{
    return pad(r, s, a, 2, " ");
}
static jvalue m_zfill(jrun *r, jvalue s, const jargs *a)
{
    return pad(r, s, a, 2, "0");
}

/* ---- dicts, lists and loops ---- */

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
    const jvalue *v = jinja_get(r, d.dict, jinja_arg(a, 0));
    return v ? *v : a->n > 1 ? a->at[1] : (jvalue){.kind = V_NONE};
}

static jvalue m_update(jrun *r, jvalue d, const jargs *a)
{
    jvalue from = jinja_arg(a, 0);
    for (size_t i = 0; from.kind == V_DICT && from.dict != d.dict && r->rc == 0 && i < from.dict->n; i++)
        jinja_put(r, d.dict, from.dict->keys[i], from.dict->values[i]);
    return (jvalue){.kind = V_NONE};
}

static jvalue m_append(jrun *r, jvalue l, const jargs *a)
{
    jinja_push(r, l, jinja_arg(a, 0));
    return (jvalue){.kind = V_NONE};
}

static jvalue m_extend(jrun *r, jvalue l, const jargs *a)
{
    jvalue from = jinja_items(r, jinja_arg(a, 0));
    size_t n = r->rc ? 0 : from.list->n; /* it may be the same list */
    for (size_t i = 0; r->rc == 0 && i < n; i++) jinja_push(r, l, from.list->at[i]);
    return (jvalue){.kind = V_NONE};
}

static jvalue m_pop(jrun *r, jvalue l, const jargs *a)
{
    jvalue where = jinja_arg(a, 0);
    int64_t n = (int64_t)l.list->n, i = where.kind == V_INT ? where.i : -1;
    if (i < 0) i += n;
    if (i < 0 || i >= n) return jinja_fail(r, SHOAL_EINVALID, "pop: the list has %lld items", (long long)n);
    jvalue v = l.list->at[i];
    memmove(l.list->at + i, l.list->at + i + 1, (size_t)(n - i - 1) * sizeof v);
    l.list->n--;
    return v;
}

/* loop.cycle('a', 'b'): one after the other, round after round. */
static jvalue m_cycle(jrun *r, jvalue loop, const jargs *a)
{
    jvalue i = jinja_attr(r, loop, "index0");
    if (a->n == 0 || i.kind != V_INT) return jinja_fail(r, SHOAL_EINVALID, "cycle needs values");
    return a->at[(size_t)i.i % a->n];
}

/* Was it called with something else before, or never? What it was called with is kept with the loop. */
static jvalue m_changed(jrun *r, jvalue loop, const jargs *a)
{
    jvalue key = jinja_str("(last)", 6), now = jinja_list(r);
    const jvalue *last = jinja_get(r, loop.dict, key);
    for (size_t i = 0; r->rc == 0 && i < a->n; i++) jinja_push(r, now, a->at[i]);
    bool same = r->rc == 0 && last && jinja_equal(r, *last, now);
    jinja_put(r, loop.dict, key, now);
    return jinja_bool(!same);
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
    {V_STRING, "removeprefix", m_removeprefix},
    {V_STRING, "removesuffix", m_removesuffix},
    {V_STRING, "rfind", m_rfind},
    {V_STRING, "index", m_index},
    {V_STRING, "count", m_count},
    {V_STRING, "rsplit", m_rsplit},
    {V_STRING, "partition", m_partition},
    {V_STRING, "rpartition", m_rpartition},
    {V_STRING, "isdigit", m_isdigit},
    {V_STRING, "isalpha", m_isalpha},
    {V_STRING, "isalnum", m_isalnum},
    {V_STRING, "isspace", m_isspace},
    {V_STRING, "isupper", m_isupper},
    {V_STRING, "islower", m_islower},
    {V_STRING, "center", m_center},
    {V_STRING, "ljust", m_ljust},
    {V_STRING, "rjust", m_rjust},
    {V_STRING, "zfill", m_zfill},
    {V_STRING, "format", jinja_format},
    {V_DICT, "items", m_items},
    {V_DICT, "keys", m_keys},
    {V_DICT, "values", m_values},
    {V_DICT, "get", m_get},
    {V_DICT, "update", m_update},
    {V_LIST, "append", m_append},
    {V_LIST, "extend", m_extend},
    {V_LIST, "pop", m_pop},
    {V_LOOP, "cycle", m_cycle},
    {V_LOOP, "changed", m_changed},
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

static bool has_names(jvalue v)
{
    return v.kind == V_DICT || v.kind == V_NAMESPACE || v.kind == V_LOOP;
}

jvalue jinja_attr(jrun *r, jvalue v, const char *name)
{
    if (v.kind == V_UNDEFINED) return jinja_fail(r, SHOAL_EINVALID, "\"%.40s\" of something undefined", name);
    if (v.kind == V_LIST && v.list->n == 2 && !strcmp(name, "grouper")) return v.list->at[0]; /* of groupby */
    if (v.kind == V_LIST && v.list->n == 2 && !strcmp(name, "list")) return v.list->at[1];
    if (!has_names(v)) return (jvalue){.kind = V_UNDEFINED};
    const jvalue *x = jinja_get(r, v.dict, jinja_str(name, strlen(name)));
    return x ? *x : (jvalue){.kind = V_UNDEFINED};
}

jvalue jinja_item(jrun *r, jvalue v, jvalue key)
{
    const jvalue *x = NULL;
    if (v.kind == V_UNDEFINED) return jinja_fail(r, SHOAL_EINVALID, "an item of something undefined");
    if (has_names(v)) x = jinja_get(r, v.dict, key);
    if (x) return *x;
    if ((v.kind != V_LIST && v.kind != V_STRING) || key.kind != V_INT) return (jvalue){.kind = V_UNDEFINED};
    jvalue items = jinja_items(r, v);
    if (r->rc) return v;
    int64_t n = (int64_t)items.list->n, i = key.i < 0 ? key.i + n : key.i;
    return i >= 0 && i < n ? items.list->at[i] : (jvalue){.kind = V_UNDEFINED};
}

jvalue jinja_path(jrun *r, jvalue v, jvalue path)
{
    if (path.kind != V_STRING) return jinja_item(r, v, path);
    jvalue dot = jinja_str(".", 1);
    for (size_t at = 0; r->rc == 0 && at <= path.n && v.kind != V_UNDEFINED;) {
        size_t end = jinja_method_find(path, dot, at);
        jvalue key = jinja_part(path, at, end - at);
        bool index = key.n > 0 && key.n < 10 && all_are(key, isdigit).b;
        v = jinja_item(r, v, index ? jinja_filter(r, "int", key, &(jargs){.n = 0}) : key);
        at = end + 1;
    }
    return v;
}
