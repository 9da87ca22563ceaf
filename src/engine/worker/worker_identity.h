/* worker_identity.h: what decides the bits of this worker's answers (base/bit_identity.h), and what it can do.
 *
 * Beside the file: keys and values that are kept otherwise than the file's types suggest, rows that lose bits
 * between stages (then also where the network is cut), sounds that are heard whole by default. Threads,
 * instruction sets, batches, guessed tokens, context and cache sizes change no bit. Sampling defaults are not
 * in it: the gateway writes them into each request. */
#ifndef WORKER_WORKER_IDENTITY_H
#define WORKER_WORKER_IDENTITY_H

#include "base/bit_identity.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/service.h"

/* Of a worker whose model is loaded, w->digest said. */
void worker_identity(char ret[BIT_IDENTITY_BYTES], const worker *w, const worker_options *o);
/* May a reply begun by another worker of this identity go on here? Not where several stages lose bits between
 * them: the identity does not say where all of them are cut. */
bool worker_resumes_exactly(const worker_options *o);
Shoal__V1__Capabilities worker_capabilities(const worker *w);

#endif
