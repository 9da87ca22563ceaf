/* xgboost.c: XGBoost's JSON model (its doc/model.schema; versions 0.90 to 3.x).
 *
 * A tree is arrays over its nodes: left_children and right_children (-1 in a leaf), split_indices (features),
 * split_conditions (a threshold, or a leaf's value), default_left. A row goes left where its float value is
 * *less* than the threshold; we ask `x <= the float below`, which is the same for floats. Categories that go
 * right are listed by node: categories[segments[i] .. + sizes[i]] belong to node categories_nodes[i].
 *
 * base_score is stored as a person gives it (a probability, a rate) since 1.0, and becomes a margin here;
 * from 3.1 on it is a list with one number an output, in brackets. Numbers of parameters are strings in every
 * version. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/number.h"
#include "forest/forest_build.h"

enum { JSON_MAX = 256 << 20 };

/* ---- objectives ---------------------------------------------------------------------------------------- */

typedef enum { BASE_PLAIN, BASE_LOGIT, BASE_LOG } base_kind;

typedef struct objective {
    const char *name;
    forest_link link;
    base_kind base;
} objective;

static const objective OBJECTIVES[] = {
    {"reg:squarederror", LINK_NONE, BASE_PLAIN},
    {"reg:linear", LINK_NONE, BASE_PLAIN},
    {"reg:squaredlogerror", LINK_NONE, BASE_PLAIN},
    {"reg:pseudohubererror", LINK_NONE, BASE_PLAIN},
    {"reg:absoluteerror", LINK_NONE, BASE_PLAIN},
    {"reg:quantileerror", LINK_NONE, BASE_PLAIN},
    {"reg:logistic", LINK_SIGMOID, BASE_LOGIT},
    {"binary:logistic", LINK_SIGMOID, BASE_LOGIT},
    {"binary:logitraw", LINK_NONE, BASE_PLAIN},
    {"binary:hinge", LINK_STEP, BASE_PLAIN},
    {"count:poisson", LINK_EXP, BASE_LOG},
    {"reg:gamma", LINK_EXP, BASE_LOG},
    {"reg:tweedie", LINK_EXP, BASE_LOG},
    {"survival:cox", LINK_EXP, BASE_LOG},
    {"survival:aft", LINK_EXP, BASE_LOG},
    {"multi:softprob", LINK_SOFTMAX, BASE_PLAIN},
    {"multi:softmax", LINK_SOFTMAX, BASE_PLAIN},
    {"rank:pairwise", LINK_NONE, BASE_PLAIN},
    {"rank:ndcg", LINK_NONE, BASE_PLAIN},
    {"rank:map", LINK_NONE, BASE_PLAIN},
};

static const objective *objective_find(const char *name)
{
    for (size_t i = 0; i < sizeof OBJECTIVES / sizeof *OBJECTIVES; i++)
        if (strcmp(name, OBJECTIVES[i].name) == 0) return &OBJECTIVES[i];
    return NULL;
}

/* ---- fields -------------------------------------------------------------------------------------------- */

static const json_t *object_at(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_object(v) ? v : NULL;
}

/* A whole number written as a string (or, by other writers, as a number); absent leaves *ret. */
static int param(const json_t *o, const char *key, uint64_t max, size_t *ret, shoal_err *err)
{
    const json_t *v = json_object_get(o, key);
    uint64_t n;
    if (!v) return 0;
    if (json_is_integer(v) && json_integer_value(v) >= 0)
        n = (uint64_t)json_integer_value(v);
    else if (!json_is_string(v) || !number_u64(json_string_value(v), &n))
        return err_set(err, SHOAL_EFORMAT, "\"%s\" is no whole number", key);
    if (n > max) return err_set(err, SHOAL_ELIMIT, "\"%s\" is over %llu", key, (unsigned long long)max);
    *ret = (size_t)n;
    return 0;
}

