/* adapter_impl.h: an adapter under construction, shared by adapter.c and adapter_read.c. */
#ifndef MODEL_ADAPTER_IMPL_H
#define MODEL_ADAPTER_IMPL_H

#include <stdatomic.h>

#include "model/adapter.h"
#include "model/arch/arch.h"
#include "model/files/safetensors.h"

struct adapter {
    atomic_size_t refs;
    arena *mem;
    const model *base;
    adapter_matrix **of; /* [tensors of the base] */
    size_t n_matrices, bytes;
    sha256_digest digest;
};

/* How a file says what it holds. */
typedef struct adapter_source {
    const char *what;
    name_kind kind;
    double alpha;   /* 0: scale is 1 */
    bool root_rank; /* scale is alpha / sqrt(rank) (rsLoRA), not alpha / rank */
    size_t rank;    /* of every matrix; 0: the tensors tell */
    float strength;
    st_tensor *list; /* sorted by adapter_build */
    size_t n;
} adapter_source;

/* Fill in a new adapter's matrices from the source's tensors. */
int adapter_build(adapter *a, const adapter_source *s, shoal_err *err);

#endif
