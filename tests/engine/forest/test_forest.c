/* Trees against the libraries that define them: XGBoost 1.7.4's own answers (tests/data/forest, made with its
 * Python package), the reference scores of sensor-trees, and LightGBM's rules for what is missing, by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"
#include "forest/forest.h"
#include "forest/forest_link.h"
#include "formats/gz.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

static json_t *json_file(const char *path)
{
    json_t *v = NULL;
    shoal_err err;
    if (json_parse_file(&v, path, 8 << 20, &err) != 0) fail_msg("%s", err.message);
    return v;
}

static forest *open_or_fail(const char *path)
{
    forest *f = NULL;
    shoal_err err;
    if (forest_open(&f, path, &err) != 0) fail_msg("%s", err.message);
    return f;
}

static void read_row(const json_t *a, double *row)
{
    for (size_t i = 0; i < json_array_size(a); i++) {
        const json_t *v = json_array_get(a, i);
        row[i] = json_is_null(v) ? NAN : json_number_value(v);
    }
}

static void near(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))))
        fail_msg("%s: %.17g is not %.17g", what, got, want);
}

/* ---- sensor-trees -------------------------------------------------------------------------------------- */

/* `tolerance` is relative to the value itself, `least` to 1 (floats: small sums of large leaves). */
static void check_sensor_trees(const char *file, double tolerance, double least)
{
    forest *f = open_or_fail(file);
    json_t *root = json_file(DATA "sensors/trees/expected.json");
    const json_t *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 50);
    assert_int_equal(forest_about(f)->n_trees, 360);
    assert_int_equal(forest_about(f)->n_leaves, 5400);
    assert_int_equal(forest_about(f)->n_classes, 3);
    assert_string_equal(forest_about(f)->features[19], "pressure_kurtosis");
    for (size_t i = 0; i < 150; i++) {
        double x[20], raw[3], score[3];
        const json_t *row = json_array_get(rows, i / 3);
        double want = json_number_value(json_array_get(json_object_get(row, "raw"), i % 3));
        double prob = json_number_value(json_array_get(json_object_get(row, "prob"), i % 3));
        read_row(json_object_get(row, "x"), x);
        forest_score(f, x, 1, raw, score);
        if (!(fabs(raw[i % 3] - want) <= tolerance * fabs(want) + least) ||
            !(fabs(score[i % 3] - prob) <= tolerance * prob + least))
            fail_msg("row %zu: %.17g is not %.17g, or %.17g not %.17g", i / 3, raw[i % 3], want, score[i % 3],
                     prob);
    }
    json_decref(root);
    forest_free(f);
}

static void lightgbm_scores_as_the_reference(void **state)
{
    (void)state;
    check_sensor_trees(DATA "sensors/trees/model.txt.gz", 1e-12, 0);
}

static void xgboost_scores_as_the_reference(void **state)
{
    (void)state;
    check_sensor_trees(DATA "sensors/trees/model.xgb.json.gz", 1e-6, 4e-6);
}

/* One byte wrong in `n` places: an error, or a model that scores. */
static void corrupt(const char *path, size_t n)
{
    buf text = {0};
    shoal_err err;
    double row[32] = {0}, score[8];
    unsigned seed = 7;
    if (gz_read(&text, path, 8 << 20, &err) != 0) fail_msg("%s", err.message);
    for (size_t i = 0; i < n; i++) {
        forest *f = NULL;
        seed = seed * 1103515245 + 12345;
        char *at = &text.data[(seed >> 3) % text.len], was = *at;
        *at = (char)(seed >> 16);
        int rc = forest_parse(&f, text.data, text.len, "corrupt", &err);
        if (rc != 0 && !err.message[0]) fail_msg("%s: no sentence", path);
        if (rc == 0 && forest_about(f)->n_features <= 32 && forest_about(f)->n_outputs <= 8)
            forest_score(f, row, 1, NULL, score);
        forest_free(f);
        *at = was;
    }
    buf_done(&text);
}

static void corrupt_files_are_refused_or_score(void **state)
{
    (void)state;
    static const char *const small[] = {"onehot", "categories", "dart", "linear-multi", "softmax", "forest"};
    char path[512];
    corrupt(DATA "sensors/trees/model.txt.gz", 40);
    corrupt(DATA "sensors/trees/model.xgb.json.gz", 10);
    corrupt(SHOAL_SOURCE_DIR "/tests/fuzz/seeds/fuzz_forest_model/categories.txt", 2000);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        snprintf(path, sizeof path, DATA "forest/%s.json", small[i]);
        corrupt(path, 200);
    }
}

