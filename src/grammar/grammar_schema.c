/* grammar_schema.c: a JSON schema's cases written as rules of an automaton.
 *
 * Every place of a schema (the root, a property, an item) is a set of schemas that have to hold there. Equal
 * sets are one rule, made when it is first called and written later, so schemas may lead back to themselves.
 * A rule's cases (grammar_parts.h) stand side by side; literals of all cases hang on one tree and strings
 * that differ only in length are one chain, so that many alternatives stay few threads. */
#include "grammar/grammar_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "grammar/grammar_facts.h"
#include "grammar/grammar_json.h"

#define COMPILE_WORK (12u << 20) /* about a tenth of a second */
#define RULES_MAX    20000
#define UNIQUE_MAX   8  /* values of items that have to differ: the automaton has a state for every subset */
#define COUNTED_MAX  64 /* "minProperties", "maxProperties" */

typedef struct rule {
    parts raw;
    int start;
} rule;

typedef struct compiler {
    schema_ctx x;
    nfa *a;
    json_rules json;
    rule **rules; /* in the arena of x */
    size_t n_rules, cap_rules;
    int *index; /* open addressing over rules */
    size_t index_cap;
} compiler;

/* What is being written: one rule. */
typedef struct value {
    compiler *c;
    int from, end;
    int literals; /* the tree of literals, NFA_DEAD before the first one */
    buf lengths;  /* string_facts without texts */
} value;

/* ---- rules ------------------------------------------------------------------------------------ */

static int compare_pointers(const void *x, const void *y)
{
    const json_t *const *a = x, *const *b = y;
    return *a < *b ? -1 : *a > *b;
}

static uint64_t hash_parts(const parts *p)
{
    uint64_t h = p->n;
    for (size_t i = 0; i < p->n; i++) h = rng_mix(h ^ (uint64_t)(uintptr_t)p->of[i]);
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
        size_t at = hash_parts(&c->rules[i]->raw) & (cap - 1);
        while (index[at] >= 0) at = (at + 1) & (cap - 1);
        index[at] = (int)i;
    }
    free(c->index);
    c->index = index;
    c->index_cap = cap;
    return true;
}

/* The rule of what satisfies all of `p`. */
static int rule_of(compiler *c, const parts *p)
{
    parts sorted = *p;
    if (p->n == 0) return c->json.value;
    qsort(sorted.of, sorted.n, sizeof *sorted.of, compare_pointers);
    if (!schema_works(&c->x, 20)) return NFA_DEAD;
    if (!index_rules(c)) return c->x.rc = err_nomem(c->x.err), NFA_DEAD;
    size_t at = hash_parts(&sorted) & (c->index_cap - 1);
    for (; c->index[at] >= 0; at = (at + 1) & (c->index_cap - 1)) {
        const rule *r = c->rules[c->index[at]];
        if (r->raw.n == sorted.n && memcmp(r->raw.of, sorted.of, sorted.n * sizeof *sorted.of) == 0)
            return r->start;
    }
    rule *r = c->n_rules < RULES_MAX ? arena_alloc(c->x.memory, sizeof *r) : NULL;
    if (!r && c->n_rules < RULES_MAX) return c->x.rc = err_nomem(c->x.err), NFA_DEAD;
    if (!r) {
        schema_fail(&c->x, SHOAL_ELIMIT, p->of[0], NULL, "the schema is too large");
        return NFA_DEAD;
    }
    *r = (rule){.raw = sorted, .start = nfa_state(c->a)};
    c->rules[c->n_rules] = r;
    c->index[at] = (int)c->n_rules++;
    return r->start;
}

static int spaced(compiler *c, int from)
{
    return nfa_call(c->a, from, c->json.space);
}

/* ---- literals --------------------------------------------------------------------------------- */

static void put_value(buf *out, const json_t *v)
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

static void add_literal(value *v, const char *text, size_t n)
{
    nfa *a = v->c->a;
    if (v->literals == NFA_DEAD) {
        v->literals = nfa_state(a);
        nfa_epsilon(a, v->from, v->literals);
    }
    nfa_epsilon(a, nfa_literal(a, v->literals, text, n), v->end);
}

