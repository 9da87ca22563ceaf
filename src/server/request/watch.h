/* watch.h: what requests wait for besides model calls: their deadline, and a client that reads on.
 *
 * One timer, which runs only while some request waits; it calls the request's on_deadline or on_room, once
 * each. Knows requests and nothing that ends them. Loop thread only. */
#ifndef REQUEST_WATCH_H
#define REQUEST_WATCH_H

#include "base/err.h"

struct gateway;

int watch_open(struct gateway *g, shoal_err *err);
void watch_close(struct gateway *g); /* also one that was never open */
/* Some request of g waits from now on. */
void watch_requests(struct gateway *g);

#endif
