/* gguf.h: the GGUF container, versions 2 and 3, little-endian.
 *
 *     "GGUF" | u32 version | u64 n_tensors | u64 n_kv
 *     n_kv      x  key string | u32 type | value          string: u64 length, bytes, no NUL
 *     n_tensors x  name string | u32 n_dims | u64 dims[]  | u32 type | u64 offset
 *     padding to general.alignment, then the data that the offsets count from
 *
 * (Format: the GGUF specification of the ggml project.) Parsing checks everything a reader could
 * trip over, once: what gguf_parse returns can be indexed without further checks. Values and data
 * point into the bytes that were parsed, which must outlive the gguf. Immutable after parsing. */
#ifndef MODEL_FILES_GGUF_H
#define MODEL_FILES_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/model.h"

/* X(enum, name, number in the file, bytes of one element; 0: has its own length) */
#define GGUF_TYPE_TABLE(X)         \
    X(GGUF_U8, "u8", 0, 1)         \
    X(GGUF_I8, "i8", 1, 1)         \
    X(GGUF_U16, "u16", 2, 2)       \
    X(GGUF_I16, "i16", 3, 2)       \
    X(GGUF_U32, "u32", 4, 4)       \
    X(GGUF_I32, "i32", 5, 4)       \
    X(GGUF_F32, "f32", 6, 4)       \
    X(GGUF_BOOL, "bool", 7, 1)     \
    X(GGUF_STRING, "string", 8, 0) \
    X(GGUF_ARRAY, "array", 9, 0)   \
    X(GGUF_U64, "u64", 10, 8)      \
    X(GGUF_I64, "i64", 11, 8)      \
    X(GGUF_F64, "f64", 12, 8)
typedef enum gguf_type {
#define GGUF_ENUM(e, name, number, bytes) e = number,
    GGUF_TYPE_TABLE(GGUF_ENUM)
#undef GGUF_ENUM
        GGUF_TYPE_COUNT
} gguf_type;

typedef struct gguf_kv {
    const char *key; /* NUL-terminated copy */
    gguf_type type;
    gguf_type elem; /* of an array */
    size_t n;       /* elements of an array, 1 otherwise */
    /* The value as the file has it, after the type: a string with its length in front, an array
     * without its element type and count. */
    const uint8_t *data;
    size_t bytes;
} gguf_kv;

typedef struct gguf {
    arena *mem;
    const char *what; /* path, for errors */
    uint32_t version;
    size_t n_kv, n_tensors;
    gguf_kv *kv;      /* in file order */
    gguf_kv **by_key; /* sorted */
    tensor *tensors;  /* in file order */
    size_t data_offset, alignment;
} gguf;

/* Parse data[0..len). `what` names it in errors. gguf_free releases; data stays the caller's. */
int gguf_parse(gguf **ret, const void *data, size_t len, const char *what, shoal_err *err);
void gguf_free(gguf *g);

const gguf_kv *gguf_find(const gguf *g, const char *key); /* NULL when absent */

/* Optional values, as in json.h: absent leaves *ret as it was; a wrong type or a value out of range
 * is SHOAL_EFORMAT naming the key. Any integer type will do for an int, any number for a num.
 * Strings are NUL-terminated copies that live as long as g; one with a NUL inside is refused. */
int gguf_get_int(const gguf *g, const char *key, int64_t min, int64_t max, int64_t *ret, shoal_err *err);
int gguf_get_num(const gguf *g, const char *key, double min, double max, double *ret, shoal_err *err);
int gguf_get_bool(const gguf *g, const char *key, bool *ret, shoal_err *err);
int gguf_get_str(gguf *g, const char *key, const char **ret, shoal_err *err);
/* An array of strings: pointers and lengths, allocated in g; the bytes are the file's. */
int gguf_get_strings(gguf *g, const char *key, size_t *ret_n, const char *const **ret,
                     const size_t **ret_lens, shoal_err *err);
/* An array of numbers of type `elem`, copied out so that it is aligned. */
int gguf_get_array(gguf *g, const char *key, gguf_type elem, size_t *ret_n, const void **ret, shoal_err *err);
/* The bytes of a string value without a copy; NULL when kv is no string. */
const char *gguf_string(const gguf_kv *kv, size_t *ret_len);

#endif
