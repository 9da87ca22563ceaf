/* schema_check.c: see schema_check.h. Keywords: JSON Schema validation 2020-12, section 6, and core,
 * section 10. */
#include "json/schema_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "json/json_refs.h"
#include "base/utf8.h"
#include "regex/regex.h"

/* A step is about what one look into an object takes, or TEXT_BYTES of a text. */
enum { STEPS_MAX = 200000, DEPTH_MAX = 200, TEXT_BYTES = 64 };

typedef struct check {
    const json_t *root;
    bool stand_alone; /* json_refs.h */
    schema_verdict *v;
    buf where; /* the pointer to the value that is looked at */
    size_t steps;
    int depth, trials; /* within trials a failure is no verdict yet */
} check;

static bool valid(check *c, const json_t *schema, const json_t *value);

/* ---- verdicts ------------------------------------------------------------------------------------ */

static bool schema_check_settle(check *c, schema_outcome outcome, const char *why)
{
    if (c->v->outcome == SCHEMA_UNKNOWN || (outcome == SCHEMA_BROKEN && (c->trials || *c->v->why)))
        return false;
    c->v->outcome = outcome;
    snprintf(c->v->why, sizeof c->v->why, "%s", why);
    snprintf(c->v->where, sizeof c->v->where, "%.*s", (int)c->where.len, c->where.len ? c->where.data : "");
    return false;
}

static bool broken(check *c, const char *key, const char *why)
{
    char text[160];
    if (c->trials) return false;
    snprintf(text, sizeof text, "%s (\"%s\")", why, key);
    return schema_check_settle(c, SCHEMA_BROKEN, text);
}

static bool unknown(check *c, const char *why)
{
    return schema_check_settle(c, SCHEMA_UNKNOWN, why);
}

static bool lacks_memory(check *c)
{
    c->v->out_of_memory = true;
    return unknown(c, "memory ran out");
}

static bool works(check *c, size_t n)
{
    if (c->v->outcome == SCHEMA_UNKNOWN) return false;
    if (c->steps < n) return unknown(c, "the schema is too much work");
    c->steps -= n;
    return true;
}

static bool reads(check *c, size_t n_bytes)
{
    return works(c, 1 + n_bytes / TEXT_BYTES);
}

/* No verdict is to come any more, so no loop goes on. */
static bool schema_check_is_over(const check *c)
{
    return c->v->outcome == SCHEMA_UNKNOWN;
}

/* One trial of many: whether it fails is for its caller to judge. */
static bool would_be_valid(check *c, const json_t *schema, const json_t *value)
{
    c->trials++;
    bool ok = valid(c, schema, value);
    c->trials--;
    return ok;
}

static bool valid_at(check *c, const json_t *schema, const json_t *value, const char *key, size_t index)
{
    size_t len = c->where.len;
    if (key && !reads(c, strlen(key))) return false;
    if (key)
        buf_printf(&c->where, "/%s", key);
    else
        buf_printf(&c->where, "/%zu", index);
    bool ok = c->where.failed ? lacks_memory(c) : valid(c, schema, value);
    c->where.len = len;
    return ok;
}

/* ---- values -------------------------------------------------------------------------------------- */

static bool schema_check_take(size_t *steps, size_t n)
{
    bool some = !steps || *steps >= n;
    if (steps) *steps = some ? *steps - n : 0;
    return some;
}

/* A double is compared as the integer that it is: beyond 2^53 the other way round would round. */
static bool same_number(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) return json_integer_value(a) == json_integer_value(b);
    if (json_is_real(a) && json_is_real(b)) return json_real_value(a) == json_real_value(b);
    double d = json_real_value(json_is_real(a) ? a : b);
    json_int_t n = json_integer_value(json_is_real(a) ? b : a);
    return d == floor(d) && d >= -0x1p63 && d < 0x1p63 && (json_int_t)d == n;
}

static bool same_items(const json_t *a, const json_t *b, size_t *steps)
{
    if (json_array_size(a) != json_array_size(b)) return false;
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!json_same(json_array_get(a, i), json_array_get(b, i), steps)) return false;
    return true;
}

