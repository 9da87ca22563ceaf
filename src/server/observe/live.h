/* live.h: GET /v1/events, the cluster as it changes, for as long as the client stays.
 *
 * Every LIVE_BEAT_MS the gateway, its machines and its replicas are described as in GET /v1/status, and each
 * description is compared with the one before. Who listens gets what has changed since its last event, all of
 * it in the first one:
 *
 *     event: status
 *     data: {"at": 1732281600.25, "gateway": {...}, "nodes": [...], "replicas": [...],
 *            "gone": ["replica home-slots/0"]}
 *
 * One description serves all listeners, and while nobody listens nothing is done. A listener that does not
 * read misses beats, not changes. Loop thread. */
#ifndef OBSERVE_LIVE_H
#define OBSERVE_LIVE_H

#include "request/request.h"

enum {
    LIVE_BEAT_MS = 250,
    LIVE_MACHINE_MS = 2000,
    LIVE_QUIET_MS = 10000,
    LIVE_LISTENERS_MAX = 64,
    LIVE_LISTENERS_OF_ONE = 32
};

void live_handle(gateway_request *rq);

int live_open(struct gateway *g, shoal_err *err);
/* The gateway takes no more requests: all streams end. */
void live_drain(struct gateway *g);
void live_close(struct gateway *g); /* also one that was never open; nobody listens any more */

#endif
