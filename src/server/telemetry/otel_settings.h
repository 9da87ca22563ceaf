/* otel_settings.h: what is exported, and where to: shoal.yaml's `otel`, and OpenTelemetry's environment variables where a
 * key is absent (opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables).
 *
 *     otel_settings_read(&s, &config->otel, otel_getenv, NULL, &err);
 *     if (otel_settings_is_on(&s)) ...
 *     otel_settings_done(&s);
 *
 * As the specification says, a variable that is malformed is warned of and left out. */
#ifndef TELEMETRY_OTEL_SETTINGS_H
#define TELEMETRY_OTEL_SETTINGS_H

#include "base/arena.h"
#include "config/config_otel.h"
#include "otlp/otlp.h"

enum { OTEL_RESOURCE_MAX = 48 };

typedef struct otel_settings {
    arena *mem;                       /* of what the others point to */
    const char *urls[OTLP_N_SIGNALS]; /* NULL: that signal is not exported */
    const char *headers;              /* "Name: value\r\n" each; "" */
    otlp_protocol protocol;
    bool gzip;
    const char *ca; /* NULL: the system's */
    otlp_attribute resource[OTEL_RESOURCE_MAX];
    size_t n_resource;
    double sample;
    bool keep_failed;
    uint64_t slow_ms;
    config_otel_semconv semconv;
    uint64_t batch, interval_ms, metrics_interval_ms, timeout_ms, queue_bytes;
} otel_settings;

typedef const char *(*otel_env)(void *user, const char *name); /* NULL: it is not set */
const char *otel_getenv(void *user, const char *name);         /* the process's */

/* c must outlive ret. SHOAL_ENOMEM; SHOAL_EINVALID: a header's file cannot be read, with "otel.headers[0].file: ...". */
int otel_settings_read(otel_settings *ret, const config_otel *c, otel_env env, void *user, shoal_err *err);
void otel_settings_done(otel_settings *s); /* accepts a zeroed one */
bool otel_settings_is_on(const otel_settings *s);

#endif
