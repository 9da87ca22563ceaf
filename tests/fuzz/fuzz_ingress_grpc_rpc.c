/* The first byte chooses a call, the others are its message: whatever is asked becomes a request or an error,
 * and where tensors go behind JSON, its length is within the body. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ingress/grpc_rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static proto_schema *s;
    const uint8_t *piece;
    size_t n;
    grpc_ask a;
    api_error e = {0};
    int made = s ? 0 : proto_schema_new(&s, PUBLIC_PROTOS, PUBLIC_PROTOS_BYTES, NULL);
    if (made != 0 && made != SHOAL_ENOMEM) abort();
    if (made != 0 || size == 0) return 0;
    const grpc_rpc *rpc = &GRPC_RPCS[data[0] % N_GRPC_RPCS];
    const proto_message *m = proto_schema_method(s, rpc->path)->input;
    int rc = grpc_rpc_ask(&a, rpc, m, data + 1, size - 1, &e);
    if (rc != 0 && (rc != e.status || !*e.message)) abort();
    if (rc == 0 && (!a.path.len || a.path.data[0] != '/' || strpbrk(a.path.data, " \r\n?#{}[]"))) abort();
    if (rc == 0 && *a.n_json && strtoull(a.n_json, NULL, 10) > a.body.len) abort();
    grpc_ask_done(&a);
    if (rpc->how & RPC_PIECES && grpc_rpc_piece(m, data + 1, size - 1, &piece, &n) && n > size) abort();
    return 0;
}