/* The array `key` of n elements, NULL with the reason in err. */
static const json_t *xgboost_list(const json_t *o, const char *key, size_t n, shoal_err *err)
{
    const json_t *v = json_object_get(o, key);
    if (json_is_array(v) && json_array_size(v) == n) return v;
    err_set(err, SHOAL_EFORMAT, "\"%s\" must be a list of %zu", key, n);
    return NULL;
}

/* Element i as a whole number in [min, max]; booleans count as 0 and 1. */
static bool whole(const json_t *a, size_t i, int64_t min, int64_t max, int64_t *ret)
{
    const json_t *v = json_array_get(a, i);
    int64_t n = json_is_boolean(v) ? json_is_true(v) : json_integer_value(v);
    if ((!json_is_integer(v) && !json_is_boolean(v)) || n < min || n > max) return false;
    *ret = n;
    return true;
}

/* Element i as a finite float. */
static bool real(const json_t *a, size_t i, float *ret)
{
    const json_t *v = json_array_get(a, i);
    double d = json_number_value(v);
    if (!json_is_number(v) || !(fabs(d) <= FLT_MAX)) return false;
    *ret = (float)d;
    return true;
}

/* ---- learner ------------------------------------------------------------------------------------------- */

/* In floats, as XGBoost does it. */
static double base_margin(base_kind kind, float base)
{
    float kept = base < 1e-6f       ? 1e-6f
                 : base > 1 - 1e-6f ? 1 - 1e-6f
                                    : base; /* as from 3.3 on: 0 and 1 are possible */
    float odds = 1 / kept - 1;
    if (kind == BASE_LOGIT && !(base >= 0 && base <= 1)) return NAN;
    if (kind == BASE_LOGIT) return (float)-forest_log(odds);
    if (kind == BASE_LOG) return (float)forest_log(base);
    return base;
}

/* "5E-1", or "[5E-1,2E-1]" with one number for all outputs or one each. */
static int read_base(forest *f, const char *text, base_kind kind, shoal_err *err)
{
    const char *at = text;
    size_t n = 0, k = f->info.n_outputs;
    bool bracket = *at == '[';
    at += bracket;
    for (;;) {
        char *stop;
        double v = strtod(at, &stop);
        double margin = base_margin(kind, (float)v);
        if (stop == at || !isfinite(margin) || n == k)
            return err_set(err, SHOAL_EFORMAT, "\"base_score\" is \"%.60s\", which gives no start", text);
        f->base[n++] = margin;
        at = stop;
        if (!bracket || *at != ',') break;
        at++;
    }
    if (strcmp(at, bracket ? "]" : "") != 0 || (n != 1 && n != k))
        return err_set(err, SHOAL_EFORMAT, "\"base_score\" is \"%.60s\", not 1 or %zu numbers", text, k);
    for (; n < k; n++) f->base[n] = f->base[0];
    return 0;
}

static int read_names(forest *f, const json_t *learner, shoal_err *err)
{
    const json_t *a = json_object_get(learner, "feature_names");
    size_t n = f->info.n_features;
    if (json_array_size(a) == 0) return 0;
    if (json_array_size(a) != n)
        return err_set(err, SHOAL_EFORMAT, "%zu \"feature_names\" of %zu features", json_array_size(a), n);
    const char **names = arena_alloc(f->mem, n * sizeof *names);
    for (size_t i = 0; names && i < n; i++) {
        const char *s = json_string_value(json_array_get(a, i));
        if (!s) return err_set(err, SHOAL_EFORMAT, "\"feature_names\" entry %zu is no string", i);
        if (!(names[i] = arena_strdup(f->mem, s))) return err_nomem(err);
    }
    f->info.features = names;
    return names ? 0 : err_nomem(err);
}

/* Is the file of version major.minor or a later one? */
static bool is_since(const json_t *version, int64_t major, int64_t minor)
{
    int64_t a = json_integer_value(json_array_get(version, 0)),
            b = json_integer_value(json_array_get(version, 1));
    return a > major || (a == major && b >= minor);
}

