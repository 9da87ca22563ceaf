/* jinja_list.c: filters of lists and dicts: choosing, sorting, grouping. */
#include <string.h>

#include "jinja/jinja.h"

/* A new list of what iterating over v gives. */
static jvalue jinja_list_copy(jrun *r, jvalue v)
{
    jvalue items = jinja_items(r, v), out = jinja_list(r);
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) jinja_push(r, out, items.list->at[i]);
    return out;
}

static jvalue folded(jrun *r, jvalue v, bool exact)
{
    return v.kind == V_STRING && !exact ? jinja_method(r, v, "lower", &(jargs){.n = 0}) : v;
}

static jvalue f_unique(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v), seen = jinja_dict(r, V_DICT), out = jinja_list(r);
    jvalue attr = jinja_arg_named(a, "attribute", 1);
    bool exact = jinja_truth(jinja_arg_named(a, "case_sensitive", 0));
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        jvalue x = items.list->at[i];
        jvalue key = folded(r, attr.kind == V_STRING ? jinja_path(r, x, attr) : x, exact);
        if ((r->steps += 1 + (unsigned)(seen.dict->n / 16)) > JINJA_MAX_STEPS)
            return jinja_fail(r, SHOAL_ELIMIT, "the template runs for too long");
        if (r->rc || jinja_get(r, seen.dict, key)) continue;
        jinja_put(r, seen.dict, key, jinja_bool(true));
        jinja_push(r, out, x);
    }
    return out;
}

/* Merge sort: stable, as Python's, and calm on any input. */
static void sort(jrun *r, jvalue *at, jvalue *keys, jvalue *tmp, jvalue *tmp_keys, size_t n, bool down)
{
    if (n < 2 || r->rc) return;
    size_t half = n / 2, i = 0, j = half, k = 0;
    sort(r, at, keys, tmp, tmp_keys, half, down);
    sort(r, at + half, keys + half, tmp, tmp_keys, n - half, down);
    while (k < n) {
        bool right =
            i == half ||
            (j < n && (down ? jinja_order(r, keys[j], keys[i]) > 0 : jinja_order(r, keys[j], keys[i]) < 0));
        tmp[k] = at[right ? j : i];
        tmp_keys[k++] = keys[right ? j++ : i++];
    }
    memcpy(at, tmp, n * sizeof *at);
    memcpy(keys, tmp_keys, n * sizeof *keys);
}

/* Sort a list in place by an attribute of its items (not a string: by the items). */
static void sort_by(jrun *r, jvalue list, jvalue attr, bool exact, bool down)
{
    size_t n = r->rc ? 0 : list.list->n;
    jvalue *keys = jinja_alloc(r, (n + 1) * sizeof *keys), *tmp = jinja_alloc(r, (n + 1) * 2 * sizeof *tmp);
    if (!keys || !tmp) return;
    for (size_t i = 0; i < n && r->rc == 0; i++)
        keys[i] = folded(r,
                         attr.kind == V_STRING || attr.kind == V_INT ? jinja_path(r, list.list->at[i], attr)
                                                                     : list.list->at[i],
                         exact);
    sort(r, list.list->at, keys, tmp, tmp + n, n, down);
}

static jvalue f_sort(jrun *r, jvalue v, const jargs *a)
{
    jvalue out = jinja_list_copy(r, v);
    sort_by(r, out, jinja_arg_named(a, "attribute", 2), jinja_truth(jinja_arg_named(a, "case_sensitive", 1)),
            jinja_truth(jinja_arg_named(a, "reverse", 0)));
    return out;
}

/* Pairs of key and value, by "key" or by "value". */
static jvalue f_dictsort(jrun *r, jvalue v, const jargs *a)
{
    if (v.kind != V_DICT) return jinja_fail(r, SHOAL_EINVALID, "dictsort needs a dict");
    jvalue out = jinja_method(r, v, "items", &(jargs){.n = 0}), by = jinja_arg_named(a, "by", 1);
    bool value = by.kind == V_STRING && by.n == 5 && !memcmp(by.s, "value", 5);
    sort_by(r, out, jinja_int(value), jinja_truth(jinja_arg_named(a, "case_sensitive", 0)),
            jinja_truth(jinja_arg_named(a, "reverse", 2)));
    return out;
}

/* Pairs of a value and the items that have it, which jinja_attr also knows as "grouper" and "list". */
static jvalue f_groupby(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_list_copy(r, v), attr = jinja_arg_named(a, "attribute", 0),
           def = jinja_arg_named(a, "default", 1);
    jvalue out = jinja_list(r), members = {0}, last = {0};
    if (attr.kind != V_STRING) return jinja_fail(r, SHOAL_EINVALID, "groupby needs an attribute's name");
    if (def.kind == V_UNDEFINED) sort_by(r, items, attr, true, false);
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        jvalue key = jinja_path(r, items.list->at[i], attr);
        if (key.kind == V_UNDEFINED) key = def;
        if (i == 0 || !jinja_equal(r, key, last)) {
            jvalue pair = jinja_list(r);
            members = jinja_list(r);
            last = key;
            jinja_push(r, pair, key);
            jinja_push(r, pair, members);
            jinja_push(r, out, pair);
        }
        jinja_push(r, members, items.list->at[i]);
    }
    return out;
}

