/* grammar_object.c: objects as states: properties in the order of the schema, then other names (in an open schema
 * between them, too). */
#include "grammar/grammar_write.h"

#include <string.h>

#include "base/utf8.h"

#define COUNTED_MAX  64 /* "minProperties", "maxProperties" */
#define PATTERNS_MAX 8  /* of names: they may overlap in twice as many ways with each */

/* An object as it is written: properties in the order of the schema, and others when it asks for them.
 * ready[k]: the next name may come (behind a comma, unless nothing was written yet); after[k]: behind a
 * value. k counts what was written and stays at `cap`, the last number that matters. */
typedef struct object {
    compiler *c;
    const parts *p;
    json_t *names;    /* of its properties, in order */
    int other;        /* the rule of a member with another name, NFA_DEAD: there is none */
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

static int write_name(nfa *a, int at, const buf *text, uint8_t marks)
{
    for (size_t i = 0; i < text->len; i++) {
        nfa_mark(a, at, marks);
        at = nfa_bytes(a, at, text->data + i, 1);
    }
    return at;
}

/* name ":" value from each ready[k] to the next row's after[k + 1]; the name is written once a target. */
static void write_member(object *o, const char *name, int rule, const int *next_after, bool required)
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
            int at = write_name(a, begin[to], &text, required ? 0 : NFA_OPTIONAL);
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
    if (c->x.rc) return;
    bool may = facts_property(&c->x, o->p, name, &child, &declared);
    if (!may && !required) return;
    int ready[COUNTED_MAX + 1], after[COUNTED_MAX + 1];
    next_row(o, ready, after);
    if (may)
        write_member(o, name, schema_rule(c, &child), after,
                     required); /* else required and impossible: leads nowhere */
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

/* The keys of `in` that are not there yet. */
static void collect_names(object *o, const json_t *in)
{
    const char *name;
    json_t *sub;
    json_object_foreach((json_t *)in, name, sub)
    {
        if (!json_object_get(o->names, name) && json_object_set_new(o->names, name, json_true()) != 0)
            o->c->x.rc = err_nomem(o->c->x.err);
    }
}

static void collect_properties(object *o)
{
    for (size_t i = 0; i < o->p->n; i++) {
        const json_t *s = o->p->of[i], *properties = json_object_get(s, "properties");
        if (properties && !json_is_object(properties))
            schema_fail(&o->c->x, SHOAL_EINVALID, s, "properties", "\"properties\" must be an object");
        collect_names(o, properties);
    }
    collect_names(o, o->required);
}

/* In front of the next property of this row. */
static void write_other(object *o)
{
    for (int k = 0; k <= o->cap && o->other != NFA_DEAD; k++)
        if (may_write(o, k)) nfa_call_to(o->c->a, o->ready[k], o->other, o->after[count_on(o, k)]);
}

static void write_properties(object *o)
{
    const char *name;
    json_t *sub;
    json_object_foreach(o->names, name, sub)
    {
        if (o->c->x.open) write_other(o);
        write_property(o, name);
    }
    write_other(o);
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

/* What all "propertyNames" allow, less the names of its properties; NULL with c->x.rc set on failure. */
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

/* name ":" value for each of these names. */
static void add_others(object *o, const dfa *names, int rule)
{
    compiler *c = o->c;
    nfa *a = c->a;
    int begin = nfa_state(a);
    if (o->other == NFA_DEAD) o->other = nfa_state(a);
    nfa_epsilon(a, o->other, begin);
    nfa_mark(a, begin, NFA_OPTIONAL);
    int at = json_literal(&c->json, json_texts(&c->json, begin, names, NFA_OPTIONAL), ":");
    nfa_return(a, nfa_call(a, nfa_call(a, at, c->json.gap), rule));
}

/* The patterns of names of all parts. */
typedef struct others {
    object *o;
    struct {
        size_t part;
        const json_t *schema; /* of the values */
        const dfa *names;
    } at[PATTERNS_MAX];
    size_t n;
} others;

static bool collect_patterns(others *all)
{
    schema_ctx *x = &all->o->c->x;
    const parts *p = all->o->p;
    const char *pattern;
    json_t *one;
    for (size_t i = 0; i < p->n && x->rc == 0; i++) {
        const json_t *patterns = json_object_get(p->of[i], "patternProperties");
        if (patterns && !json_is_object(patterns))
            schema_fail(x, SHOAL_EINVALID, p->of[i], "patternProperties",
                        "\"patternProperties\" must be an object");
        json_object_foreach((json_t *)patterns, pattern, one)
        {
            if (all->n == PATTERNS_MAX)
                schema_fail(x, SHOAL_ELIMIT, p->of[i], "patternProperties", "more than %d patterns of names",
                            PATTERNS_MAX);
            const dfa *names = x->rc ? NULL : facts_name_pattern(x, p->of[i], pattern);
            if (!names) return false;
            all->at[all->n].part = i;
            all->at[all->n].schema = one;
            all->at[all->n++].names = names;
        }
    }
    return x->rc == 0;
}

/* What holds for the values of names that these patterns match, and no others. False: there are no such properties. */
static bool values_of(const others *all, unsigned matched, parts *ret)
{
    schema_ctx *x = &all->o->c->x;
    const parts *p = all->o->p;
    if (!matched && !facts_asks_for_more(p, x->open)) return false;
    for (size_t i = 0; i < p->n; i++) {
        bool has_own = false;
        for (size_t k = 0; k < all->n; k++) {
            if (all->at[k].part != i || !(matched >> k & 1)) continue;
            has_own = true;
            if (schema_admits_nothing(all->at[k].schema) || parts_add(x, ret, all->at[k].schema))
                return false;
        }
        const json_t *rest = has_own ? NULL : json_object_get(p->of[i], "additionalProperties");
        if (rest && (schema_admits_nothing(rest) || parts_add(x, ret, rest))) return false;
    }
    const json_t *left =
        matched ? NULL : facts_unevaluated(p, "unevaluatedProperties", "additionalProperties");
    return (!left || (!schema_admits_nothing(left) && parts_add(x, ret, left) == 0)) && x->rc == 0;
}

/* Names that match the same patterns are a class; patterns 0..k of `matched` are decided. */
static void add_classes(const others *all, const dfa *names, size_t k, unsigned matched)
{
    compiler *c = all->o->c;
    parts child = {0};
    if (c->x.rc || names->n == 0) return;
    if (k == all->n) {
        if (values_of(all, matched, &child)) add_others(all->o, names, schema_rule(c, &child));
        return;
    }
    for (unsigned is_match = 0; is_match <= 1 && c->x.rc == 0; is_match++) {
        dfa *some = NULL;
        shoal_err err = {0};
        int rc =
            dfa_combine(&some, names, all->at[k].names, is_match ? DFA_AND : DFA_MINUS, &c->x.work, &err);
        if (rc)
            schema_fail(&c->x, rc, all->o->p->of[all->at[k].part], "patternProperties", "the names: %s",
                        err.message);
        else
            add_classes(all, some, k + 1, matched | is_match << k);
        dfa_free(some);
    }
}

/* Members of which no part says the name, where the schema asks for them: o->other. */
static void find_others(object *o)
{
    bool may_repeat = o->least > 1 && (size_t)o->least > n_required(o) + 1;
    bool is_asked = facts_asks_for_more(o->p, false) || facts_has_name_patterns(o->p);
    if (!is_asked && (may_repeat || !facts_asks_for_more(o->p, o->c->x.open))) return;
    if (may_repeat)
        schema_fail(
            &o->c->x, SHOAL_EUNSUPPORTED, o->p->of[0], "minProperties",
            "\"minProperties\" is not enforced where properties may have any name: they might repeat");
    others all = {.o = o};
    dfa *names = collect_patterns(&all) ? other_names(o) : NULL;
    if (names) add_classes(&all, names, 0, 0);
    dfa_free(names);
}

static bool count_properties(object *o)
{
    schema_ctx *x = &o->c->x;
    o->least = facts_count(x, o->p, "minProperties", 0);
    o->most = facts_count(x, o->p, "maxProperties", -1);
    int64_t cap = o->most >= 0 ? o->most : o->least;
    bool is_closed = !facts_asks_for_more(o->p, x->open) && !facts_has_name_patterns(o->p);
    if (cap > COUNTED_MAX && o->most >= 0 && o->least <= COUNTED_MAX && is_closed) {
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
    collect_properties(o);
    find_others(o);
    write_properties(o);
    int end = nfa_state(a);
    for (int k = 0; k <= o->cap && c->x.rc == 0; k++) {
        if (k >= o->least) nfa_epsilon(a, k == 0 ? o->ready[0] : o->after[k], end);
    }
    json_close(&c->json, end, '}', v->end);
}

void object_write(value *v, const parts *p)
{
    object o = {.c = v->c, .p = p, .other = NFA_DEAD};
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

bool object_is_any(const parts *p)
{
    static const char *const keys[] = {
        "properties",    "required",      "additionalProperties", "minProperties",
        "maxProperties", "propertyNames", "patternProperties",    "unevaluatedProperties"};
    return parts_lack(p, keys, sizeof keys / sizeof *keys);
}
