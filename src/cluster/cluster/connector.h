/* connector.h: how workers are reached: gRPC over sockets in life, a story in a simulated cluster.
 *
 * The functions and their promises are those of grpc/grpc.h. A simulated worker gives its own structures
 * behind the two opaque pointers; nothing but these functions looks into them. */
#ifndef CLUSTER_CONNECTOR_H
#define CLUSTER_CONNECTOR_H

#include <uv.h>

#include "grpc/grpc.h"

enum { CONNECTOR_ADDRESS_SIZE = 300, CONNECTOR_NODE_SIZE = 64, CONNECTOR_WORKER_MAX = 255 };

typedef struct connector {
    int (*open)(void *user, grpc_channel **ret, const char *address, const grpc_channel_events *ev,
                shoal_err *err);
    int (*connect)(grpc_channel *ch);
    bool (*is_connected)(const grpc_channel *ch);
    void (*close)(grpc_channel *ch);
    grpc_client_call *(*start)(grpc_channel *ch, const char *path, const void *msg, size_t n,
                               const http_header *metadata, size_t n_metadata, uint64_t deadline_ns,
                               const grpc_client_events *ev);
    grpc_client_call *(*stream)(grpc_channel *ch, const char *path, const grpc_call_options *opt,
                                const grpc_client_events *ev); /* grpc_call_open */
    int (*send)(grpc_client_call *c, const void *msg, size_t n);
    size_t (*unsent)(const grpc_client_call *c);
    void (*half_close)(grpc_client_call *c);
    void (*pause)(grpc_client_call *c, bool paused);
    void (*cancel)(grpc_client_call *c);
    void *user; /* for open */
} connector;

/* In clear text, and therefore to this machine only: to another open says SHOAL_EINVALID. */
connector connector_grpc(uv_loop_t *loop);

/* The same, and workers of other machines: by TLS at their own addresses, or behind their relays (relay.h): "relay:HOST:PORT/NODE/WORKER", whose
 * relay must prove to be NODE. */
typedef struct connector_remote {
    uv_loop_t *loop;
    tls_context *tls; /* a gateway's, as client; NULL: other machines cannot be reached yet. Borrowed */
    /* Of workers with a TCP address of their own (discovery.tls): as client, and the name that their certificates
     * must have. NULL: those of this machine alone are reached, in clear text. Borrowed */
    tls_context *workers_tls;
    const char *workers_name;
    transport_scratch scratch; /* in which all channels read, a hundred of them or one */
} connector_remote;
connector connector_relays(connector_remote *far); /* far must outlive what uses it */
/* The parts of such an address; false: it is none. worker points into text. */
bool connector_parse(const char *text, char ret_address[CONNECTOR_ADDRESS_SIZE],
                     char ret_node[CONNECTOR_NODE_SIZE], const char **ret_worker);

#endif
