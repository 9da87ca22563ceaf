/* grammar_array.c: arrays as states: counted items, named ones first, and items that have to differ. */
#include "grammar/grammar_write.h"

#define UNIQUE_MAX 8 /* values of items that have to differ: the automaton has a state for every subset */

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
    if (c->x.rc || (f.most >= 0 && f.most < f.least)) return;
    if (unique && f.most != 0 && f.most != 1)
        write_unique(v, p, &f, unique);
    else
        write_items(v, p, &f);
}

bool array_is_any(const parts *p)
{
    static const char *const keys[] = {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"};
    return parts_lack(p, keys, sizeof keys / sizeof *keys);
}
