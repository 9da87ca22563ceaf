/* confidence.h: from what a model says of itself to how often it is right.
 *
 * A model's confidence is a number that grows with how often it is right, and seldom is that share. A map
 * says what share each confidence stands for, as a rising line through points, fitted to answers whose truth
 * is known (isotonic regression by pooling adjacent violators: Ayer et al., 1955; Zadrozny and Elkan, 2002):
 *
 *     confidence_sample s[] = {{0.91, true}, {0.40, false}, ...};
 *     confidence_map map;
 *     confidence_fit(&map, s, n);              // sorts s
 *     confidence_of(&map, 0.8);                // 0.93: of those who say 0.8, 93 % are right
 *
 * Pure. */
#ifndef ENSEMBLE_CONFIDENCE_H
#define ENSEMBLE_CONFIDENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define CONFIDENCE_POINTS_MAX 32

typedef struct confidence_point {
    double said, is;
} confidence_point;

typedef struct confidence_map { /* n_points 0: what is said is */
    size_t n_points;
    confidence_point points[CONFIDENCE_POINTS_MAX]; /* both rise */
} confidence_map;

typedef struct confidence_sample {
    double said;
    bool right;
} confidence_sample;

/* Between the points on the line, outside as the nearest one. NULL map: as it was said. */
double confidence_of(const confidence_map *map, double said);
/* n = 0 gives a map without points. Of more blocks than points fit, neighbours that differ least are merged.
 */
void confidence_fit(confidence_map *ret, confidence_sample *samples, size_t n);
/* The mean difference of what is said and what is true, weighted, over `n_bins` bins of equal width (ECE). */
double confidence_error(const confidence_map *map, const confidence_sample *samples, size_t n,
                        unsigned n_bins);

/* The same for maps that have not seen what they are judged by: of CONFIDENCE_FOLDS parts of the samples (the
 * i-th is in part i mod CONFIDENCE_FOLDS) each is judged by a map fitted to the others. SHOAL_ENOMEM leaves
 * *ret as it was. */
#define CONFIDENCE_FOLDS 5
int confidence_error_unseen(double *ret, const confidence_sample *samples, size_t n, unsigned n_bins,
                            shoal_err *err);

/* What a threshold would have meant on the samples: the share that is answered (coverage) and how many of
 * these are wrong (risk). */
typedef struct confidence_risk {
    double threshold, coverage, risk;
} confidence_risk;
confidence_risk confidence_risk_at(const confidence_map *map, const confidence_sample *samples, size_t n,
                                   double threshold);
/* The lowest threshold whose answered samples reach the accuracy; false when none does. */
bool confidence_threshold(const confidence_map *map, const confidence_sample *samples, size_t n,
                          double accuracy, double *ret);
/* The threshold that lets at most this share of the samples go on to the next member. */
double confidence_threshold_for_share(const confidence_map *map, const confidence_sample *samples, size_t n,
                                      double share);

#endif
