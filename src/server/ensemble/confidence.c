/* confidence.c: isotonic maps, risk and coverage; see confidence.h. */
#include "ensemble/confidence.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

double confidence_of(const confidence_map *map, double said)
{
    if (!map || map->n_points == 0) return said;
    const confidence_point *p = map->points, *last = p + map->n_points - 1;
    if (!(said > p->said)) return p->is; /* what is no number, too */
    if (said >= last->said) return last->is;
    while (p[1].said < said) p++;
    double t = (said - p[0].said) / (p[1].said - p[0].said);
    return p[0].is + t * (p[1].is - p[0].is);
}

/* ---- fitting ------------------------------------------------------------------------------------- */

typedef struct block { /* samples in a row that share one value */
    double said_sum, right;
    double n;
} block;

static int by_said(const void *a, const void *b)
{
    double x = ((const confidence_sample *)a)->said, y = ((const confidence_sample *)b)->said;
    return (x > y) - (x < y);
}

static double mean(const block *b)
{
    return b->right / b->n;
}

static void pool(block *into, const block *b)
{
    into->said_sum += b->said_sum;
    into->right += b->right;
    into->n += b->n;
}

/* The last two, as long as the later is not above the earlier. */
static size_t pool_back(block *b, size_t n)
{
    while (n > 1 && mean(&b[n - 2]) >= mean(&b[n - 1])) {
        pool(&b[n - 2], &b[n - 1]);
        n--;
    }
    return n;
}

static size_t merge_nearest(block *b, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; i++)
        if (mean(&b[i + 1]) - mean(&b[i]) < mean(&b[best + 1]) - mean(&b[best])) best = i;
    pool(&b[best], &b[best + 1]);
    for (size_t i = best + 1; i + 1 < n; i++) b[i] = b[i + 1];
    return n - 1;
}

void confidence_fit(confidence_map *ret, confidence_sample *samples, size_t n)
{
    block b[CONFIDENCE_POINTS_MAX + 1];
    size_t n_blocks = 0;
    *ret = (confidence_map){0};
    if (n > 0) qsort(samples, n, sizeof *samples, by_said);
    for (size_t i = 0; i < n;) {
        block next = {0};
        double said = samples[i].said;
        for (; i < n && samples[i].said == said; i++)
            pool(&next, &(block){.said_sum = said, .right = samples[i].right, .n = 1});
        b[n_blocks++] = next;
        n_blocks = pool_back(b, n_blocks);
        if (n_blocks > CONFIDENCE_POINTS_MAX) n_blocks = merge_nearest(b, n_blocks);
    }
    ret->n_points = n_blocks;
    for (size_t i = 0; i < n_blocks; i++)
        ret->points[i] = (confidence_point){b[i].said_sum / b[i].n, mean(&b[i])};
}

/* ---- judging ------------------------------------------------------------------------------------- */

double confidence_error(const confidence_map *map, const confidence_sample *samples, size_t n,
                        unsigned n_bins)
{
    double error = 0;
    assert(n_bins > 0);
    for (unsigned bin = 0; bin < n_bins; bin++) {
        double said = 0, right = 0;
        for (size_t i = 0; i < n; i++) {
            double p = confidence_of(map, samples[i].said);
            double at = p < 0 ? 0 : p * n_bins;
            unsigned of = at >= n_bins ? n_bins - 1 : (unsigned)at;
            if (of != bin) continue;
            said += p;
            right += samples[i].right;
        }
        error += fabs(said - right);
    }
    return n ? error / (double)n : 0;
}

int confidence_error_unseen(double *ret, const confidence_sample *samples, size_t n, unsigned n_bins,
                            shoal_err *err)
{
    confidence_sample *others = calloc(n + 1, sizeof *others), *judged = calloc(n + 1, sizeof *judged);
    int rc = others && judged ? 0 : err_nomem(err);
    for (size_t fold = 0; rc == 0 && fold < CONFIDENCE_FOLDS; fold++) {
        confidence_map map;
        size_t n_others = 0;
        for (size_t i = 0; i < n; i++)
            if (i % CONFIDENCE_FOLDS != fold) others[n_others++] = samples[i];
        confidence_fit(&map, others, n_others);
        for (size_t i = fold; i < n; i += CONFIDENCE_FOLDS)
            judged[i] = (confidence_sample){confidence_of(&map, samples[i].said), samples[i].right};
    }
    if (rc == 0) *ret = confidence_error(NULL, judged, n, n_bins);
    free(others);
    free(judged);
    return rc;
}

confidence_risk confidence_risk_at(const confidence_map *map, const confidence_sample *samples, size_t n,
                                   double threshold)
{
    size_t n_answered = 0, n_wrong = 0;
    for (size_t i = 0; i < n; i++) {
        if (confidence_of(map, samples[i].said) < threshold) continue;
        n_answered++;
        n_wrong += !samples[i].right;
    }
    return (confidence_risk){.threshold = threshold,
                             .coverage = n ? (double)n_answered / (double)n : 0,
                             .risk = n_answered ? (double)n_wrong / (double)n_answered : 0};
}

bool confidence_threshold(const confidence_map *map, const confidence_sample *samples, size_t n,
                          double accuracy, double *ret)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        double t = confidence_of(map, samples[i].said);
        if (found && t >= *ret) continue;
        if (1 - confidence_risk_at(map, samples, n, t).risk < accuracy) continue;
        *ret = t;
        found = true;
    }
    return found;
}

double confidence_threshold_for_share(const confidence_map *map, const confidence_sample *samples, size_t n,
                                      double share)
{
    double best = 0;
    for (size_t i = 0; i < n; i++) {
        double t = confidence_of(map, samples[i].said);
        if (t > best && 1 - confidence_risk_at(map, samples, n, t).coverage <= share) best = t;
    }
    return best;
}
