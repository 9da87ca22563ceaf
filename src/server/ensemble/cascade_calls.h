/* cascade_calls.h: small models first, larger ones when they are not sure.
 *
 * A call of a cascade's name is made of its first member. What it says is kept (response_buffer.h), and goes out when
 * its confidence reaches the member's threshold; else the next member is asked, and of the last one
 * everything goes out as it comes. A generation whose confidence will hardly reach the threshold any more is
 * cut short.
 *
 * The deadline holds: a member that is not expected to answer within it is not asked, and when it nears
 * before the last one has spoken, the surest answer so far goes out. So it does when all further members
 * fail. Such an answer says that it is another's (`wanted`, `why`). Confidences are the same on every
 * machine, so the same request takes the same way wherever nothing fails.
 *
 *     cascade_member m[] = {{"home-chat-s", 0.8, &map}, {"home-chat-m"}};
 *     cascade_rule rules[] = {{"home-cascade", m, 2}};
 *     cascade_calls_new(&c, env, inner, &(cascade_options){.rules = rules, .n_rules = 1}, err);
 *
 * After: L. Chen, M. Zaharia, J. Zou, "FrugalGPT", 2023. */
#ifndef ENSEMBLE_CASCADE_CALLS_H
#define ENSEMBLE_CASCADE_CALLS_H

#include "time/env.h"
#include "calls/calls.h"
#include "ensemble/confidence.h"

#define CASCADE_MEMBERS_MAX 8

typedef struct cascade_member {
    const char *model;
    double min_confidence;     /* of the last member: not looked at */
    const confidence_map *map; /* NULL: the confidence as the model says it */
    const char *digest;        /* of the file that map and threshold are of; NULL, "": not said */
} cascade_member;

typedef struct cascade_rule {
    const char *name; /* what requests call it; no model's name */
    const cascade_member *members;
    size_t n_members; /* 2 to CASCADE_MEMBERS_MAX */
} cascade_rule;

typedef struct cascade_options {
    const cascade_rule *rules; /* borrowed */
    size_t n_rules;
    void *user;
    /* A member's answer was judged: confidence after its map. May be NULL. */
    void (*judged)(void *user, const char *name, const char *model, double confidence, bool sure);
    /* It answered with another file than it was calibrated with, so that it was not asked how sure it is: the
     * next member was. May be NULL. */
    void (*strange)(void *user, const char *name, const char *model, const char *digest);
} cascade_options;

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int cascade_calls_new(calls **ret, const env *env_, calls *inner, const cascade_options *opts,
                      shoal_err *err);

#endif
