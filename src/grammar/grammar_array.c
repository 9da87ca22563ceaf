/* grammar_array.c: arrays as states: counted items, named ones first, and items that have to differ. */
#include "grammar/grammar_write.h"

#define UNIQUE_MAX   8  /* values of items that have to differ: the automaton has a state for every subset */
#define CONTAINS_MAX 16 /* items that are counted by "contains" */
#define ROWS_MAX     256

static int spaced(compiler *c, int from)
{
    return nfa_call(c->a, from, c->json.space);
}

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
    return schema_rule(c, &item);
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

/* "contains": how many items have to satisfy `schema`; most < 0: no end. */
typedef struct wanted {
    const json_t *of; /* the schema that has it */
    const json_t *schema,
        *others; /* of those that do not count; NULL: any, where nothing forbids more that count */
    int64_t least, most;
} wanted;

/* The last one of several: they are refused. */
static bool find_wanted(schema_ctx *x, const parts *p, wanted *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const json_t *schema = json_object_get(p->of[i], "contains");
        if (!schema) continue;
        *ret = (wanted){.of = p->of[i],
                        .schema = schema,
                        .least = facts_count_of(x, p->of[i], "minContains", 1),
                        .most = facts_count_of(x, p->of[i], "maxContains", -1)};
        n++;
    }
    if (n > 1)
        schema_fail(x, SHOAL_EUNSUPPORTED, ret->of, "contains", "two \"contains\" are not enforced at once");
    if (n > 0 && (ret->least > CONTAINS_MAX || ret->most > CONTAINS_MAX))
        schema_fail(x, SHOAL_ELIMIT, ret->of, "contains", "\"contains\" counts up to %d", CONTAINS_MAX);
    if (n > 0 && ret->most >= 0 && !schema_admits_nothing(ret->schema)) {
        ret->others = schema_negation(x, ret->schema);
        if (!ret->others)
            schema_fail(x, SHOAL_EUNSUPPORTED, ret->of, "maxContains",
                        "\"maxContains\" is enforced only where its items have a negation");
    }
    return n > 0 && x->rc == 0;
}

/* The rule of item i that satisfies `more` as well (NULL: nothing more); NFA_DEAD: there is none. */
static int item_that(compiler *c, const parts *p, size_t i, const json_t *more)
{
    parts item;
    bool declared;
    if (!facts_item(&c->x, p, i, &item, &declared)) return NFA_DEAD;
    if (more && (schema_admits_nothing(more) || parts_add(&c->x, &item, more))) return NFA_DEAD;
    return schema_rule(c, &item);
}

static void add_item(compiler *c, int from, int rule, int to)
{
    if (rule != NFA_DEAD && c->x.rc == 0) nfa_call_to(c->a, from, rule, to);
}

/* row[k] is behind i items, k of which count. */
static void write_counted(value *v, const parts *p, const array_facts *f, const wanted *w)
{
    compiler *c = v->c;
    nfa *a = c->a;
    int row[CONTAINS_MAX + 1], next[CONTAINS_MAX + 1], end = nfa_state(a);
    int64_t cap = w->most >= 0 ? w->most : w->least, n = f->most >= 0 ? f->most : f->least;
    if (n < (int64_t)f->n_prefix && f->most < 0) n = (int64_t)f->n_prefix;
    if (n > ROWS_MAX)
        schema_fail(&c->x, SHOAL_ELIMIT, w->of, "contains",
                    "beside \"contains\" at most %d items are counted", ROWS_MAX);
    for (int64_t k = 0; k <= cap; k++) row[k] = nfa_state(a);
    nfa_call_to(a, nfa_range(a, v->from, '[', '['), c->json.space, row[0]);
    for (int64_t i = 0; c->x.rc == 0; i++) {
        for (int64_t k = w->least; k <= cap && i >= f->least; k++) nfa_epsilon(a, row[k], end);
        if (i == f->most) break;
        bool loops = i > 0 && i >= n;
        int counts = item_that(c, p, (size_t)i, w->schema), other = item_that(c, p, (size_t)i, w->others);
        for (int64_t k = 0; k <= cap; k++) next[k] = loops ? row[k] : nfa_state(a);
        for (int64_t k = 0; k <= cap; k++) {
            int from = i > 0 ? spaced(c, nfa_range(a, row[k], ',', ',')) : row[k];
            if (k < cap || w->most < 0) add_item(c, from, counts, next[k < cap ? k + 1 : k]);
            add_item(c, from, other, next[k]);
        }
        if (loops) break;
        for (int64_t k = 0; k <= cap; k++) row[k] = next[k];
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
            value_put(&text, l->of[i]);
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

void array_write(value *v, const parts *p)
{
    compiler *c = v->c;
    array_facts f = {.least = facts_count(&c->x, p, "minItems", 0),
                     .most = facts_count(&c->x, p, "maxItems", -1),
                     .n_prefix = facts_n_prefix(p)};
    const json_t *unique = wants_unique(p);
    wanted w = {0};
    if (c->x.rc || (f.most >= 0 && f.most < f.least)) return;
    bool is_counted = find_wanted(&c->x, p, &w);
    if (is_counted && facts_unevaluated(p, "unevaluatedItems", "items"))
        schema_fail(&c->x, SHOAL_EUNSUPPORTED, w.of, "contains",
                    "\"contains\" is not enforced beside \"unevaluatedItems\"");
    else if (is_counted && unique)
        schema_fail(&c->x, SHOAL_EUNSUPPORTED, w.of, "contains",
                    "\"contains\" is not enforced beside \"uniqueItems\"");
    else if (is_counted)
        write_counted(v, p, &f, &w);
    else if (unique && f.most != 0 && f.most != 1)
        write_unique(v, p, &f, unique);
    else
        write_items(v, p, &f);
}

bool array_is_any(const parts *p)
{
    static const char *const keys[] = {"items",       "prefixItems", "minItems",        "maxItems",
                                       "uniqueItems", "contains",    "unevaluatedItems"};
    return parts_lack(p, keys, sizeof keys / sizeof *keys);
}
