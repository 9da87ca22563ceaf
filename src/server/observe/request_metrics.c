/* request_metrics.c: requests by endpoint, model and status, for GET /metrics. */
#include <string.h>

#include "base/number.h"
#include "observe/request_sinks.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"

/* "near 0.971" is counted as "near". */
static void count_cache(const gateway_request *rq)
{
    char result[24];
    buf_copy_str(result, sizeof result, rq->cache_state);
    result[strcspn(result, " ")] = '\0';
    metrics_add(rq->metrics, METRIC_CACHE, 1, rq->cache_of, rq->cache_name, result);
}

/* Background requests cost something (accounting.c), and nobody sent them. */
static void count_request(gateway_request *rq, int status, const char *error_code)
{
    char code[NUMBER_SIZE];
    number_write_i64(code, status);
    const char *name = rq->endpoint ? rq->endpoint->name : "none";
    metrics *m = rq->metrics;
    if (rq->background) return;
    metrics_add(m, METRIC_REQUESTS, 1, name, rq->model, code);
    metrics_observe_traced_s(m, METRIC_REQUEST_S, request_ms(rq) / 1000, name, NULL, rq->trace,
                             (uint64_t)env_wall_ns(&rq->gateway->time));
    if (error_code) metrics_add(m, METRIC_ERRORS, 1, name, error_code, NULL);
    if (status == 499) metrics_add(m, METRIC_GONE, 1, name, NULL, NULL);
    if (rq->cache_state) count_cache(rq);
}

const request_sink METRICS_SINK = {.name = "metrics", .finish = count_request};
