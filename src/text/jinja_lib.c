/* jinja_lib.c: the filters and tests of templates, in two tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja.h"

static jvalue arg(const jargs *a, size_t i)
{
    return i < a->n ? a->at[i] : (jvalue){.kind = V_UNDEFINED};
}

/* The argument by its keyword, else by its place. */
static jvalue arg_named(const jargs *a, const char *name, size_t i)
{
    for (size_t k = 0; k < a->n; k++)
        if (a->keyword[k] && !strcmp(a->keyword[k], name)) return a->at[k];
    return i < a->n && !a->keyword[i] ? a->at[i] : (jvalue){.kind = V_UNDEFINED};
}

static jvalue as_method(jrun *r, jvalue v, const char *name, const jargs *a)
{
    jvalue s = jinja_text(r, v);
    return r->rc ? s : jinja_method(r, s, name, a);
}

static jvalue f_trim(jrun *r, jvalue v, const jargs *a)
{
    return as_method(r, v, "strip", a);
}
static jvalue f_upper(jrun *r, jvalue v, const jargs *a)
{
    return as_method(r, v, "upper", a);
}
static jvalue f_lower(jrun *r, jvalue v, const jargs *a)
{
    return as_method(r, v, "lower", a);
}
static jvalue f_title(jrun *r, jvalue v, const jargs *a)
{
    return as_method(r, v, "title", a);
}
static jvalue f_capitalize(jrun *r, jvalue v, const jargs *a)
{
    return as_method(r, v, "capitalize", a);
}
static jvalue f_replace(jrun *r, jvalue v, const jargs *a)
{
    return as_method(r, v, "replace", a);
}
static jvalue f_string(jrun *r, jvalue v, const jargs *a)
{
    return jinja_text(r, v);
}
static jvalue f_same(jrun *r, jvalue v, const jargs *a)
{
    return v;
}

static jvalue f_length(jrun *r, jvalue v, const jargs *a)
{
    if (v.kind == V_STRING) return jinja_int((int64_t)utf8_count(v.s, v.n));
    if (v.kind == V_LIST) return jinja_int((int64_t)v.list->n);
    if (v.kind == V_DICT) return jinja_int((int64_t)v.dict->n);
    if (v.kind == V_UNDEFINED) return jinja_int(0);
    return jinja_fail(r, SHOAL_EINVALID, "%s has no length", jinja_kind_name(v));
}

static jvalue f_default(jrun *r, jvalue v, const jargs *a)
{
    bool falsy_too = jinja_truth(arg_named(a, "boolean", 1));
    bool absent = v.kind == V_UNDEFINED || (falsy_too && !jinja_truth(v));
    jvalue d = arg_named(a, "default_value", 0);
    return !absent ? v : d.kind == V_UNDEFINED ? jinja_str("", 0) : d;
}

static jvalue attribute_of(jrun *r, jvalue v, jvalue name)
{
    return jinja_item(r, v, name);
}

static jvalue f_join(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v), by = arg_named(a, "d", 0), attr = arg_named(a, "attribute", 1);
    jtext out = {0};
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        if (i && by.kind != V_UNDEFINED) jinja_print(r, &out, by);
        jinja_print(r, &out,
                    attr.kind == V_STRING ? attribute_of(r, items.list->at[i], attr) : items.list->at[i]);
        if (out.bytes.len > JINJA_MAX_OUTPUT) jinja_fail(r, SHOAL_ELIMIT, "a joined text is too long");
    }
    return jinja_text_take(r, &out);
}

static jvalue f_first(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v);
    return r->rc || !items.list->n ? (jvalue){.kind = V_UNDEFINED} : items.list->at[0];
}

static jvalue f_last(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v);
    return r->rc || !items.list->n ? (jvalue){.kind = V_UNDEFINED} : items.list->at[items.list->n - 1];
}

