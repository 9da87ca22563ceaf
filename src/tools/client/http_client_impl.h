/* http_client_impl.h: the connection of an http_client, for its own files. */
#ifndef CLIENT_HTTP_CLIENT_IMPL_H
#define CLIENT_HTTP_CLIENT_IMPL_H

#include "client/http_client.h"

/* On the socket, within the client's limits. SHOAL_EIO, SHOAL_EDEADLINE, SHOAL_ECANCELLED: as http_client_exchange says.
 * receive: up to cap bytes, at least one; the end of the stream is SHOAL_EIO. */
int http_client_send_raw(http_client *c, const char *bytes, size_t n, shoal_err *err);
int http_client_receive_raw(http_client *c, void *bytes, size_t cap, size_t *ret_n, shoal_err *err);

/* http_client_tls.c: TLS on the socket of a client that has just been connected. SHOAL_EPROTOCOL: the handshake failed,
 * and why; SHOAL_EINVALID: the CA file cannot be used. */
int http_client_tls_begin(http_client *c, shoal_err *err);
int http_client_tls_send(http_client *c, const char *bytes, size_t n, shoal_err *err);
int http_client_tls_receive(http_client *c, void *bytes, size_t cap, size_t *ret_n, shoal_err *err);
void http_client_tls_end(http_client *c);  /* of this connection */
void http_client_tls_done(http_client *c); /* and of all */

#endif