static bool same_members(const json_t *a, const json_t *b, size_t *steps)
{
    const char *key;
    json_t *v;
    if (json_object_size(a) != json_object_size(b)) return false;
    json_object_foreach((json_t *)a, key, v)
    {
        const json_t *other =
            schema_check_take(steps, 1 + strlen(key) / TEXT_BYTES) ? json_object_get(b, key) : NULL;
        if (!other || !json_same(v, other, steps)) return false;
    }
    return true;
}

bool json_same(const json_t *a, const json_t *b, size_t *steps)
{
    if (!schema_check_take(steps, 1)) return false;
    if (json_is_number(a) && json_is_number(b)) return same_number(a, b);
    if (json_is_object(a) && json_is_object(b)) return same_members(a, b, steps);
    if (json_is_array(a) && json_is_array(b)) return same_items(a, b, steps);
    return schema_check_take(steps, json_string_length(a) / TEXT_BYTES) && json_equal(a, b);
}

static bool same(check *c, const json_t *a, const json_t *b)
{
    if (schema_check_is_over(c)) return false;
    bool ok = json_same(a, b, &c->steps);
    return ok || c->steps > 0 ? ok : works(c, 1);
}

static bool is_of_type(const json_t *v, const char *type)
{
    if (strcmp(type, "integer") == 0)
        return json_is_integer(v) || (json_is_real(v) && json_real_value(v) == floor(json_real_value(v)));
    if (strcmp(type, "number") == 0) return json_is_number(v);
    if (strcmp(type, "string") == 0) return json_is_string(v);
    if (strcmp(type, "boolean") == 0) return json_is_boolean(v);
    if (strcmp(type, "null") == 0) return json_is_null(v);
    if (strcmp(type, "array") == 0) return json_is_array(v);
    return strcmp(type, "object") == 0 && json_is_object(v);
}

static bool check_type(check *c, const json_t *s, const json_t *v)
{
    const json_t *type = json_object_get(s, "type"), *one;
    size_t i;
    if (!type) return true;
    if (json_is_string(type) && is_of_type(v, json_string_value(type))) return true;
    if (!works(c, json_array_size(type))) return false;
    json_array_foreach((json_t *)type, i, one)
    {
        if (json_is_string(one) && is_of_type(v, json_string_value(one))) return true;
    }
    return broken(c, "type", "it is of another type");
}

static bool check_values(check *c, const json_t *s, const json_t *v)
{
    const json_t *list = json_object_get(s, "enum"), *only = json_object_get(s, "const"), *one;
    size_t i;
    if (only && !same(c, only, v)) return broken(c, "const", "it is another value");
    if (!json_is_array(list)) return true;
    json_array_foreach((json_t *)list, i, one)
    {
        if (same(c, one, v)) return true;
        if (schema_check_is_over(c)) return false;
    }
    return broken(c, "enum", "it is none of the values");
}

/* Whether a member of the schema is a number, and which. */
static bool number_in(const json_t *s, const char *key, double *ret)
{
    const json_t *v = json_object_get(s, key);
    *ret = json_number_value(v);
    return json_is_number(v);
}

static bool check_number(check *c, const json_t *s, const json_t *v)
{
    double x = json_number_value(v), n;
    if (number_in(s, "minimum", &n) &&
        (x < n || (x == n && json_is_true(json_object_get(s, "exclusiveMinimum")))))
        return broken(c, "minimum", "it is too small");
    if (number_in(s, "maximum", &n) &&
        (x > n || (x == n && json_is_true(json_object_get(s, "exclusiveMaximum")))))
        return broken(c, "maximum", "it is too large");
    if (number_in(s, "exclusiveMinimum", &n) && x <= n)
        return broken(c, "exclusiveMinimum", "it is too small");
    if (number_in(s, "exclusiveMaximum", &n) && x >= n)
        return broken(c, "exclusiveMaximum", "it is too large");
    if (!number_in(s, "multipleOf", &n) || n <= 0) return true;
    double times = x / n;
    return fabs(times - round(times)) <= 1e-9 * fmax(1, fabs(times)) ||
           broken(c, "multipleOf", "it is no multiple");
}

