/* listen.h: the addresses at which the gateway is reached: `listen`, and those of `also_listen`.
 *
 * All of them speak all that the server speaks. TLS is for addresses of networks; a Unix socket is in clear
 * text, open to its own user alone unless the configuration says more. */
#ifndef INGRESS_LISTEN_H
#define INGRESS_LISTEN_H

#include "base/err.h"
#include "config/config.h"
#include "http/http.h"

/* tls: for addresses of networks, NULL: clear text. *ret_port: that of `listen`, 0 of a Unix socket. What an
 * earlier process has left at a socket's path gives way; a socket that answers does not. */
int listen_as_configured(http_server *s, const gateway_config *c, tls_context *tls, int *ret_port,
                         shoal_err *err);

#endif
