#include "infer/grammar_schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define REFS_MAX       256
#define REPEAT_MAX     2000
#define INTEGER_DIGITS 15 /* below 2^53: the usual "safe integer" bounds always hold */

typedef struct schema_ref {
    const json_t *schema; /* borrowed from the root */
    int start;
} schema_ref;

typedef struct compiler {
    nfa *a;
    const json_t *root;
    const char *what; /* begins every message */
    shoal_err *err;
    int rc;
    /* Rules that every schema shares: their first states. */
    int value, object, array, string, string_char, number, integer, natural, space;
    schema_ref refs[REFS_MAX]; /* compiled in order; new ones are appended while that goes on */
    size_t n_refs;
    buf pointer; /* where in the schema we are, for errors */
} compiler;

static int fail(compiler *c, int code, const char *what)
{
    if (c->rc == 0)
        c->rc = err_set(c->err, code, "%s: at \"#%s\": %s", c->what, c->pointer.data ? c->pointer.data : "",
                        what);
    return NFA_DEAD;
}

static int lit(compiler *c, int from, const char *s)
{
    return nfa_bytes(c->a, from, s, strlen(s));
}

/* ---- the shared rules ------------------------------------------------------------------------ */

/* Bounded white space, since a small model likes to fill a reply with it: nothing, one blank, or a
 * line end and up to 16 blanks. */
static void build_space(compiler *c)
{
    int end = nfa_state(c->a);
    nfa_epsilon(c->a, c->space, end);
    nfa_range_to(c->a, c->space, ' ', ' ', end);
    int at = nfa_range(c->a, c->space, '\n', '\n');
    for (int i = 0; i <= 16; i++) {
        nfa_epsilon(c->a, at, end);
        if (i < 16) at = nfa_range(c->a, at, ' ', ' ');
    }
    nfa_return(c->a, end);
}

/* One character of a string: UTF-8 by its well-formed byte sequences (Unicode 15, table 3-7), or an
 * escape. A lone surrogate escape is left out. */
static void build_string_char(compiler *c)
{
    static const uint8_t seq[][4][2] = {
        {{0xC2, 0xDF}, {0x80, 0xBF}},
        {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}},
        {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}},
        {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}},
        {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}},
        {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
        {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
        {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}},
    };
    nfa *a = c->a;
    int end = nfa_state(a);
    nfa_range_to(a, c->string_char, 0x20, 0x21, end);
    nfa_range_to(a, c->string_char, 0x23, 0x5B, end);
    nfa_range_to(a, c->string_char, 0x5D, 0x7E, end);
    for (size_t i = 0; i < sizeof seq / sizeof *seq; i++) {
        int at = c->string_char;
        for (int k = 0; k < 4 && seq[i][k][0]; k++) at = nfa_range(a, at, seq[i][k][0], seq[i][k][1]);
        nfa_epsilon(a, at, end);
    }
    int escape = nfa_range(a, c->string_char, '\\', '\\');
    for (const char *p = "\"\\/bfnrt"; *p; p++) nfa_range_to(a, escape, (uint8_t)*p, (uint8_t)*p, end);
    int u = nfa_range(a, escape, 'u', 'u'), hex[4];
    for (int i = 0; i < 4; i++) hex[i] = i < 3 ? nfa_state(a) : end;
    /* First digit not d or D, so that no surrogate can be written. */
    nfa_range_to(a, u, '0', '9', hex[0]);
    nfa_range_to(a, u, 'a', 'c', hex[0]);
    nfa_range_to(a, u, 'e', 'f', hex[0]);
    nfa_range_to(a, u, 'A', 'C', hex[0]);
    nfa_range_to(a, u, 'E', 'F', hex[0]);
    for (int i = 0; i < 3; i++) {
        nfa_range_to(a, hex[i], '0', '9', hex[i + 1]);
        nfa_range_to(a, hex[i], 'a', 'f', hex[i + 1]);
        nfa_range_to(a, hex[i], 'A', 'F', hex[i + 1]);
    }
    nfa_return(a, end);
}

