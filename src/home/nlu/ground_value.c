/* ground_value.c: numbers in the unit and the bounds of a device. "70 F" for a thermostat of degrees Celsius is
 * 21.1; one whose state is "68 °F" is told 70. */
#include "nlu/grounder.h"

#include <math.h>
#include <string.h>

static const value_unit *unit_of(const value_def *def, const char *measure)
{
    for (size_t i = 0; i < def->n_units; i++)
        if (word_list_has(&def->units[i].measures, measure, strlen(measure))) return &def->units[i];
    return NULL;
}

/* Behind a number, or from the beginning on; NULL: none. */
static const value_unit *unit_in(grounder *g, const value_def *def, const char *text, bool number)
{
    words w = {0};
    if (text && words_split(&w, g->a, text, strlen(text))) g->nomem = true; /* and nothing counts */
    for (size_t i = 0; i < w.n; i++) {
        const value_unit *u = number ? unit_of(def, w.at[i].s) : NULL;
        if (u) return u;
        number = w.at[i].number || (number && w.at[i].sign); /* "68 °F" */
    }
    return NULL;
}

/* The one that it is said to have, else that stands behind a number in its state. */
const value_unit *value_unit_told(grounder *g, const value_def *def, size_t device)
{
    if (!def->n_units) return NULL;
    const value_unit *u = unit_in(g, def, g->d.at[device].unit, true);
    return u ? u : unit_in(g, def, g->d.at[device].state, false);
}

/* Else the value's own; NULL: the value has none. */
static const value_unit *unit_of_device(grounder *g, const value_def *def, size_t device)
{
    const value_unit *u = value_unit_told(g, def, device);
    return u || !def->n_units ? u : &def->units[0];
}

static double to_own(const value_unit *u, double x)
{
    return u ? (x - u->offset) / u->scale : x;
}

static double from_own(const value_unit *u, double x)
{
    return u ? x * u->scale + u->offset : x;
}

static const value_unit *unit_said(grounder *g, const value_def *def, const unit *x, size_t device)
{
    const value_unit *u = x->measure ? unit_of(def, x->measure) : NULL;
    return u ? u : unit_of_device(g, def, device);
}

static void bounds_of(const grounder *g, const value_def *def, size_t device, double *ret_min,
                      double *ret_max)
{
    *ret_min = def->min;
    *ret_max = def->max;
    for (size_t i = 0; i < def->n_ranges; i++) {
        if (!devices_name_has(&g->d, device, &def->ranges[i].names)) continue;
        *ret_min = def->ranges[i].min;
        *ret_max = def->ranges[i].max;
        return;
    }
}

bool value_in_range(grounder *g, const value_def *def, const unit *x, size_t device)
{
    double min, max, v = to_own(unit_said(g, def, x, device), x->value), slack = 1e-9;
    bounds_of(g, def, device, &min, &max);
    return v >= min - slack && v <= max + slack;
}

const value_unit *value_other_unit(grounder *g, const value_def *def, const unit *x, size_t device)
{
    double min, max;
    if (!g->d.at[device].unit_open || (x->measure && unit_of(def, x->measure)) ||
        value_unit_told(g, def, device))
        return NULL;
    bounds_of(g, def, device, &min, &max);
    for (size_t i = 1; i < def->n_units; i++) {
        const value_unit *u = &def->units[i];
        double v = to_own(u, x->value);
        if (u->asks_above > 0 && x->value > u->asks_above && v >= min && v <= max) return u;
    }
    return NULL;
}

/* In the device's unit; to a tenth when it had to be converted. */
double value_for(grounder *g, const value_def *def, const unit *x, size_t device)
{
    const value_unit *said = unit_said(g, def, x, device), *own = unit_of_device(g, def, device);
    return said == own ? x->value : round(10 * from_own(own, to_own(said, x->value))) / 10;
}

const char *value_bound_said(grounder *g, const value_def *def, size_t device, bool max)
{
    double bounds[2];
    const value_unit *u = unit_of_device(g, def, device);
    bounds_of(g, def, device, &bounds[0], &bounds[1]);
    double v = round(10 * from_own(u, bounds[max])) / 10;
    const char *s = max && u ? arena_printf(g->a, "%g %s", v, u->sign) : arena_printf(g->a, "%g", v);
    if (!s) g->nomem = true;
    return s ? s : "";
}