/* A new list, so that appending to it leaves the old one alone. */
static jvalue f_list(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v), out = jinja_list(r);
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) jinja_push(r, out, items.list->at[i]);
    return out;
}

static double to_number(jvalue v, bool *ok)
{
    char s[64];
    char *end = s;
    *ok = v.kind == V_INT || v.kind == V_FLOAT || v.kind == V_BOOL;
    if (*ok) return v.kind == V_INT ? (double)v.i : v.kind == V_FLOAT ? v.f : v.b;
    if (v.kind != V_STRING || v.n == 0 || v.n >= sizeof s) return 0;
    memcpy(s, v.s, v.n);
    s[v.n] = '\0';
    double f = strtod(s, &end);
    *ok = *end == '\0' && isfinite(f);
    return *ok ? f : 0;
}

static jvalue f_int(jrun *r, jvalue v, const jargs *a)
{
    bool ok;
    double f = to_number(v, &ok);
    if (v.kind == V_INT) return v;
    if (ok && fabs(f) < 9e18) return jinja_int((int64_t)f);
    return arg(a, 0).kind == V_UNDEFINED ? jinja_int(0) : arg(a, 0);
}

static jvalue f_float(jrun *r, jvalue v, const jargs *a)
{
    bool ok;
    double f = to_number(v, &ok);
    return ok || arg(a, 0).kind == V_UNDEFINED ? jinja_float(f) : arg(a, 0);
}

static jvalue f_abs(jrun *r, jvalue v, const jargs *a)
{
    if (v.kind == V_FLOAT) return jinja_float(fabs(v.f));
    if (v.kind == V_INT && v.i != INT64_MIN) return jinja_int(v.i < 0 ? -v.i : v.i);
    return jinja_fail(r, SHOAL_EINVALID, "abs needs a number");
}

static jvalue f_round(jrun *r, jvalue v, const jargs *a)
{
    bool ok;
    double f = to_number(v, &ok);
    jvalue digits = arg_named(a, "precision", 0), how = arg_named(a, "method", 1);
    if (!ok) return jinja_fail(r, SHOAL_EINVALID, "round needs a number");
    double scale = pow(10, digits.kind == V_INT && digits.i > -300 && digits.i < 300 ? (double)digits.i : 0);
    double x = f * scale;
    if (how.kind == V_STRING && how.n == 4 && !memcmp(how.s, "ceil", 4))
        x = ceil(x);
    else if (how.kind == V_STRING && how.n == 5 && !memcmp(how.s, "floor", 5))
        x = floor(x);
    else
        x = nearbyint(x);
    return jinja_float(x / scale);
}

static jvalue f_tojson(jrun *r, jvalue v, const jargs *a)
{
    jvalue indent = arg_named(a, "indent", 0);
    int n = indent.kind == V_INT && indent.i >= 0 && indent.i <= 16 ? (int)indent.i : -1;
    jtext out = {0};
    jinja_print_json(r, &out, v, n, 0);
    return jinja_text_take(r, &out);
}

static jvalue f_escape(jrun *r, jvalue v, const jargs *a)
{
    jvalue s = jinja_text(r, v);
    jtext out = {0};
    for (size_t i = 0; r->rc == 0 && i < s.n; i++) {
        char c = s.s[i];
        const char *by = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&#34;"
                         : c == '\'' ? "&#39;"
                                     : NULL;
        jinja_text_put_for(&out, by ? by : &c, by ? strlen(by) : 1, s, i);
    }
    return jinja_text_take(r, &out);
}

static jvalue f_indent(jrun *r, jvalue v, const jargs *a)
{
    jvalue s = jinja_text(r, v), width = arg_named(a, "width", 0);
    bool first = jinja_truth(arg_named(a, "first", 1)), blank = jinja_truth(arg_named(a, "blank", 2));
    int n = width.kind == V_INT && width.i >= 0 && width.i <= 100 ? (int)width.i : 4;
    jtext out = {0};
    for (size_t i = 0; r->rc == 0 && i < s.n; i++) {
        bool starts_line = i == 0 ? first : s.s[i - 1] == '\n';
        for (int k = 0; k < n && starts_line && (blank || s.s[i] != '\n'); k++) jinja_text_puts(&out, " ");
        jinja_text_add(&out, jinja_part(s, i, 1));
    }
    return jinja_text_take(r, &out);
}

