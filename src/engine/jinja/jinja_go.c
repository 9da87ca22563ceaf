/* jinja_go.c: the functions of Go's text/template and of Ollama, for templates that were made of Ollama's. */
#include <string.h>

#include "jinja/jinja_go.h"

static jvalue fn_print(jrun *r, const jargs *a)
{
    jtext out = {0};
    if (jinja_arg(a, 0).kind == V_STRING) return a->at[0];
    go_print(r, &out, jinja_arg(a, 0), false);
    return go_take(r, &out);
}

/* fmt.Sprint: blanks stand where neither neighbour is a text. */
static jvalue fn_sprint(jrun *r, const jargs *a)
{
    jtext out = {0};
    for (size_t i = 0; r->rc == 0 && i < a->n; i++) {
        if (i > 0 && a->at[i].kind != V_STRING && a->at[i - 1].kind != V_STRING) jinja_text_puts(&out, " ");
        go_print(r, &out, a->at[i], true);
    }
    return go_take(r, &out);
}

static jvalue fn_sprintln(jrun *r, const jargs *a)
{
    jtext out = {0};
    for (size_t i = 0; r->rc == 0 && i < a->n; i++) {
        if (i > 0) jinja_text_puts(&out, " ");
        go_print(r, &out, a->at[i], true);
    }
    jinja_text_puts(&out, "\n");
    return go_take(r, &out);
}

static jvalue fn_json(jrun *r, const jargs *a)
{
    jtext out = {0};
    go_print_json(r, &out, jinja_arg(a, 0));
    return go_take(r, &out);
}

/* ---- lists, maps and texts ---------------------------------------------------------------------- */

/* A text has bytes. */
static bool count(jvalue v, size_t *ret)
{
    switch (v.kind) {
    case V_STRING: *ret = v.n; return true;
    case V_LIST: *ret = v.list->n; return true;
    case V_DICT: *ret = v.dict->n; return true;
    default: return false;
    }
}

static jvalue fn_len(jrun *r, const jargs *a)
{
    size_t n;
    if (count(jinja_arg(a, 0), &n)) return jinja_int((int64_t)n);
    return jinja_fail(r, SHOAL_EINVALID, "%s has no length", jinja_kind_name(jinja_arg(a, 0)));
}

/* A map may lack it, a struct may not. */
static jvalue field_of(jrun *r, jvalue v, jvalue name)
{
    size_t n;
    const jvalue *x = v.kind == V_DICT ? jinja_get(r, v.dict, name) : NULL;
    bool may_lack =
        v.kind == V_DICT ? !go_fields((go_type)v.i, &n) : v.kind == V_UNDEFINED || v.kind == V_NONE;
    if (x) return *x;
    if (!may_lack)
        jinja_fail(r, SHOAL_EINVALID, "%s has no field \".%.*s\"",
                   v.kind == V_DICT ? "this" : jinja_kind_name(v), (int)(name.n < 40 ? name.n : 40), name.s);
    return (jvalue){.kind = V_UNDEFINED};
}

/* (v, name, ...): .name of v, and of what that is the next. */
static jvalue fn_field(jrun *r, const jargs *a)
{
    jvalue v = jinja_arg(a, 0);
    for (size_t i = 1; r->rc == 0 && i < a->n; i++)
        if (a->at[i].kind == V_STRING) v = field_of(r, v, a->at[i]);
    return v;
}

static jvalue index_one(jrun *r, jvalue v, jvalue key)
{
    size_t n;
    if (v.kind == V_DICT) {
        const jvalue *x = jinja_get(r, v.dict, key);
        return x ? *x : (jvalue){.kind = V_UNDEFINED};
    }
    if (!count(v, &n)) return jinja_fail(r, SHOAL_EINVALID, "%s has no index", jinja_kind_name(v));
    if (key.kind != V_INT || key.i < 0 || (uint64_t)key.i >= n)
        return jinja_fail(r, SHOAL_EINVALID, "an index is not within 0 to %zu", n);
    return v.kind == V_LIST ? v.list->at[key.i] : jinja_int((uint8_t)v.s[key.i]);
}

static jvalue fn_index(jrun *r, const jargs *a)
{
    jvalue v = jinja_arg(a, 0);
    for (size_t i = 1; r->rc == 0 && i < a->n; i++) v = index_one(r, v, a->at[i]);
    return v;
}

