/* Text as every JSON file that a Hugging Face folder's configuration is read from. */
#include <stdint.h>

#include "json/json.h"
#include "memory.h"
#include "model/config/hf_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *v = NULL;
    shoal_err err;
    if (json_parse(&v, (const char *)data, size, "fuzz", &err) != 0) return 0;
    arena *mem = arena_new(0);
    model_config c;
    hf_files files = {.config = v, .generation = v, .pooling = v, .st_pooling = v, .st_modules = v};
    if (holds(mem)) hf_config_read(&c, &files, mem, "fuzz", &err);
    if (mem) hf_config_read(&c, &(hf_files){.config = v}, mem, "fuzz", &err);
    arena_free(mem);
    json_decref(v);
    return 0;
}
