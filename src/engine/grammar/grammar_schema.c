/* grammar_schema.c: a JSON schema's cases written as rules of an automaton.
 *
 * Every place of a schema (the root, a property, an item) is a set of schemas that have to hold there. Equal
 * sets are one rule, made when it is first called and written later, so schemas may lead back to themselves.
 * A rule's cases (grammar_parts.h) stand side by side; literals of all cases hang on one tree and strings
 * that differ only in length are one chain, so that many alternatives stay few threads. */
#include "grammar/grammar_schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json_refs.h"
#include "base/utf8.h"
#include "grammar/grammar_write.h"

#define COMPILE_WORK (12u << 20) /* about a tenth of a second */
#define RULES_MAX    20000

/* ---- rules ------------------------------------------------------------------------------------ */

static int compare_pointers(const void *x, const void *y)
{
    const json_t *const *a = x, *const *b = y;
    return *a < *b ? -1 : *a > *b;
}

static uint64_t hash_key(const json_t *const *key, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = rng_mix(h ^ (uint64_t)(uintptr_t)key[i]);
    return h;
}

static bool index_rules(compiler *c)
{
    if (c->index_cap && c->n_rules * 2 < c->index_cap) return true;
    size_t cap = c->index_cap ? c->index_cap * 2 : 64;
    int *index = malloc(cap * sizeof *index);
    rule **rules = realloc(c->rules, cap * sizeof(rule *));
    if (rules) c->rules = rules;
    if (!index || !rules) {
        free(index);
        return false;
    }
    memset(index, 0xFF, cap * sizeof *index);
    for (size_t i = 0; i < c->n_rules; i++) {
        size_t at = hash_key(c->rules[i]->key, c->rules[i]->raw.n) & (cap - 1);
        while (index[at] >= 0) at = (at + 1) & (cap - 1);
        index[at] = (int)i;
    }
    free(c->index);
    c->index = index;
    c->index_cap = cap;
    return true;
}

int schema_rule(compiler *c, const parts *p)
{
    parts sorted = *p;
    if (p->n == 0) return c->json.value;
    qsort(sorted.of, sorted.n, sizeof *sorted.of, compare_pointers);
    if (!schema_works(&c->x, 20)) return NFA_DEAD;
    if (!index_rules(c)) return c->x.rc = err_nomem(c->x.err), NFA_DEAD;
    size_t at = hash_key(sorted.of, sorted.n) & (c->index_cap - 1);
    for (; c->index[at] >= 0; at = (at + 1) & (c->index_cap - 1)) {
        const rule *r = c->rules[c->index[at]];
        if (r->raw.n == sorted.n && memcmp(r->key, sorted.of, sorted.n * sizeof *sorted.of) == 0)
            return r->start;
    }
    rule *r = c->n_rules < RULES_MAX ? arena_alloc(c->x.memory, sizeof *r) : NULL;
    const json_t **key = r ? arena_alloc(c->x.memory, sorted.n * sizeof *key) : NULL;
    if (!key && c->n_rules < RULES_MAX) return c->x.rc = err_nomem(c->x.err), NFA_DEAD;
    if (!key) {
        schema_fail(&c->x, SHOAL_ELIMIT, p->of[0], NULL, "the schema is too large");
        return NFA_DEAD;
    }
    memcpy(key, sorted.of, sorted.n * sizeof *key);
    *r = (rule){.raw = *p, .key = key, .start = nfa_state(c->a)};
    c->rules[c->n_rules] = r;
    c->index[at] = (int)c->n_rules++;
    return r->start;
}

/* ---- cases ------------------------------------------------------------------------------------ */

static void write_types(value *v, const parts *p, unsigned types)
{
    compiler *c = v->c;
    if (types & TYPE_NULL) value_literal(v, "null", 4);
    if (types & TYPE_BOOLEAN) {
        value_literal(v, "true", 4);
        value_literal(v, "false", 5);
    }
    if (types & TYPE_NUMBER) value_number(v, p, !(types & TYPE_FRACTION));
    if (types & TYPE_STRING) value_string(v, p);
    if (types & TYPE_ARRAY) {
        if (array_is_any(p))
            nfa_call_to(c->a, v->from, c->json.array, v->end);
        else
            array_write(v, p);
    }
    if (types & TYPE_OBJECT) {
        if (object_is_any(p))
            nfa_call_to(c->a, v->from, c->json.object, v->end);
        else
            object_write(v, p);
    }
}

