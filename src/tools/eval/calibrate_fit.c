/* calibrate_fit.c: maps and thresholds of a cascade's members; see calibrate_fit.h. */
#include "eval/calibrate_fit.h"

#include <stdlib.h>
#include <string.h>

static double confidence_at(const calibrate_member *m, size_t i)
{
    return confidence_of(&m->cal.map, m->said[i]);
}

double calibrate_accuracy(const calibrate_member *m, size_t i, size_t n, double threshold)
{
    size_t n_right = 0;
    for (size_t k = 0; k < n; k++)
        n_right += confidence_at(&m[i], k) >= threshold ? m[i].right[k] : m[i + 1].after[k];
    return n ? (double)n_right / (double)n : 0;
}

confidence_risk calibrate_risk(const calibrate_member *m, size_t i, size_t n, double threshold)
{
    size_t n_answered = 0, n_wrong = 0;
    for (size_t k = 0; k < n; k++) {
        if (confidence_at(&m[i], k) < threshold) continue;
        n_answered++;
        n_wrong += !m[i].right[k];
    }
    return (confidence_risk){.threshold = threshold,
                             .coverage = n ? (double)n_answered / (double)n : 0,
                             .risk = n_answered ? (double)n_wrong / (double)n_answered : 0};
}

/* ---- thresholds ------------------------------------------------------------------------------------ */

/* Above the surest case, so that everything is passed on, is a threshold, too, as long as it is below 1. */
static double best_threshold(const calibrate_member *m, size_t i, size_t n)
{
    double best = 0, best_accuracy = calibrate_accuracy(m, i, n, 0);
    for (size_t k = 0; k < n; k++) {
        double t = confidence_at(&m[i], k), accuracy = calibrate_accuracy(m, i, n, t);
        if (accuracy < best_accuracy || (accuracy == best_accuracy && t >= best)) continue;
        best = t;
        best_accuracy = accuracy;
    }
    return best;
}

static int calibrate_fit_pick(calibrate_member *m, size_t i, const confidence_sample *s, size_t n,
                              const calibrate_goal *goal, double *ret, shoal_err *err)
{
    const confidence_map *map = &m[i].cal.map;
    double surest = map->n_points ? map->points[map->n_points - 1].is : 0;
    switch (goal->aim) {
    case CALIBRATE_BEST: *ret = best_threshold(m, i, n); return 0;
    case CALIBRATE_SHARE: *ret = confidence_threshold_for_share(map, s, n, goal->value); return 0;
    case CALIBRATE_ACCURACY: break;
    }
    if (confidence_threshold(map, s, n, goal->value, ret)) return 0;
    return err_set(err, SHOAL_ELIMIT,
                   "%s is right in %.1f %% of the cases that it is surest of, so no threshold reaches an "
                   "accuracy of %.3g; ask for less, or let the next member answer",
                   m[i].model, 100 * surest, goal->value);
}

/* ---- one member after the other ---------------------------------------------------------------------- */

static void look_after(calibrate_member *m, size_t i, size_t n)
{
    for (size_t k = 0; k < n; k++)
        m[i].after[k] =
            confidence_at(&m[i], k) >= m[i].cal.min_confidence ? m[i].right[k] : m[i + 1].after[k];
}

static int fit_one(calibrate_member *m, size_t i, confidence_sample *s, size_t n, const calibrate_goal *goal,
                   shoal_err *err)
{
    calibration *c = &m[i].cal;
    for (size_t k = 0; k < n; k++) s[k] = (confidence_sample){m[i].said[k], m[i].right[k]};
    int rc = confidence_error_unseen(&m[i].error_is, s, n, CALIBRATE_BINS, err);
    m[i].error_said = confidence_error(NULL, s, n, CALIBRATE_BINS);
    confidence_fit(&c->map, s, n);
    if (!rc) rc = calibrate_fit_pick(m, i, s, n, goal, &c->min_confidence, err);
    if (rc) return rc;
    calibration_fit(c, s, n);
    look_after(m, i, n);
    return 0;
}

int calibrate_fit(calibrate_member *m, size_t n_members, size_t n, const calibrate_goal *goal, shoal_err *err)
{
    confidence_sample *s = calloc(n + 1, sizeof *s);
    int rc = s ? 0 : err_nomem(err);
    memcpy(m[n_members - 1].after, m[n_members - 1].right, n * sizeof *m->right);
    for (size_t i = n_members - 1; !rc && i-- > 0;) rc = fit_one(m, i, s, n, goal, err);
    free(s);
    return rc;
}
