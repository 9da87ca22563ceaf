/* gguf_writer.h: write a GGUF v3 file, little-endian.
 *
 *     gguf_out o = {0};
 *     gguf_out_str(&o, "general.architecture", "llama");
 *     gguf_out_tensor(&o, "token_embd.weight", DT_Q8_0, 2, dims);
 *     gguf_out_open(&o, path, &err);                  // header, infos, padding
 *     gguf_out_data(&o, bytes, n, &err);              // each tensor's bytes, in order, in pieces
 *     gguf_out_close(&o, &digest, &n_bytes, &err);    // checks, commits
 *     gguf_out_done(&o);                              // frees; without close the old file stays
 *
 * Metadata goes into memory (failures stick and surface in gguf_out_open); tensor data streams. */
#ifndef MODEL_FILES_GGUF_WRITER_H
#define MODEL_FILES_GGUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/sha256.h"
#include "model/files/gguf.h"

typedef struct gguf_out {
    buf kv, infos;
    size_t n_kv, n_tensors;
    uint64_t next_offset; /* of the next tensor in the data section */
    uint64_t *sizes;      /* bytes of each tensor */
    size_t sizes_cap;
    file_writer *w;
    sha256 *hash;
    size_t at_tensor;  /* being written */
    uint64_t at_bytes; /* of it, already written */
    bool failed;
} gguf_out;

/* Metadata, in this order in the file. Keys must differ; values are copied. */
void gguf_out_str(gguf_out *o, const char *key, const char *s);
void gguf_out_strn(gguf_out *o, const char *key, const char *s, size_t n);
void gguf_out_u32(gguf_out *o, const char *key, uint32_t v);
void gguf_out_i32(gguf_out *o, const char *key, int32_t v);
void gguf_out_f32(gguf_out *o, const char *key, float v);
void gguf_out_bool(gguf_out *o, const char *key, bool v);
/* An array of n elements of a number type, as they lie in memory. */
void gguf_out_array(gguf_out *o, const char *key, gguf_type elem, const void *data, size_t n);
void gguf_out_strings(gguf_out *o, const char *key, const char *const *s, const size_t *lens, size_t n);
/* A value as another file has it. */
void gguf_out_copy(gguf_out *o, const gguf_kv *kv);
/* dims[0] is contiguous and a multiple of the type's block. */
void gguf_out_tensor(gguf_out *o, const char *name, dtype type, size_t n_dims, const size_t *dims);

/* Write all but the tensors' bytes; SHOAL_ENOMEM when an addition before found no memory. */
int gguf_out_open(gguf_out *o, const char *path, shoal_err *err);
/* n more bytes of the tensor that is next; not past its end (asserted). */
int gguf_out_data(gguf_out *o, const void *data, size_t n, shoal_err *err);
/* Every tensor must be complete (asserted). The file takes its name now; digest and size are of all of
 * it. */
int gguf_out_close(gguf_out *o, sha256_digest *ret, uint64_t *ret_bytes, shoal_err *err);
void gguf_out_done(gguf_out *o);

#endif
