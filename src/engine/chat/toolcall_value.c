/* toolcall_value.c: an argument that stands between tags as text -> JSON, of the type that its schema wants.
 *
 *     <parameter=level>5</parameter>      5 where "level" is an integer, "5" where it is a string
 *
 * The models' own parsers do the same: what may be no text is read as JSON (or as a Python literal, which
 * some models write), and what then is of no allowed type stays a text. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "chat/toolcall.h"

enum {
    IS_STRING = 1,
    IS_INTEGER = 2,
    IS_NUMBER = 4,
    IS_BOOLEAN = 8,
    IS_NULL = 16,
    IS_OBJECT = 32,
    IS_ARRAY = 64,
    IS_ANY = 127,
    MAX_REFS = 16
};

static unsigned type_named(const char *name)
{
    static const struct {
        const char *name;
        unsigned types;
    } names[] = {{"string", IS_STRING},   {"integer", IS_INTEGER}, {"number", IS_NUMBER | IS_INTEGER},
                 {"boolean", IS_BOOLEAN}, {"null", IS_NULL},       {"object", IS_OBJECT},
                 {"array", IS_ARRAY}};
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0) return names[i].types;
    return 0;
}

static unsigned type_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_STRING: return IS_STRING;
    case JSON_INTEGER: return IS_INTEGER;
    case JSON_REAL: return IS_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE: return IS_BOOLEAN;
    case JSON_NULL: return IS_NULL;
    case JSON_OBJECT: return IS_OBJECT;
    default: return IS_ARRAY;
    }
}

/* "#/a/b" of root. */
static const json_t *refers_to(const json_t *root, const char *ref)
{
    char name[128];
    if (!ref || *ref != '#') return NULL;
    for (ref++; root && *ref == '/';) {
        size_t n = strcspn(++ref, "/");
        if (n >= sizeof name) return NULL;
        memcpy(name, ref, n);
        name[n] = '\0';
        root = json_object_get(root, name);
        ref += n;
    }
    return root;
}

static unsigned types_of(const json_t *schema, const json_t *root, int depth);

static unsigned types_of_all(const json_t *list, const json_t *root, int depth)
{
    unsigned types = 0;
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) types |= types_of(v, root, depth);
    return types;
}

static unsigned types_of_values(const json_t *list)
{
    unsigned types = 0;
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) types |= type_of(v);
    return types;
}

/* The types that a value may have, as far as that is said plainly; IS_ANY where nothing is. */
static unsigned types_of(const json_t *schema, const json_t *root, int depth)
{
    static const char *const ONE_OF[] = {"anyOf", "oneOf", "allOf"};
    const json_t *type = json_object_get(schema, "type"), *one = json_object_get(schema, "const");
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    unsigned types = 0;
    size_t i;
    json_t *v;
    if (depth > MAX_REFS || !json_is_object(schema)) return IS_ANY;
    if (json_is_string(type)) types = type_named(json_string_value(type));
    json_array_foreach(type, i, v) types |= type_named(json_string_value(v));
    if (!types) types = types_of_values(json_object_get(schema, "enum"));
    if (!types && one) types = type_of(one);
    if (!types && ref) types = types_of(refers_to(root, ref), root, depth + 1);
    for (size_t k = 0; !types && k < 3; k++)
        types = types_of_all(json_object_get(schema, ONE_OF[k]), root, depth + 1);
    return types ? types : IS_ANY;
}

/* The value as JSON, if it is any of `types`. */
static bool put_typed(buf *out, unsigned types, const char *s, size_t n)
{
    json_t *v = NULL;
    size_t from = out->len;
    bool ok = toolcall_literal(out, s, n);
    if (!ok) return false;
    int rc = json_parse(&v, out->data + from, out->len - from, "value", NULL);
    out->failed |= rc == SHOAL_ENOMEM;
    ok = rc == 0 && (type_of(v) & types);
    json_decref(v);
    if (!ok) out->len = from;
    return ok;
}

/* The text as a value of these types, or as the text that it is. */
static void put_leaf(buf *out, unsigned types, const char *s, size_t n)
{
    size_t skip = 0, len = n;
    while (skip < len && isspace((unsigned char)s[skip])) skip++;
    while (len > skip && isspace((unsigned char)s[len - 1])) len--;
    unsigned typed = types == IS_ANY ? IS_ANY : types & ~(unsigned)IS_STRING;
    if (typed && len > skip && put_typed(out, typed, s + skip, len - skip)) return;
    /* A number where an integer is wanted is still nearer than a text. */
    if (!(types & IS_STRING) && len > skip && put_typed(out, IS_ANY, s + skip, len - skip)) return;
    json_put_string(out, s, n);
}

/* ---- values that are written as tags within tags --------------------------------------------------- */

/* <a>1</a><b>2</b> is an object, <item>1</item><item>2</item> a list. */

enum { MAX_NESTING = 16, MAX_TAG = 256 };

typedef struct nest {
    const toolcall_syntax *syntax;
    const json_t *root;
} nest;

