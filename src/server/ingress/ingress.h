/* ingress.h: every way by which requests come in is one row of one list, and one file.
 *
 *     HTTP_INGRESS        http_ingress.c   HTTP/1.1 and HTTP/2; the page and /docs are endpoints of it
 *     GRPC_INGRESS        grpc_ingress.c   gRPC, on HTTP's connections
 *     WEBSOCKET_INGRESS   ws_ingress.c     WebSockets, on HTTP's connections
 *     LISTEN_INGRESS      listen.c      the addresses: TCP, TLS and Unix sockets
 *
 * The gateway opens, reloads, drains and closes the list and knows none of them by name. A new one (MQTT) adds
 * a file and a row. A member that is NULL has nothing to do. Loop thread. */
#ifndef INGRESS_INGRESS_H
#define INGRESS_INGRESS_H

#include "base/err.h"
#include "request/gateway_state.h"

typedef struct ingress {
    const char *name;
    int (*open)(gateway *g, shoal_err *err);
    /* g->config is still the old one. On failure nothing has changed. */
    int (*reload)(gateway *g, const gateway_config *next, shoal_err *err);
    void (*withdraw)(gateway *g); /* tell balancers that the gateway is not ready (g->withdrawn) */
    void (*drain)(gateway *g);    /* no new work: end what would go on for ever */
    /* All requests have ended; what else the gateway is made of goes next. Also of one that did not open. */
    void (*close)(gateway *g);
    /* Free what the loop still knows, once all else is gone; done(g) comes at the end, maybe inside the call. */
    void (*release)(gateway *g, void (*done)(void *g));
} ingress;

extern const ingress HTTP_INGRESS, GRPC_INGRESS, WEBSOCKET_INGRESS, LISTEN_INGRESS;

/* In the list's order, up to the first that fails. */
int ingress_open(gateway *g, shoal_err *err);
/* In reverse order: only the last one (certificates) can fail, so a failure changes nothing. */
int ingress_reload(gateway *g, const gateway_config *next, shoal_err *err);
void ingress_withdraw(gateway *g);
/* g->drained(g->drained_user) follows when nothing is left. */
void ingress_drain(gateway *g);
void ingress_close(gateway *g);
void ingress_release(gateway *g, void (*done)(gateway *g));

#endif