/* To compile a pattern is more work than to look through a text. */
static bool matches(check *c, const char *pattern, const char *text, size_t n)
{
    regex *r = NULL;
    if (!works(c, 100 + strlen(pattern) + n / 8)) return false;
    if (n > REGEX_BYTES) return unknown(c, "a text is too long for a pattern");
    if (regex_compile_ecma(&r, pattern, NULL) != 0) return unknown(c, "a pattern is not understood");
    bool fits = reads(c, regex_bytes(r));
    regex_result found = fits ? regex_find_counted(r, text, n, &c->steps) : REGEX_NONE;
    regex_free(r);
    if (found == REGEX_GAVE_UP) return unknown(c, "a pattern is too much work");
    return found == REGEX_FOUND;
}

static bool check_text(check *c, const json_t *s, const json_t *v)
{
    const char *text = json_string_value(v);
    size_t bytes = json_string_length(v), length = 0;
    double n;
    if (!reads(c, bytes)) return false;
    for (size_t i = 0; i < bytes; i++) length += ((unsigned char)text[i] & 0xC0) != 0x80;
    if (number_in(s, "minLength", &n) && (double)length < n) return broken(c, "minLength", "it is too short");
    if (number_in(s, "maxLength", &n) && (double)length > n) return broken(c, "maxLength", "it is too long");
    const json_t *pattern = json_object_get(s, "pattern");
    if (!pattern) return true;
    if (!json_is_string(pattern)) return unknown(c, "a pattern is no text");
    return matches(c, json_string_value(pattern), text, bytes) || broken(c, "pattern", "it does not match");
}

/* ---- arrays -------------------------------------------------------------------------------------- */

static bool check_items(check *c, const json_t *s, const json_t *v)
{
    const json_t *first = json_object_get(s, "prefixItems"), *rest = json_object_get(s, "items"), *item;
    size_t i;
    if (json_is_array(rest)) first = rest, rest = json_object_get(s, "additionalItems");
    size_t n_first = json_array_size(first);
    json_array_foreach((json_t *)v, i, item)
    {
        if (!rest && i >= n_first) break;
        const json_t *one = i < n_first ? json_array_get(first, i) : rest;
        if (one && !valid_at(c, one, item, NULL, i)) return false;
    }
    return true;
}

static bool check_unique(check *c, const json_t *v)
{
    for (size_t i = 1; i < json_array_size(v) && !schema_check_is_over(c); i++)
        for (size_t k = 0; k < i && !schema_check_is_over(c); k++)
            if (same(c, json_array_get(v, i), json_array_get(v, k)))
                return broken(c, "uniqueItems", "an item is there twice");
    return true;
}

static bool check_contains(check *c, const json_t *s, const json_t *v)
{
    const json_t *one = json_object_get(s, "contains"), *item;
    double least = 1, most = -1, n = 0;
    size_t i;
    if (!one) return true;
    if (!number_in(s, "minContains", &least)) least = 1;
    if (!number_in(s, "maxContains", &most)) most = -1;
    json_array_foreach((json_t *)v, i, item)
    {
        n += would_be_valid(c, one, item);
        if (schema_check_is_over(c)) return false;
    }
    return (n >= least && (most < 0 || n <= most)) ||
           broken(c, "contains", "too few or too many items are of the kind");
}

static bool check_array(check *c, const json_t *s, const json_t *v)
{
    double n, size = (double)json_array_size(v);
    if (number_in(s, "minItems", &n) && size < n) return broken(c, "minItems", "it has too few items");
    if (number_in(s, "maxItems", &n) && size > n) return broken(c, "maxItems", "it has too many items");
    return check_items(c, s, v) && check_contains(c, s, v) &&
           (!json_is_true(json_object_get(s, "uniqueItems")) || check_unique(c, v));
}

/* ---- objects ------------------------------------------------------------------------------------- */