static void build_string(compiler *c)
{
    int in = lit(c, c->string, "\"");
    nfa_epsilon(c->a, nfa_call(c->a, in, c->string_char), in);
    nfa_return(c->a, lit(c, in, "\""));
}

/* least..most digits from `from`; returns the end. */
static int digits(compiler *c, int from, int least, int most)
{
    int end = nfa_state(c->a);
    for (int i = 0; i < most; i++) {
        if (i >= least) nfa_epsilon(c->a, from, end);
        from = nfa_range(c->a, from, '0', '9');
    }
    nfa_epsilon(c->a, from, end);
    return end;
}

/* 0, or up to INTEGER_DIGITS digits that do not begin with 0. */
static int whole_part(compiler *c, int from)
{
    int end = nfa_state(c->a);
    nfa_range_to(c->a, from, '0', '0', end);
    int first = nfa_range(c->a, from, '1', '9');
    nfa_epsilon(c->a, digits(c, first, 0, INTEGER_DIGITS - 1), end);
    return end;
}

static int after_sign(compiler *c, int from)
{
    int at = nfa_range(c->a, from, '-', '-');
    nfa_epsilon(c->a, from, at);
    return at;
}

static void build_numbers(compiler *c)
{
    nfa *a = c->a;
    nfa_return(a, whole_part(c, c->natural));
    nfa_return(a, whole_part(c, after_sign(c, c->integer)));
    int whole = whole_part(c, after_sign(c, c->number));
    int mantissa = digits(c, lit(c, whole, "."), 1, INTEGER_DIGITS);
    nfa_epsilon(a, whole, mantissa);
    int e = nfa_range(a, mantissa, 'e', 'e');
    nfa_range_to(a, mantissa, 'E', 'E', e);
    int sign = nfa_range(a, e, '+', '+');
    nfa_range_to(a, e, '-', '-', sign);
    nfa_epsilon(a, e, sign);
    int end = digits(c, sign, 1, 2);
    nfa_epsilon(a, mantissa, end);
    nfa_return(a, end);
}

static int member(compiler *c, int from, int value_rule)
{
    int at = nfa_call(c->a, from, c->string);
    at = nfa_call(c->a, lit(c, at, ":"), c->space);
    return nfa_call(c->a, at, value_rule);
}

/* open item (, item)* close, with white space between; item by `one`. */
static void build_container(compiler *c, int start, const char *open, const char *close, bool members)
{
    nfa *a = c->a;
    int inside = nfa_call(a, lit(c, start, open), c->space);
    int item = nfa_state(a), end = nfa_state(a);
    nfa_epsilon(a, inside, item);
    int after = members ? member(c, item, c->value) : nfa_call(a, item, c->value);
    int spaced = nfa_call(a, after, c->space);
    nfa_epsilon(a, nfa_call(a, lit(c, spaced, ","), c->space), item);
    nfa_epsilon(a, lit(c, spaced, close), end);
    nfa_epsilon(a, lit(c, inside, close), end);
    nfa_return(a, end);
}

static void build_value(compiler *c)
{
    int end = nfa_state(c->a);
    const int rules[] = {c->object, c->array, c->string, c->number};
    for (size_t i = 0; i < 4; i++) nfa_epsilon(c->a, nfa_call(c->a, c->value, rules[i]), end);
    const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) nfa_epsilon(c->a, lit(c, c->value, words[i]), end);
    nfa_return(c->a, end);
}

static void build_shared(compiler *c)
{
    int *const rules[] = {&c->value,  &c->object,  &c->array,   &c->string, &c->string_char,
                          &c->number, &c->integer, &c->natural, &c->space};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) *rules[i] = nfa_state(c->a);
    build_space(c);
    build_string_char(c);
    build_string(c);
    build_numbers(c);
    build_container(c, c->object, "{", "}", true);
    build_container(c, c->array, "[", "]", false);
    build_value(c);
}

/* ---- schemas --------------------------------------------------------------------------------- */

static int compile(compiler *c, const json_t *schema, int from);

