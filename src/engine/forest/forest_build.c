/* forest_build.c: from a tree as a file lays it out to flat nodes; see forest_build.h. */
#include "forest/forest_build.h"

#include <math.h>

enum { NONE = UINT32_MAX };
enum { BITS_WORDS_MAX = 64 << 20 }; /* a set costs its greatest code, not its size */

static size_t forest_build_count(const buf *b, size_t size)
{
    return b->len / size;
}

int forest_add_bits(forest *f, const uint32_t *words, size_t n, uint32_t *ret_at, shoal_err *err)
{
    size_t at = forest_build_count(&f->bits, sizeof *words);
    if (n > BITS_WORDS_MAX || at > BITS_WORDS_MAX - n)
        return err_set(err, SHOAL_ELIMIT, "sets of categories need more than %d MB", BITS_WORDS_MAX >> 18);
    *ret_at = (uint32_t)at;
    return buf_append(&f->bits, words, n * sizeof *words) != 0 ? err_nomem(err) : 0;
}

int forest_set_base(forest *f, double base, shoal_err *err)
{
    f->base = arena_alloc(f->mem, f->info.n_outputs * sizeof *f->base);
    if (!f->base) return err_nomem(err);
    for (size_t i = 0; i < f->info.n_outputs; i++) f->base[i] = base;
    return 0;
}

static int check_split(const forest *f, const forest_node *s, size_t i, shoal_err *err)
{
    if (s->feature >= f->info.n_features)
        return err_set(err, SHOAL_EFORMAT, "node %zu splits by feature %u of %zu", i, s->feature,
                       f->info.n_features);
    if (s->flags & SPLIT_CATEGORIES) {
        size_t n = forest_build_count(&f->bits, sizeof(uint32_t));
        if (s->set.at > n || s->set.n_words > n - s->set.at)
            return err_set(err, SHOAL_EFORMAT, "node %zu names categories that are not there", i);
    } else if (isnan(s->threshold)) {
        return err_set(err, SHOAL_EFORMAT, "node %zu has no number as threshold", i);
    }
    return 0;
}

/* Append node i; *ret is how a parent names it. */
static int emit(forest *f, const forest_draft *d, size_t i, uint32_t *ret, shoal_err *err)
{
    size_t at = d->leaf ? forest_build_count(&f->leaves, sizeof(double))
                        : forest_build_count(&f->nodes, sizeof(forest_node));
    if (at >= FOREST_LEAF) return err_set(err, SHOAL_ELIMIT, "more than %u nodes", FOREST_LEAF);
    if (d->leaf && !isfinite(d->value)) return err_set(err, SHOAL_EFORMAT, "leaf %zu has no finite value", i);
    if (!d->leaf && (d->split.flags & (SPLIT_CATEGORIES | SPLIT_ZERO_NAN))) f->odd_splits = true;
    int rc = d->leaf ? 0 : check_split(f, &d->split, i, err);
    if (rc != 0) return rc;
    *ret = (uint32_t)at | (d->leaf ? FOREST_LEAF : 0);
    rc = d->leaf ? buf_append(&f->leaves, &d->value, sizeof d->value)
                 : buf_append(&f->nodes, &d->split, sizeof d->split);
    return rc != 0 ? err_nomem(err) : 0;
}

/* Put child `c` of node i on the list of those to emit. */
static int forest_build_push(forest_draft *d, size_t n, size_t i, uint32_t c, uint32_t side, uint32_t at,
                             uint32_t *top, shoal_err *err)
{
    if (c >= n)
        return err_set(err, SHOAL_EFORMAT, "node %zu has a child %u outside its tree of %zu", i, c, n);
    if (d[c].seen) return err_set(err, SHOAL_EFORMAT, "node %u is reached twice: this is no tree", c);
    d[c].seen = true;
    d[c].parent = at;
    d[c].side = side;
    d[c].next = *top;
    *top = c;
    return 0;
}

int forest_add_tree(forest *f, forest_draft *d, size_t n, size_t output, double weight, shoal_err *err)
{
    if (n == 0 || n >= NONE) return err_set(err, SHOAL_EFORMAT, "a tree of %zu nodes", n);
    if (output >= f->info.n_outputs)
        return err_set(err, SHOAL_EFORMAT, "its output is %zu of %zu", output, f->info.n_outputs);
    forest_tree t = {.output = (uint32_t)output, .weight = weight};
    uint32_t top = 0, at = 0;
    d[0].next = d[0].parent = NONE;
    d[0].seen = true;
    while (top != NONE) {
        uint32_t i = top;
        top = d[i].next;
        int rc = emit(f, &d[i], i, &at, err);
        if (rc != 0) return rc;
        if (d[i].parent == NONE)
            t.root = at;
        else
            ((forest_node *)(void *)f->nodes.data)[d[i].parent].child[d[i].side] = at;
        if (d[i].leaf) continue;
        rc = forest_build_push(d, n, i, d[i].right, 1, at, &top, err);
        if (rc == 0) rc = forest_build_push(d, n, i, d[i].left, 0, at, &top, err);
        if (rc != 0) return rc;
    }
    return buf_append(&f->trees, &t, sizeof t) != 0 ? err_nomem(err) : 0;
}
