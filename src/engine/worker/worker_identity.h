/* worker_identity.h: what decides the bits of this worker's answers (base/bit_identity.h), and what it can do.
 *
 * Beside the file and what its backend says (backend_about.precision): sounds that are heard whole by default.
 * Threads, instruction sets, batches, guessed tokens, context and cache sizes change no bit. Sampling defaults
 * are not in it: the gateway writes them into each request. */
#ifndef WORKER_WORKER_IDENTITY_H
#define WORKER_WORKER_IDENTITY_H

#include "base/bit_identity.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/service.h"

/* Of a worker whose backend is ready, w->digest said. */
void worker_identity(char ret[BIT_IDENTITY_BYTES], const worker *w);
Shoal__V1__Capabilities worker_capabilities(const worker *w);

#endif
