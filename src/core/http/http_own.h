/* http_own.h: listeners that know the user of each connection: the kernel says whose process made it (SO_PEERCRED).
 *
 * One is for processes of the server's own user, and of root: a Unix socket in a folder that others cannot enter
 * (os/own_socket.h). Another is for any user, where an operator has opened one. A Unix socket that is configured without that
 * is neither: a proxy may listen in front of it, and the kernel would name the proxy's user for everybody behind it. */
#ifndef HTTP_HTTP_OWN_H
#define HTTP_HTTP_OWN_H

#include "base/file_user.h"
#include "http/http.h"

int http_server_listen_own(http_server *s, const char *path, shoal_err *err);
/* address: "unix:PATH". Who may connect is up to the socket's mode and its folders. */
int http_server_listen_users(http_server *s, const char *address, shoal_err *err);
/* Did the request come to one of these, from a process of the server's user, or of root? */
bool http_is_own(const http_request *r);
/* The user of a process whose request came to the second; NULL: it came elsewhere, http_is_own, or the kernel does not say
 * enough (transport_peer_file_user). Lives as long as the request. */
const file_user *http_user(const http_request *r);

#endif
