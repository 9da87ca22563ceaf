/* gguf_writer.c: GGUF v3 written in one pass, with its SHA-256 computed on the way; see gguf_writer.h.
 * Numbers go out as they lie in memory, so the machine must be little-endian. */
#include "model/files/gguf_writer.h"
#include "base/file.h"
#include "base/sha256.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 32 };

static void put_u32(buf *b, uint32_t v)
{
    buf_append(b, &v, sizeof v);
}

static void put_u64(buf *b, uint64_t v)
{
    buf_append(b, &v, sizeof v);
}

static void put_string(buf *b, const char *s, size_t n)
{
    put_u64(b, n);
    buf_append(b, s, n);
}

static void put_key(gguf_out *o, const char *key, gguf_type type)
{
    put_string(&o->kv, key, strlen(key));
    put_u32(&o->kv, type);
    o->n_kv++;
}

void gguf_out_strn(gguf_out *o, const char *key, const char *s, size_t n)
{
    put_key(o, key, GGUF_STRING);
    put_string(&o->kv, s, n);
}

void gguf_out_str(gguf_out *o, const char *key, const char *s)
{
    gguf_out_strn(o, key, s, strlen(s));
}

void gguf_out_u32(gguf_out *o, const char *key, uint32_t v)
{
    put_key(o, key, GGUF_U32);
    put_u32(&o->kv, v);
}

void gguf_out_i32(gguf_out *o, const char *key, int32_t v)
{
    put_key(o, key, GGUF_I32);
    put_u32(&o->kv, (uint32_t)v);
}

void gguf_out_f32(gguf_out *o, const char *key, float v)
{
    put_key(o, key, GGUF_F32);
    buf_append(&o->kv, &v, sizeof v);
}

void gguf_out_bool(gguf_out *o, const char *key, bool v)
{
    put_key(o, key, GGUF_BOOL);
    buf_putc(&o->kv, v ? 1 : 0);
}

static size_t elem_bytes(gguf_type t)
{
    switch (t) {
#define CASE(e, name, number, bytes) \
    case e: return bytes;
        GGUF_TYPE_TABLE(CASE)
#undef CASE
    case GGUF_TYPE_COUNT: break;
    }
    return 0;
}

void gguf_out_array(gguf_out *o, const char *key, gguf_type elem, const void *data, size_t n)
{
    assert(elem_bytes(elem) > 0);
    put_key(o, key, GGUF_ARRAY);
    put_u32(&o->kv, elem);
    put_u64(&o->kv, n);
    buf_append(&o->kv, data, n * elem_bytes(elem));
}

void gguf_out_strings(gguf_out *o, const char *key, const char *const *s, const size_t *lens, size_t n)
{
    put_key(o, key, GGUF_ARRAY);
    put_u32(&o->kv, GGUF_STRING);
    put_u64(&o->kv, n);
    for (size_t i = 0; i < n; i++) put_string(&o->kv, s[i], lens ? lens[i] : strlen(s[i]));
}

void gguf_out_copy(gguf_out *o, const gguf_kv *kv)
{
    put_key(o, kv->key, kv->type);
    if (kv->type == GGUF_ARRAY) {
        put_u32(&o->kv, kv->elem);
        put_u64(&o->kv, kv->n);
    }
    buf_append(&o->kv, kv->data, kv->bytes);
}

static uint64_t padded(uint64_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void gguf_out_tensor(gguf_out *o, const char *name, dtype type, size_t n_dims, const size_t *dims)
{
    size_t n = 1;
    put_string(&o->infos, name, strlen(name));
    put_u32(&o->infos, (uint32_t)n_dims);
    for (size_t i = 0; i < n_dims; i++) {
        put_u64(&o->infos, dims[i]);
        n *= dims[i];
    }
    put_u32(&o->infos, dtype_to_gguf(type));
    put_u64(&o->infos, o->next_offset);
    if (o->n_tensors == o->sizes_cap) {
        size_t cap = o->sizes_cap ? 2 * o->sizes_cap : 64;
        uint64_t *sizes = realloc(o->sizes, cap * sizeof *sizes);
        if (!sizes) {
            o->failed = true;
            return;
        }
        o->sizes = sizes;
        o->sizes_cap = cap;
    }
    o->sizes[o->n_tensors++] = n / dtype_block(type) * dtype_block_bytes(type);
    o->next_offset += padded(o->sizes[o->n_tensors - 1]);
}

static int gguf_writer_put(gguf_out *o, const void *data, size_t n, shoal_err *err)
{
    int rc = file_writer_write(o->w, data, n, err);
    if (rc == 0) sha256_add(o->hash, data, n);
    return rc;
}

static int pad(gguf_out *o, shoal_err *err)
{
    static const char zeros[ALIGNMENT];
    uint64_t at = file_writer_offset(o->w);
    return gguf_writer_put(o, zeros, (size_t)(padded(at) - at), err);
}

int gguf_out_open(gguf_out *o, const char *path, shoal_err *err)
{
    buf head = {0};
    buf_append(&head, "GGUF", 4);
    put_u32(&head, 3);
    put_u64(&head, o->n_tensors);
    put_u64(&head, o->n_kv);
    o->hash = sha256_new();
    int rc = 0;
    if (o->failed || !o->hash || o->kv.failed || o->infos.failed || head.failed) rc = err_nomem(err);
    if (rc == 0) rc = file_writer_open(&o->w, path, err);
    if (rc == 0) rc = gguf_writer_put(o, head.data, head.len, err);
    if (rc == 0) rc = gguf_writer_put(o, o->kv.data, o->kv.len, err);
    if (rc == 0) rc = gguf_writer_put(o, o->infos.data, o->infos.len, err);
    if (rc == 0) rc = pad(o, err);
    buf_done(&head);
    return rc;
}

int gguf_out_data(gguf_out *o, const void *data, size_t n, shoal_err *err)
{
    assert(o->at_tensor < o->n_tensors && o->at_bytes + n <= o->sizes[o->at_tensor]);
    int rc = gguf_writer_put(o, data, n, err);
    if (rc != 0) return rc;
    o->at_bytes += n;
    if (o->at_bytes < o->sizes[o->at_tensor]) return 0;
    o->at_tensor++;
    o->at_bytes = 0;
    return pad(o, err);
}

int gguf_out_close(gguf_out *o, sha256_digest *ret, uint64_t *ret_bytes, shoal_err *err)
{
    assert(o->at_tensor == o->n_tensors);
    int rc = file_writer_commit(o->w, err);
    if (rc != 0) return rc;
    *ret_bytes = file_writer_offset(o->w);
    sha256_end(o->hash, ret);
    o->hash = NULL;
    return 0;
}

void gguf_out_done(gguf_out *o)
{
    sha256_digest unused;
    if (o->hash) sha256_end(o->hash, &unused);
    file_writer_close(o->w);
    buf_done(&o->kv);
    buf_done(&o->infos);
    free(o->sizes);
    *o = (gguf_out){0};
}
