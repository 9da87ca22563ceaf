/* env_uv.h: the env of a process: the monotonic clock, the loop's timers, the kernel's randomness.
 *
 * A running timer keeps the loop alive. A freed one takes a turn of the loop to go: run it once more at the
 * end. */
#ifndef WIRE_ENV_UV_H
#define WIRE_ENV_UV_H

#include <uv.h>

#include "time/env.h"

env env_uv(uv_loop_t *loop); /* borrows the loop; loop thread only */

#endif
