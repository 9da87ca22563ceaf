/* eval_ask.h: put a case's question to a running server, and judge what comes back.
 *
 * A pipeline is asked by POST /v1/process. A route (a model or an ensemble) is asked for a label by
 * /v1/classify, and for everything else by /v1/chat/completions at temperature 0, with the devices of the
 * case's context in the system message:
 *
 *     eval_asker a = {.http = &client, .route = "home-cascade"};
 *     eval_ask(&a, &cases.v[0], &result, err);        // result.verdict, result.ms, result.escalated
 *
 * One thread a client. */
#ifndef EVAL_EVAL_ASK_H
#define EVAL_EVAL_ASK_H

#include "client/http_client.h"
#include "command/cli.h"
#include "eval/eval_cases.h"
#include "eval/eval_report.h"

/* Of cases with devices, unless the asker has another: as the bundled chat models learnt it. */
#define EVAL_SYSTEM "You are Shoal, a helper that runs this home. Devices:\n{devices}"

typedef struct eval_asker {
    http_client *http;
    const char *headers;  /* "x-a: b\r\n" or NULL */
    const char *route;    /* NULL: a pipeline */
    const char *pipeline; /* of cases that name none; may be NULL */
    const char *system;   /* NULL: EVAL_SYSTEM */
    bool wants_confidence;
} eval_asker;

/* A route's request for the case, and its path: static. */
const char *eval_route_request(const eval_asker *a, const eval_case *c, buf *out);
/* What a route answered, as a pipeline would have: {"text", "tool_calls"}. The confidence is the mean
 * probability of the tokens, or that of the label; < 0 when the answer does not tell. NULL: no memory. */
json_t *eval_route_answer(const json_t *body, double *ret_said, size_t *ret_n_tokens);
/* Does "x-shoal-ensemble: small 0.382 < 0.600, large" say that somebody was not sure? */
bool eval_is_escalated(const char *trace);

/* "NAME: VALUE" of --header as lines, and one that has every answer computed: times of cached ones would say
 * nothing. */
int eval_put_headers(const cli_list *list, buf *out, shoal_err *err);

/* Any answer of the server is a result; errors are those of the connection, and of memory. *ret is owned by
 * whoever calls eval_results_done. */
int eval_ask(const eval_asker *a, const eval_case *c, eval_result *ret, shoal_err *err);

#endif