static int read_learner(forest *f, const json_t *learner, const json_t *version, shoal_err *err)
{
    const json_t *p = object_at(learner, "learner_model_param");
    const char *name = json_string_value(json_object_get(object_at(learner, "objective"), "name"));
    const char *base = "5E-1";
    size_t classes = 0, targets = 1;
    if (!p || !name)
        return err_set(err, SHOAL_EFORMAT,
                       "\"learner_model_param\" or \"objective\" is missing: is it an XGBoost model?");
    int rc = param(p, "num_feature", FOREST_FEATURES_MAX, &f->info.n_features, err);
    if (rc == 0) rc = param(p, "num_class", FOREST_OUTPUTS_MAX, &classes, err);
    if (rc == 0) rc = param(p, "num_target", FOREST_OUTPUTS_MAX, &targets, err);
    if (rc == 0) rc = json_get_str(p, "base_score", &base, err);
    if (rc != 0) return rc;
    const objective *o = objective_find(name);
    if (!o) return err_set(err, SHOAL_EUNSUPPORTED, "the objective \"%.60s\" is not known", name);
    if (f->info.n_features == 0) return err_set(err, SHOAL_EFORMAT, "\"num_feature\" is missing or 0");
    f->single = true;
    f->link = o->link;
    f->number = strcmp(name, "reg:logistic") == 0;
    f->info.format = "xgboost";
    f->info.objective = o->name;
    f->info.n_outputs = classes > targets ? classes : targets > 1 ? targets : 1;
    if (strcmp(name, "reg:quantileerror") == 0 && f->info.n_outputs > 1 && is_since(version, 3, 4))
        f->link = LINK_SORT;
    rc = read_names(f, learner, err);
    if (rc == 0) rc = forest_set_base(f, 0, err);
    return rc != 0 ? rc : read_base(f, base, o->base, err);
}

/* ---- trees --------------------------------------------------------------------------------------------- */

/* Give split i of the tree the set of n categories that begins at `from`. */
static int set_categories(forest *f, const json_t *categories, size_t from, size_t n, forest_node *s,
                          shoal_err *err)
{
    int64_t most = 0, c;
    for (size_t i = 0; i < n; i++) {
        if (!whole(categories, from + i, 0, 1 << 24, &c))
            return err_set(err, SHOAL_EFORMAT, "\"categories\" entry %zu is no category", from + i);
        most = c > most ? c : most;
    }
    size_t n_words = (size_t)most / 32 + 1;
    uint32_t *words = calloc(n_words, sizeof *words);
    if (!words) return err_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (whole(categories, from + i, 0, most, &c)) words[c / 32] |= 1u << (c % 32);
    s->set.n_words = (uint32_t)n_words;
    int rc = forest_add_bits(f, words, n_words, &s->set.at, err);
    free(words);
    return rc;
}

static int read_categories(forest *f, const json_t *t, forest_draft *d, size_t n, shoal_err *err)
{
    const json_t *nodes = json_object_get(t, "categories_nodes"), *all = json_object_get(t, "categories");
    size_t n_sets = json_array_size(nodes), n_all = json_array_size(all);
    const json_t *from = json_object_get(t, "categories_segments"),
                 *sizes = json_object_get(t, "categories_sizes");
    if (json_array_size(from) != n_sets || json_array_size(sizes) != n_sets)
        return err_set(err, SHOAL_EFORMAT, "its lists of categories differ in length");
    for (size_t i = 0; i < n_sets; i++) {
        int64_t node, at, size;
        if (!whole(nodes, i, 0, (int64_t)n - 1, &node) || !whole(from, i, 0, (int64_t)n_all, &at) ||
            !whole(sizes, i, 1, (int64_t)n_all - at, &size))
            return err_set(err, SHOAL_EFORMAT, "\"categories_nodes\" entry %zu is outside its tree", i);
        forest_node *s = &d[node].split;
        if (!(s->flags & SPLIT_CATEGORIES) || s->set.n_words)
            return err_set(err, SHOAL_EFORMAT, "node %lld has categories that it does not want",
                           (long long)node);
        int rc = set_categories(f, all, (size_t)at, (size_t)size, s, err);
        if (rc != 0) return rc;
    }
    return 0;
}

