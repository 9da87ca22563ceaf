/* kserve_about.h: what Triton's clients ask about a model and the server beside inference: the model's configuration,
 * statistics, and settings of trace, logging and shared memory, none of which can be changed here. */
#ifndef COMPAT_KSERVE_ABOUT_H
#define COMPAT_KSERVE_ABOUT_H

#include "request/request.h"

void kserve_config(gateway_request *rq);
void kserve_stats(gateway_request *rq);     /* of one model */
void kserve_stats_all(gateway_request *rq); /* of those that the key may use */
void kserve_trace(gateway_request *rq);     /* of the server, or of a model */
void kserve_logging(gateway_request *rq);
void kserve_memory_status(gateway_request *rq);
void kserve_memory_register(gateway_request *rq);
void kserve_memory_unregister(gateway_request *rq);

#endif
