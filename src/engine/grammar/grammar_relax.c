/* grammar_relax.c: see grammar_relax.h. */
#include "grammar/grammar_relax.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* One step of the pointer (RFC 6901) that ends at `end`; *at is then behind it. False: no memory. */
static bool read_step(const char **at, const char *end, buf *ret)
{
    buf_clear(ret);
    for (++*at; *at < end && **at != '/'; ++*at) {
        char c = **at;
        if (c == '~' && *at + 1 < end) c = *++*at == '1' ? '/' : '~';
        buf_putc(ret, c);
    }
    buf_append(ret, "", 1);
    return !ret->failed;
}

static json_t *child_of(json_t *in, const char *step)
{
    if (json_is_array(in)) return json_array_get(in, strtoul(step, NULL, 10));
    return json_object_get(in, step);
}

static bool is_among(const char *key, const char *const keys[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* Members of such objects are schemas under names, not keywords. */
static bool holds_names(const char *key)
{
    static const char *const KEYS[] = {"properties", "patternProperties", "$defs", "definitions",
                                       "dependentSchemas"};
    return is_among(key, KEYS, sizeof KEYS / sizeof *KEYS);
}

/* Values as they are; and schemas that would admit less around them if they admitted more. */
static bool stays_as_it_is(const char *key)
{
    static const char *const KEYS[] = {"const", "enum", "default", "example", "examples", "not", "if"};
    return is_among(key, KEYS, sizeof KEYS / sizeof *KEYS);
}

/* What stands in `in` under `key`; `names`: `in` holds schemas under names. */
static bool loosen(json_t *in, bool names, const char *key)
{
    json_t *one = child_of(in, key);
    if (!one) return false;
    if (json_is_array(in)) return json_array_set_new(in, strtoul(key, NULL, 10), json_object()) == 0;
    if (names) return json_object_set_new(in, key, json_object()) == 0;
    if (strcmp(key, "oneOf") == 0 && !json_object_get(in, "anyOf") && json_object_set(in, "anyOf", one) != 0)
        return false;
    if (strcmp(key, "patternProperties") == 0)
        json_object_del(in, "additionalProperties"); /* of the others */
    return json_object_del(in, key) == 0;
}

/* The same keyword in all schemas below `in`, which are as deep as JSON may be. */
static void loosen_all(json_t *in, bool names, const char *key)
{
    const char *own;
    size_t i;
    json_t *v;
    if (!names && json_is_object(in)) loosen(in, false, key);
    json_array_foreach(in, i, v) loosen_all(v, false, key);
    json_object_foreach(in, own, v)
    {
        if (names || !stays_as_it_is(own)) loosen_all(v, !names && holds_names(own), key);
    }
}

bool schema_relax(json_t *schema, const shoal_err *why, bool everywhere)
{
    static const char SIGN[] = ": at \"#";
    const char *at = strstr(why->message, SIGN), *end = at ? strstr(at + strlen(SIGN), "\": ") : NULL;
    json_t *in = schema;
    buf step = {0};
    bool names = false, ok = end && (at += strlen(SIGN)) < end && read_step(&at, end, &step);
    while (ok && at < end) {
        json_t *next = child_of(in, step.data);
        names = !names && json_is_object(in) && holds_names(step.data);
        in = next;
        ok = next && read_step(&at, end, &step);
    }
    bool keyword = ok && !names && json_is_object(in);
    ok = ok && loosen(in, names, step.data);
    if (ok && keyword && everywhere) loosen_all(schema, false, step.data);
    buf_done(&step);
    return ok;
}
