/* relay.h: the one port of a machine through which gateways reach its workers.
 *
 * Workers have a Unix socket and no network. A gateway connects here with TLS 1.3, shows a gateway's
 * certificate and names the worker it wants by SNI; the relay connects to that worker's socket and passes
 * bytes both ways, without looking at them. Who reads slowly slows down the other end: RELAY_BACKLOG bytes
 * wait in each direction, no more. Those who do not get through the handshake hold no more than
 * RELAY_UNAUTHENTICATED_MAX places of each address, and one certificate's name no more than a share of all,
 * so that no gateway can keep the others out.
 *
 *     relay_open(&r, loop, &(relay_options){.listen = ":7081", .tls = tls, .find = find, .user = me}, err);
 *     static const char *find(void *user, const tls_identity *who, const char *worker, const char **ret_why)
 *     { ... return "unix:/run/.../m.0.sock"; }
 *
 * Whom it lets in is the context's to say (tls_options.admit), and what each of them may name is `find`'s.
 * Those who show no gateway's certificate hold no more than RELAY_NODES_MAX places. Loop thread. */
#ifndef JOIN_RELAY_H
#define JOIN_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/err.h"
#include "time/env.h"
#include "wire/tls.h"

typedef struct relay relay;

enum {
    RELAY_BACKLOG = 256 << 10,
    RELAY_CONNECTIONS_MAX = 1024,
    RELAY_SHARE_MAX = RELAY_CONNECTIONS_MAX / 4, /* of one gateway */
    RELAY_NODES_MAX = 32,                        /* of those, with another certificate than a gateway's */
    RELAY_UNAUTHENTICATED_MAX = 64,              /* of one address, that have not shown a certificate yet */
    RELAY_HANDSHAKE_MS = 10000,                  /* to be through the handshake and at the worker */
    /* For a peer to acknowledge what was sent: one that lost its power never does. */
    RELAY_SILENCE_MS = 10000,
};

typedef struct relay_options {
    const char *listen; /* HOST:PORT */
    tls_context *tls;   /* a server's; referenced */
    /* The address of the worker that goes by this name ("unix:/path"), NULL: none does, or not for this peer;
     * then *ret_why may say why (a literal). Copied at once. */
    const char *(*find)(void *user, const tls_identity *who, const char *worker, const char **ret_why);
    /* May a peer that was let in to this worker stay there? Asked by relay_recheck; NULL: yes. */
    bool (*stays)(void *user, const tls_identity *who, const char *worker);
    void *user;
    size_t share_max; /* connections of one gateway; 0: RELAY_SHARE_MAX */
    const env *time;  /* NULL: the loop's (wire/env_uv.h). Must outlive the relay */
} relay_options;

int relay_open(relay **ret, uv_loop_t *loop, const relay_options *o, shoal_err *err);
int relay_port(const relay *r);
/* Cut those whose peers are not admitted any more, or not to the worker that they are at. */
void relay_recheck(relay *r);
size_t relay_count(const relay *r); /* connections that are open, or on the way to it */
/* Cuts what runs; `closed` (may be NULL) when the memory is gone. r may be NULL: closed is called at once. */
void relay_close(relay *r, void (*closed)(void *user), void *user);

#endif
