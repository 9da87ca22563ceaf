/* grammar_args.c: see grammar_args.h.
 *
 *     f(a=1, b="x")        none[0] ─a=─► VALUE ─► some[1] ─, b=─► VALUE ─► some[2] ─)─► end
 *                             └─(a is optional)─► none[1] ─b=─► ...
 *
 * Two chains, of "nothing written yet" and "something": a comma stands before all arguments but the first. */
#include "grammar/grammar_args.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "grammar/grammar_schema.h"

enum { MARKER_MAX = 64 }; /* bytes; all markers are of tables of ours */

/* ---- text up to a marker ------------------------------------------------------------------------- */

/* How much of the marker is read after `k` bytes of it and then c (Knuth, Morris and Pratt 1977). */
static size_t overlap(const char *marker, size_t k, uint8_t c)
{
    for (size_t keep = k + 1; keep > 0; keep--)
        if ((uint8_t)marker[keep - 1] == c && memcmp(marker, marker + k + 1 - keep, keep - 1) == 0)
            return keep;
    return 0;
}

void text_until(nfa *a, int from, const char *marker, uint8_t mark, bool may_end, int to)
{
    size_t n = strlen(marker);
    int states[MARKER_MAX + 1];
    assert(n > 0 && n <= MARKER_MAX);
    for (size_t k = 0; k < n; k++) states[k] = k == 0 ? from : nfa_state(a);
    states[n] = to;
    for (size_t k = 0; k < n; k++) {
        if (may_end) nfa_return(a, states[k]);
        nfa_mark(a, states[k], mark);
        for (int lo = 0, hi; lo < 256; lo = hi + 1) {
            size_t next = overlap(marker, k, (uint8_t)lo);
            for (hi = lo; hi < 255 && overlap(marker, k, (uint8_t)(hi + 1)) == next;) hi++;
            nfa_range_to(a, states[k], (uint8_t)lo, (uint8_t)hi, states[next]);
        }
    }
}

/* ---- values -------------------------------------------------------------------------------------- */

typedef struct args {
    nfa *a;
    const toolcall_syntax *syntax;
    const char *what;
    shoal_err *err;
    int any_text, any; /* rules, made when first needed; NFA_DEAD: not yet */
} args;

static bool braces(const args *x)
{
    return x->syntax->form == CALL_BRACES;
}

static int refuse(const args *x, const char *name, const char *why)
{
    return err_set(x->err, SHOAL_EUNSUPPORTED, "%s/properties/%s: %s", x->what, name, why);
}

static int literal(args *x, int from, const char *s)
{
    return nfa_bytes(x->a, from, s, strlen(s));
}

/* <escape>any text<escape> */
static int text_rule(args *x)
{
    if (x->any_text != NFA_DEAD) return x->any_text;
    const char *marker = x->syntax->middle;
    int start = nfa_state(x->a), end = nfa_state(x->a);
    nfa_mark(x->a, start, MARK_MIDDLE);
    text_until(x->a, literal(x, start, marker), marker, MARK_MIDDLE, false, end);
    nfa_return(x->a, end);
    return x->any_text = start;
}

static int json_rule(args *x, const json_t *schema, int *ret)
{
    *ret = NFA_DEAD;
    return schema ? schema_compile_json(x->a, schema, x->what, 0, ret, x->err) : err_nomem(x->err);
}

static void key_byte(args *x, int from, int to)
{
    nfa_range_to(x->a, from, 'A', 'Z', to);
    nfa_range_to(x->a, from, 'a', 'z', to);
    nfa_range_to(x->a, from, '_', '_', to);
}

/* Any `key` + colon + value from `from`; returns its end. */
static int any_pair(args *x, int from, const char *colon)
{
    int key = nfa_state(x->a);
    key_byte(x, from, key);
    key_byte(x, key, key);
    nfa_range_to(x->a, key, '0', '9', key);
    return nfa_call(x->a, literal(x, key, colon), x->any);
}

