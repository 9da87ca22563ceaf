/* own_socket.h: where a server listens for commands of its own user on this machine.
 *
 *     BASE/shoal.UID/NAME.sock      BASE: $XDG_RUNTIME_DIR, $RUNTIME_DIRECTORY (of systemd), /run for root, else /tmp
 *
 * The folder is this user's, with mode 0700: nobody else but root reaches the socket, or puts another in its place. NAME
 * is the server's TCP port, or of a server on a Unix socket made from that socket's path, so that whoever knows its
 * address finds it. */
#ifndef OS_OWN_SOCKET_H
#define OS_OWN_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define OWN_SOCKET_PATH_BYTES 108 /* of sockaddr_un */
#define OWN_SOCKET_NAME_BYTES 17

/* By the port; port 0: by the path of a Unix socket that is there, whatever links lead to it. False: there is none. */
bool own_socket_name(char ret[OWN_SOCKET_NAME_BYTES], int port, const char *path);

/* For the server: makes the folder, and removes from it what killed servers have left. SHOAL_EAUTH: something else has its name. */
int own_socket_make(char ret[OWN_SOCKET_PATH_BYTES], const char *name, shoal_err *err);
/* And removes it, once the last socket in it is gone. */
void own_socket_unmake(const char *path);
/* For a command: the socket of the server of that name on this machine; false: there is none that can be trusted. Root
 * finds that of the service, too (/run/shoal). */
bool own_socket_find(char ret[OWN_SOCKET_PATH_BYTES], const char *name);

#endif
