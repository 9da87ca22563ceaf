/* jinja_lib.c: the filters and tests of templates, in two tables; those of lists are jinja_list.c's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/jinja.h"

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
    bool falsy_too = jinja_truth(jinja_arg_named(a, "boolean", 1));
    bool absent = v.kind == V_UNDEFINED || (falsy_too && !jinja_truth(v));
    jvalue d = jinja_arg_named(a, "default_value", 0);
    return !absent ? v : d.kind == V_UNDEFINED ? jinja_str("", 0) : d;
}

static jvalue f_join(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v), by = jinja_arg_named(a, "d", 0),
           attr = jinja_arg_named(a, "attribute", 1);
    jtext out = {0};
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        if (i && by.kind != V_UNDEFINED) jinja_print(r, &out, by);
        jinja_print(r, &out,
                    attr.kind == V_STRING ? jinja_path(r, items.list->at[i], attr) : items.list->at[i]);
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
    return jinja_arg(a, 0).kind == V_UNDEFINED ? jinja_int(0) : jinja_arg(a, 0);
}

static jvalue f_float(jrun *r, jvalue v, const jargs *a)
{
    bool ok;
    double f = to_number(v, &ok);
    return ok || jinja_arg(a, 0).kind == V_UNDEFINED ? jinja_float(f) : jinja_arg(a, 0);
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
    jvalue digits = jinja_arg_named(a, "precision", 0), how = jinja_arg_named(a, "method", 1);
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
    jvalue indent = jinja_arg_named(a, "indent", 0), by = jinja_arg_named(a, "separators", 99);
    jjson how = {.indent = indent.kind == V_INT && indent.i >= 0 && indent.i <= 16 ? (int)indent.i : -1,
                 .ascii = jinja_truth(jinja_arg_named(a, "ensure_ascii", 99)),
                 .sort_keys = jinja_truth(jinja_arg_named(a, "sort_keys", 99))};
    if (by.kind == V_LIST && by.list->n == 2) {
        how.item = by.list->at[0];
        how.key = by.list->at[1];
    }
    jtext out = {0};
    jinja_print_json(r, &out, v, &how, 0);
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
    jvalue s = jinja_text(r, v), width = jinja_arg_named(a, "width", 0);
    bool first = jinja_truth(jinja_arg_named(a, "first", 1)),
         blank = jinja_truth(jinja_arg_named(a, "blank", 2));
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

static jvalue f_format(jrun *r, jvalue v, const jargs *a)
{
    return v.kind == V_STRING ? jinja_percent(r, v, a->at, a->n)
                              : jinja_fail(r, SHOAL_EINVALID, "format needs a string");
}

static jvalue f_attr(jrun *r, jvalue v, const jargs *a)
{
    return jinja_item(r, v, jinja_arg(a, 0));
}

static jvalue f_wordcount(jrun *r, jvalue v, const jargs *a)
{
    jvalue words = as_method(r, v, "split", &(jargs){.n = 0});
    return r->rc ? words : jinja_int((int64_t)words.list->n);
}

static jvalue f_center(jrun *r, jvalue v, const jargs *a)
{
    jargs width = {.n = 1, .at = {a->n ? a->at[0] : jinja_int(80)}};
    return as_method(r, v, "center", &width);
}

/* Jinja's: a text may be `leeway` longer than asked before anything is cut. */
static jvalue f_truncate(jrun *r, jvalue v, const jargs *a)
{
    jvalue s = jinja_text(r, v), length = jinja_arg_named(a, "length", 0), end = jinja_arg_named(a, "end", 2),
           leeway = jinja_arg_named(a, "leeway", 3), chars = r->rc ? s : jinja_items(r, s);
    if (r->rc) return s;
    if (end.kind != V_STRING) end = jinja_str("...", 3);
    size_t n = chars.list->n, most = length.kind == V_INT && length.i >= 0 ? (size_t)length.i : 255,
           slack = leeway.kind == V_INT && leeway.i >= 0 ? (size_t)leeway.i : 5,
           tail = utf8_count(end.s, end.n), bytes = 0;
    if (n <= most || n - most <= slack) return s;
    for (size_t i = 0; i + tail < most; i++) bytes += chars.list->at[i].n;
    if (!jinja_truth(jinja_arg_named(a, "killwords", 1))) {
        size_t word = bytes;
        while (word > 0 && s.s[word - 1] != ' ') word--;
        bytes = word > 0 ? word - 1 : bytes;
    }
    jtext out = {0};
    jinja_text_add(&out, jinja_part(s, 0, bytes));
    jinja_text_add(&out, end);
    return jinja_text_take(r, &out);
}

