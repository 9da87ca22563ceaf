/* grammar_not.c: "not", "if" and "dependent..." as choices between schemas without them.
 *
 * A schema is what all its keywords ask for, so what does not satisfy it fails one of them at least: the negation is
 * an "anyOf" of each keyword's negation (De Morgan), down to types, values, bounds and names that are missing.
 *
 *     "not": {"required": ["a"], "properties": {"b": {"const": 1}}}
 *     ->  "anyOf": [{"properties": {"a": false}}, {"required": ["b"], "properties": {"b": not {"const": 1}}}]
 *     "if": A, "then": B, "else": C   ->  "anyOf": [{"allOf": [A, B]}, {"allOf": [not A, C]}]
 *     "dependentRequired": {"a": ["b"]}  ->  "anyOf": [{"properties": {"a": false}}, {"required": ["a", "b"]}]
 *
 * What is made belongs to the schema_ctx, is made once, and is marked (SCHEMA_MADE): its types are no word of the
 * schema's author about what the value is. */
#include "grammar/grammar_parts.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32, NUMBERS_MAX = 16 };

struct made_schema {
    const json_t *from;
    bool negates;
    json_t *to;
    struct made_schema *next;
};

static json_t *negate(schema_ctx *c, const json_t *schema, int depth);

static json_t *grammar_not_fail(schema_ctx *c)
{
    if (c->rc == 0) c->rc = err_nomem(c->err);
    return NULL;
}

static json_t *mark(schema_ctx *c, json_t *o)
{
    if (o && json_object_set_new(o, SCHEMA_MADE, json_true()) == 0) return o;
    json_decref(o);
    return grammar_not_fail(c);
}

/* Takes one, which may be NULL, as may the list: then c->rc is set. */
static void grammar_not_push(schema_ctx *c, json_t *list, json_t *one)
{
    if (json_array_append_new(list, one) != 0) grammar_not_fail(c);
}

/* {key: value}; takes value. */
static json_t *with(schema_ctx *c, const char *key, json_t *value)
{
    json_t *o = json_object();
    if (json_object_set_new(o, key, value) != 0) {
        json_decref(o);
        return grammar_not_fail(c);
    }
    return mark(c, o);
}

/* {"type": type, key: value}; takes value. */
static json_t *of_type(schema_ctx *c, const char *type, const char *key, json_t *value)
{
    json_t *o = with(c, key, value);
    if (o && json_object_set_new(o, "type", json_string(type)) != 0) {
        json_decref(o);
        return grammar_not_fail(c);
    }
    return o;
}

static json_t *with_property(schema_ctx *c, const char *name, json_t *schema)
{
    json_t *properties = json_object();
    if (json_object_set_new(properties, name, schema) != 0) {
        json_decref(properties);
        return grammar_not_fail(c);
    }
    return of_type(c, "object", "properties", properties);
}

static json_t *without(schema_ctx *c, const char *name)
{
    return with_property(c, name, json_false());
}

/* ---- types ------------------------------------------------------------------------------------ */

static const char *const TYPES[] = {"null", "boolean", "number", "string", "array", "object"};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

/* Of types that `some` marks; an integer counts as a number. */
static json_t *all_but(schema_ctx *c, const bool *some)
{
    json_t *list = json_array();
    for (size_t i = 0; i < N_TYPES; i++)
        if (!some[i]) grammar_not_push(c, list, json_string(TYPES[i]));
    if (list && json_array_size(list) > 0) return with(c, "type", list);
    json_decref(list);
    return list ? json_false() : grammar_not_fail(c);
}

static void mark_type(bool *some, const char *name)
{
    for (size_t i = 0; name && i < N_TYPES; i++)
        some[i] |= strcmp(TYPES[i], strcmp(name, "integer") == 0 ? "number" : name) == 0;
}

static json_t *negate_type(schema_ctx *c, const json_t *type)
{
    bool some[N_TYPES] = {false};
    size_t i;
    const json_t *one;
    mark_type(some, json_string_value(type));
    json_array_foreach(type, i, one)
    {
        mark_type(some, json_string_value(one));
    }
    return all_but(c, some);
}

/* ---- values ----------------------------------------------------------------------------------- */

