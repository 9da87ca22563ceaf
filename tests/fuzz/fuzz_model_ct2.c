/* Bytes as a CTranslate2 model.bin, and what parses as Whisper's tensors. */
#include <stdint.h>

#include "memory.h"
#include "model/model_ct2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte that a tensor claims is there. */
static void read_all(const st_list *list)
{
    volatile unsigned sum = 0;
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < list->items[i].t.bytes; k++)
            sum += ((const uint8_t *)list->items[i].t.data)[k];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_list list = {0};
    arena *mem = arena_new(0);
    shoal_err err = {0};
    ct2_file f;
    int64_t n;
    if (!holds(mem)) return 0;
    int rc = ct2_parse(&f, mem, data, size, "fuzz", &err);
    if (rc == 0) (void)ct2_number(&f, "encoder/num_heads", &n);
    if (rc == 0) rc = model_ct2_tensors(&f, "fuzz", mem, mem, &list, &err);
    if (rc == 0)
        read_all(&list);
    else if (!err.code || !err.message[0])
        abort();
    safetensors_list_done(&list);
    arena_free(mem);
    return 0;
}
