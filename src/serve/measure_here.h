/* measure_here.h: how fast this machine is, as node.h has it: a fifth of a second. */
#ifndef SERVE_MEASURE_HERE_H
#define SERVE_MEASURE_HERE_H

#include "compute/compute.h"

/* How fast weights are read that no cache holds, and how fast ones are used that one does, by all cores. What
 * could not be measured stays as it was. */
void measure_here(isa chosen, double *ret_bytes_per_s, double *ret_multiplies_per_s);

#endif
