/* inherited_listener.h: listening sockets that outlive a crash of their process (os/handover.h), by the address
 * as it is written in the configuration: ":0" keeps the port that it was given. Nothing happens where nobody
 * supervises. */
#ifndef WIRE_INHERITED_LISTENER_H
#define WIRE_INHERITED_LISTENER_H

#include <uv.h>

/* The socket of an earlier life, with the connections that wait there; the caller's. -1: none. */
int inherited_listener_take(const char *address);
void inherited_listener_keep(const uv_handle_t *listener, const char *address); /* once it listens */
void inherited_listener_forget(const uv_handle_t *listener);                    /* before uv_close */
void inherited_listener_drop(int fd); /* of one that was taken in vain */

#endif
