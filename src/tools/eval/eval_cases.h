/* eval_cases.h: a file of cases, one JSON object a line:
 *
 *     {"id":"a-1","home":"flat","input":"hall light off","expect":{...},"tags":["plain"]}
 *
 * "home" names a file DIR/flat.json whose content is sent as the request's "context"; a case may instead
 * carry its own "context", or neither. A shorter form asks a model: "text" with the label that is expected,
 * or "prompt" or "messages" with the reply or the call:
 *
 *     {"text":"wake me at six","expected":"alarm_set"}
 *     {"prompt":"Is the lamp on?","expected":["Yes, Lamp is on.","Yes."]}
 *
 * docs/evaluation.md describes "expect". */
#ifndef EVAL_EVAL_CASES_H
#define EVAL_EVAL_CASES_H

#include "json/json.h"

typedef struct eval_case {
    const char *id, *input;      /* borrowed from root */
    const json_t *expect, *tags; /* tags: an array of strings, or NULL */
    const json_t *context;       /* NULL: none is sent */
    const json_t *messages;      /* of a chat; NULL: input is all */
    const char *pipeline;        /* NULL: the command's */
} eval_case;

typedef struct eval_cases {
    eval_case *v;
    size_t n;
    json_t *root;                                       /* owns what the cases borrow */
    int (*check)(const json_t *expect, shoal_err *err); /* of "expect"; NULL: eval_expect_check */
} eval_cases;

/* Append the cases of one file to *cases (zeroed at first). homes_dir NULL: "homes" beside the file. Each
 * case is checked; an error names the file and the line, and leaves *cases to eval_cases_done. */
int eval_cases_read(eval_cases *cases, const char *path, const char *homes_dir, shoal_err *err);
void eval_cases_done(eval_cases *cases);

/* The body of the case's request: {"pipeline","input","context"}. pipeline may be NULL. */
int eval_case_put_request(const eval_case *c, const char *pipeline, buf *out);

#endif
