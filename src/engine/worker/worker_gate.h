/* worker_gate.h: the listener of a worker that gateways of other machines reach: mutual TLS, whose files may be renewed
 * while it serves. Loop thread. */
#ifndef WORKER_WORKER_GATE_H
#define WORKER_WORKER_GATE_H

#include <uv.h>

#include "grpc/grpc.h"
#include "worker/worker.h"

typedef struct worker_gate worker_gate;

/* Listen at `address`, in clear text (*ret NULL) where tls->cert is NULL: at a Unix socket or this machine's own
 * addresses. SHOAL_EINVALID: another address without TLS, or a file that cannot be used, by its name. */
int worker_gate_listen(worker_gate **ret, grpc_server *s, uv_loop_t *loop, const char *address,
                       const worker_tls *tls, shoal_err *err);
void worker_gate_close(worker_gate *g); /* accepts NULL; what is connected stays */

#endif
