/* fallback_calls.h: a smaller model answers while none of the wanted one's replicas lives.
 *
 * A call of a model that has stand-ins waits for a replica as others do, but not for so long, and then is
 * made of the first stand-in that somebody serves. Its result and its place say so (`wanted`, `why`), so that
 * an endpoint can mark the answer; an answer is never another model's in silence. Once a model was found
 * away, further calls of it do not wait, as long as it stays away and for FALLBACK_KNOWN_MS at most.
 *
 * Nothing falls back that has begun to answer, that names an adapter (no stand-in has it), that asks for one
 * model file (terms), or that makes workers die. Full queues are no reason either: others would do the work
 * of the many with the model of the few. Stand-ins of stand-ins are not asked.
 *
 * A call may bring stand-ins of its own (call_context.stand_ins), which a route's chain is; they are asked
 * instead of the rule's.
 *
 *     fallback_rule rules[] = {{"chat-large", (const char *[]){"chat-small"}, 1}};
 *     fallback_calls_new(&c, env, inner, &(fallback_options){.rules = rules, .n_rules = 1}, err); */
#ifndef CALLS_FALLBACK_CALLS_H
#define CALLS_FALLBACK_CALLS_H

#include "time/env.h"
#include "calls/calls.h"
#include "calls/observer.h"

#define FALLBACK_PATIENCE_MS 2000 /* or half of the time to the deadline, if that is less */
#define FALLBACK_KNOWN_MS    10000

typedef struct fallback_rule {
    const char *model;
    const char *const *to; /* whom to ask instead, in order */
    size_t n_to;
} fallback_rule;

typedef struct fallback_options {
    const fallback_rule *rules; /* borrowed; one a model */
    size_t n_rules;
    const call_observer *observer; /* told of calls of stand-ins; outlives the calls; NULL: nobody */
} fallback_options;

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int fallback_calls_new(calls **ret, const env *env_, calls *inner, const fallback_options *opts,
                       shoal_err *err);

#endif
