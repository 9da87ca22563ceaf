/* exchange.h: one HTTP request and its answer, as endpoint handlers see them.
 *
 * The gateway names the request, checks key, deadline and admission, and gives the handler an
 * exchange. The handler answers exactly once: exchange_json, exchange_error, or
 * exchange_stream_begin + write* + end. That call counts and logs the request and frees the exchange.
 * If the client leaves first, on_gone(work) runs once instead and the exchange is dead afterwards:
 * cancel the backend calls there.
 *
 *     static void handle(exchange *x) {
 *         struct job *j = ...;
 *         exchange_watch(x, on_gone, j);
 *         j->call = backend_classify(x->backend, model, &req, &ctx, done, j);   // done: exchange_json
 *     }
 *
 * Loop thread only. */
#ifndef GATEWAY_EXCHANGE_H
#define GATEWAY_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "gateway/backend.h"
#include "gateway/config.h"
#include "gateway/error.h"
#include "gateway/metrics.h"
#include "wire/http.h"

struct gateway;
struct cache;
struct endpoint;

typedef struct exchange {
    struct gateway *gateway;
    backend *backend;
    struct cache *cache;             /* NULL: no cache configured */
    metrics *metrics;
    const gateway_config *config;
    const struct endpoint *endpoint;
    http_request *http;
    char id[129];                    /* x-request-id */
    uint64_t start_ns, deadline_ns;  /* deadline 0: none */
    /* What the handler learns on the way, for headers, log line and metrics. */
    char model[96], version[48], quantisation[24];
    uint64_t n_prompt_tokens, n_generated_tokens;
    const char *cache_state;         /* "hit", "miss", "shared"; NULL: not cacheable */
    const char *error_code;          /* of a failure inside a stream that had begun */
    bool streaming;
    void (*on_gone)(void *work);
    void *work;
    struct exchange *next, *prev;    /* the gateway's list */
} exchange;

/* For backend calls made on behalf of x; strings are borrowed from x. */
backend_context exchange_context(const exchange *x, const char *why);
void exchange_watch(exchange *x, void (*on_gone)(void *work), void *work);
/* Remember which model answers (for headers, log, metrics). */
void exchange_note_model(exchange *x, const char *model, const char *version, const char *quantisation);
void exchange_note_result(exchange *x, const backend_result *r);

/* Each of these ends the exchange. */
void exchange_json(exchange *x, int status, const buf *body); /* a failed buf becomes a 500 */
void exchange_text(exchange *x, int status, const char *content_type, const buf *body);
void exchange_error(exchange *x, const api_error *e);

/* text/event-stream; the caller writes whole "data: ...\n\n" events. */
void exchange_stream_begin(exchange *x);
void exchange_stream_write(exchange *x, const buf *events);
void exchange_stream_end(exchange *x); /* ends the exchange */

#endif
