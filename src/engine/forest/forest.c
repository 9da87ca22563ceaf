/* forest.c: opening and scoring; see forest.h. */
#include "forest/forest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "forest/forest_build.h"
#include "formats/gz.h"

enum { FOREST_FILE_MAX = 512 << 20, WALKS = 8 };

/* LightGBM's kZeroThreshold, a float constant: what is no farther from zero is zero. */
static const double ZERO = (double)1e-35f;

/* ---- opening ------------------------------------------------------------------------------------------- */

/* A sentence for the files that people try first; NULL when the bytes tell nothing. */
static const char *other_format(const char *text, size_t n)
{
    static const struct {
        const char *start, *what;
    } known[] = {
        {"\x80", "a Python pickle: save the model itself, with booster.save_model(\"model.json\") or "
                 "booster_.save_model(\"model.txt\")"},
        {"{L", "an XGBoost UBJSON file: save it as \"model.json\""},
        {"binf", "an XGBoost binary file of before 1.0: load it in XGBoost and save it as \"model.json\""},
        {"[", "a dump for reading, not a model: use save_model(\"model.json\") instead of dump_model"},
        {"booster[", "a dump for reading, not a model: use save_model(\"model.json\") instead of dump_model"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= strlen(known[i].start) && memcmp(text, known[i].start, strlen(known[i].start)) == 0)
            return known[i].what;
    return NULL;
}

static int read_any(forest *f, char *text, size_t n, shoal_err *err)
{
    const char *other = other_format(text, n);
    if (other) return err_set(err, SHOAL_EUNSUPPORTED, "this is %s", other);
    if (n >= 5 && memcmp(text, "tree", 4) == 0 && (text[4] == '\n' || text[4] == '\r'))
        return forest_read_lightgbm(f, text, n, err);
    size_t at = 0;
    while (at < n && strchr(" \t\r\n", text[at]) && text[at]) at++;
    if (at < n && text[at] == '{') return forest_read_xgboost(f, text, n, err);
    return err_set(err, SHOAL_EFORMAT,
                   "neither a LightGBM text model (it begins with \"tree\") nor an XGBoost JSON model");
}

static void count_parts(forest *f)
{
    f->info.n_trees = f->trees.len / sizeof(forest_tree);
    f->info.n_splits = f->nodes.len / sizeof(forest_node);
    f->info.n_leaves = f->leaves.len / sizeof(double);
    bool classes = f->link == LINK_SOFTMAX || (f->link == LINK_SIGMOID && !f->number);
    bool two = f->link == LINK_SIGMOID && f->info.n_outputs == 1;
    f->info.n_classes = !classes ? 0 : two ? 2 : f->info.n_outputs;
}

/* `text` has a NUL behind its n bytes. */
static int parse_ended(forest **ret, char *text, size_t n, const char *what, shoal_err *err)
{
    forest *f = calloc(1, sizeof *f);
    if (!f || !(f->mem = arena_new(0))) {
        free(f);
        return err_nomem(err);
    }
    f->slope = f->divisor = 1;
    f->info.booster = f->info.objective = "";
    int rc = read_any(f, text, n, err);
    if (rc != 0) {
        forest_free(f);
        return err_prefix(err, rc, "%s", what);
    }
    count_parts(f);
    *ret = f;
    return 0;
}

int forest_parse(forest **ret, const char *text, size_t n, const char *what, shoal_err *err)
{
    buf copy = {0};
    if (buf_append(&copy, text, n) != 0 || buf_putc(&copy, '\0') != 0) {
        buf_done(&copy);
        return err_nomem(err);
    }
    int rc = parse_ended(ret, copy.data, n, what, err);
    buf_done(&copy);
    return rc;
}

int forest_open(forest **ret, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = gz_read(&text, path, FOREST_FILE_MAX, err);
    if (rc == 0) rc = buf_putc(&text, '\0') != 0 ? err_nomem(err) : 0;
    if (rc == 0) rc = parse_ended(ret, text.data, text.len - 1, path, err);
    buf_done(&text);
    return rc;
}

void forest_free(forest *f)
{
    if (!f) return;
    buf_done(&f->nodes);
    buf_done(&f->leaves);
    buf_done(&f->bits);
    buf_done(&f->trees);
    arena_free(f->mem);
    free(f);
}

const forest_info *forest_about(const forest *f)
{
    return &f->info;
}

/* ---- scoring ------------------------------------------------------------------------------------------- */

/* Is the code x in the split's set? Codes are cut to whole numbers; LightGBM so takes -0.5 for 0. */
static bool in_set(const forest_node *s, const uint32_t *bits, double x)
{
    bool below = s->flags & SPLIT_OTHERS_LEFT ? x < 0 : x <= -1;
    if (below || !(x < 32.0 * s->set.n_words)) return false;
    uint32_t code = x < 0 ? 0 : (uint32_t)x;
    return bits[s->set.at + code / 32] >> (code % 32) & 1;
}

static bool goes_left(const forest_node *s, const uint32_t *bits, double x)
{
    if (isnan(x) || ((s->flags & SPLIT_ZERO_NAN) && x >= -ZERO && x <= ZERO))
        return s->flags & SPLIT_NAN_LEFT;
    if (s->flags & SPLIT_CATEGORIES) return in_set(s, bits, x) != ((s->flags & SPLIT_OTHERS_LEFT) != 0);
    return x <= s->threshold;
}

/* The leaf that the row comes to. */
static uint32_t walk(const forest *f, uint32_t at, const double *row)
{
    const forest_node *nodes = (const void *)f->nodes.data;
    const uint32_t *bits = (const void *)f->bits.data;
    while (!(at & FOREST_LEAF)) {
        const forest_node *s = &nodes[at];
        double x = row[s->feature];
        if (f->single) x = (float)x;
        at = s->child[!goes_left(s, bits, x)];
    }
    return at;
}

/* WALKS trees at once, where no split has categories or takes zero for missing: each step waits for memory
 * and the comparison before it, and the trees do not wait for each other. No step branches on the row's
 * values. */
static inline void walk_many(const forest_node *nodes, uint32_t at[WALKS], const double *row, bool single)
{
    for (bool going = true; going;) {
        going = false;
        for (size_t i = 0; i < WALKS; i++) {
            bool leaf = at[i] & FOREST_LEAF;
            const forest_node *s = &nodes[leaf ? 0 : at[i]];
            double x = row[s->feature];
            if (single) x = (float)x;
            bool left = (x <= s->threshold) | ((x != x) & (s->flags & SPLIT_NAN_LEFT));
            uint32_t next = s->child[!left];
            at[i] = leaf ? at[i] : next;
            going |= !leaf;
        }
    }
}

/* gblinear: float sums over the features that are there, in their order. */
static void add_linear(const forest *f, const double *row, double *sum)
{
    size_t n = f->info.n_features, k = f->info.n_outputs;
    for (size_t o = 0; o < k; o++) {
        float s = f->linear[n * k + o] + (float)sum[o];
        for (size_t i = 0; i < n; i++)
            if (!isnan(row[i])) s += (float)row[i] * f->linear[i * k + o];
        sum[o] = s;
    }
}

/* The leaves of n <= WALKS trees that begin at t. */
static void find_leaves(const forest *f, const forest_tree *t, size_t n, const double *row,
                        uint32_t at[WALKS])
{
    const forest_node *nodes = (const void *)f->nodes.data;
    for (size_t i = 0; i < n; i++) at[i] = t[i].root;
    if (n < WALKS || f->odd_splits || !f->info.n_splits)
        for (size_t i = 0; i < n; i++) at[i] = walk(f, at[i], row);
    else if (f->single)
        walk_many(nodes, at, row, true);
    else
        walk_many(nodes, at, row, false);
}

/* A double holds the sum of two floats, or a float's product with another, so that rounding once to float is
 * what float arithmetic gives (24 bits twice and 2 are fewer than 53). */
static void add_trees(const forest *f, const double *row, double *sum)
{
    const forest_tree *trees = (const void *)f->trees.data;
    const double *leaves = (const void *)f->leaves.data;
    for (size_t i = 0; i < f->info.n_trees; i += WALKS) {
        uint32_t at[WALKS];
        size_t n = f->info.n_trees - i < WALKS ? f->info.n_trees - i : WALKS;
        find_leaves(f, trees + i, n, row, at);
        for (size_t k = 0; k < n; k++) {
            double v = leaves[at[k] & ~FOREST_LEAF], *to = &sum[trees[i + k].output];
            if (f->single && trees[i + k].weight != 1) v = (float)(v * trees[i + k].weight);
            *to = f->single ? (float)(*to + v) : *to + v;
        }
    }
    if (f->divisor != 1)
        for (size_t i = 0; i < f->info.n_outputs; i++) sum[i] /= f->divisor;
}

void forest_score(const forest *f, const double *rows, size_t n_rows, double *ret_raw, double *ret_score)
{
    size_t k = f->info.n_outputs;
    if (!ret_raw && !ret_score) return;
    for (size_t r = 0; r < n_rows; r++, rows += f->info.n_features) {
        double *raw = ret_raw ? ret_raw + r * k : ret_score + r * k;
        memcpy(raw, f->base, k * sizeof *raw);
        if (f->linear)
            add_linear(f, rows, raw);
        else
            add_trees(f, rows, raw);
        progress_add(32 * f->info.n_trees + f->info.n_features);
        if (!ret_score) continue;
        double *score = ret_score + r * k;
        forest_link_apply(f->link, f->slope, raw, k, score);
        for (size_t i = 0; f->single && i < k; i++) score[i] = (float)score[i];
    }
}

void forest_classes(const forest *f, const double *score, double *ret)
{
    size_t k = f->info.n_outputs;
    if (k == 1 && f->info.n_classes == 2) {
        ret[0] = 1 - score[0];
        ret[1] = score[0];
        return;
    }
    memcpy(ret, score, k * sizeof *ret);
}
