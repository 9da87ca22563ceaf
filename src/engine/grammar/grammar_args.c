/* grammar_args.c: see grammar_args.h.
 *
 *     f(a=1, b="x")        none[0] ─a=─► VALUE ─► some[1] ─, b=─► VALUE ─► some[2] ─)─► end
 *                             └─(a is optional)─► none[1] ─b=─► ...
 *
 * Two chains, of "nothing written yet" and "something": a comma stands before all arguments but the first. */
#include "grammar/grammar_args.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "grammar/grammar_schema.h"

enum { MARKER_MAX = 64, NAME_MAX_BYTES = 200 }; /* all markers are of tables of ours */

/* ---- text up to a marker ------------------------------------------------------------------------- */

/* Which marker has s[0..n) as its beginning; n_ends: none. */
static size_t marker_like(const until *ends, size_t n_ends, const char *s, size_t n)
{
    size_t i = 0;
    while (i < n_ends && (strlen(ends[i].marker) < n || memcmp(ends[i].marker, s, n) != 0)) i++;
    return i;
}

/* All beginnings of markers, each with its state (Aho and Corasick 1975). */
typedef struct beginnings {
    const until *ends;
    size_t n;
    int states[UNTIL_MAX][MARKER_MAX + 1]; /* [marker][bytes of it that were read] */
} beginnings;

/* Where s[0..n) leads, of which all but the last byte is a beginning: to the longest of its ends that is one.
 */
static int leads_to(const beginnings *b, const char *s, size_t n)
{
    for (size_t skip = 0;; skip++) {
        size_t i = marker_like(b->ends, b->n, s + skip, n - skip);
        if (i == b->n) continue;
        return n - skip == strlen(b->ends[i].marker) ? b->ends[i].to : b->states[i][n - skip];
    }
}

static bool in_any(const beginnings *b, uint8_t c)
{
    for (size_t i = 0; i < b->n; i++)
        if (c && strchr(b->ends[i].marker, c)) return true;
    return false;
}

/* The edges of the state behind `len` bytes of marker i: most bytes are of no marker and lead back to the
 * start. */
static void add_edges(nfa *a, const beginnings *b, size_t i, size_t len)
{
    char s[MARKER_MAX + 1];
    int to[256];
    memcpy(s, b->ends[i].marker, len);
    for (int c = 0; c < 256; c++) {
        s[len] = (char)c;
        to[c] = in_any(b, (uint8_t)c) ? leads_to(b, s, len + 1) : b->states[0][0];
    }
    for (int lo = 0, hi; lo < 256; lo = hi + 1) {
        for (hi = lo; hi < 255 && to[hi + 1] == to[lo];) hi++;
        nfa_range_to(a, b->states[i][len], (uint8_t)lo, (uint8_t)hi, to[lo]);
    }
}

void text_until(nfa *a, int from, const until *ends, size_t n, uint8_t mark, bool may_end)
{
    beginnings b = {.ends = ends, .n = n};
    assert(n > 0 && n <= UNTIL_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(ends[i].marker);
        assert(len > 0 && len <= MARKER_MAX);
        for (size_t k = 0; k < len; k++) {
            size_t first = marker_like(ends, n, ends[i].marker, k);
            b.states[i][k] = first < i ? b.states[first][k] : k == 0 ? from : nfa_state(a);
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < strlen(ends[i].marker); k++) {
            if (marker_like(ends, n, ends[i].marker, k) < i) continue;
            if (may_end) nfa_return(a, b.states[i][k]);
            nfa_mark(a, b.states[i][k], mark);
            add_edges(a, &b, i, k);
        }
    }
}

static int digits(nfa *a, int from)
{
    int more = nfa_range(a, from, '0', '9');
    nfa_range_to(a, more, '0', '9', more);
    return more;
}