static void put_quoted(buf *pattern, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] && strchr("^$\\.*+?()[]{}|/", s[i])) buf_putc(pattern, '\\');
        buf_putc(pattern, s[i]);
    }
}

static json_t *taken_text(schema_ctx *c, buf *text)
{
    json_t *s = text->failed ? NULL : json_stringn(text->data, text->len);
    buf_done(text);
    return s ? s : grammar_not_fail(c);
}

/* Texts that are none of the list's. */
static json_t *other_texts(schema_ctx *c, const json_t *list)
{
    buf pattern = {0};
    size_t i, n = 0;
    const json_t *one;
    buf_puts(&pattern, "^(?!(?:");
    json_array_foreach(list, i, one)
    {
        if (!json_is_string(one)) continue;
        if (n++ > 0) buf_putc(&pattern, '|');
        put_quoted(&pattern, json_string_value(one), json_string_length(one));
    }
    buf_puts(&pattern, ")$)");
    return of_type(c, "string", "pattern", taken_text(c, &pattern));
}

static int compare_numbers(const void *a, const void *b)
{
    double x = json_number_value(*(const json_t *const *)a), y = json_number_value(*(const json_t *const *)b);
    return (x > y) - (x < y);
}

static json_t *numbers_between(schema_ctx *c, const json_t *lo, const json_t *hi)
{
    json_t *o =
        of_type(c, "number", lo ? "exclusiveMinimum" : "exclusiveMaximum", json_deep_copy(lo ? lo : hi));
    if (o && lo && hi && json_object_set_new(o, "exclusiveMaximum", json_deep_copy(hi)) != 0) {
        json_decref(o);
        return grammar_not_fail(c);
    }
    return o;
}

static bool other_numbers(schema_ctx *c, const json_t *list, json_t *ret)
{
    const json_t *sorted[NUMBERS_MAX], *one;
    size_t i, n = 0;
    json_array_foreach(list, i, one)
    {
        if (!json_is_number(one)) continue;
        if (n == NUMBERS_MAX) return false;
        sorted[n++] = one;
    }
    qsort(sorted, n, sizeof *sorted, compare_numbers);
    for (size_t k = 0; k <= n && c->rc == 0; k++)
        grammar_not_push(c, ret, numbers_between(c, k > 0 ? sorted[k - 1] : NULL, k < n ? sorted[k] : NULL));
    return true;
}

/* What is none of the list's values: NULL, with c->rc 0 where that cannot be said. */
static json_t *negate_values(schema_ctx *c, const json_t *list)
{
    bool some[N_TYPES] = {false}, is_true = false, is_false = false, is_known = true;
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        bool is_empty = json_array_size(one) + json_object_size(one) == 0;
        is_true |= json_is_true(one);
        is_false |= json_is_false(one);
        is_known &= is_empty || !(json_is_array(one) || json_is_object(one));
        mark_type(some, json_is_null(one)      ? "null"
                        : json_is_boolean(one) ? "boolean"
                        : json_is_number(one)  ? "number"
                        : json_is_string(one)  ? "string"
                        : json_is_array(one)   ? "array"
                                               : "object");
    }
    json_t *any = json_array();
    grammar_not_push(c, any, all_but(c, some));
    if (is_true != is_false) grammar_not_push(c, any, with(c, "const", json_boolean(is_false)));
    if (some[2]) is_known &= other_numbers(c, list, any);
    if (some[3]) grammar_not_push(c, any, other_texts(c, list));
    if (some[4]) grammar_not_push(c, any, of_type(c, "array", "minItems", json_integer(1)));
    if (some[5]) grammar_not_push(c, any, of_type(c, "object", "minProperties", json_integer(1)));
    if (c->rc == 0 && is_known) return with(c, "anyOf", any);
    json_decref(any);
    return NULL;
}

static json_t *negate_const(schema_ctx *c, const json_t *value)
{
    json_t *list = json_pack("[O]", value), *out = list ? negate_values(c, list) : grammar_not_fail(c);
    json_decref(list);
    return out;
}

/* ---- keywords --------------------------------------------------------------------------------- */

/* Each adds what fails the keyword to `any`; false where that cannot be said. */
typedef bool negate_fn(schema_ctx *c, const json_t *v, json_t *any, int depth);

