/* telemetry.h: the gateway's traces, metrics and log lines, exported to an OpenTelemetry collector.
 *
 *     telemetry_open(g, &err);           // nothing where shoal.yaml and the environment name no collector
 *     ... TELEMETRY_SINK among the gateway's sinks
 *     telemetry_flush(g, 2000, done, user);
 *     telemetry_close(g);
 *
 * A request's spans are gathered while it runs (request.h) and written when it has ended, by its last sink. Metrics are read
 * every metrics_interval_ms, log lines once a second. Nothing here delays an answer; what finds no room is dropped and counted
 * (shoal_otel_dropped_total). Loop thread. */
#ifndef TELEMETRY_TELEMETRY_H
#define TELEMETRY_TELEMETRY_H

#include "request/gateway_state.h"
#include "request/sink.h"

extern const request_sink TELEMETRY_SINK;

/* SHOAL_ENOMEM, or SHOAL_EINVALID about a file that the configuration names. */
int telemetry_open(gateway *g, shoal_err *err);
void telemetry_close(gateway *g);
/* Deliver what waits, the last metrics and log lines included. done(user) comes once, later or inside this call, at the
 * latest after limit_ms. */
void telemetry_flush(gateway *g, uint64_t limit_ms, void (*done)(void *user), void *user);

#endif