typedef struct element {
    char name[MAX_TAG];
    const char *s; /* what it holds */
    size_t n;
    size_t end; /* of the element */
} element;

static bool begins_with(const char *s, size_t n, const char *what)
{
    size_t len = strlen(what);
    return n >= len && memcmp(s, what, len) == 0;
}

/* Where the element that is open ends; elements of the same name may be within. */
static bool find_close(const nest *x, const char *s, size_t n, size_t at, element *ret)
{
    char open[MAX_TAG + 64], close[MAX_TAG + 64];
    const toolcall_tags *t = &x->syntax->tags;
    const char *mark = strchr(t->value_end, '%');
    snprintf(open, sizeof open, "%s%s%s", t->key, ret->name, t->key_end);
    snprintf(close, sizeof close, "%.*s%s%s", (int)(mark - t->value_end), t->value_end, ret->name, mark + 1);
    ret->s = s + at;
    for (int depth = 1; at < n; at++) {
        if (begins_with(s + at, n - at, open)) depth++;
        if (!begins_with(s + at, n - at, close) || --depth > 0) continue;
        ret->n = (size_t)(s + at - ret->s);
        ret->end = at + strlen(close);
        return true;
    }
    return false;
}

static size_t past_space(const char *s, size_t n, size_t at)
{
    while (at < n && isspace((unsigned char)s[at])) at++;
    return at;
}

/* The element that begins at s[at]. */
static bool read_element(const nest *x, const char *s, size_t n, size_t at, element *ret)
{
    const toolcall_tags *t = &x->syntax->tags;
    size_t key = strlen(t->key), end = strlen(t->key_end), from = at + key, i = from;
    if (!begins_with(s + at, n - at, t->key)) return false;
    while (i < n && i - from < MAX_TAG && !begins_with(s + i, n - i, t->key_end)) i++;
    if (i >= n || i == from || i - from >= MAX_TAG) return false;
    memcpy(ret->name, s + from, i - from);
    ret->name[i - from] = '\0';
    return find_close(x, s, n, i + end, ret);
}

/* The schema of what has this type, among those that the value may choose from. */
static const json_t *schema_of_type(const json_t *schema, const json_t *root, unsigned type, int depth)
{
    static const char *const LISTS[] = {"anyOf", "oneOf", "allOf"};
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    size_t k;
    json_t *v;
    if (ref && depth < MAX_REFS) return schema_of_type(refers_to(root, ref), root, type, depth + 1);
    for (size_t i = 0; i < 3; i++)
        json_array_foreach(json_object_get(schema, LISTS[i]), k,
                           v) if (types_of(v, root, depth) & type) return v;
    return schema;
}

static void put_nested(buf *out, const nest *x, const json_t *schema, const char *s, size_t n, int depth)
{
    unsigned types = types_of(schema, x->root, 0);
    element e;
    size_t at = past_space(s, n, 0), from = out->len;
    bool first = true, tags = !(types & IS_STRING && types != IS_ANY) && depth < MAX_NESTING &&
                              read_element(x, s, n, at, &e);
    if (!tags) {
        put_leaf(out, types, s, n);
        return;
    }
    bool list = strcmp(e.name, "item") == 0 && types & IS_ARRAY;
    const json_t *own = schema_of_type(schema, x->root, list ? IS_ARRAY : IS_OBJECT, 0);
    json_t *seen = json_object();
    out->failed |= !seen;
    buf_putc(out, list ? '[' : '{');
    while (tags) {
        const json_t *of = list ? json_object_get(own, "items")
                                : json_object_get(json_object_get(own, "properties"), e.name);
        if (list || !json_object_get(seen, e.name)) {
            if (!first) buf_puts(out, ", ");
            if (!list) json_put_string(out, e.name, strlen(e.name));
            if (!list) buf_puts(out, ": ");
            put_nested(out, x, of, e.s, e.n, depth + 1);
            out->failed |= json_object_set_new_nocheck(seen, e.name, json_true()) != 0;
            first = false;
        }
        at = past_space(s, n, e.end);
        tags = at < n && read_element(x, s, n, at, &e);
    }
    buf_putc(out, list ? ']' : '}');
    json_decref(seen);
    if (at == n) return;
    out->len = from; /* something else stands between the elements */
    put_leaf(out, types, s, n);
}

void toolcall_value(buf *out, const toolcall_syntax *syntax, const json_t *parameters, const char *key,
                    int is_text, const char *s, size_t n)
{
    const json_t *schema = json_object_get(json_object_get(parameters, "properties"), key);
    unsigned types = is_text == 1 ? IS_STRING : types_of(schema, parameters, 0);
    if (is_text == 0) types = types == IS_STRING ? IS_ANY : types & ~(unsigned)IS_STRING;
    if (strchr(syntax->tags.value_end, '%'))
        put_nested(out, &(nest){syntax, parameters}, schema, s, n, 0);
    else
        put_leaf(out, types, s, n);
}
