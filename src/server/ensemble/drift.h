/* drift.h: does a member still speak as it did when it was calibrated?
 *
 * Of each answer one number counts: its confidence, or 0 when the answer was passed on (which may have been
 * cut short, so that its own number is too low). Their mean and spread are known from the calibration; the
 * running mean (exponentially weighted: S. W. Roberts, "Control Chart Tests Based on Geometric Moving
 * Averages", 1959) strays from there by a fourteenth of the spread when nothing has changed:
 *
 *     drift d;
 *     drift_init(&d, 0.71, 0.38);
 *     if (drift_add(&d, confidence, sure) == DRIFT_BEGAN) ... drift_of(&d) ... // -0.53: spreads below
 *
 * Pure. */
#ifndef ENSEMBLE_DRIFT_H
#define ENSEMBLE_DRIFT_H

#include <stdbool.h>

#define DRIFT_WEIGHT     0.01 /* of one answer: the last 100 count for two thirds */
#define DRIFT_BEGINS     0.5  /* spreads: seven times what chance does */
#define DRIFT_ENDS       0.25
#define DRIFT_SPREAD_MIN 0.02 /* of members that always say the same */

typedef enum drift_change { DRIFT_SAME, DRIFT_BEGAN, DRIFT_ENDED } drift_change;

typedef struct drift {
    double mean, spread; /* of the calibration */
    double now;
    bool is_off;
} drift;

/* Begins where the calibration was. */
void drift_init(drift *d, double mean, double spread);
drift_change drift_add(drift *d, double confidence, bool sure);
/* Spreads above (or below: < 0) the calibration's mean. */
double drift_of(const drift *d);

#endif
