/* grammar_value.c: what has no insides as states: literals on one tree, numbers and strings by their
 * automata. */
#include "grammar/grammar_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- literals --------------------------------------------------------------------------------- */

void value_put(buf *out, const json_t *v)
{
    char text[40];
    if (!json_is_real(v)) {
        json_put(out, v);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) { /* the shortest text that is this double */
        snprintf(text, sizeof text, "%.*g", digits, json_real_value(v));
        if (strtod(text, NULL) == json_real_value(v)) break;
    }
    buf_puts(out, text);
}

/* The schema that has the value in its "enum" or "const", below `in`; *ret_key says in which. */
static const json_t *holder_of(const json_t *in, const json_t *v, const char **ret_key)
{
    static const char *const KEYS[] = {"const", "enum"};
    const char *key;
    json_t *sub;
    size_t i;
    for (size_t k = 0; k < 2; k++) {
        const json_t *held = json_object_get(in, KEYS[k]), *found = held == v ? in : NULL;
        json_array_foreach(held, i, sub) if (k == 1 && sub == v) found = in;
        *ret_key = KEYS[k];
        if (found) return found;
    }
    json_object_foreach((json_t *)in, key, sub)
    {
        const json_t *found = holder_of(sub, v, ret_key);
        if (found) return found;
    }
    json_array_foreach(in, i, sub)
    {
        const json_t *found = holder_of(sub, v, ret_key);
        if (found) return found;
    }
    return NULL;
}

/* Integers of 2^63 and more were read as doubles. */
static bool has_huge_number(const json_t *v)
{
    const char *key;
    json_t *sub;
    size_t i;
    if (json_is_real(v)) return fabs(json_real_value(v)) >= 0x1p63;
    json_object_foreach((json_t *)v, key, sub) if (has_huge_number(sub)) return true;
    json_array_foreach(v, i, sub) if (has_huge_number(sub)) return true;
    return false;
}

bool value_is_exact(compiler *c, const json_t *one)
{
    const char *key = NULL;
    if (!has_huge_number(one)) return true;
    const json_t *at = holder_of(c->x.root, one, &key);
    return schema_fail(&c->x, SHOAL_EUNSUPPORTED, at, at ? key : NULL,
                       "it has a number that is not between -2^63 and 2^63: such are not written exactly") ==
           0;
}

static int root_of_literals(value *v)
{
    nfa *a = v->c->a;
    if (v->literals == NFA_DEAD) {
        v->literals = nfa_state(a);
        nfa_epsilon(a, v->from, v->literals);
    }
    return v->literals;
}

void value_literal(value *v, const char *text, size_t n)
{
    nfa *a = v->c->a;
    nfa_epsilon(a, nfa_literal(a, root_of_literals(v), text, n), v->end);
}

static int write_text(compiler *c, int from, buf *text)
{
    if (text->failed && c->x.rc == 0) c->x.rc = err_nomem(c->x.err);
    if (c->x.rc == 0) from = nfa_literal(c->a, from, text->data, text->len);
    buf_done(text);
    return from;
}

static int write_one(compiler *c, int from, const json_t *one);

static int write_members(compiler *c, int from, const json_t *object)
{
    const char *key;
    json_t *member;
    int begin = from;
    json_object_foreach((json_t *)object, key, member)
    {
        buf text = {0};
        if (from != begin) from = nfa_literal(c->a, from, ",", 1);
        from = nfa_call_shared(c->a, from, c->json.space);
        json_put_string(&text, key, strlen(key));
        buf_putc(&text, ':');
        from = nfa_call_shared(c->a, write_text(c, from, &text), c->json.gap);
        from = write_one(c, from, member);
    }
    return from;
}

static int write_items(compiler *c, int from, const json_t *array)
{
    size_t i;
    json_t *item;
    json_array_foreach(array, i, item)
    {
        if (i > 0) from = nfa_literal(c->a, from, ",", 1);
        from = write_one(c, nfa_call_shared(c->a, from, c->json.space), item);
    }
    return from;
}

/* With the white space that other values have; returns where it ends. */
static int write_one(compiler *c, int from, const json_t *one)
{
    bool is_object = json_object_size(one) > 0;
    if (!is_object && json_array_size(one) == 0) {
        buf text = {0};
        value_put(&text, one);
        return write_text(c, from, &text);
    }
    from = nfa_literal(c->a, from, is_object ? "{" : "[", 1);
    from = is_object ? write_members(c, from, one) : write_items(c, from, one);
    return nfa_literal(c->a, nfa_call_shared(c->a, from, c->json.line), is_object ? "}" : "]", 1);
}

void value_one(value *v, const parts *p, const json_t *one, const json_t *list)
{
    if (!facts_all_admit(&v->c->x, p, one, list) || !value_is_exact(v->c, one)) return;
    nfa_epsilon(v->c->a, write_one(v->c, root_of_literals(v), one), v->end);
}

