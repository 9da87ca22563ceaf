/* backend_facts.c: a sum over tensors, and one over files. */
#include "backend/backend_facts.h"

#include "kinds/model_kind.h"

static uint64_t count_parameters(const model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; m && i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        uint64_t n = 1;
        for (size_t k = 0; k < t->n_dims; k++) n *= t->dims[k];
        sum += n;
    }
    return sum;
}

backend_facts backend_facts_of(const model *m, const char *path)
{
    model_kind_size size = model_kind_measure(path);
    return (backend_facts){
        .n_parameters = count_parameters(m), .file_bytes = size.bytes, .file_time_s = size.time_s};
}