/* compile() with "/key" on the pointer while it runs. */
static int compile_at(compiler *c, const json_t *schema, int from, const char *key)
{
    size_t len = c->pointer.len;
    buf_printf(&c->pointer, "/%s", key);
    int to = compile(c, schema, from);
    c->pointer.len = len;
    if (c->pointer.data) c->pointer.data[len] = '\0';
    return to;
}

static int literal(compiler *c, const json_t *v, int from)
{
    buf text = {0};
    int to = json_put(&text, v) == 0 ? nfa_bytes(c->a, from, text.data, text.len)
                                     : fail(c, SHOAL_ENOMEM, "out of memory");
    buf_done(&text);
    return to;
}

static int enumeration(compiler *c, const json_t *values, int from)
{
    if (!json_is_array(values) || json_array_size(values) == 0)
        return fail(c, SHOAL_EINVALID, "\"enum\" must be a non-empty array");
    /* Values share the states of what they begin with alike: many values stay few threads. */
    int start = nfa_state(c->a), end = nfa_state(c->a);
    nfa_epsilon(c->a, from, start);
    for (size_t i = 0; i < json_array_size(values) && c->rc == 0; i++) {
        buf text = {0};
        if (json_put(&text, json_array_get(values, i)) == 0)
            nfa_epsilon(c->a, nfa_literal(c->a, start, text.data, text.len), end);
        else
            fail(c, SHOAL_ENOMEM, "out of memory");
        buf_done(&text);
    }
    return end;
}

static int alternatives(compiler *c, const json_t *list, int from, const char *key)
{
    if (!json_is_array(list) || json_array_size(list) == 0)
        return fail(c, SHOAL_EINVALID, "alternatives must be a non-empty array");
    int end = nfa_state(c->a);
    for (size_t i = 0; i < json_array_size(list) && c->rc == 0; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%zu", key, i);
        int start = nfa_state(c->a);
        nfa_epsilon(c->a, from, start);
        int to = compile_at(c, json_array_get(list, i), start, name);
        if (c->rc == 0) nfa_epsilon(c->a, to, end);
    }
    return end;
}

static int get_count(compiler *c, const json_t *schema, const char *key, int64_t fallback, int64_t *ret)
{
    *ret = fallback;
    shoal_err err = {0};
    if (json_get_int(schema, key, 0, REPEAT_MAX, ret, &err) != 0) return fail(c, SHOAL_EINVALID, err.message);
    return 0;
}

static int string_schema(compiler *c, const json_t *schema, int from)
{
    int64_t least, most;
    if (get_count(c, schema, "minLength", 0, &least) < 0 || get_count(c, schema, "maxLength", -1, &most) < 0)
        return NFA_DEAD;
    if (least == 0 && most < 0) return nfa_call(c->a, from, c->string);
    if (most >= 0 && most < least) return fail(c, SHOAL_EINVALID, "\"maxLength\" is less than \"minLength\"");
    int at = lit(c, from, "\""), end = nfa_state(c->a);
    for (int64_t i = 0; i < (most < 0 ? least : most); i++) {
        if (i >= least) nfa_epsilon(c->a, at, end);
        at = nfa_call(c->a, at, c->string_char);
    }
    if (most < 0) nfa_epsilon(c->a, nfa_call(c->a, at, c->string_char), at);
    nfa_epsilon(c->a, at, end);
    return lit(c, end, "\"");
}