static jvalue f_items(jrun *r, jvalue v, const jargs *a)
{
    if (v.kind == V_UNDEFINED) return jinja_list(r);
    if (v.kind != V_DICT)
        return jinja_fail(r, SHOAL_EINVALID, "items needs a dict, not %s", jinja_kind_name(v));
    return jinja_method(r, v, "items", a);
}

static jvalue f_reverse(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v), out = jinja_list(r);
    for (size_t i = r->rc ? 0 : items.list->n; i-- > 0 && r->rc == 0;) jinja_push(r, out, items.list->at[i]);
    if (v.kind != V_STRING || r->rc) return out;
    return f_join(r, out, &(jargs){.n = 0});
}

static jvalue f_unique(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v), seen = jinja_dict(r, V_DICT), out = jinja_list(r);
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        if ((r->steps += 1 + (unsigned)(seen.dict->n / 16)) > JINJA_MAX_STEPS)
            return jinja_fail(r, SHOAL_ELIMIT, "the template runs for too long");
        if (jinja_get(r, seen.dict, items.list->at[i])) continue;
        jinja_put(r, seen.dict, items.list->at[i], jinja_bool(true));
        jinja_push(r, out, items.list->at[i]);
    }
    return out;
}

/* Merge sort: stable, as Python's, and calm on any input. */
static void sort(jrun *r, jvalue *at, jvalue *keys, jvalue *tmp, jvalue *tmp_keys, size_t n, bool down)
{
    if (n < 2 || r->rc) return;
    size_t half = n / 2, i = 0, j = half, k = 0;
    sort(r, at, keys, tmp, tmp_keys, half, down);
    sort(r, at + half, keys + half, tmp, tmp_keys, n - half, down);
    while (k < n) {
        bool right =
            i == half ||
            (j < n && (down ? jinja_order(r, keys[j], keys[i]) > 0 : jinja_order(r, keys[j], keys[i]) < 0));
        tmp[k] = at[right ? j : i];
        tmp_keys[k++] = keys[right ? j++ : i++];
    }
    memcpy(at, tmp, n * sizeof *at);
    memcpy(keys, tmp_keys, n * sizeof *keys);
}

static jvalue f_sort(jrun *r, jvalue v, const jargs *a)
{
    jvalue out = f_list(r, v, a), attr = arg_named(a, "attribute", 2);
    size_t n = r->rc ? 0 : out.list->n;
    jvalue *keys = jinja_alloc(r, (n + 1) * sizeof *keys), *tmp = jinja_alloc(r, (n + 1) * 2 * sizeof *tmp);
    if (!keys || !tmp) return out;
    bool exact = jinja_truth(arg_named(a, "case_sensitive", 1));
    for (size_t i = 0; i < n && r->rc == 0; i++) {
        keys[i] = attr.kind == V_STRING ? attribute_of(r, out.list->at[i], attr) : out.list->at[i];
        if (keys[i].kind == V_STRING && !exact) keys[i] = jinja_method(r, keys[i], "lower", &(jargs){.n = 0});
    }
    sort(r, out.list->at, keys, tmp, tmp + n, n, jinja_truth(arg_named(a, "reverse", 0)));
    return out;
}