/* "oneOf": what is written for this branch must satisfy no other. */
static void check_only(compiler *c, const parts_case *one)
{
    for (size_t i = 0; i < one->n_only; i++) {
        for (size_t k = 0; k < json_array_size(one->only[i].list) && c->x.rc == 0; k++) {
            const json_t *other = json_array_get(one->only[i].list, k);
            if (k == one->only[i].index || facts_are_apart(&c->x, &one->parts, other)) continue;
            schema_fail(
                &c->x, SHOAL_EUNSUPPORTED, one->only[i].list, NULL,
                "a value may satisfy branches %zu and %zu, which \"oneOf\" forbids; \"anyOf\" allows it",
                one->only[i].index < k ? one->only[i].index : k,
                one->only[i].index < k ? k : one->only[i].index);
        }
    }
}

/* Values are judged by one schema at a time, and do not know what others evaluate. */
static void check_values(compiler *c, const parts *p)
{
    static const char *const KEYS[] = {"unevaluatedProperties", "unevaluatedItems"};
    for (size_t i = 0; i < p->n * 2; i++) {
        const json_t *v = json_object_get(p->of[i / 2], KEYS[i % 2]);
        if (v && !json_is_true(v))
            schema_fail(&c->x, SHOAL_EUNSUPPORTED, p->of[i / 2], KEYS[i % 2],
                        "\"%s\" is not enforced beside values", KEYS[i % 2]);
    }
}

static void write_case(void *user, const parts_case *one)
{
    value *v = user;
    compiler *c = v->c;
    const json_t *list, *only, *each;
    size_t i;
    if (!schema_works(&c->x, 100)) return;
    unsigned types = facts_types(&c->x, &one->parts, true);
    if (types == 0) return;
    check_only(c, one);
    if (facts_values(&c->x, &one->parts, &list, &only)) {
        check_values(c, &one->parts);
        if (only) value_one(v, &one->parts, only, NULL);
        json_array_foreach(list, i, each)
        {
            value_one(v, &one->parts, each, list);
        }
    } else {
        write_types(v, &one->parts, types);
    }
}

static void write_rule(compiler *c, const rule *r)
{
    value v = {.c = c, .from = r->start, .end = nfa_state(c->a), .literals = NFA_DEAD};
    parts_exact_cases(&c->x, &r->raw, facts_are_apart, write_case, &v);
    value_lengths(&v);
    buf_done(&v.lengths);
    nfa_return(c->a, v.end);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int compile(compiler *c, bool is_object, int *ret_start, shoal_err *err)
{
    json_t *objects = is_object ? json_pack("{s:s}", "type", "object") : NULL;
    parts all = {0};
    if (is_object && !objects) c->x.rc = err_nomem(err);
    if (!json_is_object(c->x.root) && !json_is_true(c->x.root))
        schema_fail(&c->x, SHOAL_EINVALID, NULL, NULL, "a schema must be an object or true");
    if (objects) parts_add(&c->x, &all, objects);
    parts_add(&c->x, &all, c->x.root);
    int start = schema_rule(c, &all);
    for (size_t i = 0; i < c->n_rules && c->x.rc == 0 && !nfa_failed(c->a); i++) write_rule(c, c->rules[i]);
    json_decref(objects);
    if (c->x.rc == 0 && nfa_failed(c->a))
        err_set(err, c->x.rc = SHOAL_ELIMIT, "%s: too large: more than %d automaton states", c->x.what,
                NFA_STATES_MAX);
    if (c->x.rc == 0) *ret_start = start;
    return c->x.rc;
}

static int compile_once(nfa *a, const json_t *root, const char *what, unsigned flags, int *ret_start,
                        shoal_err *err)
{
    compiler c = {
        .a = a,
        .x = {.root = root, .what = what, .err = err, .work = COMPILE_WORK, .open = flags & SCHEMA_OPEN}};
    int rc = 0;
    json_rules_init(&c.json, a);
    c.x.memory = arena_new(0);
    if (!c.x.memory)
        rc = err_nomem(err);
    else if (!root && !nfa_failed(a))
        *ret_start = c.json.object;
    else
        rc = compile(&c, flags & SCHEMA_OBJECT, ret_start, err);
    facts_done(&c.x);
    arena_free(c.x.memory);
    json_rules_done(&c.json);
    free(c.rules);
    free(c.index);
    return rc;
}

int schema_compile_json(nfa *a, const json_t *root, const char *what, unsigned flags, int *ret_start,
                        shoal_err *err)
{
    json_t *own = root ? json_refs_resolve(root) : NULL;
    if (root && !own) return err_nomem(err);
    int rc = compile_once(a, own, what, flags, ret_start, err);
    if ((flags & SCHEMA_OPEN) && (rc == SHOAL_EUNSUPPORTED || rc == SHOAL_ELIMIT))
        rc = compile_once(a, own, what, flags & ~SCHEMA_OPEN, ret_start, err);
    json_decref(own);
    return rc;
}

/* The texts that contain this one (ASCII or not, UTF-8). */
static int texts_with(dfa **ret, const char *text, uint64_t *work, shoal_err *err)
{
    fsm *f = fsm_new();
    if (!f) return err_nomem(err);
    int at = 0;
    size_t n = strlen(text);
    fsm_range(f, 0, 0, CODE_MAX, 0);
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        size_t len = utf8_decode(text + i, n - i, &cp);
        int next = fsm_state(f);
        fsm_range(f, at, cp, cp, next);
        at = next;
        i += len ? len : 1;
    }
    fsm_range(f, at, 0, CODE_MAX, at);
    fsm_accept(f, at);
    int rc = fsm_determine(ret, f, work, err);
    fsm_free(f);
    return rc;
}

