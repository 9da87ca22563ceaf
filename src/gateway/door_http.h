/* door_http.h: the door of HTTP/1.1 and HTTP/2. */
#ifndef GATEWAY_DOOR_HTTP_H
#define GATEWAY_DOOR_HTTP_H

#include "base/err.h"

struct gateway;

/* g->server, which listens nowhere yet. */
int door_http_open(struct gateway *g, shoal_err *err);

#endif