static jvalue f_map(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v), attr = arg_named(a, "attribute", 99), out = jinja_list(r);
    jvalue def = arg_named(a, "default", 99), name = arg(a, 0);
    jargs rest = {.n = a->n ? a->n - 1 : 0};
    for (size_t i = 0; i < rest.n; i++) {
        rest.at[i] = a->at[i + 1];
        rest.keyword[i] = a->keyword[i + 1];
    }
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        jvalue x = items.list->at[i];
        if (attr.kind != V_UNDEFINED) {
            x = attribute_of(r, x, attr);
            if (x.kind == V_UNDEFINED) x = def;
        } else if (name.kind == V_STRING) {
            jvalue z = jinja_strdup(r, name.s, name.n);
            if (r->rc == 0) x = jinja_filter(r, z.s, x, &rest);
        } else {
            return jinja_fail(r, SHOAL_EINVALID, "map needs a filter or attribute=");
        }
        jinja_push(r, out, x);
    }
    return out;
}

/* select, reject, selectattr, rejectattr: the first argument names the attribute where there is one,
 * the next the test, the rest are the test's. */
static jvalue choose(jrun *r, jvalue v, const jargs *a, bool attr, bool keep)
{
    jvalue items = jinja_items(r, v), out = jinja_list(r), name = arg(a, attr);
    size_t skip = (size_t)attr + 1;
    jargs rest = {.n = a->n > skip ? a->n - skip : 0};
    for (size_t i = 0; i < rest.n; i++) rest.at[i] = a->at[i + skip];
    jvalue test = name.kind == V_STRING ? jinja_strdup(r, name.s, name.n) : name;
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        jvalue x = items.list->at[i], of = attr ? attribute_of(r, x, arg(a, 0)) : x;
        bool yes = test.kind == V_STRING ? jinja_test(r, test.s, of, &rest) : jinja_truth(of);
        if (yes == keep) jinja_push(r, out, x);
    }
    return out;
}

static jvalue f_select(jrun *r, jvalue v, const jargs *a)
{
    return choose(r, v, a, false, true);
}
static jvalue f_reject(jrun *r, jvalue v, const jargs *a)
{
    return choose(r, v, a, false, false);
}
static jvalue f_selectattr(jrun *r, jvalue v, const jargs *a)
{
    return choose(r, v, a, true, true);
}
static jvalue f_rejectattr(jrun *r, jvalue v, const jargs *a)
{
    return choose(r, v, a, true, false);
}

jvalue jinja_filter(jrun *r, const char *name, jvalue v, const jargs *args)
{
    static const struct {
        const char *name;
        jvalue (*fn)(jrun *r, jvalue v, const jargs *a);
    } filters[] = {
        {"trim", f_trim},
        {"upper", f_upper},
        {"lower", f_lower},
        {"title", f_title},
        {"capitalize", f_capitalize},
        {"replace", f_replace},
        {"string", f_string},
        {"safe", f_same},
        {"length", f_length},
        {"count", f_length},
        {"default", f_default},
        {"d", f_default},
        {"join", f_join},
        {"first", f_first},
        {"last", f_last},
        {"list", f_list},
        {"int", f_int},
        {"float", f_float},
        {"abs", f_abs},
        {"round", f_round},
        {"tojson", f_tojson},
        {"escape", f_escape},
        {"e", f_escape},
        {"indent", f_indent},
        {"items", f_items},
        {"reverse", f_reverse},
        {"unique", f_unique},
        {"sort", f_sort},
        {"map", f_map},
        {"select", f_select},
        {"reject", f_reject},
        {"selectattr", f_selectattr},
        {"rejectattr", f_rejectattr},
    };
    if (r->rc) return v;
    jinja_charge(r, v);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (!strcmp(name, filters[i].name)) return r->rc ? v : filters[i].fn(r, v, args);
    return jinja_fail(r, SHOAL_EUNSUPPORTED, "filter \"%.40s\" is not supported", name);
}

/* ---- tests ---- */

