/* kind_bare.c: one safetensors or ONNX file without a configuration: Silero's voice activity detector. */
#include "kinds/model_kind.h"

/* safetensors: the length of a JSON object, in eight bytes, and its brace. */
static bool begins_as_safetensors(const model_view *v)
{
    const uint8_t *h = v->head;
    return v->n_head > 8 && h[8] == '{' && h[5] == 0 && h[6] == 0 && h[7] == 0;
}

static bool bare_recognises(const model_view *v)
{
    bool named = model_name_ends(v->name, ".safetensors") || model_name_ends(v->name, ".onnx");
    return !v->is_folder && (named || begins_as_safetensors(v));
}

static const char *bare_describe(const model_view *v)
{
    return "vad";
}

const model_kind model_kind_bare = {.name = "bare", .recognise = bare_recognises, .describe = bare_describe};
