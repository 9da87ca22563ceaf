/* gguf_bytes.h: build small GGUF files in memory, right or deliberately wrong. */
#ifndef TESTS_GGUF_BYTES_H
#define TESTS_GGUF_BYTES_H

#include <string.h>

#include "base/buf.h"

static inline void g_u32(buf *b, uint32_t v)
{
    buf_append(b, &v, 4);
}

static inline void g_u64(buf *b, uint64_t v)
{
    buf_append(b, &v, 8);
}

static inline void g_str(buf *b, const char *s)
{
    g_u64(b, strlen(s));
    buf_puts(b, s);
}

static inline void g_head(buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_kv)
{
    buf_append(b, "GGUF", 4);
    g_u32(b, version);
    g_u64(b, n_tensors);
    g_u64(b, n_kv);
}

static inline void g_kv_str(buf *b, const char *key, const char *value)
{
    g_str(b, key);
    g_u32(b, 8);
    g_str(b, value);
}

static inline void g_kv_u32(buf *b, const char *key, uint32_t value)
{
    g_str(b, key);
    g_u32(b, 4);
    g_u32(b, value);
}

static inline void g_tensor(buf *b, const char *name, uint64_t cols, uint64_t rows, uint32_t type,
                            uint64_t offset)
{
    g_str(b, name);
    g_u32(b, 2);
    g_u64(b, cols);
    g_u64(b, rows);
    g_u32(b, type);
    g_u64(b, offset);
}

static inline void g_pad(buf *b, size_t alignment)
{
    while (b->len % alignment) buf_putc(b, 0);
}

static inline void g_zeros(buf *b, size_t n)
{
    while (n--) buf_putc(b, 0);
}

#endif
