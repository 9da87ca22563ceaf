/* Any bytes as an offer of permessage-deflate and as a packed message: what comes out is within the bound,
 * and comes back from what it is packed into. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/websocket_deflate.h"

enum { MOST = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char offer[256], answer[WEBSOCKET_DEFLATE_ANSWER] = "";
    if (size < sizeof offer) {
        memcpy(offer, data, size);
        offer[size] = '\0';
        int bits = websocket_deflate_choose(offer, answer);
        if (bits && (bits < 9 || bits > 15 || websocket_deflate_choose(answer, answer) != bits)) abort();
    }
    buf plain = {0}, packed = {0}, again = {0};
    int rc = websocket_deflate_unpack(data, size, MOST, &plain);
    if (plain.len > MOST) abort();
    if (rc == 0 && plain.len && websocket_deflate_pack(plain.data, plain.len, 12, &packed) == 0) {
        rc = websocket_deflate_unpack(packed.data, packed.len, plain.len, &again);
        bool same = again.len == plain.len && memcmp(again.data, plain.data, plain.len) == 0;
        if (rc != SHOAL_ENOMEM && (rc != 0 || !same)) abort();
    }
    buf_done(&plain);
    buf_done(&packed);
    buf_done(&again);
    return 0;
}
