/* verify_json.c: JSON held against a schema; see verify_json.h. A keyword is a row with two functions: may it
 * stand so in a schema, and does a value fit it? */
#include "ensemble/verify_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct verify_schema {
    json_t *root;
};

/* ---- what a keyword demands ---------------------------------------------------------------------- */

static bool fits(const json_t *schema, const json_t *v);

static bool is_type(const char *type, const json_t *v)
{
    if (strcmp(type, "integer") == 0)
        return json_is_number(v) && floor(json_number_value(v)) == json_number_value(v);
    return (strcmp(type, "number") == 0 && json_is_number(v)) ||
           (strcmp(type, "string") == 0 && json_is_string(v)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(v)) ||
           (strcmp(type, "object") == 0 && json_is_object(v)) ||
           (strcmp(type, "array") == 0 && json_is_array(v)) || (strcmp(type, "null") == 0 && json_is_null(v));
}

static bool fits_type(const json_t *of, const json_t *schema, const json_t *v)
{
    (void)schema;
    if (json_is_string(of)) return is_type(json_string_value(of), v);
    for (size_t i = 0; i < json_array_size(of); i++)
        if (is_type(json_string_value(json_array_get(of, i)), v)) return true;
    return false;
}

static bool fits_enum(const json_t *of, const json_t *schema, const json_t *v)
{
    (void)schema;
    for (size_t i = 0; i < json_array_size(of); i++)
        if (json_equal(json_array_get(of, i), v)) return true;
    return false;
}

static bool fits_const(const json_t *of, const json_t *schema, const json_t *v)
{
    (void)schema;
    return json_equal(of, v);
}

static bool fits_properties(const json_t *of, const json_t *schema, const json_t *v)
{
    const char *key;
    const json_t *demand;
    (void)schema;
    json_object_foreach((json_t *)(uintptr_t)of, key, demand)
    {
        const json_t *member = json_object_get(v, key);
        if (member && !fits(demand, member)) return false;
    }
    return true;
}

static bool fits_additional(const json_t *of, const json_t *schema, const json_t *v)
{
    const char *key;
    const json_t *member, *named = json_object_get(schema, "properties");
    if (!json_is_object(v)) return true;
    json_object_foreach((json_t *)(uintptr_t)v, key, member)
    {
        if (!json_object_get(named, key) && !fits(of, member)) return false;
    }
    return true;
}

static bool fits_required(const json_t *of, const json_t *schema, const json_t *v)
{
    (void)schema;
    for (size_t i = 0; json_is_object(v) && i < json_array_size(of); i++)
        if (!json_object_get(v, json_string_value(json_array_get(of, i)))) return false;
    return true;
}

static bool fits_items(const json_t *of, const json_t *schema, const json_t *v)
{
    (void)schema;
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!fits(of, json_array_get(v, i))) return false;
    return true;
}

/* How many code points, entries or members; -1: it has no length of that kind. */
static double length_of(const char *word, const json_t *v)
{
    if (strcmp(word + 3, "Items") == 0) return json_is_array(v) ? (double)json_array_size(v) : -1;
    if (strcmp(word + 3, "Properties") == 0) return json_is_object(v) ? (double)json_object_size(v) : -1;
    double n = 0;
    for (const char *s = json_string_value(v); s && *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return json_is_string(v) ? n : -1;
}

/* ---- the rows ------------------------------------------------------------------------------------ */

typedef enum form { TYPES, LIST, ANY, SCHEMAS, SCHEMA, NAMES, BOUND, COUNT, NOTE } form;

typedef struct keyword {
    const char *word;
    form form; /* what stands behind it */
    bool (*fits)(const json_t *of, const json_t *schema, const json_t *v);
} keyword;

static const keyword KEYWORDS[] = {
    {"type", TYPES, fits_type},
    {"enum", LIST, fits_enum},
    {"const", ANY, fits_const},
    {"properties", SCHEMAS, fits_properties},
    {"additionalProperties", SCHEMA, fits_additional},
    {"required", NAMES, fits_required},
    {"items", SCHEMA, fits_items},
    {"minimum", BOUND, NULL},
    {"maximum", BOUND, NULL},
    {"minLength", COUNT, NULL},
    {"maxLength", COUNT, NULL},
    {"minItems", COUNT, NULL},
    {"maxItems", COUNT, NULL},
    {"minProperties", COUNT, NULL},
    {"maxProperties", COUNT, NULL},
    {"title", NOTE, NULL},
    {"description", NOTE, NULL},
    {"default", NOTE, NULL},
    {"examples", NOTE, NULL},
    {"$schema", NOTE, NULL},
    {"$id", NOTE, NULL},
    {"$comment", NOTE, NULL},
};

static const keyword *keyword_of(const char *word)
{
    for (size_t i = 0; i < sizeof KEYWORDS / sizeof *KEYWORDS; i++)
        if (strcmp(KEYWORDS[i].word, word) == 0) return &KEYWORDS[i];
    return NULL;
}

/* "minimum", "maxItems": the third letter tells the side. */
static bool within(const char *word, double is, double bound)
{
    return word[2] == 'n' ? is >= bound : is <= bound;
}

static bool fits_keyword(const keyword *k, const json_t *of, const json_t *schema, const json_t *v)
{
    double n;
    switch (k->form) {
    case NOTE: return true;
    case BOUND: return !json_is_number(v) || within(k->word, json_number_value(v), json_number_value(of));
    case COUNT: n = length_of(k->word, v); return n < 0 || within(k->word, n, json_number_value(of));
    default: return k->fits(of, schema, v);
    }
}

/* Schemas and values are at most JSON_DEPTH_MAX deep. */
static bool fits(const json_t *schema, const json_t *v)
{
    const char *key;
    const json_t *of;
    if (json_is_boolean(schema)) return json_is_true(schema);
    json_object_foreach((json_t *)(uintptr_t)schema, key, of)
    {
        const keyword *k = keyword_of(key);
        if (!k || !fits_keyword(k, of, schema, v)) return false;
    }
    return true;
}

/* ---- reading a schema ---------------------------------------------------------------------------- */

static int verify_json_check_schema(const json_t *s, const char *what, shoal_err *err);

static bool all_strings(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i))) return false;
    return json_is_array(list);
}

