/* span_calls.h: tells what the calls of ensembles took, and puts their members' calls below them.
 *
 *     static const char *const NAMES[] = {"home-cascade"};
 *     span_calls_new(&c, env, cascade, &(span_calls_options){.kind = "cascade", .names = NAMES, .n_names = 1}, err);
 *
 * A call of one of these names, for a request whose spans somebody is told of (call_spans), gets a span of its own, from
 * its start to its end or cancel. All others pass through and cost a comparison. */
#ifndef CALLS_SPAN_CALLS_H
#define CALLS_SPAN_CALLS_H

#include "calls/calls.h"
#include "time/env.h"

typedef struct span_calls_options { /* borrowed, with what it points to */
    const char *kind;
    const char *const *names;
    size_t n_names;
} span_calls_options;

/* Takes inner, and frees it with itself; on failure (SHOAL_ENOMEM) inner is the caller's still. */
int span_calls_new(calls **ret, const env *e, calls *inner, const span_calls_options *o, shoal_err *err);

#endif
