/* confidence_shift.h: are a classifier's confidences distributed as they were at first?
 *
 * Texts of another kind than a model was trained for show in its confidences before anybody says that answers are wrong. The
 * first CONFIDENCE_REFERENCE confidences of a model are the reference, the last CONFIDENCE_WINDOW the window; both are counted
 * in CONFIDENCE_BINS bins of one width. How far they are apart is the population stability index
 *
 *     PSI = sum over bins of (w - r) * ln(w / r)      w, r: shares of the window and of the reference
 *
 * where half a confidence is added to each bin, so that an empty one is not infinitely far. The usual reading (N. Siddiqi,
 * "Credit Risk Scorecards", 2006): below 0.1 nothing has changed, above 0.25 much has. Chance alone gives about
 * (bins - 1) * (1/reference + 1/window) = 0.05.
 *
 *     confidence_shift_add(&s, 0.93);                                // per answer: a few counters
 *     if (confidence_shift_known(&s)) confidence_shift_psi(&s);      // when somebody looks
 *
 * Pure. */
#ifndef ENSEMBLE_CONFIDENCE_SHIFT_H
#define ENSEMBLE_CONFIDENCE_SHIFT_H

#include <stdbool.h>
#include <stdint.h>

enum { CONFIDENCE_BINS = 10, CONFIDENCE_REFERENCE = 500, CONFIDENCE_WINDOW = 250 };

typedef struct confidence_shift { /* zeroed: nothing was seen */
    uint32_t reference[CONFIDENCE_BINS], window[CONFIDENCE_BINS];
    uint32_t n_reference, n_window, at; /* at: of the oldest in `last` */
    double reference_sum, window_sum;
    float last[CONFIDENCE_WINDOW];
} confidence_shift;

/* What is no number is not counted; what is outside of 0 to 1 is counted at the end. */
void confidence_shift_add(confidence_shift *s, float confidence);
/* Both are full. */
bool confidence_shift_known(const confidence_shift *s);
double confidence_shift_psi(const confidence_shift *s);
double confidence_shift_reference_mean(const confidence_shift *s);
double confidence_shift_window_mean(const confidence_shift *s);

#endif
