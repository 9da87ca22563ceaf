/* stage_spec.h: the worker of some layers of a model, made of that of the whole one. */
#ifndef AGENT_STAGE_SPEC_H
#define AGENT_STAGE_SPEC_H

#include "agent/agent.h"

/* One replica of layers [first, end) of n_layer, with their part of the cache; borrows the strings of whole.
 * Where the other stages are is the caller's to fill in. */
worker_spec stage_spec(const worker_spec *whole, size_t n_layer, size_t first, size_t end);

#endif
