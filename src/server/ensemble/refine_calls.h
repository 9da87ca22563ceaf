/* refine_calls.h: a fast answer at once, a better one when it is ready.
 *
 * A call of such a name is made of both its members. Whoever takes events that take something back (a
 * generation with `refines`, worker.proto) hears the fast one at once; when the better one has answered in
 * full, and otherwise, its text comes as one `refined` event that replaces all that was said. Whoever does
 * not hears one of the two, never both: the better one if it speaks within wait_ms, or before the fast one
 * has begun, else the fast one.
 *
 * If one of them fails before it has been heard, the other answers. When the deadline nears, or the better
 * one fails after the fast one was heard, what was said stays. An answer that is not the better one's for
 * such a reason says so (`wanted`, `why`); one that merely was quicker does not.
 *
 *     refine_rule rules[] = {{"home-refine", "home-chat-s", "home-chat-m", 300}};
 *     refine_calls_new(&c, env, inner, &(refine_options){.rules = rules, .n_rules = 1}, err); */
#ifndef ENSEMBLE_REFINE_CALLS_H
#define ENSEMBLE_REFINE_CALLS_H

#include "time/env.h"
#include "calls/calls.h"

typedef struct refine_rule {
    const char *name; /* what requests call it; no model's name */
    const char *fast, *better;
    uint64_t wait_ms;
} refine_rule;

typedef struct refine_options {
    const refine_rule *rules; /* borrowed */
    size_t n_rules;
    void *user;
    /* An answer is whole: who gave it, "fast", "better" or "refined". May be NULL. */
    void (*answered)(void *user, const char *name, const char *by);
} refine_options;

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int refine_calls_new(calls **ret, const env *env_, calls *inner, const refine_options *opts, shoal_err *err);

#endif
