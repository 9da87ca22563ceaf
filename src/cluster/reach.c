/* reach.c: the real one. */
#include "cluster/reach.h"

#include <string.h>

#include "wire/address.h"

static bool is_here(const address *a)
{
    return a->is_unix || strcmp(a->host, "localhost") == 0 || strcmp(a->host, "::1") == 0 ||
           strncmp(a->host, "127.", 4) == 0;
}

static int open_channel(void *user, grpc_channel **ret, const char *where, const grpc_channel_events *ev,
                        shoal_err *err)
{
    address a;
    int rc = address_parse(&a, where, err);
    if (rc != 0) return rc;
    if (!is_here(&a))
        return err_set(err, SHOAL_EINVALID,
                       "%.200s is on another machine, and nothing is sent there in clear text", where);
    return grpc_channel_new(ret, user, where, ev, err);
}

reach reach_grpc(uv_loop_t *loop)
{
    return (reach){.open = open_channel,
                   .connect = grpc_channel_connect,
                   .is_connected = grpc_channel_is_connected,
                   .close = grpc_channel_close,
                   .start = grpc_call_start,
                   .pause = grpc_client_pause,
                   .cancel = grpc_client_cancel,
                   .user = loop};
}