/* Items between brackets, the first from `first`, others behind a comma. */
static void container(args *x, int open, char close, bool dict, int end)
{
    int more = dict ? any_pair(x, open, ":") : nfa_call(x->a, open, x->any);
    int next = nfa_range(x->a, more, ',', ',');
    int again = dict ? any_pair(x, next, ":") : nfa_call(x->a, next, x->any);
    nfa_epsilon(x->a, again, more);
    nfa_range_to(x->a, open, (uint8_t)close, (uint8_t)close, end);
    nfa_range_to(x->a, more, (uint8_t)close, (uint8_t)close, end);
}

/* Any value at all: of JSON, or with texts and keys as this syntax writes them. */
static int any_rule(args *x, int *ret)
{
    int rc = 0, scalar = NFA_DEAD;
    if (x->any == NFA_DEAD && !braces(x)) {
        rc = json_rule(x, json_true(), &x->any);
    } else if (x->any == NFA_DEAD) {
        json_t *plain = json_pack("{s:[s,s,s]}", "type", "number", "boolean", "null");
        rc = json_rule(x, plain, &scalar);
        json_decref(plain);
        if (rc != 0) return rc;
        int start = x->any = nfa_state(x->a), end = nfa_state(x->a);
        nfa_call_to(x->a, start, scalar, end);
        nfa_call_to(x->a, start, text_rule(x), end);
        container(x, nfa_range(x->a, start, '[', '['), ']', false, end);
        container(x, nfa_range(x->a, start, '{', '{'), '}', true, end);
        nfa_return(x->a, end);
    }
    *ret = x->any;
    return rc;
}

/* ---- values by their schema ---------------------------------------------------------------------- */

static bool only_has(const json_t *schema, const char *const *keys)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)schema, key, v)
    {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0) i++;
        if (!keys[i]) return false;
    }
    return true;
}

/* Texts that are one of a few. */
static int enum_rule(args *x, const char *name, const json_t *values, int *ret)
{
    int start = nfa_state(x->a), end = nfa_state(x->a);
    const char *marker = x->syntax->middle;
    size_t i;
    json_t *v;
    nfa_mark(x->a, start, MARK_MIDDLE);
    int open = nfa_state(x->a);
    nfa_epsilon(x->a, literal(x, start, marker), open);
    json_array_foreach(values, i, v)
    {
        const char *s = json_string_value(v);
        if (!s || strstr(s, marker)) return refuse(x, name, "its \"enum\" is not of texts");
        int at = nfa_literal(x->a, open, s, json_string_length(v));
        nfa_mark(x->a, at, MARK_MIDDLE);
        nfa_epsilon(x->a, literal(x, at, marker), end);
    }
    nfa_return(x->a, end);
    *ret = start;
    return 0;
}

/* Numbers and booleans look as in JSON; texts do not, and what holds values might hold texts. */
static int braces_rule(args *x, const char *name, const json_t *schema, int *ret)
{
    static const char *const TEXT[] = {"type", "description", "title", "default", "examples", "enum", NULL};
    const json_t *values = json_object_get(schema, "enum");
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (json_object_size(schema) == 0) return any_rule(x, ret);
    if (!type) return refuse(x, name, "this model's syntax of calls needs a \"type\"");
    if (strcmp(type, "string") == 0) {
        if (!only_has(schema, TEXT))
            return refuse(x, name, "its conditions cannot be held in this model's syntax of calls");
        if (values) return enum_rule(x, name, values, ret);
        *ret = text_rule(x);
        return 0;
    }
    if (strcmp(type, "object") == 0 || strcmp(type, "array") == 0)
        return only_has(schema, (const char *const[]){"type", "description", "title", NULL})
                   ? any_rule(x, ret)
                   : refuse(x, name,
                            "what it holds cannot be held to a schema in this model's syntax of calls");
    return json_rule(x, schema, ret);
}

/* A property's schema with the definitions that it may refer to. */
static json_t *with_definitions(const json_t *schema, const json_t *root)
{
    static const char *const KEYS[] = {"$defs", "definitions"};
    json_t *own = json_is_object(schema) ? json_copy((json_t *)(uintptr_t)schema)
                                         : json_incref((json_t *)(uintptr_t)schema);
    for (size_t i = 0; i < 2 && own && json_is_object(own); i++) {
        json_t *v = json_object_get(root, KEYS[i]);
        if (v && json_object_set(own, KEYS[i], v) != 0) {
            json_decref(own);
            return NULL;
        }
    }
    return own;
}

