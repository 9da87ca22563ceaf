/* http_own.h: a listener for processes of the server's own user, and of root, on this machine.
 *
 * It is a Unix socket in a folder that others cannot enter (os/own_socket.h), and the kernel says of each connection
 * whose process made it (SO_PEERCRED). A configured Unix socket is none: a proxy may listen in front of it. */
#ifndef HTTP_HTTP_OWN_H
#define HTTP_HTTP_OWN_H

#include "http/http.h"

int http_server_listen_own(http_server *s, const char *path, shoal_err *err);
/* Did the request come there, from such a process? */
bool http_is_own(const http_request *r);

#endif
