/* control_fetch.c: Fetch, of members. */
#include "control/control_impl.h"

static bool control_fetch_find(const void *user, const char *digest, char ret_path[MODEL_SEND_PATH])
{
    return placer_file(user, digest, ret_path);
}

void control_on_fetch(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    control *g = user;
    const tls_identity *peer = grpc_call_peer(c);
    if (peer)
        model_send(&g->sends, c, msg, n, peer->common_name, control_fetch_find, g);
    else
        grpc_call_end(c, GRPC_UNAUTHENTICATED, "only members fetch models");
}