static bool grammar_not_add(schema_ctx *c, json_t *any, json_t *one)
{
    if (one) grammar_not_push(c, any, one);
    return one != NULL;
}

static bool not_type(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    return grammar_not_add(c, any, negate_type(c, v));
}

static bool not_const(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    return grammar_not_add(c, any, negate_const(c, v));
}

static bool not_enum(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    return json_is_array(v) && grammar_not_add(c, any, negate_values(c, v));
}

static bool not_required(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    size_t i;
    const json_t *name;
    json_array_foreach(v, i, name)
    {
        if (!json_is_string(name) || !grammar_not_add(c, any, without(c, json_string_value(name))))
            return false;
    }
    return json_is_array(v);
}

static bool not_properties(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    const char *name;
    json_t *one;
    json_object_foreach((json_t *)v, name, one)
    {
        json_t *other = negate(c, one, depth + 1), *o = other ? with_property(c, name, other) : NULL;
        if (o && json_object_set_new(o, "required", json_pack("[s]", name)) != 0) grammar_not_fail(c);
        if (!grammar_not_add(c, any, o)) return false;
    }
    return json_is_object(v);
}

static bool not_contains(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    json_t *other = negate(c, v, depth + 1);
    return other && grammar_not_add(c, any, of_type(c, "array", "items", other));
}

static bool not_pattern(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    buf pattern = {0};
    if (!json_is_string(v)) return false;
    buf_puts(&pattern, "^(?![\\s\\S]*(?:");
    buf_append(&pattern, json_string_value(v), json_string_length(v));
    buf_puts(&pattern, "))");
    return grammar_not_add(c, any, of_type(c, "string", "pattern", taken_text(c, &pattern)));
}

static bool not_all(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    size_t i;
    const json_t *one;
    json_array_foreach(v, i, one)
    {
        if (!grammar_not_add(c, any, negate(c, one, depth + 1))) return false;
    }
    return json_is_array(v);
}

static bool not_any(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    json_t *all = json_array();
    if (not_all(c, v, all, depth)) return grammar_not_add(c, any, with(c, "allOf", all));
    json_decref(all);
    return false;
}

static bool not_one(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    return json_array_size(v) == 1 && not_all(c, v, any, depth);
}

static bool not_not(schema_ctx *c, const json_t *v, json_t *any, int depth)
{
    return grammar_not_add(c, any, json_incref((json_t *)v));
}

static bool not_reference(schema_ctx *c, const json_t *to, json_t *any, int depth)
{
    return grammar_not_add(c, any, negate(c, to, depth + 1));
}

/* A bound that the value is on the other side of. */
static const struct {
    const char *key, *type, *other;
    int step; /* from this bound to the other, of counts */
} BOUNDS[] = {{"minimum", "number", "exclusiveMaximum", 0},
              {"maximum", "number", "exclusiveMinimum", 0},
              {"exclusiveMinimum", "number", "maximum", 0},
              {"exclusiveMaximum", "number", "minimum", 0},
              {"minLength", "string", "maxLength", -1},
              {"maxLength", "string", "minLength", 1},
              {"minItems", "array", "maxItems", -1},
              {"maxItems", "array", "minItems", 1},
              {"minProperties", "object", "maxProperties", -1},
              {"maxProperties", "object", "minProperties", 1}};

/* False: key is no bound. */
static bool not_bound(schema_ctx *c, const char *key, const json_t *v, json_t *any, bool *ret_known)
{
    size_t i = 0;
    while (i < sizeof BOUNDS / sizeof *BOUNDS && strcmp(BOUNDS[i].key, key) != 0) i++;
    if (i == sizeof BOUNDS / sizeof *BOUNDS) return false;
    double bound = json_number_value(v) + BOUNDS[i].step;
    *ret_known = json_is_number(v) && bound < 1e15;
    if (BOUNDS[i].step < 0 && bound < 0) return true; /* nothing is below */
    json_t *other = BOUNDS[i].step ? json_integer((json_int_t)(*ret_known ? bound : 0)) : json_deep_copy(v);
    if (*ret_known)
        grammar_not_push(c, any, of_type(c, BOUNDS[i].type, BOUNDS[i].other, other));
    else
        json_decref(other);
    return true;
}

