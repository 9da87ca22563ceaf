/* eval_expect.c: an expectation is checked before it judges anything; a misspelt key would pass for years. */
#include <string.h>

#include "eval/eval_judge.h"

typedef enum value_kind { TEXTS, CHOICES, CALLS, COUNT } value_kind;

typedef struct field_rule {
    const char *kind; /* "": every kind has it */
    const char *key;
    value_kind value;
    bool required;
} field_rule;

static const field_rule RULES[] = {
    {"calls", "calls", CALLS, true}, {"ask", "of", CHOICES, true},      {"ask", "least", COUNT, false},
    {"refuse", NULL, TEXTS, false},  {"answer", NULL, TEXTS, false},    {"fallback", NULL, TEXTS, false},
    {"reject", NULL, TEXTS, false},  {"faithful", "may", TEXTS, false}, {"label", "label", TEXTS, true},
    {"text", "text", TEXTS, true},   {"", "has", CHOICES, false},       {"", "lacks", TEXTS, false},
};
enum { N_RULES = sizeof RULES / sizeof *RULES };

static int check_texts(const char *key, const json_t *v, bool choices, shoal_err *err)
{
    if (!json_is_array(v)) return err_set(err, SHOAL_EINVALID, "'%s' must be a list", key);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *x = json_array_get(v, i);
        if (choices && json_is_array(x) && json_array_size(x)) {
            int rc = check_texts(key, x, false, err);
            if (rc) return rc;
        } else if (!json_is_string(x)) {
            return err_set(err, SHOAL_EINVALID, "'%s[%zu]' must be a text", key, i);
        }
    }
    return 0;
}

static int check_call(const json_t *call, shoal_err *err)
{
    const json_t *name = json_object_get(call, "name"), *arguments = json_object_get(call, "arguments");
    const json_t *optional = json_object_get(call, "optional");
    size_t known = 2 + (optional != NULL);
    bool named = json_is_string(name) || (json_is_array(name) && json_array_size(name));
    if (named && json_is_object(arguments) && (!optional || json_is_boolean(optional)) &&
        json_object_size(call) == known)
        return 0;
    return err_set(err, SHOAL_EINVALID,
                   "a call is {\"name\": a text or a list of texts, \"arguments\": {...}, and perhaps "
                   "\"optional\": true}");
}

static int check_value(const field_rule *r, const json_t *v, shoal_err *err)
{
    int rc = 0;
    if (r->value == COUNT && !(json_is_integer(v) && json_integer_value(v) >= 0))
        return err_set(err, SHOAL_EINVALID, "'%s' must be a count", r->key);
    if (r->value == CALLS && !json_is_array(v))
        return err_set(err, SHOAL_EINVALID, "'%s' must be a list", r->key);
    for (size_t i = 0; r->value == CALLS && !rc && i < json_array_size(v); i++)
        rc = check_call(json_array_get(v, i), err);
    if (r->value == TEXTS || r->value == CHOICES) rc = check_texts(r->key, v, r->value == CHOICES, err);
    return rc;
}

static const field_rule *find_rule(const char *kind, const char *key)
{
    for (size_t i = 0; i < N_RULES; i++) {
        const field_rule *r = &RULES[i];
        if (r->key && strcmp(r->key, key) == 0 && (!*r->kind || strcmp(r->kind, kind) == 0)) return r;
    }
    return NULL;
}

static bool is_kind(const char *kind)
{
    for (size_t i = 0; i < N_RULES; i++)
        if (*RULES[i].kind && strcmp(RULES[i].kind, kind) == 0) return true;
    return false;
}

static int check_one(const json_t *expect, shoal_err *err)
{
    const json_t *k = json_object_get(expect, "kind");
    const char *kind = json_is_string(k) ? json_string_value(k) : "";
    if (!is_kind(kind))
        return err_set(
            err, SHOAL_EINVALID,
            "'expect.kind' must be calls, ask, refuse, answer, fallback, reject, faithful, label or text");
    for (size_t i = 0; i < N_RULES; i++)
        if (RULES[i].required && strcmp(RULES[i].kind, kind) == 0 && !json_object_get(expect, RULES[i].key))
            return err_set(err, SHOAL_EINVALID, "'expect' of kind %s needs '%s'", kind, RULES[i].key);
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)expect, key, v)
    {
        const field_rule *r = find_rule(kind, key);
        if (!r && strcmp(key, "kind") != 0)
            return err_set(err, SHOAL_EINVALID, "'expect' of kind %s has no '%.64s'", kind, key);
        int rc = r ? check_value(r, v, err) : 0;
        if (rc) return rc;
    }
    return 0;
}

int eval_expect_check(const json_t *expect, shoal_err *err)
{
    const json_t *any = json_object_get(expect, "any");
    if (!any) return check_one(expect, err);
    if (!json_is_array(any) || json_array_size(any) == 0 || json_object_size(expect) != 1)
        return err_set(err, SHOAL_EINVALID, "'expect.any' must be a list of expectations and stand alone");
    int rc = 0;
    for (size_t i = 0; !rc && i < json_array_size(any); i++) rc = check_one(json_array_get(any, i), err);
    return rc;
}

bool eval_expect_is_label(const json_t *expect)
{
    const char *kind = json_string_value(json_object_get(expect, "kind"));
    return kind && strcmp(kind, "label") == 0;
}
