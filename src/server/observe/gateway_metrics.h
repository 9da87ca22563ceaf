/* gateway_metrics.h: the metrics that are read where they are, not counted where they happen: of replicas, of the process. */
#ifndef OBSERVE_GATEWAY_METRICS_H
#define OBSERVE_GATEWAY_METRICS_H

#include "request/gateway_state.h"

/* Bring g->metrics up to date, for whoever writes them. */
void gateway_metrics_collect(gateway *g);
/* The text of GET /metrics, made at most once a second; the gateway's. */
const buf *gateway_metrics_text(gateway *g, const gateway_config *c, metrics_form form);

#endif