/* One value of the "enum" `list`, or of a "const" (list NULL). */
static void write_value(value *v, const parts *p, const json_t *one, const json_t *list)
{
    buf text = {0};
    if (!facts_all_admit(&v->c->x, p, one, list)) return;
    put_value(&text, one);
    if (!text.failed)
        add_literal(v, text.data, text.len);
    else if (v->c->x.rc == 0)
        v->c->x.rc = err_nomem(v->c->x.err);
    buf_done(&text);
}

/* ---- numbers and strings ---------------------------------------------------------------------- */

static void write_number(value *v, const parts *p, bool integer)
{
    compiler *c = v->c;
    number_bounds bounds;
    bool any;
    dfa *texts = NULL;
    shoal_err err = {0};
    if (!facts_numbers(&c->x, p, integer, &bounds, &any) || c->x.rc) return;
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

static void write_string(value *v, const parts *p)
{
    compiler *c = v->c;
    string_facts f;
    if (facts_strings(&c->x, p, &f)) return;
    if (f.texts)
        nfa_epsilon(c->a, json_texts(&c->json, v->from, f.texts), v->end);
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

/* All strings that only have lengths, as one chain of characters. */
static void write_lengths(value *v)
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
    int open = changes[0];
    if (last == 0 && open > 0) {
        nfa_call_to(a, v->from, json->string, v->end);
    } else {
        int at = nfa_range(a, v->from, '"', '"'), close = nfa_state(a);
        for (int64_t k = 0;; open += changes[++k]) {
            if (open > 0) nfa_epsilon(a, at, close);
            if (k == last) break;
            at = nfa_call(a, at, json->string_char);
        }
        if (open > 0) nfa_call_to(a, at, json->string_char, at);
        nfa_range_to(a, close, '"', '"', v->end);
    }
    free(changes);
}

/* ---- arrays ----------------------------------------------------------------------------------- */

typedef struct array_facts {
    int64_t least, most; /* most < 0: no end */
    size_t n_prefix;
} array_facts;

/* The rule of item i; NFA_DEAD when there must be none, or when none is asked for: behind named items others
 * come only where the schema speaks of them. */
static int item_rule(compiler *c, const parts *p, size_t i, const array_facts *f)
{
    parts item;
    bool declared;
    if (!facts_item(&c->x, p, i, &item, &declared)) return NFA_DEAD;
    if (!declared && f->n_prefix > 0 && (int64_t)i >= f->least) return NFA_DEAD;
    return rule_of(c, &item);
}

static void write_items(value *v, const parts *p, const array_facts *f)
{
    compiler *c = v->c;
    nfa *a = c->a;
    int at = spaced(c, nfa_range(a, v->from, '[', '[')), end = nfa_state(a);
    int64_t counted = f->least > (int64_t)f->n_prefix ? f->least : (int64_t)f->n_prefix;
    if (f->most >= 0) counted = f->most;
    if (f->least == 0) nfa_epsilon(a, at, end);
    int64_t i = 0;
    for (; i < (counted > 0 ? counted : f->most != 0) && c->x.rc == 0; i++) {
        int item = item_rule(c, p, (size_t)i, f);
        if (item == NFA_DEAD) break;
        if (i > 0) at = spaced(c, nfa_range(a, at, ',', ','));
        at = nfa_call(a, at, item);
        if (i + 1 >= f->least) nfa_epsilon(a, at, end);
    }
    int rest = f->most < 0 && i > 0 && i >= (int64_t)f->n_prefix ? item_rule(c, p, (size_t)i, f) : NFA_DEAD;
    if (rest != NFA_DEAD) {
        int more = spaced(c, nfa_range(a, at, ',', ','));
        nfa_call_to(a, more, rest, at);
    }
    json_close(&c->json, end, ']', v->end);
}

typedef struct value_list {
    compiler *c;
    const json_t *of[UNIQUE_MAX + 1];
    size_t n;
    bool open; /* not only listed values */
} value_list;

static void list_value(value_list *l, const parts *p, const json_t *one, const json_t *list)
{
    if (!facts_all_admit(&l->c->x, p, one, list)) return;
    for (size_t i = 0; i < l->n; i++)
        if (json_equal(l->of[i], one)) return;
    if (l->n <= UNIQUE_MAX) l->of[l->n++] = one;
}

static void list_case(void *user, const parts_case *one)
{
    value_list *l = user;
    const json_t *list, *only, *each;
    size_t i;
    if (!facts_values(&l->c->x, &one->parts, &list, &only)) l->open = true;
    if (only) list_value(l, &one->parts, only, NULL);
    json_array_foreach(list, i, each)
    {
        list_value(l, &one->parts, each, list);
    }
}

/* Items that have to differ, all of them among a few values: after[set] is behind the items in `set`. */
static void write_subsets(value *v, const value_list *l, const array_facts *f)
{
    compiler *c = v->c;
    nfa *a = c->a;
    int after[1 << UNIQUE_MAX], end = nfa_state(a);
    for (unsigned set = 0; set < 1u << l->n; set++) after[set] = nfa_state(a);
    nfa_call_to(a, nfa_range(a, v->from, '[', '['), c->json.space, after[0]);
    for (unsigned set = 0; set < 1u << l->n && c->x.rc == 0; set++) {
        int64_t count = __builtin_popcount(set);
        if (count >= f->least && (f->most < 0 || count <= f->most)) nfa_epsilon(a, after[set], end);
        if (f->most >= 0 && count >= f->most) continue;
        int at = set ? spaced(c, nfa_range(a, after[set], ',', ',')) : after[set], tree = nfa_state(a);
        nfa_epsilon(a, at, tree);
        for (size_t i = 0; i < l->n; i++) {
            buf text = {0};
            if (set >> i & 1) continue;
            put_value(&text, l->of[i]);
            if (!text.failed) nfa_epsilon(a, nfa_literal(a, tree, text.data, text.len), after[set | 1u << i]);
            buf_done(&text);
        }
    }
    json_close(&c->json, end, ']', v->end);
}

/* The schema whose "uniqueItems" is true; NULL: items may be equal. */
static const json_t *wants_unique(const parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (json_is_true(json_object_get(p->of[i], "uniqueItems"))) return p->of[i];
    return NULL;
}

static void write_unique(value *v, const parts *p, const array_facts *f, const json_t *who)
{
    compiler *c = v->c;
    value_list l = {.c = c};
    parts item;
    bool declared;
    if (f->n_prefix == 0 && facts_item(&c->x, p, 0, &item, &declared) && item.n > 0)
        parts_cases(&c->x, &item, list_case, &l);
    else
        l.open = true;
    if (l.open || l.n > UNIQUE_MAX)
        schema_fail(&c->x, SHOAL_EUNSUPPORTED, who, "uniqueItems",
                    "\"uniqueItems\" is enforced only for items with an \"enum\" of at most %d values",
                    UNIQUE_MAX);
    else
        write_subsets(v, &l, f);
}

static void write_array(value *v, const parts *p)
{
    compiler *c = v->c;
    array_facts f = {.least = facts_count(&c->x, p, "minItems", 0),
                     .most = facts_count(&c->x, p, "maxItems", -1),
                     .n_prefix = facts_n_prefix(p)};
    const json_t *unique = wants_unique(p);
    if (c->x.rc || (f.most >= 0 && f.most < f.least)) return;
    if (unique && f.most != 0 && f.most != 1)
        write_unique(v, p, &f, unique);
    else
        write_items(v, p, &f);
}

/* ---- objects ---------------------------------------------------------------------------------- */

/* An object as it is written: properties in the order of the schema, then others when it asks for them.
 * ready[k]: the next name may come (behind a comma, unless nothing was written yet); after[k]: behind a
 * value. k counts what was written and stays at `cap`, the last number that matters. */
typedef struct object {
    compiler *c;
    const parts *p;
    json_t *names;    /* of properties that were dealt with, in order */
    json_t *required; /* names, as an object: there may be thousands */
    int64_t least, most;
    int cap;
    int ready[COUNTED_MAX + 1], after[COUNTED_MAX + 1];
} object;

static bool may_write(const object *o, int k)
{
    return o->most < 0 || k < o->most;
}

static int count_on(const object *o, int k)
{
    return k < o->cap ? k + 1 : k;
}

/* A fresh row of states; behind a value, a comma makes ready for the next name. */
static void next_row(object *o, int *ready, int *after)
{
    nfa *a = o->c->a;
    for (int k = 0; k <= o->cap; k++) {
        ready[k] = nfa_state(a);
        after[k] = nfa_state(a);
        if (k > 0) nfa_call_to(a, nfa_range(a, after[k], ',', ','), o->c->json.space, ready[k]);
    }
}

/* name ":" value from each ready[k] to the next row's after[k + 1]; the name is written once a target. */
static void write_member(object *o, const char *name, int rule, const int *next_after)
{
    nfa *a = o->c->a;
    buf text = {0};
    json_put_string(&text, name, strlen(name));
    buf_putc(&text, ':');
    int begin[COUNTED_MAX + 1];
    for (int k = 0; k <= o->cap; k++) begin[k] = NFA_DEAD;
    for (int k = 0; k <= o->cap && !text.failed; k++) {
        int to = count_on(o, k);
        if (!may_write(o, k)) continue;
        if (begin[to] == NFA_DEAD) {
            begin[to] = nfa_state(a);
            int at = nfa_bytes(a, begin[to], text.data, text.len);
            nfa_call_to(a, nfa_call(a, at, o->c->json.gap), rule, next_after[to]);
        }
        nfa_epsilon(a, o->ready[k], begin[to]);
    }
    if (text.failed && o->c->x.rc == 0) o->c->x.rc = err_nomem(o->c->x.err);
    buf_done(&text);
}

static void write_property(object *o, const char *name)
{
    compiler *c = o->c;
    nfa *a = c->a;
    parts child;
    bool declared, required = json_object_get(o->required, name) != NULL;
    if (json_object_get(o->names, name) || c->x.rc) return;
    if (json_object_set_new(o->names, name, json_true()) != 0) o->c->x.rc = err_nomem(o->c->x.err);
    bool may = facts_property(&c->x, o->p, name, &child, &declared);
    if (!may && !required) return;
    int ready[COUNTED_MAX + 1], after[COUNTED_MAX + 1];
    next_row(o, ready, after);
    if (may)
        write_member(o, name, rule_of(c, &child), after); /* else required and impossible: leads nowhere */
    for (int k = 0; k <= o->cap && !required; k++) {
        nfa_epsilon(a, o->ready[k], ready[k]);
        nfa_epsilon(a, o->after[k], after[k]);
    }
    memcpy(o->ready, ready, sizeof o->ready);
    memcpy(o->after, after, sizeof o->after);
}

static void collect_required(object *o)
{
    const json_t *one;
    size_t k;
    for (size_t i = 0; i < o->p->n; i++) {
        const json_t *list = json_object_get(o->p->of[i], "required");
        if (list && !json_is_array(list))
            schema_fail(&o->c->x, SHOAL_EINVALID, o->p->of[i], "required", "\"required\" must be an array");
        json_array_foreach(list, k, one)
        {
            if (!json_is_string(one))
                schema_fail(&o->c->x, SHOAL_EINVALID, o->p->of[i], "required",
                            "\"required\" must hold strings");
            else if (json_object_set_new(o->required, json_string_value(one), json_true()) != 0)
                o->c->x.rc = err_nomem(o->c->x.err);
        }
    }
}

static void write_properties(object *o)
{
    const char *name;
    json_t *sub;
    for (size_t i = 0; i < o->p->n; i++) {
        const json_t *s = o->p->of[i], *properties = json_object_get(s, "properties");
        if (properties && !json_is_object(properties))
            schema_fail(&o->c->x, SHOAL_EINVALID, s, "properties", "\"properties\" must be an object");
        json_object_foreach((json_t *)properties, name, sub)
        {
            write_property(o, name);
        }
    }
    json_object_foreach(o->required, name, sub) /* those that stand nowhere else */
    {
        write_property(o, name);
    }
}

/* The texts of one case of "propertyNames". */
typedef struct name_case {
    compiler *c;
    fsm *listed; /* names of an "enum" */
    dfa *texts;
    size_t n;
} name_case;

static void list_name(name_case *n, const parts *p, const json_t *one, const json_t *list)
{
    int at = 0;
    if (!json_is_string(one) || !facts_all_admit(&n->c->x, p, one, list)) return;
    const char *s = json_string_value(one);
    size_t len = json_string_length(one);
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t step = utf8_decode(s + i, len - i, &cp);
        int to = fsm_state(n->listed);
        fsm_range(n->listed, at, cp, cp, to);
        at = to;
        i += step ? step : 1;
    }
    fsm_accept(n->listed, at);
}