static int array_schema(compiler *c, const json_t *schema, int from)
{
    int64_t least, most;
    if (get_count(c, schema, "minItems", 0, &least) < 0 || get_count(c, schema, "maxItems", -1, &most) < 0)
        return NFA_DEAD;
    if (most >= 0 && most < least) return fail(c, SHOAL_EINVALID, "\"maxItems\" is less than \"minItems\"");
    const json_t *items = json_object_get(schema, "items");
    if (!items && least == 0 && most < 0) return nfa_call(c->a, from, c->array);
    nfa *a = c->a;
    /* The item's automaton is a rule of its own: it is called at every place. */
    int rule = c->value;
    if (items) {
        rule = nfa_state(a);
        int to = compile_at(c, items, rule, "items");
        if (c->rc != 0) return NFA_DEAD;
        nfa_return(a, to);
    }
    int at = nfa_call(a, lit(c, from, "["), c->space), end = nfa_state(a);
    if (least == 0) nfa_epsilon(a, at, end);
    int64_t unrolled = most < 0 ? (least > 0 ? least : 1) : most;
    for (int64_t i = 0; i < unrolled; i++) {
        if (i > 0) at = nfa_call(a, lit(c, at, ","), c->space);
        at = nfa_call(a, nfa_call(a, at, rule), c->space);
        if (i + 1 >= least) nfa_epsilon(a, at, end);
    }
    if (most < 0) {
        int more = nfa_call(a, nfa_call(a, lit(c, at, ","), c->space), rule);
        nfa_epsilon(a, nfa_call(a, more, c->space), at);
    }
    return lit(c, end, "]");
}

/* The names in "required" as an object's keys, so that looking one up takes the same time in a schema
 * with thousands; NULL with c->rc set when they are no names of properties. */
static json_t *required_names(compiler *c, const json_t *schema, const json_t *properties)
{
    const json_t *list = json_object_get(schema, "required");
    json_t *names = json_object();
    if (!names) fail(c, SHOAL_ENOMEM, "out of memory");
    if (list && !json_is_array(list)) fail(c, SHOAL_EINVALID, "\"required\" must be an array");
    for (size_t i = 0; i < json_array_size(list) && c->rc == 0; i++) {
        const char *key = json_string_value(json_array_get(list, i));
        if (!key)
            fail(c, SHOAL_EINVALID, "\"required\" must hold strings");
        else if (!json_object_get(properties, key))
            fail(c, SHOAL_EUNSUPPORTED, "\"required\" names a property that \"properties\" does not have");
        else if (json_object_set_new(names, key, json_true()) != 0)
            fail(c, SHOAL_ENOMEM, "out of memory");
    }
    if (c->rc == 0) return names;
    json_decref(names);
    return NULL;
}

static int property(compiler *c, const char *key, const json_t *schema, int from)
{
    json_t *name = json_string(key);
    int at = name ? literal(c, name, from) : fail(c, SHOAL_ENOMEM, "out of memory");
    json_decref(name);
    at = nfa_call(c->a, lit(c, at, ":"), c->space);
    return compile_at(c, schema, at, key);
}

/* Two chains of states run side by side through an object: `none`, while nothing was written yet (no
 * comma is due), and `some`. */
typedef struct chains {
    int none, some;
} chains;

static void one_property(compiler *c, const char *key, const json_t *schema, bool required, chains *at)
{
    nfa *a = c->a;
    int value = nfa_state(a);
    nfa_epsilon(a, at->none, value);
    nfa_epsilon(a, nfa_call(a, lit(c, at->some, ","), c->space), value);
    int written = property(c, key, schema, value);
    if (c->rc != 0) return;
    int next_none = nfa_state(a), next_some = nfa_call(a, written, c->space);
    if (!required) {
        nfa_epsilon(a, at->none, next_none);
        nfa_epsilon(a, at->some, next_some);
    }
    *at = (chains){next_none, next_some};
}

/* Properties in the schema's order, then others when additionalProperties asks for them. */
static int object_schema(compiler *c, const json_t *schema, int from)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *extra = json_object_get(schema, "additionalProperties");
    if (properties && !json_is_object(properties))
        return fail(c, SHOAL_EINVALID, "\"properties\" must be an object");
    json_t *required = required_names(c, schema, properties);
    if (!required) return NFA_DEAD;
    nfa *a = c->a;
    if (!properties && !extra) {
        json_decref(required);
        return nfa_call(a, from, c->object);
    }
    chains at = {.none = nfa_call(a, lit(c, from, "{"), c->space), .some = nfa_state(a)};
    const char *key;
    json_t *sub;
    json_object_foreach((json_t *)properties, key, sub)
    {
        if (c->rc != 0 || nfa_failed(a)) break;
        one_property(c, key, sub, json_object_get(required, key) != NULL, &at);
    }
    json_decref(required);
    if (c->rc != 0) return NFA_DEAD;
    int none = at.none, some = at.some;
    if (json_is_true(extra) || json_is_object(extra)) {
        int rule = c->value;
        if (json_object_size(extra) > 0) {
            rule = nfa_state(a);
            int to = compile_at(c, extra, rule, "additionalProperties");
            if (c->rc != 0) return NFA_DEAD;
            nfa_return(a, to);
        }
        int item = nfa_state(a);
        nfa_epsilon(a, none, item);
        nfa_epsilon(a, nfa_call(a, lit(c, some, ","), c->space), item);
        nfa_epsilon(a, nfa_call(a, member(c, item, rule), c->space), some);
    }
    int end = nfa_state(a);
    nfa_epsilon(a, none, end);
    nfa_epsilon(a, some, end);
    return lit(c, end, "}");
}

