/* Bytes as a stored turn: its messages are appended to a history, or it is refused. */
#include <stdint.h>
#include <stdlib.h>

#include "inference/conversation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shoal_err err;
    conversation_marks m = {.skip = "chatcmpl-1"};
    json_t *history = json_array();
    if (!history) return 0;
    int rc = conversation_read_turn(history, (const char *)data, size, &m, &err);
    if ((rc != 0 || m.skipped) && rc != SHOAL_ENOMEM && json_array_size(history) > 0) abort();
    conversation k = {.history = history, .shortens = true};
    for (size_t n = json_array_size(history); conversation_shorten(&k); n = json_array_size(history))
        if (json_array_size(history) >= n) abort();
    if (json_array_size(history) > 0) abort();
    json_decref(history);
    return 0;
}
