/* caches.h: what people do with the cache of answers: look at it, purge it; and what a new version purges.
 *
 *     GET /v1/cache                                  its size, its terms, and how often it answered for whom
 *     DELETE /v1/cache?model=home-chat-s&version=1.0 what all of the conditions hold for: model, version (or
 *                                                    digest), route, pipeline, ensemble, tag; none:
 *                                                    everything
 *
 * A model whose replicas all serve another file now takes with it what the old one answered. Loop thread. */
#ifndef ANSWERS_CACHES_H
#define ANSWERS_CACHES_H

#include "request/request.h"

void caches_show(gateway_request *rq);
void caches_purge(gateway_request *rq);
/* The object of GET /v1/cache. */
void caches_put(buf *out, const struct gateway *g);

/* Watches the registry for new files, from now on. SHOAL_ENOMEM. */
int caches_open(struct gateway *g, shoal_err *err);
void caches_close(struct gateway *g); /* accepts one that was not opened */

#endif
