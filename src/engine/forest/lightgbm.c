/* lightgbm.c: LightGBM's text model, versions v2 to v4 (its src/boosting/gbdt_model_text.cpp and
 * src/io/tree.cpp).
 *
 * Lines of KEY=VALUE: a head, then for each tree "Tree=N" and its lists, then "end of trees". In a tree of L
 * leaves, splits are 0 .. L-2 and a child below zero is leaf -(child + 1). A split's decision_type is 1: by
 * category, 2: missing goes left, and in bits 2 and 3 what is missing: nothing (NaN is 0), zero, NaN. Of a
 * split by category the threshold is the number of its set: words cat_boundaries[i] .. [i + 1] of
 * cat_threshold. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "forest/forest_build.h"

typedef struct span {
    const char *at, *end; /* within the text, which ends in NUL; at NULL: absent */
} span;

/* X(key): the lists of a tree that matter here */
#define TREE_KEYS(X)  \
    X(num_leaves)     \
    X(num_cat)        \
    X(split_feature)  \
    X(threshold)      \
    X(decision_type)  \
    X(left_child)     \
    X(right_child)    \
    X(leaf_value)     \
    X(cat_boundaries) \
    X(cat_threshold)  \
    X(is_linear)      \
    X(shrinkage)
#define HEAD_KEYS(X)          \
    X(num_class)              \
    X(num_tree_per_iteration) \
    X(max_feature_idx)        \
    X(objective)              \
    X(average_output)         \
    X(feature_names)          \
    X(tree_sizes)

#define SPAN_FIELD(key) span key;
typedef struct tree_lines {
    TREE_KEYS(SPAN_FIELD)
} tree_lines;
typedef struct head_lines {
    HEAD_KEYS(SPAN_FIELD)
} head_lines;
#undef SPAN_FIELD

typedef struct reader {
    forest *f;
    const char *at, *end;
    head_lines head;
    size_t n_trees;
    shoal_err *err;
} reader;

/* ---- lines and numbers --------------------------------------------------------------------------------- */

/* The next line without its end; false at the end of the text. */
static bool next_line(reader *r, span *ret)
{
    if (r->at >= r->end) return false;
    const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
    ret->at = r->at;
    ret->end = nl ? nl : r->end;
    r->at = nl ? nl + 1 : r->end;
    if (ret->end > ret->at && ret->end[-1] == '\r') ret->end--;
    return true;
}

static bool line_is(span line, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(line.end - line.at) == n && memcmp(line.at, word, n) == 0;
}

/* "KEY=VALUE" or, for a flag, "KEY" alone. */
static bool line_has(span line, const char *key, span *ret)
{
    size_t n = strlen(key), len = (size_t)(line.end - line.at);
    if (len < n || memcmp(line.at, key, n) != 0 || (len > n && line.at[n] != '=')) return false;
    ret->at = len > n ? line.at + n + 1 : line.end;
    ret->end = line.end;
    return true;
}

static int wrong(reader *r, const char *key, const char *what)
{
    return err_set(r->err, SHOAL_EFORMAT, "\"%s\" %s", key, what);
}

/* The next of a list of numbers between blanks. */
static bool take_number(span *s, double *ret)
{
    while (s->at < s->end && *s->at == ' ') s->at++;
    if (s->at >= s->end) return false;
    char *stop;
    double v = strtod(s->at, &stop);
    if (stop == s->at || stop > s->end || (stop < s->end && *stop != ' ')) return false;
    s->at = stop;
    *ret = v;
    return true;
}

static bool take_whole(span *s, double min, double max, double *ret)
{
    double v;
    if (!take_number(s, &v) || !(v >= min && v <= max) || v != floor(v)) return false;
    *ret = v;
    return true;
}

static bool at_end(span s)
{
    while (s.at < s.end && *s.at == ' ') s.at++;
    return s.at == s.end;
}

/* The single whole number of a line; `absent` when there is no such line and that is not negative. */
static int one_number(reader *r, span s, const char *key, double max, double absent, size_t *ret)
{
    double v = absent;
    if (!s.at && absent < 0) return wrong(r, key, "is missing");
    if (s.at && (!take_whole(&s, 0, max, &v) || !at_end(s)))
        return wrong(r, key, "is no number in its range");
    *ret = (size_t)v;
    return 0;
}

