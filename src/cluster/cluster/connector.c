/* connector.c: the real one. */
#include "cluster/connector.h"

#include <string.h>

#include "trust/identity.h"
#include "wire/address.h"

#define RELAY "relay:"

/* A machine that lost its power closes nothing. Its replicas get no new calls after half a second, and calls
 * move to others after a second (health_poller.c); what could go nowhere else ends with the link. */
enum {
    FAR_CONNECT_MS = 3000, /* else a machine that returns is found late */
    FAR_SILENCE_MS = 1000,
    FAR_ANSWER_MS = 2000,
};

static int open_here(uv_loop_t *loop, grpc_channel **ret, const char *where, transport_scratch *scratch,
                     const grpc_channel_events *ev, shoal_err *err)
{
    const grpc_channel_options o = {.scratch = scratch};
    address a;
    int rc = address_parse(&a, where, err);
    if (rc != 0) return rc;
    if (!address_is_here(&a))
        return err_set(err, SHOAL_EINVALID,
                       "%.200s is on another machine, and nothing is sent there in clear text", where);
    return grpc_channel_open(ret, loop, where, &o, ev, err);
}

static int open_channel(void *user, grpc_channel **ret, const char *where, const grpc_channel_events *ev,
                        shoal_err *err)
{
    return open_here(user, ret, where, NULL, ev, err);
}

connector connector_grpc(uv_loop_t *loop)
{
    return (connector){.open = open_channel,
                       .connect = grpc_channel_connect,
                       .is_connected = grpc_channel_is_connected,
                       .close = grpc_channel_close,
                       .start = grpc_call_start,
                       .stream = grpc_call_open,
                       .send = grpc_client_send,
                       .unsent = grpc_client_unsent,
                       .half_close = grpc_client_half_close,
                       .pause = grpc_client_pause,
                       .cancel = grpc_client_cancel,
                       .user = loop};
}

/* ---- on other machines --------------------------------------------------------------------------- */

static bool copy_part(char *to, size_t size, const char *from, const char *end)
{
    size_t n = end ? (size_t)(end - from) : 0;
    if (n == 0 || n >= size) return false;
    memcpy(to, from, n);
    to[n] = '\0';
    return true;
}

bool connector_parse(const char *text, char ret_address[CONNECTOR_ADDRESS_SIZE],
                     char ret_node[CONNECTOR_NODE_SIZE], const char **ret_worker)
{
    if (strncmp(text, RELAY, strlen(RELAY)) != 0) return false;
    const char *address = text + strlen(RELAY), *node = strchr(address, '/');
    const char *worker = node ? strchr(node + 1, '/') : NULL;
    if (!worker || !copy_part(ret_address, CONNECTOR_ADDRESS_SIZE, address, node)) return false;
    if (!copy_part(ret_node, CONNECTOR_NODE_SIZE, node + 1, worker)) return false;
    size_t n = strlen(worker + 1);
    if (n == 0 || n > CONNECTOR_WORKER_MAX || !identity_name_ok(ret_node, strlen(ret_node))) return false;
    *ret_worker = worker + 1;
    return true;
}

static grpc_channel_options far_options(connector_remote *far)
{
    return (grpc_channel_options){.scratch = &far->scratch,
                                  .connect_timeout_ms = FAR_CONNECT_MS,
                                  .keepalive_ms = FAR_SILENCE_MS,
                                  .keepalive_timeout_ms = FAR_ANSWER_MS};
}

/* A worker that listens by itself. */
static int open_alone(connector_remote *far, grpc_channel **ret, const char *where,
                      const grpc_channel_events *ev, shoal_err *err)
{
    address a;
    int rc = address_parse(&a, where, err);
    if (rc != 0) return rc;
    if (!far->workers_tls || a.is_unix) return open_here(far->loop, ret, where, &far->scratch, ev, err);
    grpc_channel_options o = far_options(far);
    o.tls = far->workers_tls;
    o.server_name = far->workers_name;
    return grpc_channel_open(ret, far->loop, where, &o, ev, err);
}

static int open_far(void *user, grpc_channel **ret, const char *where, const grpc_channel_events *ev,
                    shoal_err *err)
{
    connector_remote *far = user;
    char at[CONNECTOR_ADDRESS_SIZE], node[CONNECTOR_NODE_SIZE];
    const char *worker;
    if (strncmp(where, RELAY, strlen(RELAY)) != 0) return open_alone(far, ret, where, ev, err);
    if (!connector_parse(where, at, node, &worker))
        return err_set(err, SHOAL_EINVALID, "\"%s\" is no address of a worker behind a relay", where);
    if (!far->tls) return err_set(err, SHOAL_EUNAVAILABLE, "%s: this gateway has no certificate", where);
    grpc_channel_options o = far_options(far);
    o.tls = far->tls;
    o.server_name = node;
    o.sni = worker;
    return grpc_channel_open(ret, far->loop, at, &o, ev, err);
}

connector connector_relays(connector_remote *far)
{
    connector r = connector_grpc(far->loop);
    r.open = open_far;
    r.user = far;
    return r;
}
