/* Bytes as a voice detector's file; what is taken gives a number for a window. */
#include <stdint.h>

#include "memory.h"
#include "speech/vad_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const float x[VAD_MODEL_WINDOW];
    vad_model *v = NULL;
    vad_model_state s = {0};
    shoal_err err = {0};
    if (vad_model_parse(&v, data, size, "fuzz", &err) != 0) {
        if (v || !err.code || !err.message[0]) abort();
        return 0;
    }
    (void)vad_model_push(v, &s, x);
    vad_model_free(v);
    return 0;
}