/* (v, from, to); a list's part shares its items, which nothing changes. */
static jvalue fn_slice(jrun *r, const jargs *a)
{
    jvalue v = jinja_arg(a, 0), out = {.kind = V_LIST};
    size_t n = 0;
    if (v.kind == V_DICT || !count(v, &n))
        return jinja_fail(r, SHOAL_EINVALID, "%s cannot be sliced", jinja_kind_name(v));
    int64_t from = a->n > 1 ? a->at[1].i : 0, to = a->n > 2 ? a->at[2].i : (int64_t)n;
    for (size_t i = 1; i < a->n; i++)
        if (a->at[i].kind != V_INT || a->at[i].i < 0 || (uint64_t)a->at[i].i > n)
            return jinja_fail(r, SHOAL_EINVALID, "a slice's bound is not within 0 to %zu", n);
    if (from > to) return jinja_fail(r, SHOAL_EINVALID, "a slice ends before it begins");
    if (v.kind == V_STRING) return jinja_part(v, (size_t)from, (size_t)(to - from));
    out.list = jinja_alloc(r, sizeof *out.list);
    if (out.list)
        *out.list = (jlist){.at = v.list->at + from, .n = (size_t)(to - from), .cap = (size_t)(to - from)};
    return out.list ? out : v;
}

static jvalue numbers(jrun *r, int64_t n)
{
    jvalue out = jinja_list(r);
    if (n > JINJA_MAX_STEPS) return jinja_fail(r, SHOAL_ELIMIT, "a range is too long");
    for (int64_t i = 0; r->rc == 0 && i < n; i++) jinja_push(r, out, jinja_int(i));
    return out;
}

/* The elements of what a range goes over. */
static jvalue fn_range(jrun *r, const jargs *a)
{
    jvalue v = jinja_arg(a, 0), out = jinja_list(r);
    if (v.kind == V_LIST) return v;
    if (v.kind == V_INT) return numbers(r, v.i);
    if (v.kind == V_UNDEFINED || v.kind == V_NONE) return out;
    if (v.kind != V_DICT)
        return jinja_fail(r, SHOAL_EINVALID, "a range cannot go over %s", jinja_kind_name(v));
    for (size_t i = 0; r->rc == 0 && i < v.dict->n; i++) jinja_push(r, out, v.dict->values[i]);
    return out;
}

/* The key of that element: of a map's its own, else its number. */
static jvalue fn_key(jrun *r, const jargs *a)
{
    jvalue v = jinja_arg(a, 0), i = jinja_arg(a, 1);
    bool own = v.kind == V_DICT && i.kind == V_INT && i.i >= 0 && (uint64_t)i.i < v.dict->n;
    return own ? v.dict->keys[i.i] : i;
}

/* (namespace, name, value): set it, and give it. */
static jvalue fn_set(jrun *r, const jargs *a)
{
    jvalue ns = jinja_arg(a, 0), name = jinja_arg(a, 1), v = jinja_arg(a, 2);
    if (ns.kind != V_NAMESPACE || name.kind != V_STRING)
        return jinja_fail(r, SHOAL_EINVALID, "go_set needs a namespace and a name");
    jinja_put(r, ns.dict, name, v);
    return v;
}

/* ---- types of JSON Schema in TypeScript --------------------------------------------------------- */

static const char *typescript_of(jvalue type)
{
    static const char *const NAMES[][2] = {{"string", "string"},  {"number", "number"},
                                           {"integer", "number"}, {"boolean", "boolean"},
                                           {"array", "any[]"},    {"object", "Record<string, any>"},
                                           {"null", "null"}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (type.kind == V_STRING && type.n == strlen(NAMES[i][0]) &&
            memcmp(type.s, NAMES[i][0], type.n) == 0)
            return NAMES[i][1];
    return "any";
}

static void put_typescript(jrun *r, jtext *out, jvalue property, int depth)
{
    bool known = property.kind == V_DICT && property.i == GO_PROPERTY && depth < 64;
    const jvalue *each = known ? jinja_get(r, property.dict, jinja_str("AnyOf", 5)) : NULL;
    const jvalue *types = known ? jinja_get(r, property.dict, jinja_str("Type", 4)) : NULL;
    size_t n = 0, n_each = each && each->kind == V_LIST ? each->list->n : 0;
    if (n_each == 0 && types && types->kind == V_LIST) n = types->list->n;
    if (n_each + n == 0) jinja_text_puts(out, "any");
    for (size_t i = 0; r->rc == 0 && i < n_each + n; i++) {
        if (i) jinja_text_puts(out, " | ");
        if (n_each)
            put_typescript(r, out, each->list->at[i], depth + 1);
        else
            jinja_text_puts(out, typescript_of(types->list->at[i]));
    }
}

static jvalue fn_typescript(jrun *r, const jargs *a)
{
    jtext out = {0};
    put_typescript(r, &out, jinja_arg(a, 0), 0);
    return go_take(r, &out);
}

const jfunction jinja_go_functions[] = {
    {"go_data", go_fn_data},
    {"go_turns", go_fn_turns},
    {"go_print", fn_print},
    {"go_sprint", fn_sprint},
    {"go_sprintln", fn_sprintln},
    {"go_sprintf", go_fn_sprintf},
    {"go_json", fn_json},
    {"go_len", fn_len},
    {"go_field", fn_field},
    {"go_index", fn_index},
    {"go_slice", fn_slice},
    {"go_range", fn_range},
    {"go_key", fn_key},
    {"go_set", fn_set},
    {"go_typescript", fn_typescript},
    {NULL, NULL},
};
