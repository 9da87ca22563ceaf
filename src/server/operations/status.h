/* status.h: what the cluster is and how it is: /v1/models, /healthz, /readyz, /metrics. */
#ifndef OPERATIONS_STATUS_H
#define OPERATIONS_STATUS_H

#include "request/request.h"

/* Each answers rq, now or later. Loop thread. */
void status_models(gateway_request *rq);
/* One model, asked of its worker over gRPC now: an answer means that it is there and listening. It does
 * no inference, so its time is the gateway's own overhead. */
void status_model(gateway_request *rq);
void status_health(gateway_request *rq); /* 200 while the process answers */
void status_ready(gateway_request *rq);  /* 200 when every replica is ready, else 503; lists them */
void status_metrics(gateway_request *rq);
/* Append a model that is served as GET /v1/models lists it; {} where none is. */
void status_put_model(buf *out, const gateway_request *rq, const char *name);
/* Append "sources":[...]: where members come from; one that hears nothing goes on with what it knows, and
 * says why. */
void status_put_sources(buf *out, const registry *g);

#endif
