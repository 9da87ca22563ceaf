/* door_http.h: the door of HTTP/1.1 and HTTP/2. */
#ifndef INGRESS_DOOR_HTTP_H
#define INGRESS_DOOR_HTTP_H

#include "base/err.h"
#include "config/config.h"
#include "request/door.h"

struct gateway;

/* How long a body or a message may be, by any door, where no sound and no document is taken. */
size_t door_http_body_bytes(const struct gateway *g);

/* g->server, which listens nowhere yet. */
enum { DOOR_STRANGER_MS = 5000 }; /* the time to show a key, where keys are needed */
/* Those of the configuration, and what strangers may take. */
http_limits door_http_limits(const gateway_config *c);
int door_http_open(struct gateway *g, shoal_err *err);
/* The request that wants to speak another protocol at an endpoint that does: it is the caller's, and the door
 * is gone. NULL: d is none of those. */
http_request *door_http_take(door *d);

#endif
