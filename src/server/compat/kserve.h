/* kserve.h: the Open Inference Protocol, version 2, over HTTP (under /v2), for clients of KServe and Triton.
 *
 * An inference becomes a request of ours at the endpoint of the model's task (redispatch.h), so keys, limits,
 * routes, caches and ensembles are those of every request; dialects/kserve.h has the tensors. */
#ifndef COMPAT_KSERVE_H
#define COMPAT_KSERVE_H

#include "request/request.h"

void kserve_server(gateway_request *rq);
void kserve_live(gateway_request *rq);
void kserve_ready(gateway_request *rq);
void kserve_model(gateway_request *rq);
void kserve_model_ready(gateway_request *rq);
void kserve_infer(gateway_request *rq);
void kserve_index(gateway_request *rq);
void kserve_load(gateway_request *rq); /* and the next: as POST /v1/models/load and unload have it */
void kserve_unload(gateway_request *rq);

/* Of ".../models/NAME" or ".../models/NAME/versions/VERSION/..."; version "": none. 0 or the status of *e. */
int kserve_read_name(const gateway_request *rq, char *ret_model, size_t model_size, char *ret_version,
                     size_t version_size, api_error *e);
/* What is served by that name and may be used by rq's key. *ret_served: what it is called here, where the
 * name is an alias. *ret NULL: a route or ensemble, or not up yet. 0 or the status of *e. */
int kserve_find_model(gateway_request *rq, const char *model, const char *version, const char **ret_served,
                      const Shoal__V1__ModelInfo **ret, api_error *e);

#endif