/* *texts less those with `without`. */
static int leave_out(dfa **texts, const char *without, uint64_t *work, shoal_err *err)
{
    dfa *with = NULL, *rest = NULL;
    int rc = texts_with(&with, without, work, err);
    if (rc == 0) rc = dfa_combine(&rest, *texts, with, DFA_MINUS, work, err);
    dfa_free(with);
    if (rc != 0) return rc;
    dfa_free(*texts);
    *texts = rest;
    return 0;
}

int schema_compile_text(nfa *a, const json_t *schema, const char *what, const char *without, int from,
                        int *ret_end, shoal_err *err)
{
    schema_ctx x = {.root = schema, .what = what, .err = err, .work = COMPILE_WORK, .memory = arena_new(0)};
    parts p = {0};
    string_facts f = {0};
    int rc = x.memory ? parts_add(&x, &p, schema) : err_nomem(err);
    if (rc == 0) rc = facts_strings(&x, &p, &f);
    if (rc == 0 && !f.texts) rc = dfa_length(&f.texts, f.least, f.most, &x.work, err);
    if (rc == 0) rc = leave_out(&f.texts, without, &x.work, err);
    if (rc == 0) *ret_end = json_raw_texts(a, from, f.texts);
    dfa_free(f.texts);
    facts_done(&x);
    arena_free(x.memory);
    return rc;
}

bool schema_admits(const json_t *schema, const json_t *value)
{
    json_t *own = json_refs_resolve(schema);
    schema_ctx x = {.root = own, .what = "a value", .work = COMPILE_WORK, .memory = arena_new(0)};
    bool ok = own && x.memory && facts_admit(&x, own, value);
    facts_done(&x);
    arena_free(x.memory);
    json_decref(own);
    return ok;
}

int schema_parse(json_t **ret, const char *text, const char *what, shoal_err *err)
{
    int rc = json_parse(ret, text, strlen(text), what, err);
    if (rc != SHOAL_EFORMAT) return rc;
    if (err) err->code = SHOAL_EINVALID;
    return SHOAL_EINVALID;
}

int schema_compile(nfa *a, const char *schema, unsigned flags, int *ret_start, shoal_err *err)
{
    json_t *root = NULL;
    int rc = schema ? schema_parse(&root, schema, "json_schema", err) : 0;
    if (rc == 0) rc = schema_compile_json(a, root, "json_schema", flags, ret_start, err);
    json_decref(root);
    return rc;
}
