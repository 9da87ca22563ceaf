/* measure_idle.h: this machine's speeds, measured again when it is at rest.
 *
 * Where the start could not measure, it is tried again a minute later, and then each minute, as soon as the
 * load is low; where it could, once an hour. The measurement runs on the pool. `found` gets speeds that
 * count, and is not called for others.
 *
 *     measure_idle_open(&m, loop, &(measure_idle_options){.chosen = isa, .found = tell, .user = me}, err);
 *     measure_idle_close(m);
 *
 * Loop thread. */
#ifndef SERVE_MEASURE_IDLE_H
#define SERVE_MEASURE_IDLE_H

#include <uv.h>

#include "serve/measure_here.h"

typedef struct measure_idle measure_idle;

typedef struct measure_idle_options {
    isa chosen;
    bool measured; /* the start did */
    void (*found)(void *user, double bytes_per_s, double multiplies_per_s);
    void *user;
} measure_idle_options;

/* Is this machine so little loaded that measuring it takes nothing from others? Pure. */
bool measure_idle_may(double load_1m, unsigned n_cores);
int measure_idle_open(measure_idle **ret, uv_loop_t *loop, const measure_idle_options *o, shoal_err *err);
/* A measurement that runs is forgotten when it ends. NULL is fine; run the loop afterwards. */
void measure_idle_close(measure_idle *m);

#endif
