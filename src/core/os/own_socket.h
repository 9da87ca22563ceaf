/* own_socket.h: where a server listens for commands of its own user on this machine.
 *
 *     BASE/shoal.UID/PORT.sock      BASE: $XDG_RUNTIME_DIR, $RUNTIME_DIRECTORY (of systemd), /run for root, else /tmp
 *
 * The folder is this user's, with mode 0700: nobody else but root reaches the socket, or puts another in its place. PORT
 * is the server's TCP port, so that whoever knows its address finds it. */
#ifndef OS_OWN_SOCKET_H
#define OS_OWN_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define OWN_SOCKET_PATH_BYTES 108 /* of sockaddr_un */

/* For the server: makes the folder, and removes from it what killed servers have left. SHOAL_EAUTH: something else has its name. */
int own_socket_make(char ret[OWN_SOCKET_PATH_BYTES], int port, shoal_err *err);
/* And removes it, once the last socket in it is gone. */
void own_socket_unmake(const char *path);
/* For a command: the socket of the server at that port of this machine; false: there is none that can be trusted. Root
 * finds that of the service, too (/run/shoal). */
bool own_socket_find(char ret[OWN_SOCKET_PATH_BYTES], int port);

#endif
