/* Any header as a traceparent: what is made of it is valid itself, and keeps its trace when it is read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "logging/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[128], first[TRACE_SIZE], again[TRACE_SIZE];
    if (size >= sizeof text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    trace_take(first, text);
    trace_take(again, first);
    if (strlen(first) != TRACE_SIZE - 1 || strlen(again) != TRACE_SIZE - 1) abort();
    if (memcmp(first, again, 35) != 0 || memcmp(first + 52, again + 52, 3) != 0) abort();
    return 0;
}
