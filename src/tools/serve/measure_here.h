/* measure_here.h: what this machine reads and multiplies, as other machines are told.
 *
 * A measurement during which the machine did something else is none: the processor's time that it got says
 * so. Then nothing is known (0), which placement takes for so much a core, until measure_idle.h finds the
 * machine at rest. */
#ifndef SERVE_MEASURE_HERE_H
#define SERVE_MEASURE_HERE_H

#include <stdbool.h>

#include "compute/compute.h"

/* By all cores, in about a third of a second. Both 0 and false: it was starved. */
bool measure_here(isa chosen, double *ret_bytes_per_s, double *ret_multiplies_per_s);
/* Is a measurement to be believed in which the team got this share of its cores? Pure. */
bool measure_is_clean(double share);

#endif