/* ---- head ---------------------------------------------------------------------------------------------- */

static size_t count_words(span s)
{
    size_t n = 0;
    for (const char *p = s.at; p < s.end; p++) n += *p != ' ' && (p == s.at || p[-1] == ' ');
    return n;
}

static int read_names(reader *r)
{
    forest *f = r->f;
    span s = r->head.feature_names;
    if (!s.at) return 0;
    if (count_words(s) != f->info.n_features)
        return err_set(r->err, SHOAL_EFORMAT, "%zu \"feature_names\", but max_feature_idx says %zu",
                       count_words(s), f->info.n_features);
    const char **names = arena_alloc(f->mem, f->info.n_features * sizeof *names);
    for (size_t i = 0; names && i < f->info.n_features; i++) {
        while (*s.at == ' ') s.at++;
        const char *stop = s.at;
        while (stop < s.end && *stop != ' ') stop++;
        if (!(names[i] = arena_strndup(f->mem, s.at, (size_t)(stop - s.at)))) return err_nomem(r->err);
        s.at = stop;
    }
    f->info.features = names;
    return names ? 0 : err_nomem(r->err);
}

/* The number behind "word:" in the objective's line. */
static double objective_number(const char *objective, const char *word, double absent)
{
    const char *at = strstr(objective, word);
    double v = at ? strtod(at + strlen(word), NULL) : absent;
    return isfinite(v) && v > 0 ? v : absent;
}

static int read_objective(reader *r)
{
    static const struct {
        const char *name;
        forest_link link;
    } known[] = {
        {"regression", LINK_NONE},
        {"regression_l2", LINK_NONE},
        {"regression_l1", LINK_NONE},
        {"huber", LINK_NONE},
        {"fair", LINK_NONE},
        {"quantile", LINK_NONE},
        {"mape", LINK_NONE},
        {"lambdarank", LINK_NONE},
        {"rank_xendcg", LINK_NONE},
        {"custom", LINK_NONE},
        {"none", LINK_NONE},
        {"poisson", LINK_EXP},
        {"gamma", LINK_EXP},
        {"tweedie", LINK_EXP},
        {"binary", LINK_SIGMOID},
        {"cross_entropy", LINK_SIGMOID},
        {"xentropy", LINK_SIGMOID},
        {"multiclassova", LINK_SIGMOID},
        {"cross_entropy_lambda", LINK_LOG1P_EXP},
        {"xentlambda", LINK_LOG1P_EXP},
        {"multiclass", LINK_SOFTMAX},
    };
    forest *f = r->f;
    span s = r->head.objective;
    if (!s.at || at_end(s)) return 0;
    const char *words = arena_strndup(f->mem, s.at, (size_t)(s.end - s.at));
    const char *name = words ? arena_strndup(f->mem, words, strcspn(words, " ")) : NULL;
    if (!name) return err_nomem(r->err);
    f->info.objective = name;
    f->slope = objective_number(words, "sigmoid:", 1);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) != 0) continue;
        f->link = known[i].link;
        f->number = strcmp(name, "cross_entropy") == 0 || strcmp(name, "xentropy") == 0;
        if (strncmp(name, "regression", 10) == 0 && strstr(words, " sqrt")) f->link = LINK_SQUARE;
        return 0;
    }
    return err_set(r->err, SHOAL_EUNSUPPORTED, "the objective \"%.60s\" is not known", name);
}