/* Beside a branch of a "oneOf": of the other one's values fewer are kept out than could be, which is no harm. */
static bool may_be_left_out(const schema_ctx *c, const char *key)
{
    return strcmp(c->negated_key, "oneOf") == 0 && strcmp(key, "additionalProperties") == 0;
}

/* Keywords whose negation is not said here, unless they say nothing. */
static bool is_unknown(const char *key, const json_t *v)
{
    static const char *const KEYS[] = {"format",
                                       "multipleOf",
                                       "uniqueItems",
                                       "items",
                                       "prefixItems",
                                       "additionalItems",
                                       "propertyNames",
                                       "patternProperties",
                                       "additionalProperties",
                                       "dependencies",
                                       "dependentRequired",
                                       "dependentSchemas",
                                       "if",
                                       "minContains",
                                       "maxContains",
                                       "unevaluatedItems",
                                       "unevaluatedProperties",
                                       "$dynamicRef",
                                       "$recursiveRef"};
    if (json_is_true(v) || (json_is_object(v) && json_object_size(v) == 0))
        return strcmp(key, "uniqueItems") == 0;
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (strcmp(KEYS[i], key) == 0) return !json_is_false(v) || strcmp(key, "uniqueItems") != 0;
    return false;
}

static bool negate_keyword(schema_ctx *c, const json_t *schema, const char *key, const json_t *v, json_t *any,
                           int depth)
{
    static const struct {
        const char *key;
        negate_fn *fn;
    } table[] = {{"type", not_type},         {"const", not_const},     {"enum", not_enum},
                 {"required", not_required}, {"pattern", not_pattern}, {"properties", not_properties},
                 {"contains", not_contains}, {"allOf", not_all},       {"anyOf", not_any},
                 {"oneOf", not_one},         {"not", not_not}};
    bool is_known = true;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].key, key) == 0) return table[i].fn(c, v, any, depth);
    if (not_bound(c, key, v, any, &is_known)) return is_known;
    if (strcmp(key, "$ref") != 0) return may_be_left_out(c, key) || !is_unknown(key, v);
    const json_t *to = schema_resolve(c, schema);
    return to && not_reference(c, to, any, depth);
}

/* A new schema for what does not satisfy this one; NULL with c->rc set. */
static json_t *negate(schema_ctx *c, const json_t *schema, int depth)
{
    const char *key;
    json_t *v, *any;
    if (json_is_boolean(schema)) return json_boolean(json_is_false(schema));
    if (!json_is_object(schema) || depth > DEPTH_MAX) {
        schema_fail(c, depth > DEPTH_MAX ? SHOAL_EUNSUPPORTED : SHOAL_EINVALID, c->negated, c->negated_key,
                    depth > DEPTH_MAX ? "nests too deeply to be turned around"
                                      : "a schema must be an object, true or false");
        return NULL;
    }
    if (!schema_works(c, 50)) return NULL;
    any = json_array();
    json_object_foreach((json_t *)schema, key, v)
    {
        if (!any || c->rc || negate_keyword(c, schema, key, v, any, depth)) continue;
        schema_fail(c, SHOAL_EUNSUPPORTED, c->negated, c->negated_key, "\"%s\" is not supported in \"%s\"",
                    key, c->negated_key);
    }
    if (c->rc == 0 && json_array_size(any) > 0) return with(c, "anyOf", any);
    bool is_never = any && c->rc == 0; /* nothing fails it */
    json_decref(any);
    return is_never ? json_false() : grammar_not_fail(c);
}

/* ---- conditions ------------------------------------------------------------------------------- */

static json_t *both(schema_ctx *c, json_t *a, const json_t *b)
{
    json_t *list = json_array();
    grammar_not_push(c, list, a);
    if (b) grammar_not_push(c, list, json_incref((json_t *)b));
    return with(c, "allOf", list);
}

static json_t *either(schema_ctx *c, json_t *a, json_t *b)
{
    json_t *list = json_array();
    grammar_not_push(c, list, a);
    grammar_not_push(c, list, b);
    return with(c, "anyOf", list);
}

