/* ct2.h: the variables in the model.bin of a CTranslate2 folder.
 *
 *     u32 binary version | string spec | u32 revision
 *     u32 n | n times: string name, u8 rank, rank times u32 dimension, u8 type, u32 bytes, values
 *     u32 n | n times: string alias, string name
 *
 * A string is a u16 length, then so many bytes, the last of which is 0. (Format: ModelSpec.save in
 * python/ctranslate2/specs/model_spec.py of OpenNMT/CTranslate2, binary version 6.) */
#ifndef MODEL_FILES_CT2_H
#define MODEL_FILES_CT2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { CT2_DIMS_MAX = 4 };
/* The order of CTranslate2's DataType. */
typedef enum ct2_type { CT2_F32, CT2_I8, CT2_I16, CT2_I32, CT2_F16, CT2_BF16, CT2_TYPES } ct2_type;

typedef struct ct2_variable {
    const char *name; /* "decoder/layer_0/ffn/linear_0/weight" */
    ct2_type type;
    size_t n_dims, dims[CT2_DIMS_MAX]; /* the slowest first; n_dims 0: a single value */
    const uint8_t *data;               /* unaligned, borrowed from the file */
    size_t n, bytes;                   /* values, and bytes of all of them */
} ct2_variable;

typedef struct ct2_alias {
    const char *name, *of;
} ct2_alias;

typedef struct ct2_file {
    const char *spec; /* "WhisperSpec" */
    size_t n, n_aliases;
    ct2_variable *v;
    ct2_alias *aliases;
} ct2_file;

/* All strings and lists are of mem; `data` must outlive *ret. SHOAL_EFORMAT when the bytes contradict
 * themselves, SHOAL_EUNSUPPORTED of another version or type, SHOAL_ENOMEM. */
int ct2_parse(ct2_file *ret, arena *mem, const void *data, size_t len, const char *what, shoal_err *err);

/* NULL: there is none of this name. Aliases are followed. */
const ct2_variable *ct2_find(const ct2_file *f, const char *name);

/* One whole number, such as "encoder/num_heads". False: there is none. */
bool ct2_number(const ct2_file *f, const char *name, int64_t *ret);

#endif
