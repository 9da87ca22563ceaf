/* Bytes as a GGUF file: the parser on an exact copy, then the whole load from a file in memory. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/files/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load(const uint8_t *data, size_t size)
{
    int fd = memfd_create("model.gguf", MFD_CLOEXEC);
    if (fd < 0) return;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    model *m = NULL;
    shoal_err err;
    if (write(fd, data, size) == (ssize_t)size &&
        model_open(&m, path, &(model_options){.no_tokenizer = true}, &err) == 0)
        model_free(m);
    close(fd);
}

/* Any bytes are weights, and a tensor's last ones lie in the file. */
static void last_block(const tensor *t)
{
    float out[256];
    size_t bytes = dtype_block_bytes(t->type);
    dtype_to_f32(t->type, (const uint8_t *)t->data + t->bytes - bytes, out, dtype_block(t->type));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf *g = NULL;
    shoal_err err;
    if (gguf_parse(&g, data, size, "fuzz", &err) == 0) {
        for (size_t i = 0; i < g->n_kv; i++) {
            const char *s = NULL, *const *strings = NULL;
            const size_t *lens = NULL;
            size_t n = 0;
            gguf_get_str(g, g->kv[i].key, &s, &err);
            gguf_get_strings(g, g->kv[i].key, &n, &strings, &lens, &err);
        }
        for (size_t i = 0; i < g->n_tensors; i++) last_block(&g->tensors[i]);
        gguf_free(g);
        load(data, size);
    }
    return 0;
}