int written(nfa *a, int from, const char *s)
{
    for (; s && *s; s++) {
        nfa_mark(a, from, MARK_WITHIN);
        from = *s == '#' ? digits(a, from) : nfa_range(a, from, (uint8_t)*s, (uint8_t)*s);
    }
    return from;
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

static int grammar_args_refuse(const args *x, const char *name, const char *why)
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
    const char *marker = x->syntax->quote;
    int start = nfa_state(x->a), end = nfa_state(x->a);
    text_until(x->a, written(x->a, start, marker), &(until){marker, end}, 1, MARK_VALUE, false);
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
    const char *marker = x->syntax->quote;
    size_t i;
    json_t *v;
    int open = nfa_state(x->a);
    nfa_epsilon(x->a, written(x->a, start, marker), open);
    json_array_foreach(values, i, v)
    {
        const char *s = json_string_value(v);
        if (!s || strstr(s, marker)) return grammar_args_refuse(x, name, "its \"enum\" is not of texts");
        int at = nfa_literal(x->a, open, s, json_string_length(v));
        nfa_epsilon(x->a, written(x->a, at, marker), end);
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
    if (!type) return grammar_args_refuse(x, name, "this model's syntax of calls needs a \"type\"");
    if (strcmp(type, "string") == 0) {
        if (!only_has(schema, TEXT))
            return grammar_args_refuse(x, name,
                                       "its conditions cannot be held in this model's syntax of calls");
        if (values) return enum_rule(x, name, values, ret);
        *ret = text_rule(x);
        return 0;
    }
    if (strcmp(type, "object") == 0 || strcmp(type, "array") == 0)
        return only_has(schema, (const char *const[]){"type", "description", "title", NULL})
                   ? any_rule(x, ret)
                   : grammar_args_refuse(
                         x, name, "what it holds cannot be held to a schema in this model's syntax of calls");
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
    if (!is_word(name))
        return grammar_args_refuse(x, name, "no name that this model's syntax of calls could write");
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

static int check_plain(const args *x, const json_t *root)
{
    static const char *const PLAIN[] = {"type",        "properties", "required", "additionalProperties",
                                        "description", "title",      "$schema",  "$defs",
                                        "definitions", NULL};
    const json_t *all = json_object_get(root, "properties"), *type = json_object_get(root, "type");
    const char *word = json_string_value(type);
    json_t *name;
    bool plain =
        json_is_object(root) && only_has(root, PLAIN) && (!type || (word && strcmp(word, "object") == 0));
    size_t i;
    json_array_foreach(json_object_get(root, "required"), i, name)
    {
        plain = plain && json_is_string(name) && json_object_get(all, json_string_value(name));
    }
    if (plain) return 0;
    return err_set(x->err, SHOAL_EUNSUPPORTED,
                   "%s: in this model's syntax of calls, parameters are a plain object of \"properties\"",
                   x->what);
}

static int properties(args *x, const json_t *root, int *none, int *some)
{
    const json_t *all = json_object_get(root, "properties");
    const char *name;
    json_t *schema;
    int rc = check_plain(x, root);
    if (rc != 0) return rc;
    json_object_foreach((json_t *)(uintptr_t)all, name, schema)
    {
        rc = one_property(x, name, schema, root, none, some);
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

/* ---- arguments between tags ------------------------------------------------------------------------ */

/* The marker behind the value of `name`. */
static void end_of_value(const args *x, const char *name, char *out, size_t cap)
{
    const char *end = x->syntax->tags.value_end, *key = strchr(end, '%');
    if (key)
        snprintf(out, cap, "%.*s%s%s", (int)(key - end), end, name, key + 1);
    else
        snprintf(out, cap, "%s", end);
}

static int type_mark(args *x, int at, const char *type)
{
    const char *mark = x->syntax->tags.json_mark, *key = strchr(mark, '%');
    if (!key) return written(x->a, at, mark);
    char head[MARKER_MAX];
    snprintf(head, sizeof head, "%.*s", (int)(key - mark), mark);
    return written(x->a, literal(x, written(x->a, at, head), type), key + 1);
}

/* Any text and the marker behind it. */
static int tagged_text(args *x, int at, const char *end)
{
    const toolcall_tags *t = &x->syntax->tags;
    int to = nfa_state(x->a), from = nfa_state(x->a);
    at = written(x->a, written(x->a, written(x->a, at, t->text_mark), t->value), t->wrap);
    nfa_epsilon(x->a, at, from);
    text_until(x->a, from, &(until){end, to}, 1, MARK_VALUE, false);
    return to;
}

static int tagged_enum(args *x, const char *name, const json_t *values, int at, const char *end, int *ret)
{
    const toolcall_tags *t = &x->syntax->tags;
    int open = nfa_state(x->a), to = nfa_state(x->a);
    size_t i;
    json_t *v;
    nfa_epsilon(x->a, written(x->a, written(x->a, written(x->a, at, t->text_mark), t->value), t->wrap), open);
    json_array_foreach(values, i, v)
    {
        const char *s = json_string_value(v);
        if (!s || strstr(s, end)) return grammar_args_refuse(x, name, "its \"enum\" is not of texts");
        int value = nfa_literal(x->a, open, s, json_string_length(v));
        nfa_epsilon(x->a, written(x->a, written(x->a, value, t->wrap), end), to);
    }
    *ret = to;
    return 0;
}

static int tagged_json(args *x, const json_t *schema, const json_t *root, int at, const char *end, int *ret)
{
    const toolcall_tags *t = &x->syntax->tags;
    const char *type = json_string_value(json_object_get(schema, "type"));
    int rule = NFA_DEAD;
    if (!type || strcmp(type, "integer") == 0) type = "number";
    json_t *own = with_definitions(schema, root);
    int rc = json_rule(x, own, &rule);
    json_decref(own);
    at = written(x->a, written(x->a, type_mark(x, at, type), t->value), t->wrap);
    at = nfa_call(x->a, at, rule);
    *ret = written(x->a, written(x->a, at, t->wrap), end);
    return rc;
}

static bool is_annotation_only(const json_t *schema)
{
    static const char *const PLAIN[] = {"type",     "description", "title",      "default", "examples",
                                        "nullable", "$comment",    "deprecated", NULL};
    return json_is_object(schema) && only_has(schema, PLAIN);
}

static bool is_text_type(const json_t *type)
{
    size_t i;
    json_t *v;
    bool text = json_is_string(type) && strcmp(json_string_value(type), "string") == 0;
    json_array_foreach(type, i, v) text |= is_text_type(v);
    return text;
}

/* Does the schema take texts beside others, whatever they hold? Then any text will do: what the reader takes
 * for none of the others is a text. */
static bool takes_any_text(const json_t *schema)
{
    static const char *const LISTS[] = {"anyOf", "oneOf"};
    bool text = is_annotation_only(schema) && is_text_type(json_object_get(schema, "type"));
    for (size_t i = 0; i < 2; i++) {
        const json_t *list = json_object_get(schema, LISTS[i]);
        const char *const keys[] = {LISTS[i], "description", "title", "default", "examples", NULL};
        size_t k;
        json_t *v;
        bool plain = json_array_size(list) > 0 && only_has(schema, keys), any = false;
        json_array_foreach(list, k, v)
        {
            plain = plain && is_annotation_only(v) && json_object_get(v, "type");
            any |= is_text_type(json_object_get(v, "type"));
        }
        text |= plain && any;
    }
    return text;
}

/* A text with conditions. */
static int tagged_facts(args *x, const json_t *schema, int at, const char *end, int *ret)
{
    const toolcall_tags *t = &x->syntax->tags;
    int to = NFA_DEAD;
    at = written(x->a, written(x->a, written(x->a, at, t->text_mark), t->value), t->wrap);
    int rc = schema_compile_text(x->a, schema, x->what, end, at, &to, x->err);
    if (rc == 0) *ret = written(x->a, written(x->a, to, t->wrap), end);
    return rc;
}

static bool is_plain_text(const json_t *schema)
{
    static const char *const FACTS[] = {
        "type",     "description", "title",           "default",          "examples",
        "nullable", "format",      "pattern",         "minLength",        "maxLength",
        "$comment", "deprecated",  "contentEncoding", "contentMediaType", NULL};
    const char *type = json_string_value(json_object_get(schema, "type"));
    return type && strcmp(type, "string") == 0 && only_has(schema, FACTS);
}

/* May it be a text at all, as far as can be seen? */
static bool may_be_text(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"), *v;
    size_t i;
    if (type) return is_text_type(type);
    const json_t *values = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    json_array_foreach(values, i, v) if (json_is_string(v)) return true;
    if (one) return json_is_string(one);
    return !values && !json_is_false(schema);
}

static int tagged_value(args *x, const char *name, const json_t *schema, const json_t *root, int at, int *ret)
{
    static const char *const ENUM[] = {"type",     "description", "title", "default",
                                       "examples", "enum",        "const", NULL};
    char end[MARKER_MAX + NAME_MAX_BYTES];
    const json_t *values = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    end_of_value(x, name, end, sizeof end);
    if (strlen(end) > MARKER_MAX)
        return grammar_args_refuse(x, name, "its name is too long for this model's syntax of calls");
    if (!may_be_text(schema)) return tagged_json(x, schema, root, at, end, ret);
    if (values && only_has(schema, ENUM)) return tagged_enum(x, name, values, at, end, ret);
    if (one && only_has(schema, ENUM)) {
        json_t *list = json_pack("[O]", one);
        int rc = list ? tagged_enum(x, name, list, at, end, ret) : err_nomem(x->err);
        json_decref(list);
        return rc;
    }
    if (!takes_any_text(schema) && is_plain_text(schema)) return tagged_facts(x, schema, at, end, ret);
    if (!takes_any_text(schema) && json_object_size(schema) > 0 && !json_is_true(schema) &&
        !(is_annotation_only(schema) && !json_object_get(schema, "type")))
        return grammar_args_refuse(x, name, "its conditions cannot be held in this model's syntax of calls");
    *ret = tagged_text(x, at, end);
    return 0;
}

static int tagged_property(args *x, const char *name, const json_t *schema, const json_t *root, int *at)
{
    const toolcall_tags *t = &x->syntax->tags;
    int next = nfa_state(x->a), end = NFA_DEAD;
    if (strpbrk(name, "<>\"\n") || strlen(name) > NAME_MAX_BYTES || !*name)
        return grammar_args_refuse(x, name, "no name that this model's syntax of calls could write");
    int value = written(x->a, literal(x, written(x->a, *at, t->key), name), t->key_end);
    int rc = tagged_value(x, name, schema, root, value, &end);
    if (rc != 0) return rc;
    nfa_epsilon(x->a, written(x->a, end, t->gap), next);
    if (!is_required(json_object_get(root, "required"), name)) nfa_epsilon(x->a, *at, next);
    *at = next;
    return 0;
}

/* Any arguments: names, and texts that the reader makes of what it can. */
static int any_tags(args *x, int at)
{
    const toolcall_tags *t = &x->syntax->tags;
    int key = nfa_state(x->a), again = nfa_state(x->a);
    if (strchr(t->value_end, '%')) return at; /* its end is not known before the name is: none */
    nfa_epsilon(x->a, at, again);
    key_byte(x, written(x->a, again, t->key), key);
    key_byte(x, key, key);
    nfa_range_to(x->a, key, '0', '9', key);
    int end = tagged_text(x, written(x->a, key, t->key_end), t->value_end);
    nfa_epsilon(x->a, written(x->a, end, t->gap), again);
    return again;
}

static int compile_tags(args *x, const json_t *parameters, int at, int end)
{
    const char *name;
    json_t *schema;
    int rc = parameters ? check_plain(x, parameters) : 0;
    at = written(x->a, written(x->a, at, x->syntax->middle), x->syntax->tags.gap);
    int from = nfa_state(x->a);
    nfa_epsilon(x->a, at, from);
    at = from;
    if (!parameters) at = any_tags(x, at);
    json_object_foreach(json_object_get(parameters, "properties"), name, schema)
    {
        if (rc == 0) rc = tagged_property(x, name, schema, parameters, &at);
    }
    nfa_epsilon(x->a, written(x->a, at, x->syntax->end), end);
    return rc;
}

int args_compile(nfa *a, const toolcall_syntax *syntax, const json_t *parameters, const char *what, int at,
                 int end, shoal_err *err)
{
    args x = {.a = a, .syntax = syntax, .what = what, .err = err, .any_text = NFA_DEAD, .any = NFA_DEAD};
    if (syntax->form == CALL_TAGS) return compile_tags(&x, parameters, at, end);
    int none = literal(&x, at, braces(&x) ? "{" : "("), some = nfa_state(a);
    int rc = parameters ? properties(&x, parameters, &none, &some) : any_arguments(&x, none, some);
    if (rc != 0) return rc;
    uint8_t close = braces(&x) ? '}' : ')';
    nfa_range_to(a, none, close, close, end);
    nfa_range_to(a, some, close, close, end);
    return 0;
}
