/* Any bytes from a client that has shaken hands, in pieces of any size: every message the owner gets is
 * within its bound, nothing comes after the end, and the end comes once. The first byte chooses the size of
 * the pieces. */
#include "wire_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char ask[] =
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    if (size < 1) return 0;
    memory_server m;
    if (!memory_server_open(&m)) return 0;
    memory_server_feed(&m, (const uint8_t *)ask, sizeof ask - 1, 0);
    memory_server_feed(&m, data + 1, size - 1, data[0]);
    memory_server_close(&m);
    return 0;
}