static void rows_in_a_batch_score_as_alone(void **state)
{
    (void)state;
    forest *f = open_or_fail(DATA "sensors/trees/model.txt.gz");
    double rows[7][20], together[7][3], alone[3];
    for (size_t i = 0; i < 7; i++)
        for (size_t k = 0; k < 20; k++) rows[i][k] = (double)((i * 31 + k * 17) % 23) / 5 - 2;
    forest_score(f, rows[0], 7, NULL, together[0]);
    for (size_t i = 0; i < 7; i++) {
        forest_score(f, rows[i], 1, NULL, alone);
        assert_memory_equal(alone, together[i], sizeof alone);
    }
    forest_free(f);
}

/* ---- XGBoost ------------------------------------------------------------------------------------------- */

/* multi:softmax answers with a class where we answer with all probabilities. */
static void check_score(const json_t *want, const char *objective, const double *score, size_t n,
                        const char *what)
{
    if (strcmp(objective, "multi:softmax") != 0) {
        for (size_t k = 0; k < n; k++) near(score[k], json_number_value(json_array_get(want, k)), 2e-7, what);
        return;
    }
    size_t best = 0;
    for (size_t k = 1; k < n; k++) best = score[k] > score[best] ? k : best;
    assert_int_equal(best, (size_t)json_number_value(json_array_get(want, 0)));
}

static void check_case(const json_t *c)
{
    char path[512];
    const char *file = json_string_value(json_object_get(c, "file"));
    const char *objective = json_string_value(json_object_get(c, "objective"));
    snprintf(path, sizeof path, DATA "forest/%s", file);
    forest *f = open_or_fail(path);
    const json_t *rows = json_object_get(c, "rows");
    size_t n = forest_about(f)->n_outputs;
    assert_string_equal(forest_about(f)->objective, objective);
    assert_true(json_array_size(rows) >= 20);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        double x[5], raw[3], score[3];
        const json_t *want = json_array_get(json_object_get(c, "raw"), i);
        read_row(json_array_get(rows, i), x);
        forest_score(f, x, 1, raw, score);
        assert_int_equal(json_array_size(want), n);
        for (size_t k = 0; k < n; k++)
            if (raw[k] != json_number_value(json_array_get(want, k)))
                fail_msg("%s row %zu: %.9g is not %.9g", file, i, raw[k],
                         json_number_value(json_array_get(want, k)));
        check_score(json_array_get(json_object_get(c, "score"), i), objective, score, n, file);
    }
    forest_free(f);
}

static void xgboost_models_score_as_xgboost_bit_for_bit(void **state)
{
    (void)state;
    json_t *root = json_file(DATA "forest/expected.json");
    const json_t *cases = json_object_get(root, "cases");
    assert_true(json_array_size(cases) >= 18);
    for (size_t i = 0; i < json_array_size(cases); i++) check_case(json_array_get(cases, i));
    json_decref(root);
}

#define XGB(base, n_class, objective, trees, info)                                                        \
    "{\"learner\":{\"learner_model_param\":{\"base_score\":\"" base "\",\"num_class\":\"" n_class         \
    "\",\"num_feature\":\"1\"},\"objective\":{\"name\":\"" objective                                      \
    "\"},\"gradient_booster\":{\"name\":\"gbtree\",\"model\":{\"trees\":[" trees "],\"tree_info\":[" info \
    "]}}}}"
/* Left is `less`, right `more` of 0.1. */
#define STUMP(less, more)                                                                          \
    "{\"left_children\":[1,-1,-1],\"right_children\":[2,-1,-1],\"split_indices\":[0,0,0],\"split_" \
    "conditions\":[0."                                                                             \
    "1," less "," more "],\"default_left\":[true,false,false],\"tree_param\":{}}"

static double score_text(const char *text, double x, double *ret_raw)
{
    forest *f = NULL;
    shoal_err err;
    double score[3];
    if (forest_parse(&f, text, strlen(text), "test", &err) != 0) fail_msg("%s", err.message);
    forest_score(f, &x, 1, ret_raw, score);
    forest_free(f);
    return score[0];
}

