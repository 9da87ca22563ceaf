/* Any frames after the HTTP/2 preface, in pieces of any size, through a real server in memory. */
#include "wire_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    if (size < 1) return 0;
    memory_server m;
    if (!memory_server_open(&m)) return 0;
    memory_server_feed(&m, preface, sizeof preface - 1, 0);
    memory_server_feed(&m, data + 1, size - 1, data[0]);
    memory_server_close(&m);
    return 0;
}
