/* verify_calls.h: an answer is checked before it leaves.
 *
 * A call of such a name is made of its first member. What it says is kept (response_buffer.h) and held against what the
 * request gives (verify.h). What passes goes out as it came, as chunks in a stream. What does not is, in the
 * order of `steps`,
 *
 *   repaired    where the rule knows the right answer, or the same member may choose it among options
 *   escalated   to the next member, whose answer is checked in turn
 *
 * and at the end answered with the safe text. What a rule mends is checked by all the others, too. So nothing
 * goes out unchecked but the safe text, which says nothing of the world. Where the application has called something
 * for the question, "I did nothing" would be wrong: then what the results say goes out, if the other checks pass it.
 *
 * The deadline holds: a member that is not expected to answer within it is not asked, and when it nears, what
 * a rule had mended goes out, or the safe text, and says so (`wanted`, `why`). A member that fails is taken
 * for one that says nothing. When none has answered, and no rule knows better, the failure is the answer. So
 * it is where a form was asked for (JSON, choices) in which a safe text cannot be said.
 *
 *     const char *const members[] = {"home-chat-s", "home-chat-m"};
 *     verify_check checks[] = {{.name = "devices", .kind = VERIFY_DEVICES, .devices = d, .lexicon = lex}};
 *     verify_rule rules[] = {
 *         {"home-verified", members, 2, checks, 1, {VERIFY_REPAIR, VERIFY_ESCALATE}, 2, "..."},
 *     };
 *     verify_calls_new(&c, env, inner, &(verify_options){.rules = rules, .n_rules = 1}, err); */
#ifndef ENSEMBLE_VERIFY_CALLS_H
#define ENSEMBLE_VERIFY_CALLS_H

#include "time/env.h"
#include "calls/calls.h"
#include "ensemble/verify.h"

#define VERIFY_STEPS_MAX 2

/* Says what the results of calls are, in sentences that are given. Of a module above. */
typedef struct verify_reporter {
    /* Sets report and failed of the case; texts live in the arena. SHOAL_ENOMEM, or 0. */
    int (*report)(const struct verify_reporter *self, verify_case *k, arena *a);
} verify_reporter;

typedef enum verify_step { VERIFY_REPAIR, VERIFY_ESCALATE } verify_step;

typedef struct verify_rule {
    const char *name;           /* what requests call it; no model's name */
    const char *const *members; /* models, or ensembles that `inner` knows */
    size_t n_members;           /* at least 1 */
    const verify_check *checks;
    size_t n_checks; /* at least 1 */
    verify_step steps[VERIFY_STEPS_MAX];
    size_t n_steps;
    const char *safe; /* not empty; in its place, where calls were made, what became of them */
    const struct verify_reporter *reporter; /* NULL: nothing is known of results */
} verify_rule;

/* X(enum, name): what became of a member's answer. */
#define VERIFY_ENDS(X)                                            \
    X(VERIFY_PASSED, "passed")                                    \
    X(VERIFY_REPAIRED, "repaired") /* a rule's answer went out */ \
    X(VERIFY_ASKED, "asked_again") /* to choose among options */  \
    X(VERIFY_ESCALATED, "escalated")                              \
    X(VERIFY_SAFE, "safe")                                        \
    X(VERIFY_REFUSED, "refused") /* no answer passed, or none came */
typedef enum verify_end {
#define VERIFY_END_ENUM(e, name) e,
    VERIFY_ENDS(VERIFY_END_ENUM)
#undef VERIFY_END_ENUM
} verify_end;
const char *verify_end_name(verify_end e);

typedef struct verify_options {
    const verify_rule *rules; /* borrowed */
    size_t n_rules;
    void *user;
    /* An answer of `model` was judged. May be NULL. */
    void (*judged)(void *user, const char *name, const char *model, verify_end end);
} verify_options;

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int verify_calls_new(calls **ret, const env *env_, calls *inner, const verify_options *opts, shoal_err *err);

#endif
