/* make_shapes.c: the shapes that make_model knows, by the published configurations of the models named. */
#include <string.h>

#include "model/make_model.h"

#define CTX     32768 /* room for measuring far inside; no weight depends on it in decoders */
#define WORDS   30522 /* BERT's vocabulary */
#define ENCODER "bert"

static const make_shape shapes[] = {
    {"llama-24m", "llama", "6 layers of 288, a story teller's", 32000, 288, 6, 6, 6, 768, CTX, 0, 10000,
     false, false},
    {"llama-135m", "llama", "SmolLM 135M", 49152, 576, 30, 9, 3, 1536, CTX, 0, 10000, true, false},
    {"llama-360m", "llama", "SmolLM 360M", 49152, 960, 32, 15, 5, 2560, CTX, 0, 10000, true, false},
    {"llama-1.1b", "llama", "TinyLlama 1.1B", 32000, 2048, 22, 32, 4, 5632, CTX, 0, 10000, false, false},
    {"llama-1.2b", "llama", "Llama 3.2 1B", 128256, 2048, 16, 32, 8, 8192, CTX, 0, 500000, true, false},
    {"llama-3b", "llama", "Llama 3.2 3B", 128256, 3072, 28, 24, 8, 8192, CTX, 0, 500000, true, false},
    {"qwen-0.5b", "qwen2", "Qwen 2.5 0.5B", 151936, 896, 24, 14, 2, 4864, CTX, 0, 1e6, true, true},
    {"qwen-1.5b", "qwen2", "Qwen 2.5 1.5B", 151936, 1536, 28, 12, 2, 8960, CTX, 0, 1e6, true, true},
    {"qwen3-0.6b", "qwen3", "Qwen 3 0.6B", 151936, 1024, 28, 16, 8, 3072, CTX, 128, 1e6, true, false},
    {"minilm", ENCODER, "all-MiniLM-L6", WORDS, 384, 6, 12, 12, 1536, 512, 0, 0, true, false},
    {"distilbert", ENCODER, "DistilBERT", WORDS, 768, 6, 12, 12, 3072, 512, 0, 0, true, false},
    {"bert-base", ENCODER, "BERT base", WORDS, 768, 12, 12, 12, 3072, 512, 0, 0, true, false},
};

const make_shape *make_shape_at(size_t i)
{
    return i < sizeof shapes / sizeof *shapes ? &shapes[i] : NULL;
}

const make_shape *make_shape_find(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}
