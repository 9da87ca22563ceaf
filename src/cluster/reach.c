/* reach.c: the real one. */
#include "cluster/reach.h"

static int open_channel(void *user, grpc_channel **ret, const char *address, const grpc_channel_events *ev,
                        shoal_err *err)
{
    return grpc_channel_new(ret, user, address, ev, err);
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