static void take_names(void *user, const parts_case *one)
{
    name_case *n = user;
    schema_ctx *x = &n->c->x;
    const json_t *list, *only, *each;
    size_t i;
    string_facts f = {0};
    if (!(facts_types(x, &one->parts, true) & TYPE_STRING) || n->n++ > 0) return;
    if (facts_values(x, &one->parts, &list, &only)) {
        if (only) list_name(n, &one->parts, only, NULL);
        json_array_foreach(list, i, each)
        {
            list_name(n, &one->parts, each, list);
        }
        shoal_err err = {0};
        int rc = fsm_determine(&n->texts, n->listed, &x->work, &err);
        if (rc) schema_fail(x, rc, one->parts.of[0], NULL, "its names: %s", err.message);
    } else if (facts_strings(x, &one->parts, &f) == 0) {
        n->texts = f.texts;
        shoal_err err = {0};
        int rc = f.texts ? 0 : dfa_length(&n->texts, f.least, f.most, &x->work, &err);
        if (rc) schema_fail(x, rc, one->parts.of[0], NULL, "its names: %s", err.message);
    }
}

/* What all "propertyNames" allow, less the names that were dealt with; NULL with c->x.rc set on failure. */
static dfa *other_names(object *o)
{
    compiler *c = o->c;
    name_case n = {.c = c, .listed = fsm_new()};
    parts wanted = {0};
    fsm *taken = fsm_new();
    dfa *out = NULL, *minus = NULL;
    shoal_err err = {0};
    int rc = n.listed && taken ? 0 : err_nomem(&err);
    for (size_t i = 0; i < o->p->n; i++) {
        const json_t *names = json_object_get(o->p->of[i], "propertyNames");
        if (names) parts_add(&c->x, &wanted, names);
    }
    if (rc == 0 && wanted.n > 0) {
        parts_cases(&c->x, &wanted, take_names, &n);
        if (n.n > 1)
            schema_fail(&c->x, SHOAL_EUNSUPPORTED, wanted.of[0], NULL,
                        "\"propertyNames\" with choices is not supported");
    } else if (rc == 0) {
        rc = dfa_length(&n.texts, 0, -1, &c->x.work, &err);
    }
    const char *name;
    json_t *sub;
    name_case t = {.c = c, .listed = taken};
    json_object_foreach(o->names, name, sub)
    {
        json_t *text = rc == 0 ? json_string(name) : NULL;
        if (text) list_name(&t, &(parts){0}, text, NULL);
        json_decref(text);
    }
    if (rc == 0) rc = fsm_determine(&minus, taken, &c->x.work, &err);
    if (rc == 0 && n.texts) rc = dfa_combine(&out, n.texts, minus, DFA_MINUS, &c->x.work, &err);
    if (rc) schema_fail(&c->x, rc, o->p->n ? o->p->of[0] : NULL, NULL, "its other names: %s", err.message);
    dfa_free(n.texts);
    dfa_free(minus);
    fsm_free(n.listed);
    fsm_free(taken);
    return out;
}

