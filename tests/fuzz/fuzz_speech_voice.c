/* Bytes as a voice detector's file; what is taken gives a number for a window. */
#include <stdint.h>

#include "memory.h"
#include "speech/voice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const float x[VOICE_WINDOW];
    voice *v = NULL;
    voice_state s = {0};
    shoal_err err = {0};
    if (voice_parse(&v, data, size, "fuzz", &err) != 0) {
        if (v || !err.code || !err.message[0]) abort();
        return 0;
    }
    (void)voice_push(v, &s, x);
    voice_free(v);
    return 0;
}
