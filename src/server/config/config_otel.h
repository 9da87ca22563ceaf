/* config_otel.h: where traces, metrics and logs are exported, and which of them.
 *
 *     otel:
 *       endpoint: http://collector.lan:4318
 *       sample: 0.1
 *       slow_ms: 2000
 *
 * What is absent here the environment says (OTEL_...; telemetry/otel_settings.h), so absent is not the default. */
#ifndef CONFIG_CONFIG_OTEL_H
#define CONFIG_CONFIG_OTEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hosts/host_rule.h"

typedef enum config_otel_switch { OTEL_SWITCH_AUTO, OTEL_SWITCH_ON, OTEL_SWITCH_OFF } config_otel_switch;
typedef enum config_otel_protocol {
    OTEL_PROTOCOL_AUTO,
    OTEL_PROTOCOL_PROTOBUF,
    OTEL_PROTOCOL_JSON
} config_otel_protocol;
typedef enum config_otel_compression {
    OTEL_COMPRESSION_AUTO,
    OTEL_COMPRESSION_NONE,
    OTEL_COMPRESSION_GZIP
} config_otel_compression;

/* X(enum, name in YAML): versions of the semantic conventions (opentelemetry.io/docs/specs/semconv), the first is the
 * default. */
#define OTEL_SEMCONV_TABLE(X)      \
    X(OTEL_SEMCONV_1_37, "1.37.0") \
    X(OTEL_SEMCONV_1_28, "1.28.0")
typedef enum config_otel_semconv {
#define OTEL_SEMCONV_ENUM(e, name) e,
    OTEL_SEMCONV_TABLE(OTEL_SEMCONV_ENUM)
#undef OTEL_SEMCONV_ENUM
} config_otel_semconv;

typedef struct config_otel_pair {
    const char *key, *value;
} config_otel_pair;

typedef struct config_otel { /* 0, NULL and auto: not said */
    const char *endpoint;    /* what /v1/traces and the like follow */
    config_otel_protocol protocol;
    host_header *headers;
    size_t n_headers;
    const char *ca;
    config_otel_compression compression;
    const char *service_name;
    config_otel_pair *resource; /* attributes */
    size_t n_resource;
    double *sample; /* share of the traces that begin here */
    bool keep_failed;
    uint64_t slow_ms; /* 0: no trace is kept for being slow */
    config_otel_semconv semconv;
    config_otel_switch traces, metrics, logs;
    uint64_t batch, interval_ms, metrics_interval_ms, timeout_ms, queue_bytes;
} config_otel;

struct gateway_config;
int config_check_otel(const struct gateway_config *c, shoal_err *err);

#endif