static bool t_true(jrun *r, jvalue v, const jargs *a)
{
    return v.kind == V_BOOL && v.b;
}
static bool t_false(jrun *r, jvalue v, const jargs *a)
{
    return v.kind == V_BOOL && !v.b;
}
static bool t_equal(jrun *r, jvalue v, const jargs *a)
{
    return jinja_equal(r, v, arg(a, 0));
}
static bool t_unequal(jrun *r, jvalue v, const jargs *a)
{
    return !jinja_equal(r, v, arg(a, 0));
}
static bool t_greater(jrun *r, jvalue v, const jargs *a)
{
    return jinja_order(r, v, arg(a, 0)) > 0;
}
static bool t_less(jrun *r, jvalue v, const jargs *a)
{
    return jinja_order(r, v, arg(a, 0)) < 0;
}
static bool is_multiple(jrun *r, jvalue v, int64_t of, int64_t rest)
{
    if (v.kind == V_INT && of != 0 && of != -1) return llabs(v.i % of) == rest;
    if (v.kind == V_INT && of == -1) return rest == 0;
    jinja_fail(r, SHOAL_EINVALID, "this test needs integers");
    return false;
}

static bool t_odd(jrun *r, jvalue v, const jargs *a)
{
    return is_multiple(r, v, 2, 1);
}
static bool t_even(jrun *r, jvalue v, const jargs *a)
{
    return is_multiple(r, v, 2, 0);
}
static bool t_divisible(jrun *r, jvalue v, const jargs *a)
{
    return is_multiple(r, v, arg(a, 0).kind == V_INT ? arg(a, 0).i : 0, 0);
}

static bool t_in(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, arg(a, 0));
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++)
        if (jinja_equal(r, items.list->at[i], v)) return true;
    return false;
}

#define KIND(k)  (1u << (k))
#define ITERABLE (KIND(V_LIST) | KIND(V_DICT) | KIND(V_STRING) | KIND(V_UNDEFINED))

static const struct {
    const char *name;
    unsigned kinds; /* the value is of one of these, when fn is NULL */
    bool (*fn)(jrun *r, jvalue v, const jargs *a);
} TESTS[] = {
    {"defined", ~KIND(V_UNDEFINED), NULL},
    {"undefined", KIND(V_UNDEFINED), NULL},
    {"none", KIND(V_NONE), NULL},
    {"string", KIND(V_STRING), NULL},
    {"mapping", KIND(V_DICT), NULL},
    {"iterable", ITERABLE, NULL},
    {"sequence", ITERABLE, NULL},
    {"number", KIND(V_INT) | KIND(V_FLOAT) | KIND(V_BOOL), NULL},
    {"boolean", KIND(V_BOOL), NULL},
    {"integer", KIND(V_INT), NULL},
    {"float", KIND(V_FLOAT), NULL},
    {"true", 0, t_true},
    {"false", 0, t_false},
    {"odd", 0, t_odd},
    {"even", 0, t_even},
    {"divisibleby", 0, t_divisible},
    {"equalto", 0, t_equal},
    {"eq", 0, t_equal},
    {"==", 0, t_equal},
    {"ne", 0, t_unequal},
    {"!=", 0, t_unequal},
    {"greaterthan", 0, t_greater},
    {"gt", 0, t_greater},
    {">", 0, t_greater},
    {"lessthan", 0, t_less},
    {"lt", 0, t_less},
    {"<", 0, t_less},
    {"in", 0, t_in},
    {"callable", KIND(V_MACRO) | KIND(V_FUNCTION) | KIND(V_METHOD), NULL},
};

bool jinja_test(jrun *r, const char *name, jvalue v, const jargs *args)
{
    if (r->rc) return false;
    jinja_charge(r, v);
    for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++) {
        if (strcmp(name, TESTS[i].name) != 0) continue;
        if (r->rc) return false;
        return TESTS[i].fn ? TESTS[i].fn(r, v, args) : (TESTS[i].kinds & KIND(v.kind)) != 0;
    }
    jinja_fail(r, SHOAL_EUNSUPPORTED, "test \"%.40s\" is not supported", name);
    return false;
}
