/* semconv.h: the names that OpenTelemetry's semantic conventions (opentelemetry.io/docs/specs/semconv) give to what spans and
 * metrics say, by version.
 *
 *     semconv_name(OTEL_SEMCONV_1_28, SEM_PROVIDER)     "gen_ai.system"
 *     semconv_name(OTEL_SEMCONV_1_37, SEM_PROVIDER)     "gen_ai.provider.name"
 *
 * docs/observability.md has the same table; telemetry_test_semconv compares them. Pure. */
#ifndef TELEMETRY_SEMCONV_H
#define TELEMETRY_SEMCONV_H

#include "config/config_otel.h"
#include "logging/span.h"
#include "otlp/otlp.h"

/* X(enum, name in 1.37.0, name in 1.28.0, kind of value, spans (of SPAN_KIND_TABLE), meaning) */
#define SEMCONV_TABLE(X)                                                                                     \
    X(SEM_METHOD, "http.request.method", "http.request.method", OTLP_TEXT, "request",                        \
      "the request's method")                                                                                \
    X(SEM_ROUTE, "http.route", "http.route", OTLP_TEXT, "request", "its endpoint, with `*` for what varies") \
    X(SEM_PATH, "url.path", "url.path", OTLP_TEXT, "request", "its path")                                    \
    X(SEM_SCHEME, "url.scheme", "url.scheme", OTLP_TEXT, "request", "`http` or `https`")                     \
    X(SEM_STATUS, "http.response.status_code", "http.response.status_code", OTLP_INT, "request",             \
      "its status; 499: the client left")                                                                    \
    X(SEM_ADDRESS, "server.address", "server.address", OTLP_TEXT, "request",                                 \
      "the host that the client named")                                                                      \
    X(SEM_PORT, "server.port", "server.port", OTLP_INT, "request", "and the port")                           \
    X(SEM_ERROR, "error.type", "error.type", OTLP_TEXT, "all", "why it failed: an error code")               \
    X(SEM_OPERATION, "gen_ai.operation.name", "gen_ai.operation.name", OTLP_TEXT, "request, call",           \
      "`chat`, `text_completion`, `generate_content`, `embeddings`, or the task's name")                     \
    X(SEM_PROVIDER, "gen_ai.provider.name", "gen_ai.system", OTLP_TEXT, "request, call", "`shoal`")          \
    X(SEM_REQUEST_MODEL, "gen_ai.request.model", "gen_ai.request.model", OTLP_TEXT,                          \
      "request, call, stage, route", "the model that was asked")                                             \
    X(SEM_RESPONSE_MODEL, "gen_ai.response.model", "gen_ai.response.model", OTLP_TEXT,                       \
      "request, call, ensemble", "the model that answered")                                                  \
    X(SEM_INPUT, "gen_ai.usage.input_tokens", "gen_ai.usage.input_tokens", OTLP_INT, "request, call",        \
      "tokens of the prompt")                                                                                \
    X(SEM_OUTPUT, "gen_ai.usage.output_tokens", "gen_ai.usage.output_tokens", OTLP_INT, "request, call",     \
      "tokens of the answer")                                                                                \
    X(SEM_FINISH, "gen_ai.response.finish_reasons", "gen_ai.response.finish_reasons", OTLP_LIST, "call",     \
      "why the answer ended: `stop`, `length`, `tool_calls`")                                                \
    X(SEM_REQUEST_ID, "shoal.request.id", "shoal.request.id", OTLP_TEXT, "request", "`x-request-id`")        \
    X(SEM_PIPELINE, "shoal.pipeline", "shoal.pipeline", OTLP_TEXT, "request, stage", "the pipeline")         \
    X(SEM_STAGE_KIND, "shoal.stage.kind", "shoal.stage.kind", OTLP_TEXT, "stage", "the kind of the stage")   \
    X(SEM_ENSEMBLE, "shoal.ensemble.kind", "shoal.ensemble.kind", OTLP_TEXT, "ensemble",                     \
      "`cascade`, `vote`, ...")                                                                              \
    X(SEM_REASON, "shoal.route.reason", "shoal.route.reason", OTLP_TEXT, "route",                            \
      "why this model: `rule`, `fallback`, ...")                                                             \
    X(SEM_DECISION_MS, "shoal.route.decision_ms", "shoal.route.decision_ms", OTLP_DOUBLE, "route",           \
      "what the decision took")                                                                              \
    X(SEM_REPLICA, "shoal.replica", "shoal.replica", OTLP_TEXT, "call, request",                             \
      "the replica that worked on it")                                                                       \
    X(SEM_FAULT, "shoal.fault", "shoal.fault", OTLP_TEXT, "call",                                            \
      "whose fault its end was: `lost`, `full`, ...")                                                        \
    X(SEM_CPU_MS, "shoal.cpu_ms", "shoal.cpu_ms", OTLP_DOUBLE, "call", "milliseconds of the worker's cores") \
    X(SEM_CANCELLED, "shoal.cancelled", "shoal.cancelled", OTLP_BOOL, "call, stage, ensemble",               \
      "nobody waited for its end")                                                                           \
    X(SEM_CACHE, "shoal.cache", "shoal.cache", OTLP_TEXT, "request",                                         \
      "`hit`, `miss`, `shared`, `stale`, `near ...`")                                                        \
    X(SEM_STREAMED, "shoal.streamed", "shoal.streamed", OTLP_BOOL, "request", "the answer was a stream")     \
    X(SEM_MOVES, "shoal.moves", "shoal.moves", OTLP_INT, "request",                                          \
      "how often its call went on at another replica")                                                       \
    X(SEM_DEGRADED, "shoal.degraded", "shoal.degraded", OTLP_TEXT, "request",                                \
      "the model in whose place another one answered")                                                       \
    X(SEM_LOST, "shoal.spans_lost", "shoal.spans_lost", OTLP_INT, "request",                                 \
      "spans below it that there was no room for")

typedef enum sem {
#define SEMCONV_ENUM(e, now, before, kind, spans, meaning) e,
    SEMCONV_TABLE(SEMCONV_ENUM)
#undef SEMCONV_ENUM
        SEM_COUNT
} sem;

const char *semconv_name(config_otel_semconv v, sem s);
const char *semconv_schema_url(config_otel_semconv v);

/* Attributes of one span, in their order; over OTLP_ATTRIBUTES_MAX they are left out. Texts are borrowed. */
typedef struct sem_list {
    config_otel_semconv version;
    otlp_attribute items[OTLP_ATTRIBUTES_MAX];
    size_t n;
} sem_list;
void sem_begin(sem_list *l, config_otel_semconv version); /* zeroed it is an empty one, too */
void sem_text(sem_list *l, sem s, const char *value);     /* nothing for NULL and "" */
void sem_int(sem_list *l, sem s, int64_t value);
void sem_bool(sem_list *l, sem s, bool value); /* nothing for false */
/* A recorded span's attribute of this key (logging/span.h): what the conventions call it, as the value's kind; nothing where
 * they have no name for it: what may hold parts of requests stays here. */
void sem_recorded(sem_list *l, span_kind k, const char *key, const char *value);

#endif
