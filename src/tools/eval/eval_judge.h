/* eval_judge.h: was an answer what a case expects? Pure: JSON in, a verdict out; docs/evaluation.md has the
 * rules for people.
 *
 *     expect  {"kind":"calls","calls":[{"name":"light.turn_off","arguments":{"target":"light.hall"}}]}
 *     answer  {"text":"Turning off Hall Light.","tool_call":{"name":...,"arguments":...}}
 *     why     ""            and EVAL_RIGHT
 *
 * A call that was not asked for is harmful whatever else is right; no text and no call is silent; the rest
 * that misses the expectation is wrong. */
#ifndef EVAL_EVAL_JUDGE_H
#define EVAL_EVAL_JUDGE_H

#include "base/buf.h"
#include "json/json.h"

/* X(name, word): from best to worst */
#define EVAL_VERDICTS(X) \
    X(RIGHT, "right")    \
    X(WRONG, "wrong")    \
    X(SILENT, "silent")  \
    X(HARMFUL, "harmful")

typedef enum eval_verdict {
#define EVAL_ENUM(name, word) EVAL_##name,
    EVAL_VERDICTS(EVAL_ENUM)
#undef EVAL_ENUM
        EVAL_N_VERDICTS
} eval_verdict;

/* As reports spell it; static. */
const char *eval_verdict_word(eval_verdict v);

typedef struct eval_answer {
    int status;         /* of HTTP */
    const json_t *body; /* borrowed; NULL when it was no JSON */
} eval_answer;

/* Is a label expected, and nothing else? */
bool eval_expect_is_label(const json_t *expect);

/* Is this an expectation that eval_judge understands? Else SHOAL_EINVALID with what is odd. */
int eval_expect_check(const json_t *expect, shoal_err *err);

/* `expect` has passed eval_expect_check. Appends to `why` a phrase for people unless all is right. */
eval_verdict eval_judge(const json_t *expect, const char *input, const eval_answer *answer, buf *why);

/* The answer's calls as a new array of {"name","arguments"}, its text, or its error's message; "" if none. */
json_t *eval_answer_calls(const eval_answer *a);
const char *eval_answer_text(const eval_answer *a);

#endif
