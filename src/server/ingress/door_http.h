/* door_http.h: the door of HTTP/1.1 and HTTP/2. */
#ifndef INGRESS_DOOR_HTTP_H
#define INGRESS_DOOR_HTTP_H

#include "base/err.h"
#include "config/config.h"
#include "request/door.h"

struct gateway;

/* Another protocol on HTTP's connections (gRPC): requests that it wants are its handler's from their head on. */
typedef struct http_guest {
    bool (*wants)(const http_request *http);
    http_handler handler;
    size_t (*body_limit)(const struct gateway *g, const http_request *http);
} http_guest;

/* What the bytes of a tunnel (WebSocket) go to, once door_http_take has taken its request. */
typedef struct http_tunnel {
    void (*receive)(http_request *http, const uint8_t *bytes, size_t n);
    void (*shut)(http_request *http);  /* the client sends no more, or is gone */
    void (*evict)(http_request *http); /* its place is wanted: tell it so */
} http_tunnel;

enum { DOOR_STRANGER_MS = 5000 }; /* the time to show a key, where keys are needed */
/* Those of the configuration, and what strangers may take. */
http_limits door_http_limits(const gateway_config *c);
/* The request that wants to speak another protocol at an endpoint that does: it is the caller's, and the door
 * is gone. NULL: d is none of those. */
http_request *door_http_take(door *d);

#endif