jvalue jinja_arg(const jargs *a, size_t i)
{
    return i < a->n ? a->at[i] : (jvalue){.kind = V_UNDEFINED};
}

jvalue jinja_arg_named(const jargs *a, const char *name, size_t i)
{
    for (size_t k = 0; k < a->n; k++)
        if (a->keyword[k] && !strcmp(a->keyword[k], name)) return a->at[k];
    return i < a->n && !a->keyword[i] ? a->at[i] : (jvalue){.kind = V_UNDEFINED};
}

jvalue jinja_filter(jrun *r, const char *name, jvalue v, const jargs *args)
{
    static const jfilter filters[] = {
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
        {"format", f_format},
        {"attr", f_attr},
        {"wordcount", f_wordcount},
        {"center", f_center},
        {"truncate", f_truncate},
        {"items", f_items},
        {"reverse", f_reverse},
    };
    if (r->rc) return v;
    jinja_charge(r, v);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (!strcmp(name, filters[i].name)) return r->rc ? v : filters[i].fn(r, v, args);
    for (const jfilter *f = jinja_list_filters; f->name; f++)
        if (!strcmp(name, f->name)) return r->rc ? v : f->fn(r, v, args);
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
    return jinja_equal(r, v, jinja_arg(a, 0));
}
static bool t_unequal(jrun *r, jvalue v, const jargs *a)
{
    return !jinja_equal(r, v, jinja_arg(a, 0));
}
static bool t_greater(jrun *r, jvalue v, const jargs *a)
{
    return jinja_order(r, v, jinja_arg(a, 0)) > 0;
}
static bool t_less(jrun *r, jvalue v, const jargs *a)
{
    return jinja_order(r, v, jinja_arg(a, 0)) < 0;
}
static bool t_not_less(jrun *r, jvalue v, const jargs *a)
{
    return jinja_order(r, v, jinja_arg(a, 0)) >= 0;
}
static bool t_not_greater(jrun *r, jvalue v, const jargs *a)
{
    return jinja_order(r, v, jinja_arg(a, 0)) <= 0;
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
    return is_multiple(r, v, jinja_arg(a, 0).kind == V_INT ? jinja_arg(a, 0).i : 0, 0);
}

static bool t_in(jrun *r, jvalue v, const jargs *a)
{
    return jinja_contains(r, jinja_arg(a, 0), v);
}

/* Python's "is": texts and numbers by value, since nobody can tell theirs apart. */
static bool t_same(jrun *r, jvalue v, const jargs *a)
{
    jvalue x = jinja_arg(a, 0);
    if (v.kind != x.kind) return false;
    if (v.kind == V_LIST) return v.list == x.list;
    if (v.kind == V_DICT || v.kind == V_NAMESPACE) return v.dict == x.dict;
    return jinja_equal(r, v, x);
}

static bool is_case(jrun *r, jvalue v, const char *method)
{
    jvalue s = jinja_text(r, v), same = jinja_method(r, s, method, &(jargs){.n = 0});
    return r->rc == 0 && s.n > 0 && jinja_equal(r, s, same);
}

static bool t_lower(jrun *r, jvalue v, const jargs *a)
{
    return is_case(r, v, "lower");
}
static bool t_upper(jrun *r, jvalue v, const jargs *a)
{
    return is_case(r, v, "upper");
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
    {"sameas", 0, t_same},
    {"lower", 0, t_lower},
    {"upper", 0, t_upper},
    {"ge", 0, t_not_less},
    {">=", 0, t_not_less},
    {"le", 0, t_not_greater},
    {"<=", 0, t_not_greater},
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
