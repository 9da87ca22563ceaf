/* forest.h: gradient-boosted trees: a LightGBM text model or an XGBoost JSON model, and the scores it gives
 * to rows.
 *
 * A forest is read once and never changes. A row is n_features numbers in the file's order, NaN where a value
 * is missing; categorical features are their codes. The raw score of an output is the sum of one leaf a tree;
 * the score is what the objective makes of it (a probability, a rate, the number itself).
 *
 *     forest *f = NULL;
 *     if (forest_open(&f, "model.txt", &err) != 0) ...
 *     double score[FOREST_OUTPUTS_MAX];
 *     forest_score(f, row, 1, NULL, score);
 *     forest_free(f);
 *
 * Exactness: LightGBM compares and adds in double, XGBoost in float; so does this, each as its own library
 * does, tree by tree in the file's order. exp and log are our own (forest_link.h), so that every machine
 * gives the same bits.
 *
 * Sources: LightGBM's include/LightGBM/tree.h and src/io/tree.cpp (text format v2 to v4), XGBoost's
 * doc/model.schema and src/predictor (0.90 to 3.x). Refused by name: LightGBM's linear trees, XGBoost's
 * vector leaves and binary files. A forest is read-only, so that any thread may score with it. */
#ifndef FOREST_FOREST_H
#define FOREST_FOREST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { FOREST_FEATURES_MAX = 1 << 20, FOREST_OUTPUTS_MAX = 4096 };

typedef struct forest forest;

typedef struct forest_info {
    const char *format;    /* "lightgbm" or "xgboost" */
    const char *booster;   /* "gbtree", "dart", "gblinear", "gbdt", "rf" */
    const char *objective; /* the file's word: "multiclass", "binary:logistic"; "" when it has none */
    size_t n_features;     /* of a row */
    size_t n_outputs;      /* scores of a row */
    size_t n_classes;      /* of a classifier: n_outputs, or 2 for one probability; 0: scores are numbers */
    size_t n_trees, n_splits, n_leaves;
    const char *const *features; /* [n_features] names; NULL when the file has none */
} forest_info;

/* Read a model file (gzip is fine) or its bytes; `what` names them in errors. SHOAL_EFORMAT for what is
 * malformed, SHOAL_EUNSUPPORTED, by name, for what is not read, SHOAL_ELIMIT. The caller frees *ret. */
int forest_open(forest **ret, const char *path, shoal_err *err);
int forest_parse(forest **ret, const char *text, size_t n, const char *what, shoal_err *err);
void forest_free(forest *f); /* NULL is fine */

const forest_info *forest_about(const forest *f); /* borrowed from f */

/* ret_raw[n_rows][n_outputs] and ret_score[n_rows][n_outputs] = rows[n_rows][n_features]. Either may be NULL;
 * they alias nothing. Allocates nothing and cannot fail. */
void forest_score(const forest *f, const double *rows, size_t n_rows, double *ret_raw, double *ret_score);

/* ret[n_classes] = the probability of each class, from one row's score; n_classes > 0. */
void forest_classes(const forest *f, const double *score, double *ret);

#endif
