/* request_sinks.h: the sinks (sink.h) that count ended requests and write their log lines. */
#ifndef OBSERVE_REQUEST_SINKS_H
#define OBSERVE_REQUEST_SINKS_H

#include "request/sink.h"

extern const request_sink METRICS_SINK; /* request_metrics.c */
extern const request_sink LOG_SINK;     /* request_log.c: one line per request */

#endif