/* "minimum": 0 means no sign, bounds beyond every number we write always hold; others we cannot hold. */
static int number_schema(compiler *c, const json_t *schema, int from, bool integer)
{
    const json_t *min = json_object_get(schema, "minimum"), *max = json_object_get(schema, "maximum");
    const double far = integer ? 9007199254740991.0 : INFINITY;
    if (max && json_number_value(max) < far)
        return fail(c, SHOAL_EUNSUPPORTED, "\"maximum\" cannot be enforced");
    if (min && json_number_value(min) == 0 && integer) return nfa_call(c->a, from, c->natural);
    if (min && json_number_value(min) > -far)
        return fail(c, SHOAL_EUNSUPPORTED, "\"minimum\" other than 0 of an integer cannot be enforced");
    return nfa_call(c->a, from, integer ? c->integer : c->number);
}

static int typed(compiler *c, const json_t *schema, const char *type, int from)
{
    if (strcmp(type, "object") == 0) return object_schema(c, schema, from);
    if (strcmp(type, "array") == 0) return array_schema(c, schema, from);
    if (strcmp(type, "string") == 0) return string_schema(c, schema, from);
    if (strcmp(type, "integer") == 0) return number_schema(c, schema, from, true);
    if (strcmp(type, "number") == 0) return number_schema(c, schema, from, false);
    if (strcmp(type, "null") == 0) return lit(c, from, "null");
    if (strcmp(type, "boolean") == 0) {
        int end = nfa_state(c->a);
        nfa_epsilon(c->a, lit(c, from, "true"), end);
        nfa_epsilon(c->a, lit(c, from, "false"), end);
        return end;
    }
    return fail(c, SHOAL_EINVALID, "unknown \"type\"");
}

/* A reference becomes a call of a rule; rules are compiled one after the other in schema_compile, so
 * that schemas may refer to themselves. */
static int reference(compiler *c, const char *ref, int from)
{
    const json_t *target = NULL;
    if (strcmp(ref, "#") == 0) target = c->root;
    if (strncmp(ref, "#/$defs/", 8) == 0)
        target = json_object_get(json_object_get(c->root, "$defs"), ref + 8);
    if (strncmp(ref, "#/definitions/", 14) == 0)
        target = json_object_get(json_object_get(c->root, "definitions"), ref + 14);
    if (!target)
        return fail(c, SHOAL_EINVALID, "\"$ref\" leads nowhere (only # and #/$defs/NAME are followed)");
    for (size_t i = 0; i < c->n_refs; i++)
        if (c->refs[i].schema == target) return nfa_call(c->a, from, c->refs[i].start);
    if (c->n_refs == REFS_MAX) return fail(c, SHOAL_ELIMIT, "more than 256 references");
    c->refs[c->n_refs++] = (schema_ref){.schema = target, .start = nfa_state(c->a)};
    return nfa_call(c->a, from, c->refs[c->n_refs - 1].start);
}

/* Keywords that would change which documents are valid, and that we do not enforce. */
static const char *const refused[] = {
    "allOf",
    "not",
    "if",
    "pattern",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "multipleOf",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "uniqueItems",
    "contains",
    "prefixItems",
    "dependentRequired",
    "unevaluatedProperties",
};