static int value_rule(args *x, const char *name, const json_t *schema, const json_t *root, int *ret)
{
    if (braces(x)) return braces_rule(x, name, schema, ret);
    json_t *own = with_definitions(schema, root);
    int rc = json_rule(x, own, ret);
    json_decref(own);
    return rc;
}

/* ---- the arguments ------------------------------------------------------------------------------- */

static bool is_required(const json_t *required, const char *name)
{
    size_t i;
    json_t *v;
    json_array_foreach(required, i,
                       v) if (json_is_string(v) && strcmp(json_string_value(v), name) == 0) return true;
    return false;
}

static bool is_word(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
    return n > 0 && s[n] == '\0' && !isdigit((unsigned char)s[0]);
}

/* From *none and *some over one property to the next pair. */
static int one_property(args *x, const char *name, const json_t *schema, const json_t *root, int *none,
                        int *some)
{
    int rule = NFA_DEAD, next_none = nfa_state(x->a), next_some = nfa_state(x->a);
    const char *colon = braces(x) ? ":" : "=", *comma = braces(x) ? "," : ", ";
    if (!is_word(name)) return refuse(x, name, "no name that this model's syntax of calls could write");
    int rc = value_rule(x, name, schema, root, &rule);
    if (rc != 0) return rc;
    nfa_call_to(x->a, literal(x, literal(x, *none, name), colon), rule, next_some);
    nfa_call_to(x->a, literal(x, literal(x, literal(x, *some, comma), name), colon), rule, next_some);
    if (!is_required(json_object_get(root, "required"), name)) {
        nfa_epsilon(x->a, *none, next_none);
        nfa_epsilon(x->a, *some, next_some);
    }
    *none = next_none;
    *some = next_some;
    return 0;
}

static int properties(args *x, const json_t *root, int *none, int *some)
{
    static const char *const PLAIN[] = {"type",        "properties", "required", "additionalProperties",
                                        "description", "title",      "$schema",  "$defs",
                                        "definitions", NULL};
    const json_t *all = json_object_get(root, "properties"), *type = json_object_get(root, "type");
    const char *name, *word = json_string_value(type);
    json_t *schema;
    bool plain =
        json_is_object(root) && only_has(root, PLAIN) && (!type || (word && strcmp(word, "object") == 0));
    size_t i;
    json_array_foreach(json_object_get(root, "required"), i, schema)
    {
        plain = plain && json_is_string(schema) && json_object_get(all, json_string_value(schema));
    }
    if (!plain)
        return err_set(x->err, SHOAL_EUNSUPPORTED,
                       "%s: in this model's syntax of calls, parameters are a plain object of \"properties\"",
                       x->what);
    json_object_foreach((json_t *)(uintptr_t)all, name, schema)
    {
        int rc = one_property(x, name, schema, root, none, some);
        if (rc != 0) return rc;
    }
    return 0;
}

static int any_arguments(args *x, int none, int some)
{
    int rule, rc = any_rule(x, &rule);
    if (rc != 0) return rc;
    nfa_epsilon(x->a, any_pair(x, none, braces(x) ? ":" : "="), some);
    int next = literal(x, some, braces(x) ? "," : ", ");
    nfa_epsilon(x->a, any_pair(x, next, braces(x) ? ":" : "="), some);
    return 0;
}

int args_compile(nfa *a, const toolcall_syntax *syntax, const json_t *parameters, const char *what, int at,
                 int end, shoal_err *err)
{
    args x = {.a = a, .syntax = syntax, .what = what, .err = err, .any_text = NFA_DEAD, .any = NFA_DEAD};
    int none = literal(&x, at, braces(&x) ? "{" : "("), some = nfa_state(a);
    int rc = parameters ? properties(&x, parameters, &none, &some) : any_arguments(&x, none, some);
    if (rc != 0) return rc;
    uint8_t close = braces(&x) ? '}' : ')';
    nfa_range_to(a, none, close, close, end);
    nfa_range_to(a, some, close, close, end);
    return 0;
}
