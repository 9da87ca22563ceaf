/* forest_link.h: from raw scores to scores, with an exp and a log that are the same on every machine. */
#ifndef FOREST_FOREST_LINK_H
#define FOREST_FOREST_LINK_H

#include <stdbool.h>
#include <stddef.h>

typedef enum forest_link {
    LINK_NONE,      /* x */
    LINK_SIGMOID,   /* 1 / (1 + exp(-slope x)) */
    LINK_SOFTMAX,   /* over all outputs */
    LINK_EXP,       /* exp(x) */
    LINK_SQUARE,    /* sign(x) x^2: LightGBM's regression with "sqrt" */
    LINK_LOG1P_EXP, /* log(1 + exp(x)): cross_entropy_lambda */
    LINK_SORT,      /* all outputs in ascending order: quantiles that may not cross, from XGBoost 3.4 on */
    LINK_STEP       /* 1 when x > 0: binary:hinge */
} forest_link;

/* exp and the natural logarithm within 2 units in the last place; fma and IEEE arithmetic only. */
double forest_exp(double x);
double forest_log(double x);

/* score[n] = link(raw[n]); they may be the same. */
void forest_link_apply(forest_link link, double slope, const double *raw, size_t n, double *score);

#endif
