/* kind_gguf.c: one GGUF file. */
#include "kinds/model_kind.h"

static bool gguf_recognises(const model_view *v)
{
    bool named = model_name_ends(v->name, ".gguf") && v->n_head == 0;
    return !v->is_folder && (named || model_view_begins(v, "GGUF", 4));
}

const model_kind model_kind_gguf = {.name = "gguf", .recognise = gguf_recognises};