static int compile(compiler *c, const json_t *schema, int from)
{
    if (c->rc != 0 || nfa_failed(c->a)) return NFA_DEAD;
    if (json_is_true(schema)) return nfa_call(c->a, from, c->value);
    if (!json_is_object(schema)) return fail(c, SHOAL_EINVALID, "a schema must be an object or true");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const json_t *v = json_object_get(schema, refused[i]);
        if (v && !(strcmp(refused[i], "uniqueItems") == 0 && json_is_false(v))) {
            char what[96];
            snprintf(what, sizeof what, "\"%s\" is not supported", refused[i]);
            return fail(c, SHOAL_EUNSUPPORTED, what);
        }
    }
    const json_t *v;
    if ((v = json_object_get(schema, "$ref"))) {
        if (!json_is_string(v)) return fail(c, SHOAL_EINVALID, "\"$ref\" must be a string");
        return reference(c, json_string_value(v), from);
    }
    if ((v = json_object_get(schema, "const"))) return literal(c, v, from);
    if ((v = json_object_get(schema, "enum"))) return enumeration(c, v, from);
    if ((v = json_object_get(schema, "anyOf"))) return alternatives(c, v, from, "anyOf");
    if ((v = json_object_get(schema, "oneOf"))) return alternatives(c, v, from, "oneOf");
    v = json_object_get(schema, "type");
    if (json_is_string(v)) return typed(c, schema, json_string_value(v), from);
    if (json_is_array(v) && json_array_size(v) > 0) {
        int end = nfa_state(c->a);
        for (size_t i = 0; i < json_array_size(v) && c->rc == 0; i++) {
            const char *type = json_string_value(json_array_get(v, i));
            int start = nfa_state(c->a);
            nfa_epsilon(c->a, from, start);
            int to =
                type ? typed(c, schema, type, start) : fail(c, SHOAL_EINVALID, "\"type\" must hold strings");
            if (c->rc == 0) nfa_epsilon(c->a, to, end);
        }
        return end;
    }
    if (v) return fail(c, SHOAL_EINVALID, "\"type\" must be a string or an array of strings");
    if (json_object_get(schema, "properties")) return object_schema(c, schema, from);
    if (json_object_get(schema, "items")) return array_schema(c, schema, from);
    return nfa_call(c->a, from, c->value);
}

int schema_compile_json(nfa *a, const json_t *root, const char *what, schema_kind kind, int *ret_start,
                        shoal_err *err)
{
    compiler *c = calloc(1, sizeof *c);
    int rc = c ? 0 : err_nomem(err), start = NFA_DEAD;
    if (rc != 0) return rc;
    c->a = a;
    c->root = root;
    c->what = what;
    c->err = err;
    build_shared(c);
    start = nfa_state(a);
    int end = root ? compile(c, root, start) : nfa_call(a, start, c->object);
    if (c->rc == 0) nfa_return(a, end);
    for (size_t i = 0; i < c->n_refs && c->rc == 0; i++) {
        int to = compile(c, c->refs[i].schema, c->refs[i].start);
        if (c->rc == 0) nfa_return(a, to);
    }
    rc = c->rc;
    if (rc == 0 && nfa_failed(a))
        rc = err_set(err, SHOAL_ELIMIT, "%s: too large: more than %d automaton states", what, NFA_STATES_MAX);
    if (rc == 0) *ret_start = start;
    buf_done(&c->pointer);
    free(c);
    return rc;
}

int schema_parse(json_t **ret, const char *text, const char *what, shoal_err *err)
{
    int rc = json_parse(ret, text, strlen(text), what, err);
    if (rc != SHOAL_EFORMAT) return rc;
    if (err) err->code = SHOAL_EINVALID;
    return SHOAL_EINVALID;
}

int schema_compile(nfa *a, const char *schema, int *ret_start, shoal_err *err)
{
    json_t *root = NULL;
    int rc = schema ? schema_parse(&root, schema, "json_schema", err) : 0;
    if (rc == 0) rc = schema_compile_json(a, root, "json_schema", SCHEMA_ANY, ret_start, err);
    json_decref(root);
    return rc;
}