/* A name that is not in the schema: the schemas of "additionalProperties" hold for its value. */
static int rule_of_others(object *o)
{
    parts child = {0};
    for (size_t i = 0; i < o->p->n; i++) {
        const json_t *rest = json_object_get(o->p->of[i], "additionalProperties");
        if (rest) parts_add(&o->c->x, &child, rest);
    }
    return rule_of(o->c, &child);
}

static size_t n_required(const object *o)
{
    const char *name;
    json_t *sub;
    size_t n = 0;
    json_object_foreach(o->names, name, sub)
    {
        n += json_object_get(o->required, name) != NULL;
    }
    return n;
}

static void write_others(object *o)
{
    compiler *c = o->c;
    nfa *a = c->a;
    if (o->least > 1 && (size_t)o->least > n_required(o) + 1)
        schema_fail(
            &c->x, SHOAL_EUNSUPPORTED, o->p->of[0], "minProperties",
            "\"minProperties\" is not enforced where properties may have any name: they might repeat");
    dfa *names = other_names(o);
    int rule = rule_of_others(o);
    int begin[COUNTED_MAX + 1];
    for (int k = 0; k <= o->cap; k++) begin[k] = NFA_DEAD;
    for (int k = 0; k <= o->cap && names && c->x.rc == 0; k++) {
        int to = count_on(o, k);
        if (!may_write(o, k)) continue;
        if (begin[to] == NFA_DEAD) {
            begin[to] = nfa_state(a);
            int at = json_literal(&c->json, json_texts(&c->json, begin[to], names), ":");
            nfa_call_to(a, nfa_call(a, at, c->json.gap), rule, o->after[to]);
        }
        nfa_epsilon(a, o->ready[k], begin[to]);
    }
    dfa_free(names);
}

