/* loop.h: opening an event loop that does not end the process when memory is short.
 *
 * libuv calls abort() when its table of descriptors cannot grow. So the table gets its whole size at the
 * start, where a refusal is a sentence and an exit, and never grows while requests are served. */
#ifndef WIRE_LOOP_H
#define WIRE_LOOP_H

#include <uv.h>

#include "base/err.h"

/* For descriptors up to n_fds, or what the process may open (the hard limit of ulimit -n; the soft one is
 * raised) where that is less. On failure nothing is to be closed. Where libuv would abort, the process says
 * "out of memory" and exits with 1. */
int loop_open(uv_loop_t *loop, unsigned n_fds, shoal_err *err);

/* How many of n connections of clients the process may hold open, so that workers can be started, files
 * opened and another connection accepted when all of them are there: what ulimit -n leaves beside
 * LOOP_OTHER_FDS, and at least a third of it. */
enum { LOOP_OTHER_FDS = 512 }; /* workers, listeners, files, connections that are being closed */
size_t loop_connections(size_t n);

#endif
