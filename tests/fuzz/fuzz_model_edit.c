/* Bytes as a GGUF file that gets another template: what is written parses and holds the same tensors. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "base/file.h"
#include "base/sha256.h"
#include "model/files/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const gguf *a, const gguf *b)
{
    if (a->n_tensors != b->n_tensors) abort();
    for (size_t i = 0; i < a->n_tensors; i++) {
        const tensor *s = &a->tensors[i], *t = &b->tensors[i];
        if (strcmp(s->name, t->name) != 0 || s->type != t->type || s->bytes != t->bytes) abort();
        if (memcmp(s->dims, t->dims, sizeof s->dims) != 0) abort();
        if (s->bytes && memcmp(s->data, t->data, s->bytes) != 0) abort();
    }
}

static void check(const gguf *before, const char *path, const char *key, const char *value)
{
    file_map map = {0};
    gguf *after = NULL;
    const char *got = "";
    if (!holds(file_map_open(&map, path, NULL) == 0)) return;
    if (!holds(gguf_parse(&after, map.data, map.len, "edited", NULL) == 0)) {
        file_map_close(&map);
        return;
    }
    if (gguf_get_str(after, key, &got, NULL) || strcmp(got, value) != 0) abort();
    compare(before, after);
    gguf_free(after);
    file_map_close(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const gguf_setting set[] = {{"tokenizer.chat_template", "{{ messages }}"}};
    gguf *g = NULL;
    char in[64], out[64];
    sha256_digest digest;
    if (gguf_parse(&g, data, size, "fuzz", NULL)) return 0;
    int fd = memfd_create("model.gguf", MFD_CLOEXEC);
    snprintf(in, sizeof in, "/proc/self/fd/%d", fd);
    snprintf(out, sizeof out, "/tmp/shoal-fuzz-edit-%ld", (long)getpid());
    if (fd >= 0 && write(fd, data, size) == (ssize_t)size &&
        gguf_edit_file(in, out, set, 1, &digest, NULL) == 0) {
        check(g, out, set[0].key, set[0].value);
        unlink(out);
    }
    if (fd >= 0) close(fd);
    gguf_free(g);
    return 0;
}
