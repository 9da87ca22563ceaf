/* safetensors.h: the safetensors container and its sharded form.
 *
 *     u64 header length | JSON header {"name": {"dtype", "shape", "data_offsets"}} | data
 *
 * (Format: the safetensors specification.) The data must be covered exactly: no gap, no overlap,
 * nothing behind the last tensor. Shapes come out in GGUF order (dims[0] contiguous). */
#ifndef MODEL_FILES_SAFETENSORS_H
#define MODEL_FILES_SAFETENSORS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/model.h"

typedef struct st_tensor {
    tensor t;               /* type is DT_COUNT when it is one we cannot compute with */
    const char *dtype_name; /* as the file spells it */
} st_tensor;

/* A growing list; items live in malloc'd memory, names in the arena given to the parser. */
typedef struct st_list {
    st_tensor *items;
    size_t n, cap;
} st_list;
void safetensors_list_done(st_list *l);
/* Append a copy of *t. SHOAL_ENOMEM. */
int safetensors_list_push(st_list *l, const st_tensor *t, shoal_err *err);

/* Append the tensors of one file. Data pointers go into `data`, which must outlive the list. Integer
 * tensors and such, which checkpoints carry beside the weights, are listed with type DT_COUNT; a
 * dtype nobody knows is SHOAL_EUNSUPPORTED. */
int safetensors_parse(st_list *out, arena *mem, const void *data, size_t len, const char *what,
                      shoal_err *err);

/* The shards an index names ("model.safetensors.index.json"), sorted, each once, allocated in mem.
 * A name that could leave the folder is SHOAL_EINVALID. */
int safetensors_index_parse(const char ***ret_files, size_t *ret_n, arena *mem, const char *json, size_t len,
                            const char *what, shoal_err *err);

#endif