/* What a node is made of; type NULL: no split is by category (before 1.3). */
typedef struct node_lists {
    const json_t *left, *right, *feature, *condition, *default_left, *type;
} node_lists;

static int read_node(const node_lists *l, size_t i, forest_draft *d, shoal_err *err)
{
    int64_t left, right, feature, missing_left, type = 0;
    float value = 0;
    bool ok = whole(l->left, i, -1, INT32_MAX, &left) && whole(l->right, i, -1, INT32_MAX, &right) &&
              whole(l->feature, i, 0, UINT32_MAX, &feature) &&
              whole(l->default_left, i, 0, 1, &missing_left) && (!l->type || whole(l->type, i, 0, 1, &type));
    if (!ok || (!real(l->condition, i, &value) && (left < 0 || !type)))
        return err_set(err, SHOAL_EFORMAT, "node %zu has a number out of range", i);
    d->leaf = left < 0;
    d->value = value;
    if (d->leaf) return 0;
    d->left = (uint32_t)left;
    d->right = right < 0 ? UINT32_MAX : (uint32_t)right;
    d->split.feature = (uint32_t)feature;
    d->split.flags = missing_left ? SPLIT_NAN_LEFT : 0;
    if (type)
        d->split.flags |= SPLIT_CATEGORIES | SPLIT_OTHERS_LEFT;
    else
        d->split.threshold = nextafterf(value, -INFINITY);
    return 0;
}

static int read_tree(forest *f, const json_t *t, size_t output, double weight, shoal_err *err)
{
    size_t n = json_array_size(json_object_get(t, "left_children")), leaf_size = 0;
    int rc = param(object_at(t, "tree_param"), "size_leaf_vector", UINT32_MAX, &leaf_size, err);
    if (rc != 0) return rc;
    if (leaf_size > 1)
        return err_set(
            err, SHOAL_EUNSUPPORTED,
            "its leaves are vectors (multi_strategy=multi_output_tree); train with one_output_per_tree");
    node_lists l = {.left = xgboost_list(t, "left_children", n, err),
                    .right = xgboost_list(t, "right_children", n, err),
                    .feature = xgboost_list(t, "split_indices", n, err),
                    .condition = xgboost_list(t, "split_conditions", n, err),
                    .default_left = xgboost_list(t, "default_left", n, err)};
    if (!l.left || !l.right || !l.feature || !l.condition || !l.default_left) return SHOAL_EFORMAT;
    if (json_object_get(t, "split_type") && !(l.type = xgboost_list(t, "split_type", n, err)))
        return SHOAL_EFORMAT;
    forest_draft *d = calloc(n + 1, sizeof *d);
    if (!d) return err_nomem(err);
    for (size_t i = 0; rc == 0 && i < n; i++) rc = read_node(&l, i, &d[i], err);
    if (rc == 0) rc = read_categories(f, t, d, n, err);
    if (rc == 0) rc = forest_add_tree(f, d, n, output, weight, err);
    free(d);
    return rc;
}

