/* drift.c: a running mean against a known one; see drift.h. */
#include "ensemble/drift.h"

#include <math.h>

void drift_init(drift *d, double mean, double spread)
{
    *d = (drift){.mean = mean, .spread = spread > DRIFT_SPREAD_MIN ? spread : DRIFT_SPREAD_MIN, .now = mean};
}

double drift_of(const drift *d)
{
    return (d->now - d->mean) / d->spread;
}

drift_change drift_add(drift *d, double confidence, bool sure)
{
    d->now += DRIFT_WEIGHT * ((sure ? confidence : 0) - d->now);
    double away = fabs(drift_of(d));
    bool was_off = d->is_off;
    if (away >= DRIFT_BEGINS) d->is_off = true;
    if (away <= DRIFT_ENDS) d->is_off = false;
    if (d->is_off == was_off) return DRIFT_SAME;
    return d->is_off ? DRIFT_BEGAN : DRIFT_ENDED;
}