static bool count_properties(object *o)
{
    schema_ctx *x = &o->c->x;
    o->least = facts_count(x, o->p, "minProperties", 0);
    o->most = facts_count(x, o->p, "maxProperties", -1);
    int64_t cap = o->most >= 0 ? o->most : o->least;
    if (cap > COUNTED_MAX && o->most >= 0 && o->least <= COUNTED_MAX && !facts_asks_for_more(o->p)) {
        size_t n = 0; /* a maximum that the named properties cannot reach says nothing */
        for (size_t i = 0; i < o->p->n; i++)
            n += json_object_size(json_object_get(o->p->of[i], "properties"));
        if ((int64_t)n <= o->most) {
            o->most = -1;
            cap = o->least;
        }
    }
    if (cap > COUNTED_MAX)
        schema_fail(x, SHOAL_EUNSUPPORTED, o->p->of[0], o->most >= 0 ? "maxProperties" : "minProperties",
                    "properties are counted up to %d", COUNTED_MAX);
    o->cap = cap < 1 ? 1 : (int)cap;
    return x->rc == 0 && (o->most < 0 || o->most >= o->least);
}

static void write_members(value *v, object *o)
{
    compiler *c = v->c;
    nfa *a = c->a;
    collect_required(o);
    next_row(o, o->ready, o->after);
    nfa_call_to(a, nfa_range(a, v->from, '{', '{'), c->json.space, o->ready[0]);
    write_properties(o);
    if (facts_asks_for_more(o->p) && c->x.rc == 0) write_others(o);
    int end = nfa_state(a);
    for (int k = 0; k <= o->cap && c->x.rc == 0; k++) {
        if (k >= o->least) nfa_epsilon(a, k == 0 ? o->ready[0] : o->after[k], end);
    }
    json_close(&c->json, end, '}', v->end);
}

