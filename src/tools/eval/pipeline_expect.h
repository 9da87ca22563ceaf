/* pipeline_expect.h: what a case of `shoal pipeline test` expects, and where an answer differs. Pure.
 *
 *     {"text": "Turning off *",
 *      "calls": [{"name": "light.turn_off", "arguments": {"target": "light.kitchen"}}],
 *      "intent": "iot_*", "has": ["kitchen"], "lacks": ["sorry"], "status": 200,
 *      "stages": {"intent": {"label": "iot_*", "score_min": 0.8}, "choice": {"ran": false}}}
 *
 * or with "kind" or "any" what shoal eval expects (eval_judge.h), beside "stages", "intent" and "status".
 * Texts are patterns, in which '*' stands for any run of bytes; a list of them is a choice. What is expected
 * of a stage are members of its entry in the trace; KEY_min and KEY_below bound its numbers.
 * docs/pipelines.md. */
#ifndef EVAL_PIPELINE_EXPECT_H
#define EVAL_PIPELINE_EXPECT_H

#include "eval/eval_judge.h"

/* SHOAL_EINVALID with what is odd. */
int pipeline_expect_check(const json_t *expect, shoal_err *err);

/* Append to diffs, an array, {"what", "expected", "got"} for each difference; "what" is "text" or
 * "stages.choice.ran". Fails only with SHOAL_ENOMEM. */
int pipeline_expect_judge(const json_t *expect, const char *input, const eval_answer *a, json_t *diffs,
                          shoal_err *err);

#endif