/* ---- numbers and strings ---------------------------------------------------------------------- */

/* Numbers are only above, or only below, all that are written. */
static void refuse_bounds(compiler *c, const parts *p)
{
    static const char *const KEYS[] = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"};
    decimal d;
    bool huge;
    for (size_t i = 0; i < 4 * p->n; i++) {
        const json_t *bound = json_object_get(p->of[i / 4], KEYS[i % 4]);
        bool is_max = i % 4 >= 2;
        if (json_is_number(bound) && decimal_of(bound, &d, &huge) && huge && d.negative == is_max)
            schema_fail(&c->x, SHOAL_EUNSUPPORTED, p->of[i / 4], KEYS[i % 4],
                        "\"%s\" leaves only numbers of more than %d digits, which are not written",
                        KEYS[i % 4], DECIMAL_INT_MAX);
    }
}

void value_number(value *v, const parts *p, bool integer)
{
    compiler *c = v->c;
    number_bounds bounds;
    bool any;
    dfa *texts = NULL;
    shoal_err err = {0};
    if (!facts_numbers(&c->x, p, integer, &bounds, &any)) refuse_bounds(c, p);
    if (c->x.rc) return;
    if (any) {
        nfa_call_to(c->a, v->from, integer ? c->json.integer : c->json.number, v->end);
        return;
    }
    int rc = number_compile(&texts, &bounds, &c->x.work, &err);
    if (rc)
        schema_fail(&c->x, rc, p->of[0], NULL, "its numbers: %s", err.message);
    else
        nfa_epsilon(c->a, json_numbers(&c->json, v->from, texts), v->end);
    dfa_free(texts);
}

void value_string(value *v, const parts *p)
{
    compiler *c = v->c;
    string_facts f;
    if (facts_strings(&c->x, p, &f)) return;
    if (f.texts)
        nfa_epsilon(c->a, json_texts(&c->json, v->from, f.texts, f.has_format ? NFA_FORMAT : 0), v->end);
    else if (buf_append(&v->lengths, &f, sizeof f))
        c->x.rc = err_nomem(c->x.err);
    dfa_free(f.texts);
}

/* Which lengths some case allows: changes[k] says how many more cases allow k than k - 1. *ret_last is where
 * nothing changes any more. */
static int *length_changes(const string_facts *all, size_t n, int64_t *ret_last)
{
    int64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        if (all[i].least > last) last = all[i].least;
        if (all[i].most + 1 > last) last = all[i].most + 1;
    }
    int *changes = calloc((size_t)last + 2, sizeof *changes);
    for (size_t i = 0; i < n && changes; i++) {
        if (all[i].most >= 0 && all[i].most < all[i].least) continue;
        changes[all[i].least]++;
        if (all[i].most >= 0) changes[all[i].most + 1]--;
    }
    *ret_last = last;
    return changes;
}

/* The first length behind k at which a string may end, if it may not at k, or the other way round. */
static int64_t next_change(const int *changes, int64_t k, int open, int64_t last)
{
    bool may_end = open > 0;
    while (k < last && (open > 0) == may_end) open += changes[++k];
    return k;
}

void value_lengths(value *v)
{
    nfa *a = v->c->a;
    const json_rules *json = &v->c->json;
    int64_t last;
    size_t n = v->lengths.len / sizeof(string_facts);
    if (n == 0 || v->c->x.rc) return;
    int *changes = length_changes((const void *)v->lengths.data, n, &last);
    if (!changes) {
        v->c->x.rc = err_nomem(v->c->x.err);
        return;
    }
    int open = changes[0], all = 0;
    for (int64_t k = 0; k <= last; k++) all += changes[k];
    bool open_end = all > 0;
    if (last == 0 && open > 0) {
        nfa_call_to(a, v->from, json->string, v->end);
    } else {
        int at = nfa_range(a, v->from, '"', '"'), close = nfa_state(a);
        for (int64_t k = 0, until = 0, first = at;; open += changes[++k]) {
            if (open > 0) nfa_epsilon(a, at, close);
            if (k == last) break;
            if (k >= until) {
                until = next_change(changes, k, open, last);
                first = at;
            }
            nfa_chain(a, at, (int)first, (int)(until - k - 1));
            if (open_end || last > NFA_RUN_MAX) nfa_mark(a, at, NFA_OPTIONAL);
            at = nfa_call(a, at, json->string_char);
        }
        if (open_end) nfa_mark(a, at, NFA_OPTIONAL);
        if (open_end) nfa_call_to(a, at, json->string_char, at);
        nfa_range_to(a, close, '"', '"', v->end);
    }
    free(changes);
}