/* Lists of `size` items, the last filled up with `fill` where that is given. */
static jvalue f_batch(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v), size = jinja_arg_named(a, "linecount", 0),
           fill = jinja_arg_named(a, "fill_with", 1), out = jinja_list(r), row = {0};
    if (size.kind != V_INT || size.i < 1) return jinja_fail(r, SHOAL_EINVALID, "batch needs a size");
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        if (i % (size_t)size.i == 0) jinja_push(r, out, row = jinja_list(r));
        jinja_push(r, row, items.list->at[i]);
    }
    while (r->rc == 0 && row.list && fill.kind != V_UNDEFINED && row.list->n < (size_t)size.i) {
        if (++r->steps > JINJA_MAX_STEPS) jinja_fail(r, SHOAL_ELIMIT, "the template runs for too long");
        jinja_push(r, row, fill);
    }
    return out;
}

static jvalue extreme(jrun *r, jvalue v, const jargs *a, int sign)
{
    jvalue items = jinja_items(r, v), attr = jinja_arg_named(a, "attribute", 1), best = {0}, best_key = {0};
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        jvalue x = items.list->at[i];
        jvalue key = folded(r, attr.kind == V_STRING ? jinja_path(r, x, attr) : x, false);
        if (i > 0 && jinja_order(r, key, best_key) * sign <= 0) continue;
        best = x;
        best_key = key;
    }
    return best;
}

static jvalue f_max(jrun *r, jvalue v, const jargs *a)
{
    return extreme(r, v, a, 1);
}
static jvalue f_min(jrun *r, jvalue v, const jargs *a)
{
    return extreme(r, v, a, -1);
}

static jvalue f_sum(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = jinja_items(r, v), attr = jinja_arg_named(a, "attribute", 0);
    int64_t whole = 0;
    double all = 0;
    bool ints = true;
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        jvalue x = attr.kind == V_STRING ? jinja_path(r, items.list->at[i], attr) : items.list->at[i];
        if (x.kind != V_INT && x.kind != V_FLOAT) return jinja_fail(r, SHOAL_EINVALID, "sum needs numbers");
        if (x.kind == V_FLOAT || __builtin_add_overflow(whole, x.i, &whole)) ints = false;
        all += x.kind == V_FLOAT ? x.f : (double)x.i;
    }
    return ints ? jinja_int(whole) : jinja_float(all);
}

/* These filters give nothing for whatever is false, so for none, too. */
static jvalue items_of_truth(jrun *r, jvalue v)
{
    return jinja_truth(v) ? jinja_items(r, v) : jinja_list(r);
}

static jvalue f_map(jrun *r, jvalue v, const jargs *a)
{
    jvalue items = items_of_truth(r, v), attr = jinja_arg_named(a, "attribute", 99), out = jinja_list(r);
    jvalue def = jinja_arg_named(a, "default", 99), name = jinja_arg(a, 0);
    jargs rest = {.n = a->n ? a->n - 1 : 0};
    for (size_t i = 0; i < rest.n; i++) {
        rest.at[i] = a->at[i + 1];
        rest.keyword[i] = a->keyword[i + 1];
    }
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        jvalue x = items.list->at[i];
        if (attr.kind != V_UNDEFINED) {
            x = jinja_path(r, x, attr);
            if (x.kind == V_UNDEFINED) x = def;
        } else if (name.kind == V_STRING) {
            jvalue z = jinja_strdup(r, name.s, name.n);
            if (r->rc == 0) x = jinja_filter(r, z.s, x, &rest);
        } else {
            return jinja_fail(r, SHOAL_EINVALID, "map needs a filter or attribute=");
        }
        jinja_push(r, out, x);
    }
    return out;
}

/* select, reject, selectattr, rejectattr: the first argument names the attribute where there is one,
 * the next the test, the rest are the test's. */
static jvalue jinja_list_choose(jrun *r, jvalue v, const jargs *a, bool attr, bool keep)
{
    jvalue items = items_of_truth(r, v), out = jinja_list(r), name = jinja_arg(a, attr);
    size_t skip = (size_t)attr + 1;
    jargs rest = {.n = a->n > skip ? a->n - skip : 0};
    for (size_t i = 0; i < rest.n; i++) rest.at[i] = a->at[i + skip];
    jvalue test = name.kind == V_STRING ? jinja_strdup(r, name.s, name.n) : name;
    for (size_t i = 0; r->rc == 0 && i < items.list->n; i++) {
        jvalue x = items.list->at[i], of = attr ? jinja_path(r, x, jinja_arg(a, 0)) : x;
        bool yes = test.kind == V_STRING ? jinja_test(r, test.s, of, &rest) : jinja_truth(of);
        if (yes == keep) jinja_push(r, out, x);
    }
    return out;
}

static jvalue f_select(jrun *r, jvalue v, const jargs *a)
{
    return jinja_list_choose(r, v, a, false, true);
}
static jvalue f_reject(jrun *r, jvalue v, const jargs *a)
{
    return jinja_list_choose(r, v, a, false, false);
}
static jvalue f_selectattr(jrun *r, jvalue v, const jargs *a)
{
    return jinja_list_choose(r, v, a, true, true);
}
static jvalue f_rejectattr(jrun *r, jvalue v, const jargs *a)
{
    return jinja_list_choose(r, v, a, true, false);
}

const jfilter jinja_list_filters[] = {
    {"unique", f_unique},
    {"sort", f_sort},
    {"dictsort", f_dictsort},
    {"groupby", f_groupby},
    {"batch", f_batch},
    {"max", f_max},
    {"min", f_min},
    {"sum", f_sum},
    {"map", f_map},
    {"select", f_select},
    {"reject", f_reject},
    {"selectattr", f_selectattr},
    {"rejectattr", f_rejectattr},
    {NULL, NULL},
};
