/* grammar_array.c: arrays as states: counted items, named ones first, and items that have to differ. */
#include <math.h>
#include <stdlib.h>

#include "grammar/grammar_write.h"
#include "json/schema_check.h"

#define UNIQUE_MAX 64 /* values of items that have to differ, ... */
#define UNIQUE_BYTES \
    60000 /* ... and what they take: each set of items has a state, behind which stand all the others */
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
    /* Of those that do not count; NULL: any, where nothing forbids more that count. */
    const json_t *schema, *others;
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
    json_t *made; /* an array that owns those that the schema does not list */
    bool open;    /* more than that, or values that cannot be listed */
} value_list;

static void list_value(value_list *l, const parts *p, const json_t *one, const json_t *list)
{
    if (!facts_all_admit(&l->c->x, p, one, list)) return;
    for (size_t i = 0; i < l->n; i++)
        if (json_same(l->of[i], one, NULL)) return;
    if (l->n <= UNIQUE_MAX) l->of[l->n++] = one;
}

/* A value that the schema does not list. */
static void list_made(value_list *l, const parts *p, json_t *v)
{
    if (!l->made) l->made = json_array();
    if (json_array_append_new(l->made, v) != 0)
        l->c->x.rc = err_nomem(l->c->x.err);
    else
        list_value(l, p, v, NULL);
}

/* The largest "min..." or the smallest "max..." of all parts, whether excluded or not: a place to begin at.
 */
static bool rough_bound(const parts *p, const char *key, const char *exclusive, int sign, double *ret)
{
    bool any = false;
    for (size_t i = 0; i < 2 * p->n; i++) {
        const json_t *v = json_object_get(p->of[i / 2], i & 1 ? exclusive : key);
        if (!json_is_number(v)) continue; /* "exclusiveMinimum" may be true */
        double d = json_number_value(v);
        if (!any || sign * d > sign * *ret) *ret = d;
        any = true;
    }
    return any;
}

static void list_integers(value_list *l, const parts *p)
{
    double low, high;
    if (!rough_bound(p, "minimum", "exclusiveMinimum", 1, &low) ||
        !rough_bound(p, "maximum", "exclusiveMaximum", -1, &high) || fabs(low) > 1e15 ||
        high - low > 4 * UNIQUE_MAX) {
        l->open = true;
        return;
    }
    for (double d = ceil(low); d <= high && l->c->x.rc == 0; d++)
        list_made(l, p, json_integer((json_int_t)d));
}

/* null, false, true and integers between bounds are few. */
static void list_types(value_list *l, const parts *p)
{
    unsigned types = facts_types(&l->c->x, p, true);
    if (types & ~(unsigned)(TYPE_NULL | TYPE_BOOLEAN | TYPE_INTEGER)) {
        l->open = true;
        return;
    }
    if (types & TYPE_NULL) list_made(l, p, json_null());
    if (types & TYPE_BOOLEAN) list_made(l, p, json_false());
    if (types & TYPE_BOOLEAN) list_made(l, p, json_true());
    if (types & TYPE_INTEGER) list_integers(l, p);
}

static void list_case(void *user, const parts_case *one)
{
    value_list *l = user;
    const json_t *list, *only, *each;
    size_t i;
    if (!facts_values(&l->c->x, &one->parts, &list, &only)) list_types(l, &one->parts);
    if (only) list_value(l, &one->parts, only, NULL);
    json_array_foreach(list, i, each)
    {
        list_value(l, &one->parts, each, list);
    }
}

/* Sets of as many values each, in ascending order, with the state behind their items. */
typedef struct set_row {
    uint64_t *sets;
    int *after;
    size_t n;
} set_row;

static uint64_t next_of_same_size(uint64_t set) /* Gosper's */
{
    uint64_t low = set & -set, carried = set + low;
    return carried | (((set ^ carried) / low) >> 2);
}

/* All sets of `size` of n values; false when out of memory. */
static bool row_open(set_row *r, nfa *a, size_t n, size_t size, size_t n_sets)
{
    *r = (set_row){calloc(n_sets, sizeof *r->sets), calloc(n_sets, sizeof *r->after), n_sets};
    if (!r->sets || !r->after) return false;
    uint64_t set = size < 64 ? (UINT64_C(1) << size) - 1 : UINT64_MAX;
    for (size_t i = 0; i < n_sets; i++) {
        r->sets[i] = set;
        r->after[i] = nfa_state(a);
        if (i + 1 < n_sets) set = next_of_same_size(set);
    }
    return true;
}

