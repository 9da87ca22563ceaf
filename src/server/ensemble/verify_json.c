/* verify_json.c: JSON held against a schema; see verify_json.h. A keyword is a row that says what may stand
 * behind it. */
#include "ensemble/verify_json.h"

#include <stdlib.h>
#include <string.h>

#include "json/schema_check.h"

struct verify_schema {
    json_t *root;
};

/* ---- the rows ------------------------------------------------------------------------------------ */

typedef enum form { TYPES, LIST, ANY, SCHEMAS, SCHEMA, NAMES, BOUND, COUNT, NOTE } form;

typedef struct keyword {
    const char *word;
    form form; /* what stands behind it */
} keyword;

static const keyword KEYWORDS[] = {
    {"type", TYPES},
    {"enum", LIST},
    {"const", ANY},
    {"properties", SCHEMAS},
    {"additionalProperties", SCHEMA},
    {"required", NAMES},
    {"items", SCHEMA},
    {"minimum", BOUND},
    {"maximum", BOUND},
    {"minLength", COUNT},
    {"maxLength", COUNT},
    {"minItems", COUNT},
    {"maxItems", COUNT},
    {"minProperties", COUNT},
    {"maxProperties", COUNT},
    {"title", NOTE},
    {"description", NOTE},
    {"default", NOTE},
    {"examples", NOTE},
    {"$schema", NOTE},
    {"$id", NOTE},
    {"$comment", NOTE},
};

static const keyword *keyword_of(const char *word)
{
    for (size_t i = 0; i < sizeof KEYWORDS / sizeof *KEYWORDS; i++)
        if (strcmp(KEYWORDS[i].word, word) == 0) return &KEYWORDS[i];
    return NULL;
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
static int verify_json_make(verify_schema **ret, json_t *root, const char *what, shoal_err *err)
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
    return rc ? rc : verify_json_make(ret, root, what, err);
}

int verify_schema_load(verify_schema **ret, const char *path, shoal_err *err)
{
    json_t *root = NULL;
    int rc = json_parse_file(&root, path, VERIFY_SCHEMA_BYTES_MAX, err);
    return rc ? rc : verify_json_make(ret, root, path, err);
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
    schema_verdict verdict = {0};
    int rc = json_parse(&v, text, strlen(text), "the answer", NULL);
    if (rc == 0 && s) schema_check_own(&verdict, s->root, v);
    json_decref(v);
    if (rc == SHOAL_ENOMEM || verdict.out_of_memory) return SHOAL_ENOMEM;
    *ret = rc != 0 ? VERIFY_NO_JSON : verdict.outcome != SCHEMA_OBEYED ? VERIFY_NO_FIT : VERIFY_FINE;
    return 0;
}
