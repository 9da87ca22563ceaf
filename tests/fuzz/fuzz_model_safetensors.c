/* Bytes as a safetensors file and as the index of a sharded one. */
#include <stdint.h>

#include "memory.h"
#include "model/files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_list list = {0};
    arena *mem = arena_new(0);
    shoal_err err;
    const char **files;
    size_t n;
    if (!holds(mem)) return 0;
    safetensors_parse(&list, mem, data, size, "fuzz", &err);
    safetensors_index_parse(&files, &n, mem, (const char *)data, size, "fuzz", &err);
    safetensors_list_done(&list);
    arena_free(mem);
    return 0;
}
