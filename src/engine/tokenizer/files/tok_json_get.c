/* tok_json_get.c: fields of a step of tokenizer.json, with errors that name their place. */
#include <string.h>

#include "json/json.h"
#include "tokenizer/files/tok_json.h"

int tok_json_text(tokenizer *t, const json_t *o, const char *key, const char *def, const char **ret,
                  size_t *ret_len, const char *what, shoal_err *err)
{
    const json_t *v = json_object_get(o, key);
    if (v && !json_is_null(v) && !json_is_string(v))
        return err_set(err, SHOAL_EFORMAT, "%s.%s: must be a string", what, key);
    const char *s = json_is_string(v) ? json_string_value(v) : def;
    *ret_len = json_is_string(v) ? json_string_length(v) : def ? strlen(def) : 0;
    *ret = s ? arena_strndup(t->mem, s, *ret_len) : NULL;
    return s && !*ret ? err_nomem(err) : 0;
}

bool tok_json_bool(const json_t *o, const char *key, bool def)
{
    const json_t *v = json_object_get(o, key);
    return json_is_boolean(v) ? json_is_true(v) : def;
}

int tok_json_type(const json_t *o, const char *what, const char **ret, shoal_err *err)
{
    *ret = json_string_value(json_object_get(o, "type"));
    return *ret ? 0 : err_set(err, SHOAL_EFORMAT, "%s: an object with a \"type\" is expected", what);
}

int tok_json_each(tokenizer *t, const json_t *o, const char *key, tok_section *fn, const char *what,
                  shoal_err *err)
{
    const json_t *list = json_object_get(o, key), *item;
    size_t i;
    char at[160];
    if (!json_is_array(list)) return err_set(err, SHOAL_EFORMAT, "%s.%s: must be an array", what, key);
    if (json_array_size(list) > 64) return err_set(err, SHOAL_ELIMIT, "%s.%s: more than 64 steps", what, key);
    json_array_foreach(list, i, item)
    {
        snprintf(at, sizeof at, "%.100s.%s[%zu]", what, key, i);
        int rc = fn(t, item, at, err);
        if (rc) return rc;
    }
    return 0;
}

int tok_json_pattern(tokenizer *t, const json_t *o, tok_regex **ret_re, const char **ret_text,
                     size_t *ret_len, const char *what, shoal_err *err)
{
    const json_t *p = json_object_get(o, "pattern"), *re = json_object_get(p, "Regex");
    if (json_is_string(re))
        return tok_regex_compile(ret_re, json_string_value(re), json_string_length(re), what, err);
    if (!json_is_string(json_object_get(p, "String")))
        return err_set(err, SHOAL_EFORMAT, "%s.pattern: {\"String\": ...} or {\"Regex\": ...} is expected",
                       what);
    return tok_json_text(t, p, "String", NULL, ret_text, ret_len, what, err);
}

int tok_json_scheme(const json_t *o, prepend_scheme *ret, const char *what, shoal_err *err)
{
    const char *s = json_string_value(json_object_get(o, "prepend_scheme"));
    *ret =
        tok_json_bool(o, "add_prefix_space", true) ? PREPEND_ALWAYS : PREPEND_NEVER; /* files before 0.15 */
    if (!s) return 0;
    if (!strcmp(s, "always"))
        *ret = PREPEND_ALWAYS;
    else if (!strcmp(s, "first"))
        *ret = PREPEND_FIRST;
    else if (!strcmp(s, "never"))
        *ret = PREPEND_NEVER;
    else
        return err_set(err, SHOAL_EFORMAT, "%s.prepend_scheme: \"%s\" is not always, first or never", what,
                       s);
    return 0;
}