/* `weights`: of dart, one a tree (those behind its end weigh 1); else NULL. */
static int read_trees(forest *f, const json_t *model, const json_t *weights, shoal_err *err)
{
    const json_t *trees = json_object_get(model, "trees");
    size_t n = json_array_size(trees);
    const json_t *outputs = xgboost_list(model, "tree_info", n, err);
    if (!json_is_array(trees) || !outputs)
        return err_set(err, SHOAL_EFORMAT, "\"trees\" and \"tree_info\" do not fit");
    if (weights && (!json_is_array(weights) || json_array_size(weights) > n))
        return err_set(err, SHOAL_EFORMAT, "\"weight_drop\" is no list of at most %zu numbers", n);
    for (size_t i = 0; i < n; i++) {
        int64_t output;
        float weight = 1;
        if (!whole(outputs, i, 0, (int64_t)f->info.n_outputs - 1, &output) ||
            (i < json_array_size(weights) && !real(weights, i, &weight)))
            return err_set(err, SHOAL_EFORMAT,
                           "tree %zu has a number out of range in tree_info or weight_drop", i);
        int rc = read_tree(f, json_array_get(trees, i), (size_t)output, weight, err);
        if (rc != 0) return err_prefix(err, rc, "tree %zu", i);
    }
    return 0;
}

static int read_linear(forest *f, const json_t *model, shoal_err *err)
{
    size_t n = (f->info.n_features + 1) * f->info.n_outputs;
    const json_t *weights = xgboost_list(model, "weights", n, err);
    if (!weights) return SHOAL_EFORMAT;
    f->linear = arena_alloc(f->mem, n * sizeof *f->linear);
    if (!f->linear) return err_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (!real(weights, i, &f->linear[i]))
            return err_set(err, SHOAL_EFORMAT, "\"weights\" entry %zu is no number", i);
    return 0;
}

static int read_booster(forest *f, const json_t *b, shoal_err *err)
{
    const char *name = json_string_value(json_object_get(b, "name"));
    if (!name) return err_set(err, SHOAL_EFORMAT, "\"gradient_booster\" has no name");
    f->info.booster = arena_strdup(f->mem, name);
    if (!f->info.booster) return err_nomem(err);
    if (strcmp(name, "gbtree") == 0) {
        const json_t *model = object_at(b, "model"); /* from 3.4 on dart's weights are in here */
        return read_trees(f, model, json_object_get(model, "weight_drop"), err);
    }
    if (strcmp(name, "gblinear") == 0) return read_linear(f, object_at(b, "model"), err);
    if (strcmp(name, "dart") == 0) {
        const json_t *weights = json_object_get(b, "weight_drop");
        return read_trees(f, object_at(object_at(b, "gbtree"), "model"), weights ? weights : b, err);
    }
    return err_set(err, SHOAL_EUNSUPPORTED,
                   "the booster \"%.60s\" is not known; gbtree, dart and gblinear are", name);
}

/* XGBoost writes NaN, Infinity and -Infinity, which JSON has not (NaN stands as threshold of splits by
 * category). Outside of strings each becomes an empty string and blanks, which is no number to those who read
 * one. */
static void hide_non_numbers(char *text, size_t n)
{
    static const char *const words[] = {"NaN", "-Infinity", "Infinity"};
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"') quoted = !quoted;
        if (quoted) {
            i += text[i] == '\\';
            continue;
        }
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            size_t len = strlen(words[w]);
            if (n - i < len || memcmp(text + i, words[w], len) != 0) continue;
            memset(text + i, ' ', len);
            text[i] = text[i + 1] = '"';
            i += len - 1;
            break;
        }
    }
}

int forest_read_xgboost(forest *f, char *text, size_t n, shoal_err *err)
{
    json_t *root = NULL;
    if (n > JSON_MAX) /* parsed, a number takes twenty times its text */
        return err_set(err, SHOAL_ELIMIT,
                       "an XGBoost model of more than %d MB; train fewer or shallower trees", JSON_MAX >> 20);
    hide_non_numbers(text, n);
    int rc = json_parse(&root, text, n, "XGBoost model", err);
    if (rc != 0) return rc;
    const json_t *learner = object_at(root, "learner");
    if (!learner)
        rc = err_set(err, SHOAL_EFORMAT, "no \"learner\" in it: is it an XGBoost model?");
    else
        rc = read_learner(f, learner, json_object_get(root, "version"), err);
    if (rc == 0) rc = read_booster(f, object_at(learner, "gradient_booster"), err);
    json_decref(root);
    return rc;
}