static void xgboost_compares_floats_and_reads_old_and_new_bases(void **state)
{
    (void)state;
    double raw[3];
    const char *plain = XGB("5E-1", "0", "reg:squarederror", STUMP("1", "2"), "0");
    assert_true(score_text(plain, 0.1, NULL) == 2.5); /* 0.1 is not less than 0.1f when both are floats */
    assert_true(score_text(plain, 0.1f, NULL) == 2.5);
    assert_true(score_text(plain, nextafterf(0.1f, 0), NULL) == 1.5);
    assert_true(score_text(plain, NAN, NULL) == 1.5);
    assert_true(score_text(plain, -INFINITY, NULL) == 1.5);
    score_text(XGB("0.250000", "0", "binary:logistic", STUMP("1", "2"), "0"), 5, raw);
    near(raw[0], 2 - log(3), 1e-7, "a probability");
    score_text(XGB("[1E0,-2E0,3E0]", "3", "multi:softprob", STUMP("1", "2"), "1"), 5, raw);
    assert_true(raw[0] == 1 && raw[1] == 0 && raw[2] == 3);
    score_text(XGB("[7E0]", "3", "multi:softprob", STUMP("1", "2"), "1"), 5, raw);
    assert_true(raw[0] == 7 && raw[1] == 9 && raw[2] == 7);
    score_text(XGB("1", "0", "binary:logistic", STUMP("1", "2"), "0"), 5, raw);
    near(raw[0], 2 + log(1e6), 1e-2, "a sure start"); /* 1 - 1e-6 is not exact in floats */
}

/* Since 3.4 dart's weights lie in the model of gbtree, and quantiles are sorted. */
static void xgboost_forms_since_3_4_are_read(void **state)
{
    (void)state;
    static const char text[] =
        "{\"version\":[3,4,0],\"learner\":{\"learner_model_param\":{\"base_score\":\"[0E0,0E0]\",\"num_"
        "class\":\"0\","
        "\"num_feature\":\"1\",\"num_target\":\"2\"},\"objective\":{\"name\":\"reg:quantileerror\"},"
        "\"gradient_booster\":"
        "{\"name\":\"gbtree\",\"model\":{\"trees\":[" STUMP("1", "2") "," STUMP("3", "4") "," STUMP(
            "-1", "-2") "],"
                        "\"tree_info\":[0,0,1],\"weight_drop\":[0.5,0.25]}}}}";
    char old[sizeof text];
    double raw[2];
    assert_true(score_text(text, 5, raw) == -2); /* the lesser first */
    assert_true(raw[0] == 2 * 0.5 + 4 * 0.25 && raw[1] == -2);
    memcpy(old, text, sizeof text);
    old[strlen("{\"version\":[3,")] = '3';
    assert_true(score_text(old, 5, raw) == 2);
}

/* ---- LightGBM ------------------------------------------------------------------------------------------ */

#define HEAD(objective, extra)                                                                 \
    "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=" \
    "0\nobjective=" objective "\n" extra "feature_names=Column_0\nfeature_infos=none\n\n"
#define LGB_STUMP(decision, threshold)                                                                   \
    "Tree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=" threshold "\ndecision_type=" decision \
    "\nleft_child=-1\nright_child=-2\nleaf_value=1 2\nis_linear=0\nshrinkage=0.1\n\n\n"
#define TAIL "end of trees\n\nfeature_importances:\n"