static void row_close(set_row *r)
{
    free(r->sets);
    free(r->after);
    *r = (set_row){0};
}

static int row_after(const set_row *r, uint64_t set)
{
    size_t low = 0, high = r->n;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (r->sets[mid] <= set)
            low = mid;
        else
            high = mid;
    }
    return r->after[low];
}

/* The number of subsets with `size` of n values; `before` is the number with size - 1. Capped. */
static size_t sets_of(size_t n, size_t size, size_t before)
{
    return size == 0 ? 1 : before > UNIQUE_BYTES ? before : before * (n - size + 1) / size;
}

static void write_value(compiler *c, int from, const json_t *v, int to)
{
    buf text = {0};
    if (!value_is_exact(c, v)) return;
    value_put(&text, v);
    if (!text.failed) nfa_epsilon(c->a, nfa_literal(c->a, from, text.data, text.len), to);
    if (text.failed && c->x.rc == 0) c->x.rc = err_nomem(c->x.err);
    buf_done(&text);
}

/* What may follow each set of a row. */
static void write_row(value *v, const value_list *l, const set_row *row, const set_row *next, bool first)
{
    compiler *c = v->c;
    nfa *a = c->a;
    for (size_t k = 0; k < row->n && c->x.rc == 0; k++) {
        int at = first ? row->after[k] : spaced(c, nfa_range(a, row->after[k], ',', ',')),
            tree = nfa_state(a);
        nfa_epsilon(a, at, tree);
        for (size_t i = 0; i < l->n; i++)
            if (!(row->sets[k] >> i & 1))
                write_value(c, tree, l->of[i], row_after(next, row->sets[k] | UINT64_C(1) << i));
    }
}

/* Bytes of all values behind all sets of at most `most` - 1 items. */
static size_t subsets_cost(const value_list *l, size_t most)
{
    size_t each = 0, all = 0, n = 1;
    for (size_t i = 0; i < l->n; i++) {
        buf text = {0};
        value_put(&text, l->of[i]);
        each += text.len;
        buf_done(&text);
    }
    for (size_t size = 0; size < most && all <= UNIQUE_BYTES; size++) {
        n = sets_of(l->n, size, n);
        all += n > UNIQUE_BYTES ? n : n * each * (l->n - size) / l->n;
    }
    return all;
}

/* Items that have to differ, all of them among a few values. */
static void write_subsets(value *v, const value_list *l, const array_facts *f, size_t most)
{
    compiler *c = v->c;
    nfa *a = c->a;
    int end = nfa_state(a);
    set_row row, next = {0};
    bool ok = row_open(&row, a, l->n, 0, 1);
    if (ok) nfa_call_to(a, nfa_range(a, v->from, '[', '['), c->json.space, row.after[0]);
    for (size_t size = 0; ok && c->x.rc == 0; size++) {
        for (size_t k = 0; k < row.n && (int64_t)size >= f->least; k++) nfa_epsilon(a, row.after[k], end);
        if (size == most) break;
        ok = row_open(&next, a, l->n, size + 1, sets_of(l->n, size + 1, row.n));
        if (ok) write_row(v, l, &row, &next, size == 0);
        row_close(&row);
        row = next;
        next = (set_row){0};
    }
    if (!ok && c->x.rc == 0) c->x.rc = err_nomem(c->x.err);
    row_close(&row);
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
    size_t most = f->most >= 0 && (size_t)f->most < l.n ? (size_t)f->most : l.n;
    if (l.open || l.n > UNIQUE_MAX || subsets_cost(&l, most) > UNIQUE_BYTES)
        schema_fail(
            &c->x, SHOAL_EUNSUPPORTED, who, "uniqueItems",
            "\"uniqueItems\" is enforced only for few items of few values: an \"enum\" of about 10, or of up "
            "to %d where \"maxItems\" is small, booleans, null, integers between near bounds",
            UNIQUE_MAX);
    else
        write_subsets(v, &l, f, most);
    json_decref(l.made);
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
