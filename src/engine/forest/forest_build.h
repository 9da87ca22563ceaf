/* forest_build.h: the forest inside, and how a reader fills it. Only the readers and forest.c see this.
 *
 * A reader lays one tree out as the file does, node by node (forest_draft), and forest_add_tree checks its
 * shape and appends it in preorder, a parent before its children: walking it always ends. */
#ifndef FOREST_FOREST_BUILD_H
#define FOREST_FOREST_BUILD_H

#include <stdint.h>

#include "base/buf.h"
#include "forest/forest.h"
#include "forest/forest_link.h"

/* What a split does; the rest is `value <= threshold` goes left. */
enum {
    SPLIT_NAN_LEFT = 1,    /* where a missing value goes */
    SPLIT_ZERO_NAN = 2,    /* zero is missing too */
    SPLIT_CATEGORIES = 4,  /* by a set of codes; in it left (LightGBM) ... */
    SPLIT_OTHERS_LEFT = 8, /* ... or right (XGBoost) */
};

enum { FOREST_LEAF = 1u << 31 }; /* in a child: the rest is a leaf's index */

typedef struct forest_node {
    union {
        double threshold;
        struct {
            uint32_t at, n_words; /* of the codes' bits */
        } set;
    };
    uint32_t feature, flags;
    uint32_t child[2]; /* left, right: a later node, or FOREST_LEAF | leaf */
} forest_node;

typedef struct forest_tree {
    uint32_t root, output;
    double weight; /* of dart, else 1 */
} forest_tree;

struct forest {
    forest_info info;
    arena *mem;                     /* names and words of info */
    buf nodes, leaves, bits, trees; /* forest_node, double, uint32_t, forest_tree */
    double *base;                   /* [n_outputs] that sums begin with */
    float *linear;                  /* of gblinear: [n_features + 1][n_outputs], the last row the biases */
    forest_link link;
    double slope;
    double divisor; /* of the sums: the number of iterations where the file says average_output */
    /* A sigmoid's result is a number between 0 and 1, not a class (reg:logistic, cross_entropy). */
    bool number;
    bool odd_splits; /* some split has categories, or takes zero for missing */
    bool single;     /* values, sums and scores are floats (XGBoost) */
};

typedef struct forest_draft {
    forest_node split;
    uint32_t left, right; /* indices of drafts */
    bool leaf;
    double value; /* of a leaf */
    bool seen;    /* from here on forest_add_tree's own */
    uint32_t next, parent, side;
} forest_draft;

/* Append the tree d[n] whose root is d[0]. Indices, features, sets and values are checked here. */
int forest_add_tree(forest *f, forest_draft *d, size_t n, size_t output, double weight, shoal_err *err);

/* Append n words of category bits; *ret_at is where they begin. */
int forest_add_bits(forest *f, const uint32_t *words, size_t n, uint32_t *ret_at, shoal_err *err);

/* After info.n_outputs is known: a row of equal bases. */
int forest_set_base(forest *f, double base, shoal_err *err);

/* text[n] is NUL. XGBoost's is changed on the way (what JSON has not is blanked out). */
int forest_read_lightgbm(forest *f, const char *text, size_t n, shoal_err *err);
int forest_read_xgboost(forest *f, char *text, size_t n, shoal_err *err);

#endif