/* A member by all schemas that are for its name; *ret_known: there was one. */
static bool check_named(check *c, const json_t *s, const char *name, const json_t *v, bool *ret_known)
{
    const json_t *own, *one;
    const char *pattern;
    if (!reads(c, strlen(name))) return false;
    own = json_object_get(json_object_get(s, "properties"), name);
    *ret_known = own != NULL;
    if (own && !valid_at(c, own, v, name, 0)) return false;
    json_object_foreach(json_object_get(s, "patternProperties"), pattern, one)
    {
        bool found = matches(c, pattern, name, strlen(name));
        if (schema_check_is_over(c)) return false;
        *ret_known |= found;
        if (found && !valid_at(c, one, v, name, 0)) return false;
    }
    return true;
}

static bool check_name(check *c, const json_t *s, const char *name)
{
    const json_t *names = json_object_get(s, "propertyNames");
    json_t *text = names ? json_string(name) : NULL;
    if (!names) return true;
    bool ok = text ? would_be_valid(c, names, text) : lacks_memory(c);
    json_decref(text);
    return ok || broken(c, "propertyNames", "a name is not allowed");
}

static bool check_members(check *c, const json_t *s, const json_t *v)
{
    const json_t *rest = json_object_get(s, "additionalProperties");
    const char *name;
    json_t *one;
    json_object_foreach((json_t *)v, name, one)
    {
        bool known;
        if (!check_named(c, s, name, one, &known) || !check_name(c, s, name)) return false;
        if (!known && rest && !valid_at(c, rest, one, name, 0)) return false;
    }
    return true;
}

static bool has_all(check *c, const json_t *names, const json_t *v, const char *key)
{
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)names, i, name)
    {
        if (!reads(c, json_string_length(name))) return false;
        if (json_is_string(name) && !json_object_get(v, json_string_value(name)))
            return broken(c, key, "a member is not there");
    }
    return true;
}

/* "dependentRequired" and "dependentSchemas", which older drafts have as one: "dependencies". */
static bool check_dependent(check *c, const json_t *s, const json_t *v)
{
    static const char *const KEYS[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    const char *name;
    json_t *wants;
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        json_object_foreach(json_object_get(s, KEYS[i]), name, wants)
        {
            if (!reads(c, strlen(name))) return false;
            if (!json_object_get(v, name)) continue;
            if (json_is_array(wants) ? !has_all(c, wants, v, KEYS[i]) : !valid(c, wants, v)) return false;
        }
    }
    return true;
}

static bool check_object(check *c, const json_t *s, const json_t *v)
{
    double n, size = (double)json_object_size(v);
    if (number_in(s, "minProperties", &n) && size < n)
        return broken(c, "minProperties", "it has too few members");
    if (number_in(s, "maxProperties", &n) && size > n)
        return broken(c, "maxProperties", "it has too many members");
    const json_t *required = json_object_get(s, "required");
    return (!json_is_array(required) || has_all(c, required, v, "required")) && check_members(c, s, v) &&
           check_dependent(c, s, v);
}

/* ---- choices ------------------------------------------------------------------------------------- */

static size_t count_valid(check *c, const json_t *list, const json_t *v)
{
    size_t i, n = 0;
    json_t *one;
    json_array_foreach((json_t *)list, i, one)
    {
        n += would_be_valid(c, one, v);
        if (schema_check_is_over(c)) break;
    }
    return n;
}

static bool check_choices(check *c, const json_t *s, const json_t *v)
{
    const json_t *all = json_object_get(s, "allOf"), *any = json_object_get(s, "anyOf"),
                 *single = json_object_get(s, "oneOf"), *no = json_object_get(s, "not"), *one;
    size_t i;
    json_array_foreach((json_t *)all, i, one)
    {
        if (!valid(c, one, v)) return false;
    }
    if (any && count_valid(c, any, v) == 0) return broken(c, "anyOf", "it is none of the choices");
    if (single && count_valid(c, single, v) != 1)
        return broken(c, "oneOf", "it is not exactly one of the choices");
    if (no && would_be_valid(c, no, v)) return broken(c, "not", "it is what it must not be");
    const json_t *when = json_object_get(s, "if");
    if (!when) return true;
    const json_t *then = json_object_get(s, would_be_valid(c, when, v) ? "then" : "else");
    return !then || valid(c, then, v);
}

