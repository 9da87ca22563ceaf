/* admission.h: whether a request's key may do what the request asks, and whether it may now.
 *
 * Every transport's requests pass here (ingress_request.c), so a key is worth the same by each of them:
 *
 *     admission_check     whose key it is (401), and whether it may ask there (403); sets rq->key
 *     admission_begin     its rates (429); from here on the request counts
 *     admission_may_use   whether it may name this model (403); handlers ask, who know what is named
 *     ADMISSION_SINK      what it took, at its end
 *
 * A request that asks another one in another form (ingress_request.of) shows its key and its endpoint where it came in;
 * what takes an admin takes one in every form. It counts once: as the one that is admitted. Background requests
 * (answers/revalidate.h) are nobody's and count nowhere. What a route, an ensemble or a pipeline asks of its models is its own
 * affair: a key is held against names in requests alone. */
#ifndef REQUEST_ADMISSION_H
#define REQUEST_ADMISSION_H

#include "access/auth.h"
#include "request/endpoint.h"
#include "request/sink.h"

/* The key's text that headers show: "authorization: Bearer KEY", as OpenAI's clients send it, or "x-api-key"
 * (Anthropic's, and those that were made for llama-server) or "api-key" (OpenAI's for Azure). NULL: none. */
typedef const char *(*admission_header)(const void *of, const char *lower_name);
const char *admission_shown(admission_header header, const void *of);
const char *admission_shown_over_http(const http_request *http);
const char *admission_credential(const gateway_request *rq);

/* What the configuration's keys may ask must be there: SHOAL_EINVALID "api_keys[0].endpoints[1]: ...". */
int admission_check_config(const gateway_config *c, const endpoint_table *t, shoal_err *err);

/* Before there is a request: is this a key that counts, or is none needed? */
bool admission_knows(const struct gateway *g, const char *shown);

int admission_check(gateway_request *rq, api_error *e);
/* For what is read for long: would rq be let in if it came now, by the configuration of now? Generating goes
 * on with what it came with. */
int admission_check_again(const gateway_request *rq, api_error *e);
int admission_begin(gateway_request *rq, api_error *e);
/* name: a model, MODEL:ADAPTER, a route, an ensemble or a pipeline; NULL: none is named. */
int admission_may_use(const gateway_request *rq, const char *name, api_error *e);
/* The same for lists. */
bool admission_shows(const gateway_request *rq, const char *name);
/* For what is read for long, by the configuration of now. */
bool admission_shows_now(const gateway_request *rq, const char *name);
extern const request_sink ADMISSION_SINK; /* what it took is taken off the key's rates */

/* What is left of the key's rates, as OpenAI's headers say it: up to six, names static, values in `text`. */
#define ADMISSION_NAMES                                                                        \
    "x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, " \
    "x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens"
enum { ADMISSION_HEADERS = 6 };
typedef struct admission_rates {
    http_header at[ADMISSION_HEADERS];
    size_t n;
    char text[ADMISSION_HEADERS][24];
} admission_rates;
void admission_put_rates(admission_rates *ret, const gateway_request *rq);

#endif