static void write_object(value *v, const parts *p)
{
    object o = {.c = v->c, .p = p};
    if (!count_properties(&o)) return;
    o.names = json_object();
    o.required = json_object();
    if (o.names && o.required)
        write_members(v, &o);
    else
        o.c->x.rc = err_nomem(o.c->x.err);
    json_decref(o.names);
    json_decref(o.required);
}

/* No part says anything about an object's insides. */
static bool is_any(const parts *p, const char *const *keys, size_t n_keys)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < n_keys; k++)
            if (json_object_get(p->of[i], keys[k])) return false;
    return true;
}

static bool is_any_object(const parts *p)
{
    static const char *const keys[] = {"properties",    "required",      "additionalProperties",
                                       "minProperties", "maxProperties", "propertyNames"};
    return is_any(p, keys, sizeof keys / sizeof *keys);
}

static bool is_any_array(const parts *p)
{
    static const char *const keys[] = {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"};
    return is_any(p, keys, sizeof keys / sizeof *keys);
}

/* ---- cases ------------------------------------------------------------------------------------ */

static void write_types(value *v, const parts *p, unsigned types)
{
    compiler *c = v->c;
    if (types & TYPE_NULL) add_literal(v, "null", 4);
    if (types & TYPE_BOOLEAN) {
        add_literal(v, "true", 4);
        add_literal(v, "false", 5);
    }
    if (types & TYPE_NUMBER) write_number(v, p, !(types & TYPE_FRACTION));
    if (types & TYPE_STRING) write_string(v, p);
    if (types & TYPE_ARRAY) {
        if (is_any_array(p))
            nfa_call_to(c->a, v->from, c->json.array, v->end);
        else
            write_array(v, p);
    }
    if (types & TYPE_OBJECT) {
        if (is_any_object(p))
            nfa_call_to(c->a, v->from, c->json.object, v->end);
        else
            write_object(v, p);
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
        if (only) write_value(v, &one->parts, only, NULL);
        json_array_foreach(list, i, each)
        {
            write_value(v, &one->parts, each, list);
        }
    } else {
        write_types(v, &one->parts, types);
    }
}

static void write_rule(compiler *c, const rule *r)
{
    value v = {.c = c, .from = r->start, .end = nfa_state(c->a), .literals = NFA_DEAD};
    parts_cases(&c->x, &r->raw, write_case, &v);
    write_lengths(&v);
    buf_done(&v.lengths);
    nfa_return(c->a, v.end);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int compile(compiler *c, schema_kind kind, int *ret_start, shoal_err *err)
{
    json_t *objects = kind == SCHEMA_OBJECT ? json_pack("{s:s}", "type", "object") : NULL;
    parts all = {0};
    if (kind == SCHEMA_OBJECT && !objects) c->x.rc = err_nomem(err);
    if (!json_is_object(c->x.root) && !json_is_true(c->x.root))
        schema_fail(&c->x, SHOAL_EINVALID, NULL, NULL, "a schema must be an object or true");
    if (objects) parts_add(&c->x, &all, objects);
    parts_add(&c->x, &all, c->x.root);
    int start = rule_of(c, &all);
    for (size_t i = 0; i < c->n_rules && c->x.rc == 0 && !nfa_failed(c->a); i++) write_rule(c, c->rules[i]);
    json_decref(objects);
    if (c->x.rc == 0 && nfa_failed(c->a))
        err_set(err, c->x.rc = SHOAL_ELIMIT, "%s: too large: more than %d automaton states", c->x.what,
                NFA_STATES_MAX);
    if (c->x.rc == 0) *ret_start = start;
    return c->x.rc;
}

int schema_compile_json(nfa *a, const json_t *root, const char *what, schema_kind kind, int *ret_start,
                        shoal_err *err)
{
    compiler c = {.a = a, .x = {.root = root, .what = what, .err = err, .work = COMPILE_WORK}};
    int rc = 0;
    json_rules_init(&c.json, a);
    c.x.memory = arena_new(0);
    if (!c.x.memory)
        rc = err_nomem(err);
    else if (!root && !nfa_failed(a))
        *ret_start = c.json.object;
    else
        rc = compile(&c, kind, ret_start, err);
    facts_done(&c.x);
    arena_free(c.x.memory);
    json_rules_done(&c.json);
    free(c.rules);
    free(c.index);
    return rc;
}

bool schema_admits(const json_t *schema, const json_t *value)
{
    schema_ctx x = {.root = schema, .what = "a value", .work = COMPILE_WORK, .memory = arena_new(0)};
    bool ok = x.memory && facts_admit(&x, schema, value);
    facts_done(&x);
    arena_free(x.memory);
    return ok;
}

int schema_parse(json_t **ret, const char *text, const char *what, shoal_err *err)
{
    int rc = json_parse(ret, text, strlen(text), what, err);
    if (rc != SHOAL_EFORMAT) return rc;
    if (err) err->code = SHOAL_EINVALID;
    return SHOAL_EINVALID;
}

int schema_compile(nfa *a, const char *schema, int *ret_start, shoal_err *err)
{
    json_t *root = NULL;
    int rc = schema ? schema_parse(&root, schema, "json_schema", err) : 0;
    if (rc == 0) rc = schema_compile_json(a, root, "json_schema", SCHEMA_ANY, ret_start, err);
    json_decref(root);
    return rc;
}
