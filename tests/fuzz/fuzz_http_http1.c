/* Any bytes from a client, in pieces of any size, through a real server in memory: no request the
 * handler sees may break what http.h promises. The first byte chooses the size of the pieces. */
#include "wire_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    memory_server m;
    if (!memory_server_open(&m)) return 0;
    memory_server_feed(&m, data + 1, size - 1, data[0]);
    memory_server_close(&m);
    return 0;
}
