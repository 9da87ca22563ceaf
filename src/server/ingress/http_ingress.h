/* http_ingress.h: requests and answers of HTTP/1.1 and HTTP/2. */
#ifndef INGRESS_HTTP_INGRESS_H
#define INGRESS_HTTP_INGRESS_H

#include "base/err.h"
#include "config/config.h"
#include "request/ingress_request.h"

struct gateway;

/* Another protocol on HTTP's connections (gRPC): requests that it wants are its handler's from their head on. */
typedef struct http_guest {
    bool (*wants)(const http_request *http);
    http_handler handler;
    size_t (*body_limit)(const struct gateway *g, const http_request *http);
} http_guest;

/* What the bytes of a tunnel (WebSocket) go to, once http_ingress_take has taken its request. */
typedef struct http_tunnel {
    void (*receive)(http_request *http, const uint8_t *bytes, size_t n);
    void (*shut)(http_request *http);  /* the client sends no more, or is gone */
    void (*evict)(http_request *http); /* its place is wanted: tell it so */
} http_tunnel;

enum { INGRESS_UNAUTHENTICATED_MS = 5000 }; /* the time to show a key, where keys are needed */
/* Those of the configuration, and what unauthenticated clients may use. */
http_limits http_ingress_limits(const gateway_config *c);
/* The request that wants to speak another protocol at an endpoint that does: it is the caller's, and the ingress
 * is gone. NULL: it is none of those. */
http_request *http_ingress_take(ingress_request *in);

#endif