static int lightgbm_read_head(reader *r)
{
    forest *f = r->f;
    span line, value;
    const char *start = r->at;
    while (next_line(r, &line) && !line_has(line, "Tree", &value) && !line_is(line, "end of trees")) {
#define KEEP(key) \
    if (line_has(line, #key, &value)) r->head.key = value;
        HEAD_KEYS(KEEP)
#undef KEEP
        start = r->at;
    }
    r->at = start;
    size_t n_class, last;
    int rc = one_number(r, r->head.num_class, "num_class", FOREST_OUTPUTS_MAX, -1, &n_class);
    if (rc == 0)
        rc = one_number(r, r->head.num_tree_per_iteration, "num_tree_per_iteration", FOREST_OUTPUTS_MAX,
                        (double)n_class, &f->info.n_outputs);
    if (rc == 0)
        rc = one_number(r, r->head.max_feature_idx, "max_feature_idx", FOREST_FEATURES_MAX - 1, -1, &last);
    if (rc != 0) return rc;
    if (f->info.n_outputs == 0) return wrong(r, "num_class", "is 0");
    f->info.format = "lightgbm";
    f->info.booster = r->head.average_output.at ? "rf" : "gbdt";
    f->info.n_features = last + 1;
    rc = read_names(r);
    if (rc == 0) rc = read_objective(r);
    return rc != 0 ? rc : forest_set_base(f, 0, r->err);
}

/* ---- trees --------------------------------------------------------------------------------------------- */

/* The sets of a tree's splits by category: bounds[n + 1] into the words, which are appended to the forest's.
 */
typedef struct cat_sets {
    size_t n;
    uint32_t *bounds;
    uint32_t at;
} cat_sets;

static int read_words(reader *r, span s, size_t n, uint32_t *ret_at)
{
    uint32_t *words = malloc(n * sizeof *words + 1);
    int rc = words ? 0 : err_nomem(r->err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        double v;
        if (!take_whole(&s, 0, UINT32_MAX, &v))
            rc = wrong(r, "cat_threshold", "is too short or no list of words");
        else
            words[i] = (uint32_t)v;
    }
    if (rc == 0 && !at_end(s)) rc = wrong(r, "cat_threshold", "is too long");
    if (rc == 0) rc = forest_add_bits(r->f, words, n, ret_at, r->err);
    free(words);
    return rc;
}

static int read_sets(reader *r, const tree_lines *t, cat_sets *ret)
{
    int rc = one_number(r, t->num_cat, "num_cat", INT32_MAX, 0, &ret->n);
    if (rc != 0 || ret->n == 0) return rc;
    span b = t->cat_boundaries, w = t->cat_threshold;
    if (!b.at || !w.at || ret->n > (size_t)(b.end - b.at))
        return wrong(r, "cat_boundaries", "is missing or short");
    if (!(ret->bounds = malloc((ret->n + 1) * sizeof *ret->bounds))) return err_nomem(r->err);
    double last = 0;
    for (size_t i = 0; i <= ret->n; i++) {
        if (!take_whole(&b, last, (double)(w.end - w.at), &last) || (i == 0 && last != 0))
            return wrong(r, "cat_boundaries", "is no list of growing places");
        ret->bounds[i] = (uint32_t)last;
    }
    return read_words(r, w, (size_t)last, &ret->at);
}

enum { BY_CATEGORY = 1, DEFAULT_LEFT = 2, MISSING_NONE = 0, MISSING_ZERO = 1, MISSING_NAN = 2 };

static int set_decision(reader *r, forest_node *s, int decision, double threshold, const cat_sets *sets)
{
    int missing = decision >> 2 & 3;
    if (decision & BY_CATEGORY) {
        if (!(threshold >= 0 && threshold < (double)sets->n)) return wrong(r, "threshold", "names no set");
        const uint32_t *b = &sets->bounds[(size_t)threshold];
        s->flags = SPLIT_CATEGORIES;
        s->set.at = sets->at + b[0];
        s->set.n_words = b[1] - b[0];
        return 0;
    }
    s->threshold = threshold;
    bool nan_left = missing == MISSING_NONE ? 0 <= threshold : (decision & DEFAULT_LEFT) != 0;
    s->flags = (nan_left ? SPLIT_NAN_LEFT : 0) | (missing == MISSING_ZERO ? SPLIT_ZERO_NAN : 0);
    return missing == 3 ? wrong(r, "decision_type", "has a kind of missing value that is not known") : 0;
}

/* A child as an index of drafts: splits first, then leaves. */
static bool take_child(span *s, size_t n_splits, uint32_t *ret)
{
    double v;
    if (!take_whole(s, -1.0 - (double)n_splits, (double)n_splits - 1, &v)) return false;
    *ret = v >= 0 ? (uint32_t)v : (uint32_t)((double)n_splits - v - 1);
    return true;
}

static int read_splits(reader *r, tree_lines *t, const cat_sets *sets, forest_draft *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double feature, threshold, decision;
        if (!take_whole(&t->split_feature, 0, FOREST_FEATURES_MAX, &feature))
            return wrong(r, "split_feature", "is too short or no list of features");
        if (!take_number(&t->threshold, &threshold))
            return wrong(r, "threshold", "is too short or no list of numbers");
        if (!take_whole(&t->decision_type, 0, 15, &decision))
            return wrong(r, "decision_type", "is too short or not of known decisions");
        if (!take_child(&t->left_child, n, &d[i].left) || !take_child(&t->right_child, n, &d[i].right))
            return wrong(r, "left_child", "or right_child is too short or names no node");
        d[i].split.feature = (uint32_t)feature;
        int rc = set_decision(r, &d[i].split, (int)decision, threshold, sets);
        if (rc != 0) return rc;
    }
    if (!at_end(t->split_feature) || !at_end(t->threshold) || !at_end(t->decision_type) ||
        !at_end(t->left_child) || !at_end(t->right_child))
        return wrong(r, "num_leaves", "is smaller than the tree's lists");
    return 0;
}

static int read_leaves(reader *r, tree_lines *t, forest_draft *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        d[i].leaf = true;
        if (!take_number(&t->leaf_value, &d[i].value))
            return wrong(r, "leaf_value", "is too short or no list of numbers");
    }
    return at_end(t->leaf_value) ? 0 : wrong(r, "num_leaves", "is smaller than the tree's lists");
}

