/* request_log.c: the log line of a request that has ended. */
#include "access/auth.h"
#include "logging/log.h"
#include "observe/request_sinks.h"
#include "request/endpoint.h"

/* Probes come every second or so; their lines would drown the rest. */
static log_level log_level_of(const gateway_request *rq, int status)
{
    if (status >= 500) return LOG_WARN;
    return rq->endpoint && !rq->endpoint->admitted ? LOG_DEBUG : LOG_INFO;
}

static const char *const BACKGROUND[] = {
    [BACKGROUND_NONE] = "", [BACKGROUND_REFRESH] = "refresh", [BACKGROUND_AUDIT] = "audit"};

static void log_request(gateway_request *rq, int status, const char *error_code)
{
    char key[AUTH_LABEL_BYTES], trace[TRACE_ID_SIZE];
    trace_id(trace, rq->trace);
    LOG(log_level_of(rq, status), "gateway", "request",
        LOG_S("endpoint", rq->endpoint ? rq->endpoint->name : "none"), LOG_I("status", status),
        LOG_S("code", error_code ? error_code : ""), LOG_S("model", rq->model),
        LOG_S("alias", rq->alias ? rq->alias : ""), LOG_S("version", rq->version),
        LOG_S("quantisation", rq->quantisation), LOG_F("ms", request_ms(rq)),
        LOG_I("prompt_tokens", rq->n_prompt_tokens), LOG_I("generated_tokens", rq->n_generated_tokens),
        LOG_S("key", rq->key ? auth_label(rq->key, key) : ""),
        LOG_S("cache", rq->cache_state ? rq->cache_state : ""),
        LOG_S("background", BACKGROUND[rq->background]), LOG_S("trace_id", trace),
        LOG_S("request_id", rq->id));
}

const request_sink LOG_SINK = {.name = "log", .finish = log_request};