static void add_condition(schema_ctx *c, const json_t *schema, json_t *all)
{
    json_t *when = json_object_get(schema, "if");
    const json_t *then = json_object_get(schema, "then"), *otherwise = json_object_get(schema, "else");
    if (!when || (!then && !otherwise) || c->rc) return;
    c->negated = schema;
    c->negated_key = "if";
    json_t *not_when = negate(c, when, 0);
    grammar_not_push(c, all, either(c, both(c, json_incref(when), then), both(c, not_when, otherwise)));
}

/* One member of "dependencies": whoever has `name` has these names, too, or satisfies this schema. */
static void add_dependency(schema_ctx *c, const json_t *schema, const char *key, const char *name, json_t *on,
                           json_t *all)
{
    bool is_list = json_is_array(on);
    json_t *names = is_list ? json_copy(on) : json_array();
    if (!is_list && !json_is_object(on) && !json_is_boolean(on))
        schema_fail(c, SHOAL_EINVALID, schema, key, "\"%s\" must hold lists of names, or schemas", key);
    grammar_not_push(c, names, json_string(name));
    json_t *has = of_type(c, "object", "required", names);
    json_t *lacks = either(c, without(c, name), all_but(c, (const bool[N_TYPES]){[5] = true}));
    grammar_not_push(c, all, either(c, lacks, both(c, has, is_list ? NULL : on)));
}

static void add_dependencies(schema_ctx *c, const json_t *schema, json_t *all)
{
    static const char *const KEYS[] = {"dependencies", "dependentRequired", "dependentSchemas"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const char *name;
        json_t *on;
        json_object_foreach(json_object_get(schema, KEYS[i]), name, on)
        {
            if (c->rc == 0) add_dependency(c, schema, KEYS[i], name, on, all);
        }
    }
}

static void add_negation(schema_ctx *c, const json_t *schema, json_t *all)
{
    const json_t *not = json_object_get(schema, "not");
    if (!not || c->rc) return;
    c->negated = schema;
    c->negated_key = "not";
    grammar_not_push(c, all, negate(c, not, 0));
}

static bool has_conditions(const json_t *schema)
{
    static const char *const KEYS[] = {"not", "if", "dependencies", "dependentRequired", "dependentSchemas"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (json_object_get(schema, KEYS[i])) return true;
    return false;
}

const json_t *schema_conditions(schema_ctx *c, const json_t *schema)
{
    if (!has_conditions(schema)) return NULL;
    for (const struct made_schema *m = c->made; m; m = m->next)
        if (m->from == schema && !m->negates) return m->to;
    struct made_schema *m = arena_alloc(c->memory, sizeof *m);
    json_t *all = json_array();
    if (!m || !all) grammar_not_fail(c);
    add_negation(c, schema, all);
    add_condition(c, schema, all);
    add_dependencies(c, schema, all);
    if (c->rc) {
        json_decref(all);
        return NULL;
    }
    bool some = json_array_size(all) > 0;
    json_t *to = some ? with(c, "allOf", all) : mark(c, json_object());
    if (!some) json_decref(all);
    if (!to) return NULL;
    *m = (struct made_schema){.from = schema, .to = to, .next = c->made};
    c->made = m;
    return to;
}

const json_t *schema_negation(schema_ctx *c, const json_t *schema)
{
    for (const struct made_schema *m = c->made; m; m = m->next)
        if (m->from == schema && m->negates) return m->to;
    shoal_err why = {0}, *told = c->err;
    struct made_schema *m = arena_alloc(c->memory, sizeof *m);
    if (!m) grammar_not_fail(c);
    if (c->rc) return NULL;
    c->err = &why;
    c->negated = schema;
    c->negated_key = "oneOf";
    json_t *to = negate(c, schema, 0);
    c->err = told;
    if (c->rc == SHOAL_EUNSUPPORTED) c->rc = 0;
    if (c->rc && told) *told = why;
    if (c->rc) json_decref(to);
    if (c->rc) return NULL;
    *m = (struct made_schema){.from = schema, .negates = true, .to = to, .next = c->made};
    c->made = m;
    return to;
}

void schema_conditions_done(schema_ctx *c)
{
    for (struct made_schema *m = c->made; m; m = m->next) json_decref(m->to);
    c->made = NULL;
}