/* ---- schemas ------------------------------------------------------------------------------------- */

static bool check_reference(check *c, const json_t *s, const json_t *v)
{
    const json_t *ref = json_object_get(s, "$ref");
    if (!ref) return true;
    const char *text = json_string_value(ref);
    if (text && !works(c, 1 + strlen(text) / 4)) return false; /* a step of the pointer may have two bytes */
    const json_t *to = text ? json_refs_follow(c->root, text) : NULL;
    return to ? valid(c, to, v) : unknown(c, "a \"$ref\" leads nowhere within the schema");
}

static bool check_all(check *c, const json_t *s, const json_t *v)
{
    if (json_object_get(s, "$dynamicRef") || json_object_get(s, "$recursiveRef") ||
        json_object_get(s, "unevaluatedProperties") || json_object_get(s, "unevaluatedItems"))
        return unknown(c, "\"unevaluated...\" and a \"$dynamicRef\" to several places are not looked at");
    if (!check_reference(c, s, v)) return false;
    if (c->stand_alone && json_object_get(s, "$ref")) return true;
    if (!check_type(c, s, v) || !check_values(c, s, v)) return false;
    if (json_is_number(v) && !check_number(c, s, v)) return false;
    if (json_is_string(v) && !check_text(c, s, v)) return false;
    if (json_is_array(v) && !check_array(c, s, v)) return false;
    if (json_is_object(v) && !check_object(c, s, v)) return false;
    return check_choices(c, s, v) && !schema_check_is_over(c);
}

static bool valid(check *c, const json_t *schema, const json_t *value)
{
    if (!works(c, 1)) return false;
    if (json_is_true(schema)) return true;
    if (json_is_false(schema)) return broken(c, "false", "nothing is allowed here");
    if (!json_is_object(schema)) return unknown(c, "a schema is no object");
    if (c->depth >= DEPTH_MAX) return unknown(c, "the schema or the value is too deep");
    c->depth++;
    bool ok = check_all(c, schema, value);
    c->depth--;
    return ok;
}

static void schema_check_judge(check *c, const json_t *schema, const json_t *value)
{
    *c->v = (schema_verdict){.outcome = SCHEMA_OBEYED};
    if (schema)
        valid(c, schema, value);
    else
        lacks_memory(c);
    buf_done(&c->where);
}

void schema_check(schema_verdict *ret, const json_t *schema, const json_t *value)
{
    json_t *own = json_refs_resolve(schema);
    check c = {.root = own, .stand_alone = json_refs_stand_alone(own), .v = ret, .steps = STEPS_MAX};
    schema_check_judge(&c, own, value);
    json_decref(own);
}

void schema_check_own(schema_verdict *ret, const json_t *schema, const json_t *value)
{
    check c = {.root = schema, .v = ret, .steps = SIZE_MAX};
    schema_check_judge(&c, schema, value);
}

void schema_check_text(schema_verdict *ret, const json_t *schema, const char *text, size_t n)
{
    json_t *value = NULL;
    int rc = json_parse_last(&value, text, n, "the reply", NULL);
    bool no_memory = rc == SHOAL_ENOMEM;
    *ret =
        (schema_verdict){.outcome = no_memory ? SCHEMA_UNKNOWN : SCHEMA_BROKEN, .out_of_memory = no_memory};
    snprintf(ret->why, sizeof ret->why, "%s", no_memory ? "memory ran out" : "it is no JSON document");
    if (rc == 0) schema_check(ret, schema, value);
    json_decref(value);
}

void schema_verdict_put(buf *out, const schema_verdict *v)
{
    buf_printf(out, "{\"valid\":%s", v->outcome == SCHEMA_UNKNOWN ? "null" : *v->why ? "false" : "true");
    if (*v->why) {
        json_put_text_n(out, "at", v->where,
                        strlen(v->where) - utf8_incomplete_tail(v->where, strlen(v->where)));
        json_put_text(out, "why", v->why);
    }
    buf_putc(out, '}');
}