/* decision_type: 2 is default left; 0, 4 and 8 say that nothing, zero or NaN is missing. */
static void lightgbm_missing_values_go_where_the_split_says(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double x, want;
    } cases[] = {
        {HEAD("regression", "") LGB_STUMP("0", "0.5") TAIL, NAN, 1}, /* NaN is 0 */
        {HEAD("regression", "") LGB_STUMP("2", "-0.5") TAIL, NAN, 2},
        {HEAD("regression", "") LGB_STUMP("0", "0.5") TAIL, 0.5, 1},
        {HEAD("regression", "") LGB_STUMP("0", "0.5") TAIL, 0.5000000000000001, 2},
        {HEAD("regression", "") LGB_STUMP("4", "0.5") TAIL, NAN, 2}, /* zero is missing, and so is NaN */
        {HEAD("regression", "") LGB_STUMP("4", "0.5") TAIL, 0, 2},
        {HEAD("regression", "") LGB_STUMP("4", "0.5") TAIL, -1e-36, 2},
        {HEAD("regression", "") LGB_STUMP("4", "0.5") TAIL, 1e-34, 1},
        {HEAD("regression", "") LGB_STUMP("6", "-0.5") TAIL, 0, 1},
        {HEAD("regression", "") LGB_STUMP("8", "0.5") TAIL, NAN, 2},
        {HEAD("regression", "") LGB_STUMP("10", "-0.5") TAIL, NAN, 1},
        {HEAD("regression", "") LGB_STUMP("10", "-0.5") TAIL, 0, 2},
        {HEAD("regression", "") LGB_STUMP("8", "1.0000000180025095e-35") TAIL, 1e-35, 1},
        {HEAD("regression", "") LGB_STUMP("8", "inf") TAIL, 1e300, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (score_text(cases[i].text, cases[i].x, NULL) != cases[i].want)
            fail_msg("case %zu: %g", i, cases[i].x);
}

/* Sets {1, 33} and {0}: bits 1 and 33 of two words, bit 0 of one. */
static void lightgbm_categories_go_left_when_named(void **state)
{
    (void)state;
    const char *text =
        HEAD("regression", "") "Tree=0\nnum_leaves=3\nnum_cat=2\nsplit_feature=0 0\nthreshold=0 1\n"
                               "decision_type=1 9\nleft_child=-1 -2\nright_child=1 -3\nleaf_value=1 2 3\n"
                               "cat_boundaries=0 2 3\ncat_threshold=2 2 1\nis_linear=0\nshrinkage=1\n\n" TAIL;
    static const double cases[][2] = {{1, 1}, {33, 1}, {33.9, 1}, {0, 2},     {-0.5, 2}, {-1, 3},
                                      {2, 3}, {34, 3}, {64, 3},   {1e300, 3}, {NAN, 3},  {-INFINITY, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (score_text(text, cases[i][0], NULL) != cases[i][1]) fail_msg("category %g", cases[i][0]);
}

static void lightgbm_objectives_make_scores(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double want;
    } cases[] = {
        {HEAD("regression sqrt", "") LGB_STUMP("2", "0") TAIL, 4},
        {HEAD("binary sigmoid:0.5", "") LGB_STUMP("2", "0") TAIL, 0.7310585786300049},
        {HEAD("poisson", "") LGB_STUMP("2", "0") TAIL, 7.38905609893065},
        {HEAD("cross_entropy_lambda", "") LGB_STUMP("2", "0") TAIL, 2.1269280110429727},
        {HEAD("lambdarank", "") LGB_STUMP("2", "0") TAIL, 2},
        {HEAD("binary sigmoid:1", "average_output\n") LGB_STUMP("2", "0") LGB_STUMP("2", "0") TAIL,
         0.8807970779778823},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        near(score_text(cases[i].text, 1, NULL), cases[i].want, 1e-15, cases[i].text);
}

/* ---- what is refused ----------------------------------------------------------------------------------- */

static void refused(const char *text, int code, const char *sentence)
{
    forest *f = NULL;
    shoal_err err = {0};
    int rc = forest_parse(&f, text, strlen(text), "m", &err);
    if (rc != code || !strstr(err.message, sentence))
        fail_msg("%d \"%s\", wanted \"%s\"", rc, err.message, sentence);
}

static void broken_lightgbm_files_are_refused(void **state)
{
    (void)state;
    refused(HEAD("regression",
                 "") "Tree=0\nnum_leaves=2\nsplit_feature=1\nthreshold=0\ndecision_type=2\nleft_child=-1\n"
                     "right_child=-2\nleaf_value=1 2\nshrinkage=1\n",
            SHOAL_EFORMAT, "splits by feature 1 of 1");
    refused(HEAD("regression",
                 "") "Tree=0\nnum_leaves=2\nsplit_feature=0\nthreshold=0\ndecision_type=2\nleft_child=0\n"
                     "right_child=-2\nleaf_value=1 2\nshrinkage=1\n",
            SHOAL_EFORMAT, "reached twice");
    refused(HEAD("regression",
                 "") "Tree=0\nnum_leaves=2\nsplit_feature=0\nthreshold=0\ndecision_type=2\nleft_child=-3\n"
                     "right_child=-2\nleaf_value=1 2\nshrinkage=1\n",
            SHOAL_EFORMAT, "names no node");
    refused(HEAD("regression",
                 "") "Tree=0\nnum_leaves=2\nsplit_feature=0\nthreshold=0\ndecision_type=2\nleft_child=-1\n"
                     "right_child=-2\nleaf_value=1 2\nis_linear=1\nshrinkage=1\n",
            SHOAL_EUNSUPPORTED, "linear_tree=false");
    refused(HEAD("regression",
                 "") "Tree=0\nnum_leaves=2\nsplit_feature=0\nthreshold=0\ndecision_type=2\nleft_child=-1\n"
                     "right_child=-2\nleaf_value=1 2",
            SHOAL_EFORMAT, "cut short");
    refused(HEAD("regression", "tree_sizes=10 10\n") LGB_STUMP("2", "0") TAIL, SHOAL_EFORMAT, "cut short");
    refused(HEAD("regression", "") LGB_STUMP("1", "0") TAIL, SHOAL_EFORMAT, "names no set");
    refused(HEAD("regression", "") LGB_STUMP("2", "nan") TAIL, SHOAL_EFORMAT, "no number as threshold");
    refused(HEAD("regression", "") LGB_STUMP("2", "0 1") TAIL, SHOAL_EFORMAT,
            "smaller than the tree's lists");
    refused(HEAD("magic", "") LGB_STUMP("2", "0") TAIL, SHOAL_EUNSUPPORTED, "objective \"magic\"");
    refused("tree\nnum_class=4294967296\nmax_feature_idx=3\n", SHOAL_EFORMAT, "num_class");
    refused("tree\nnum_class=1\nmax_feature_idx=1\nfeature_names=a\n", SHOAL_EFORMAT, "1 \"feature_names\"");
    refused("trees", SHOAL_EFORMAT, "neither a LightGBM");
}

static void broken_xgboost_files_are_refused(void **state)
{
    (void)state;
    refused("{\"tree_info\":[]}", SHOAL_EFORMAT, "no \"learner\"");
    refused("{L", SHOAL_EUNSUPPORTED, "UBJSON");
    refused("[{\"nodeid\":0}]", SHOAL_EUNSUPPORTED, "dump");
    refused(XGB("x", "0", "reg:squarederror", STUMP("1", "2"), "0"), SHOAL_EFORMAT, "base_score");
    refused(XGB("1.5", "0", "binary:logistic", STUMP("1", "2"), "0"), SHOAL_EFORMAT, "base_score");
    refused(XGB("0", "0", "count:poisson", STUMP("1", "2"), "0"), SHOAL_EFORMAT, "base_score");
    refused(XGB("[1,2]", "3", "multi:softprob", STUMP("1", "2"), "0"), SHOAL_EFORMAT, "not 1 or 3");
    refused(XGB("0", "0", "reg:magic", STUMP("1", "2"), "0"), SHOAL_EUNSUPPORTED, "reg:magic");
    refused(XGB("0", "0", "reg:squarederror", STUMP("1", "2"), "1"), SHOAL_EFORMAT, "tree_info");
    refused(XGB("0", "0", "reg:squarederror", STUMP("1", "2"), ""), SHOAL_EFORMAT, "do not fit");
    refused(XGB("0", "0", "reg:squarederror",
                "{\"left_children\":[0],\"right_children\":[0],\"split_indices\":[0],\"split_conditions\":[0]"
                ",\"default_"
                "left\":[0]}",
                "0"),
            SHOAL_EFORMAT, "reached twice");
    refused(XGB("0", "0", "reg:squarederror",
                "{\"left_children\":[1,-1],\"right_children\":[7,-1],\"split_indices\":[0,0],\"split_"
                "conditions\":[0,0],"
                "\"default_left\":[0,0]}",
                "0"),
            SHOAL_EFORMAT, "outside its tree");
    refused(XGB("0", "0", "reg:squarederror", "{\"tree_param\":{\"size_leaf_vector\":\"3\"}}", "0"),
            SHOAL_EUNSUPPORTED, "vectors");
}

/* ---- exp and log --------------------------------------------------------------------------------------- */

static void exp_and_log_are_within_two_units(void **state)
{
    (void)state;
    for (double x = -700; x < 700; x += 0.37) {
        double e = forest_exp(x);
        if (fabs(e - exp(x)) > 4.5e-16 * exp(x)) fail_msg("exp(%g) = %.17g", x, e);
        if (fabs(forest_log(e) - log(e)) > 4.5e-16 * fmax(fabs(log(e)), 0.01)) fail_msg("log(%g)", e);
    }
    assert_true(forest_exp(0) == 1 && forest_exp(INFINITY) == INFINITY && forest_exp(-INFINITY) == 0);
    assert_true(isnan(forest_exp(NAN)) && forest_log(1) == 0 && isnan(forest_log(-1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lightgbm_scores_as_the_reference),
        cmocka_unit_test(xgboost_scores_as_the_reference),
        cmocka_unit_test(rows_in_a_batch_score_as_alone),
        cmocka_unit_test(xgboost_models_score_as_xgboost_bit_for_bit),
        cmocka_unit_test(xgboost_compares_floats_and_reads_old_and_new_bases),
        cmocka_unit_test(xgboost_forms_since_3_4_are_read),
        cmocka_unit_test(lightgbm_missing_values_go_where_the_split_says),
        cmocka_unit_test(lightgbm_categories_go_left_when_named),
        cmocka_unit_test(lightgbm_objectives_make_scores),
        cmocka_unit_test(broken_lightgbm_files_are_refused),
        cmocka_unit_test(broken_xgboost_files_are_refused),
        cmocka_unit_test(corrupt_files_are_refused_or_score),
        cmocka_unit_test(exp_and_log_are_within_two_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
