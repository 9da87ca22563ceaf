/* telemetry_impl.h: what the files of telemetry/ share. */
#ifndef TELEMETRY_TELEMETRY_IMPL_H
#define TELEMETRY_TELEMETRY_IMPL_H

#include "otlp/otlp_exporter.h"
#include "otlp/otlp_http.h"
#include "request/gateway_state.h"
#include "telemetry/otel_settings.h"
#include "telemetry/semconv.h"

struct telemetry {
    gateway *g;
    otel_settings s;
    otlp_common common;
    otlp_http *http;
    otlp_exporter *x;
    env_timer *metrics_tick, *log_tick;
    uint64_t start_ns; /* since 1970: when counting began */
    uint64_t log_at;   /* number of the last line that was read */
    buf line;
};

/* The spans of a request that has ended, its own last. */
void telemetry_put_spans(struct telemetry *t, gateway_request *rq, int status, const char *error_code);
/* All metrics, in place of those that still wait. */
void telemetry_put_metrics(struct telemetry *t);
/* Log lines that came since the last time. */
void telemetry_put_logs(struct telemetry *t);

#endif
