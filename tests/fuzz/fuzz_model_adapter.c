/* Bytes as an adapter of a small Llama: u32 length of a PEFT configuration, the configuration, a safetensors
 * file; or a GGUF file. What is accepted fits its base and can be read from end to end. */
#include <stdint.h>
#include <string.h>

#include "memory.h"
#include "model/adapter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const model *base(void)
{
    static model *m;
    shoal_err err;
    if (m) return m;
    int rc = model_open(&m, SHOAL_SOURCE_DIR "/tests/data/hf/llama-gqa",
                        &(model_options){.no_tokenizer = true}, &err);
    return holds(rc == 0) ? m : NULL;
}

static int open_bytes(adapter **ret, const uint8_t *data, size_t size, const model *m, shoal_err *err)
{
    uint32_t n = 0;
    if (size >= 4 && memcmp(data, "GGUF", 4) == 0)
        return adapter_from_gguf(ret, data, size, "fuzz", 1, m, err);
    if (size < 4) return -1;
    memcpy(&n, data, 4);
    data += 4;
    size -= 4;
    if (n > size) n = (uint32_t)size;
    return adapter_from_peft(ret, (const char *)data, n, data + n, size - n, "fuzz", 1, m, err);
}

static void check(const adapter *a, const model *m)
{
    volatile float sum = 0;
    size_t found = 0;
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        const adapter_matrix *d = adapter_find(a, t);
        if (!d) continue;
        found++;
        if (d->cols != t->dims[0] || d->rows != t->dims[1] || d->rank == 0) abort();
        for (size_t k = 0; k < d->rank * d->cols; k++) sum += d->a[k];
        for (size_t k = 0; k < d->rank * d->rows; k++) sum += d->b[k];
    }
    if (found == 0 || found != adapter_count(a)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const model *m = base();
    adapter *a = NULL;
    shoal_err err = {0};
    if (!m || open_bytes(&a, data, size, m, &err) != 0) return 0;
    check(a, m);
    adapter_unref(a);
    return 0;
}
