/* kind_llama2c.c: one checkpoint of llama2.c. */
#include <string.h>

#include "kinds/model_kind.h"

/* Version 0 has no magic number: it begins with seven 32-bit sizes. Four bytes of text would be a size over a million. */
static bool begins_as_sizes(const model_view *v)
{
    uint32_t size;
    for (size_t i = 0; i < 5; i++) {
        if (v->n_head < 4 * i + 4) return false;
        memcpy(&size, v->head + 4 * i, sizeof size);
        if (size == 0 || size > 1000000) return false;
    }
    return true;
}

static bool llama2c_recognises(const model_view *v)
{
    return !v->is_folder && (model_view_begins(v, "24ka", 4) /* version 1 */ || begins_as_sizes(v));
}

static const char *llama2c_describe(const model_view *v)
{
    return "generate";
}

const model_kind model_kind_llama2c = {
    .name = "llama2.c", .recognise = llama2c_recognises, .describe = llama2c_describe};
