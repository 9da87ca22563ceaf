/* check.h: calls that a model made, held against what the request was grounded in.
 *
 * A call passes when it is one of the options that ground() gave: target, service and values all follow from
 * the words of the request then. What differs is replaced by the only option there is, or refused; a proposal
 * becomes a question. The text always comes from the option too, so that it says what is done. */
#ifndef NLU_CHECK_H
#define NLU_CHECK_H

#include "nlu/ground.h"

/* X(enum, name in conditions and traces, what it is) */
#define CHECK_VERDICTS(X)                                                   \
    X(CHECK_PASSED, "passed", "the calls are what was asked")               \
    X(CHECK_REPAIRED, "repaired", "they were not, and one option was left") \
    X(CHECK_ASKED, "asked", "they may be: text asks")                       \
    X(CHECK_REFUSED, "refused", "nothing may be done: text says why")
typedef enum check_verdict {
#define CHECK_ENUM(e, n, about) e,
    CHECK_VERDICTS(CHECK_ENUM)
#undef CHECK_ENUM
} check_verdict;
const char *check_verdict_name(check_verdict v);

typedef struct checked {
    check_verdict verdict;
    const char *text; /* never empty */
    size_t n_calls;
    const device_call *calls; /* of the grounding */
} checked;

/* `made` is what the model called, arguments as JSON text. SHOAL_ENOMEM, or 0. */
int check_calls(checked *ret, const grounding *g, const lexicon *lex, const device_call *made, size_t n_made,
                arena *a, shoal_err *err);

#endif