static bool is_known_type(const json_t *name)
{
    static const char *const TYPE_NAMES[] = {"string", "number", "integer", "boolean",
                                             "object", "array",  "null"};
    const char *s = json_string_value(name);
    for (size_t i = 0; s && i < sizeof TYPE_NAMES / sizeof *TYPE_NAMES; i++)
        if (strcmp(s, TYPE_NAMES[i]) == 0) return true;
    return false;
}

static bool all_types(const json_t *v)
{
    if (json_is_string(v)) return is_known_type(v);
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!is_known_type(json_array_get(v, i))) return false;
    return json_array_size(v) > 0;
}

static bool has_form(form f, const json_t *v)
{
    switch (f) {
    case TYPES: return all_types(v);
    case LIST: return json_is_array(v);
    case SCHEMAS: return json_is_object(v);
    case NAMES: return all_strings(v);
    case BOUND: return json_is_number(v);
    case COUNT: return json_is_integer(v) && json_integer_value(v) >= 0;
    case SCHEMA: /* looked at by check_schema */
    case ANY:
    case NOTE: break;
    }
    return true;
}

static int check_members(const json_t *map, const char *what, shoal_err *err)
{
    const char *key;
    const json_t *s;
    int rc = 0;
    json_object_foreach((json_t *)(uintptr_t)map, key, s)
    {
        if (!rc) rc = verify_json_check_schema(s, what, err);
    }
    return rc;
}

static int check_keyword(const char *word, const json_t *v, const char *what, shoal_err *err)
{
    const keyword *k = keyword_of(word);
    if (!k)
        return err_set(err, SHOAL_EINVALID,
                       "%s: the keyword '%.40s' is not served; of JSON Schema there are type, enum, const, "
                       "properties, additionalProperties, required, items and bounds",
                       what, word);
    if (!has_form(k->form, v))
        return err_set(err, SHOAL_EINVALID, "%s: what stands behind '%s' is not what belongs there", what,
                       word);
    if (k->form == SCHEMA) return verify_json_check_schema(v, what, err);
    return k->form == SCHEMAS ? check_members(v, what, err) : 0;
}

static int verify_json_check_schema(const json_t *s, const char *what, shoal_err *err)
{
    const char *key;
    const json_t *v;
    int rc = 0;
    if (json_is_boolean(s)) return 0;
    if (!json_is_object(s))
        return err_set(err, SHOAL_EINVALID, "%s: a schema is an object, true or false", what);
    json_object_foreach((json_t *)(uintptr_t)s, key, v)
    {
        if (!rc) rc = check_keyword(key, v, what, err);
    }
    return rc;
}

/* Takes root. */
static int make(verify_schema **ret, json_t *root, const char *what, shoal_err *err)
{
    int rc = verify_json_check_schema(root, what, err);
    verify_schema *s = rc == 0 ? malloc(sizeof *s) : NULL;
    if (rc == 0 && !s) rc = err_nomem(err);
    if (rc != 0) {
        json_decref(root);
        return rc;
    }
    s->root = root;
    *ret = s;
    return 0;
}

int verify_schema_parse(verify_schema **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    json_t *root = NULL;
    int rc = json_parse(&root, text, len, what, err);
    return rc ? rc : make(ret, root, what, err);
}

int verify_schema_load(verify_schema **ret, const char *path, shoal_err *err)
{
    json_t *root = NULL;
    int rc = json_parse_file(&root, path, VERIFY_SCHEMA_BYTES_MAX, err);
    return rc ? rc : make(ret, root, path, err);
}

void verify_schema_free(verify_schema *s)
{
    if (!s) return;
    json_decref(s->root);
    free(s);
}

int verify_json(verify_why *ret, const verify_schema *s, const char *text)
{
    json_t *v = NULL;
    int rc = json_parse(&v, text, strlen(text), "the answer", NULL);
    if (rc == SHOAL_ENOMEM) return rc;
    *ret = rc != 0 ? VERIFY_NO_JSON : s && !fits(s->root, v) ? VERIFY_NO_FIT : VERIFY_FINE;
    json_decref(v);
    return 0;
}