static int add_tree(reader *r, tree_lines *t)
{
    size_t leaves, linear;
    int rc = one_number(r, t->num_leaves, "num_leaves", INT32_MAX, -1, &leaves);
    if (rc == 0) rc = one_number(r, t->is_linear, "is_linear", 1, 0, &linear);
    if (rc != 0) return rc;
    if (linear)
        return err_set(r->err, SHOAL_EUNSUPPORTED,
                       "its leaves are linear models (linear_tree=true); train with "
                       "linear_tree=false");
    /* shrinkage is a tree's last line: without it the file was cut within the tree. */
    if (!t->shrinkage.at) return wrong(r, "shrinkage", "is missing: the file is cut short");
    if (leaves == 0 || !t->leaf_value.at || leaves > (size_t)(t->leaf_value.end - t->leaf_value.at))
        return wrong(r, "leaf_value", "is too short for num_leaves");
    cat_sets sets = {0};
    forest_draft *d = calloc(2 * leaves, sizeof *d);
    rc = d ? read_sets(r, t, &sets) : err_nomem(r->err);
    if (rc == 0) rc = read_splits(r, t, &sets, d, leaves - 1);
    if (rc == 0) rc = read_leaves(r, t, d + leaves - 1, leaves);
    if (rc == 0) rc = forest_add_tree(r->f, d, 2 * leaves - 1, r->n_trees % r->f->info.n_outputs, 1, r->err);
    free(sets.bounds);
    free(d);
    return rc;
}

/* The lines behind "Tree=N" up to the next tree or the end. */
static void tree_span(reader *r, tree_lines *t)
{
    span line, value;
    const char *start = r->at;
    while (next_line(r, &line) && !line_has(line, "Tree", &value) && !line_is(line, "end of trees") &&
           !line_is(line, "feature importances:")) {
#define KEEP(key) \
    if (line_has(line, #key, &value)) t->key = value;
        TREE_KEYS(KEEP)
#undef KEEP
        start = r->at;
    }
    r->at = start;
}

static int check_count(reader *r)
{
    size_t k = r->f->info.n_outputs, n = r->n_trees, said = count_words(r->head.tree_sizes);
    if (r->head.tree_sizes.at && said != n)
        return err_set(r->err, SHOAL_EFORMAT, "%zu trees, but \"tree_sizes\" says %zu: the file is cut short",
                       n, said);
    if (n % k != 0) return err_set(r->err, SHOAL_EFORMAT, "%zu trees are no multiple of %zu outputs", n, k);
    if (r->head.average_output.at && n) r->f->divisor = (double)(n / k);
    return 0;
}

int forest_read_lightgbm(forest *f, const char *text, size_t n, shoal_err *err)
{
    reader r = {.f = f, .at = text, .end = text + n, .err = err};
    span line, value;
    int rc = lightgbm_read_head(&r);
    while (rc == 0 && next_line(&r, &line) && line_has(line, "Tree", &value)) {
        tree_lines t = {0};
        tree_span(&r, &t);
        rc = add_tree(&r, &t);
        if (rc != 0) return err_prefix(err, rc, "tree %zu", r.n_trees);
        r.n_trees++;
    }
    return rc != 0 ? rc : check_count(&r);
}
