/* Bytes as an ONNX file: its constants. */
#include <stdint.h>

#include "memory.h"
#include "model/files/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_list list = {0};
    arena *mem = arena_new(0);
    shoal_err err = {0};
    if (!holds(mem)) return 0;
    (void)onnx_is(data, size);
    if (onnx_parse(&list, mem, data, size, "fuzz", &err) != 0 && (!err.code || !err.message[0])) abort();
    safetensors_list_done(&list);
    arena_free(mem);
    return 0;
}
