/* grammar_judge.c: given values, judged by a schema. */
#include "grammar/grammar_facts.h"

#include <math.h>

#include "base/utf8.h"
#include "json/schema_check.h"

#define DEPTH_MAX 48 /* schemas may lead back to themselves */

typedef struct judge {
    schema_ctx *c;
    int depth;
    const json_t *from; /* an "enum" that the value was taken from */
} judge;

static bool admits(judge j, const json_t *schema, const json_t *value);

static unsigned type_of_value(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_NULL: return TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE: return TYPE_BOOLEAN;
    case JSON_INTEGER: return TYPE_INTEGER;
    case JSON_REAL: return json_real_value(v) == floor(json_real_value(v)) ? TYPE_INTEGER : TYPE_FRACTION;
    case JSON_STRING: return TYPE_STRING;
    case JSON_ARRAY: return TYPE_ARRAY;
    case JSON_OBJECT: return TYPE_OBJECT;
    }
    return 0;
}

/* How many of the list's schemas admit the value. */
static size_t n_that_admit(judge j, const json_t *list, const json_t *value)
{
    size_t i, n = 0;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        n += admits(j, one, value);
    }
    return n;
}

static bool dependencies_admit(judge j, const json_t *s, const json_t *value)
{
    static const char *const KEYS[] = {"dependencies", "dependentRequired", "dependentSchemas"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const char *name;
        json_t *on, *other;
        size_t k;
        json_object_foreach(json_object_get(s, KEYS[i]), name, on)
        {
            if (!json_object_get(value, name)) continue;
            if (!json_is_array(on) && !admits(j, on, value)) return false;
            json_array_foreach(on, k, other)
            {
                if (!json_object_get(value, json_string_value(other))) return false;
            }
        }
    }
    return true;
}

static bool conditions_admit(judge j, const json_t *s, const json_t *value)
{
    const json_t *not = json_object_get(s, "not"), *when = json_object_get(s, "if");
    if (not &&admits(j, not, value)) return false;
    const json_t *then = when ? json_object_get(s, admits(j, when, value) ? "then" : "else") : NULL;
    return (!then || admits(j, then, value)) && dependencies_admit(j, s, value);
}

static bool combine_admits(judge j, const json_t *s, const json_t *value)
{
    const json_t *all = json_object_get(s, "allOf"), *any = json_object_get(s, "anyOf"),
                 *one = json_object_get(s, "oneOf");
    if (json_object_get(s, "$ref")) {
        const json_t *to = schema_resolve(j.c, s);
        if (!to || !admits(j, to, value)) return false;
    }
    return (!all || n_that_admit(j, all, value) == json_array_size(all)) &&
           (!any || n_that_admit(j, any, value) > 0) && (!one || n_that_admit(j, one, value) == 1) &&
           conditions_admit(j, s, value);
}

static bool listed(judge j, const json_t *s, const json_t *value)
{
    const json_t *only = json_object_get(s, "const"), *list = json_object_get(s, "enum"), *one;
    size_t i;
    if (only && !json_same(only, value, NULL)) return false;
    if (!list || list == j.from) return true;
    if (!schema_works(j.c, json_array_size(list) / 4)) return false;
    json_array_foreach(list, i, one)
    {
        if (json_same(one, value, NULL)) return true;
    }
    return false;
}

static bool is_between(schema_ctx *c, const json_t *s, const char *min, const char *max, size_t n)
{
    int64_t least = facts_count_of(c, s, min, 0), most = facts_count_of(c, s, max, INT64_MAX);
    return (int64_t)n >= least && (int64_t)n <= most;
}

static bool string_admitted(judge j, const json_t *s, const json_t *v)
{
    const char *text = json_string_value(v);
    size_t n = json_string_length(v);
    if (!is_between(j.c, s, "minLength", "maxLength", utf8_count(text, n))) return false;
    if (!json_object_get(s, "pattern")) return true;
    const dfa *d = facts_pattern_of(j.c, s);
    return d && dfa_matches(d, text, n);
}

static bool number_admitted(judge j, const json_t *s, const json_t *v)
{
    number_bounds b;
    bool any;
    parts p = {.of = {s}, .n = 1};
    return facts_numbers(j.c, &p, false, &b, &any) && (any || number_is_within(&b, v));
}

static bool contains_admits(judge j, const json_t *s, const json_t *v)
{
    const json_t *wanted = json_object_get(s, "contains"), *one;
    int64_t least = facts_count_of(j.c, s, "minContains", 1),
            most = facts_count_of(j.c, s, "maxContains", INT64_MAX), n = 0;
    size_t i;
    if (!wanted) return true;
    json_array_foreach(v, i, one)
    {
        n += admits(j, wanted, one);
    }
    return n >= least && n <= most;
}

static bool array_admitted(judge j, const json_t *s, const json_t *v)
{
    size_t i, k;
    const json_t *one;
    if (!is_between(j.c, s, "minItems", "maxItems", json_array_size(v))) return false;
    if (!contains_admits(j, s, v)) return false;
    bool unique = json_is_true(json_object_get(s, "uniqueItems"));
    json_array_foreach(v, i, one)
    {
        const json_t *own = json_array_get(facts_prefix_items(s), i);
        if (!own) own = facts_rest_of_items(s);
        if (own && !admits(j, own, one)) return false;
        for (k = 0; unique && k < i; k++)
            if (json_same(one, json_array_get(v, k), NULL)) return false;
    }
    return true;
}

static bool object_admitted(judge j, const json_t *s, const json_t *v)
{
    const char *name;
    json_t *one;
    size_t i;
    if (!is_between(j.c, s, "minProperties", "maxProperties", json_object_size(v))) return false;
    json_array_foreach(json_object_get(s, "required"), i, one)
    {
        if (json_is_string(one) && !json_object_get(v, json_string_value(one))) return false;
    }
    json_object_foreach((json_t *)v, name, one)
    {
        parts all = {0};
        bool declared = false;
        if (!facts_property_of(j.c, s, name, &all, &declared)) return false;
        for (size_t k = 0; k < all.n; k++)
            if (!admits(j, all.of[k], one)) return false;
    }
    return true;
}

/* The keywords of the schema itself, without those that lead to others that have to hold as well. */
static bool itself_admits(judge j, const json_t *schema, const json_t *value)
{
    if (!schema_works(j.c, 10)) return false;
    if (!(facts_types_of(j.c, schema) & type_of_value(value)) || !listed(j, schema, value)) return false;
    if (json_is_string(value)) return string_admitted(j, schema, value);
    if (json_is_number(value)) return number_admitted(j, schema, value);
    if (json_is_array(value)) return array_admitted(j, schema, value);
    return !json_is_object(value) || object_admitted(j, schema, value);
}

static bool admits(judge j, const json_t *schema, const json_t *value)
{
    if (!json_is_object(schema) || schema_admits_nothing(schema)) return json_is_true(schema);
    if (++j.depth > DEPTH_MAX) {
        schema_fail(j.c, SHOAL_ELIMIT, schema, NULL,
                    "a value of \"enum\" or \"const\" nests too deeply to be judged");
        return false;
    }
    return itself_admits(j, schema, value) && combine_admits(j, schema, value);
}

bool facts_admit(schema_ctx *c, const json_t *schema, const json_t *value)
{
    return admits((judge){.c = c}, schema, value) && c->rc == 0;
}

bool facts_all_admit(schema_ctx *c, const parts *p, const json_t *value, const json_t *from)
{
    for (size_t i = 0; i < p->n; i++)
        if (!itself_admits((judge){.c = c, .from = from}, p->of[i], value)) return false;
    return c->rc == 0;
}
