/* kind_hf.c: a Hugging Face folder: config.json, safetensors, and what reads text. */
#include <string.h>

#include "base/buf.h"
#include "json/json.h"
#include "kinds/model_kind.h"

enum { CONFIG_MAX = 16 << 20 };

/* Of what a hub lists, pulls look for safetensors themselves: their names may be unusual. */
static bool hf_recognises(const model_view *v)
{
    return v->is_folder && v->path && model_view_has(v, "config.json");
}

static const char *hf_describe(const model_view *v)
{
    static const struct {
        const char *in, *task;
    } HEADS[] = {{"ForCausalLM", "generate"},
                 {"ForSequenceClassification", "classify"},
                 {"ForTokenClassification", "tag"},
                 {"ForMaskedLM", "fill-mask"},
                 {"LSTMFor", "score"},
                 {"GRUFor", "score"}};
    const char *task = NULL;
    json_t *config = NULL;
    buf path = {0};
    if (v->path) buf_printf(&path, "%s/config.json", v->path);
    if (path.len && !path.failed && json_parse_file(&config, path.data, CONFIG_MAX, NULL) == 0) {
        const char *arch = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
        for (size_t i = 0; arch && i < sizeof HEADS / sizeof *HEADS; i++)
            if (strstr(arch, HEADS[i].in)) task = HEADS[i].task; /* the last that fits */
    }
    json_decref(config);
    buf_done(&path);
    return task;
}

static bool is_side_file(const char *name)
{
    static const char *const names[] = {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "tokenizer.model",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "vocab.txt",
        "merges.txt",
        "spiece.model",
        "source.spm",
        "target.spm",
        "sentencepiece.bpe.model",
        "sentencepiece.model",
        "chat_template.jinja",
        "chat_template.json",
        "preprocessor_config.json",
        "processor_config.json",
        "normalizer.json",
        "modules.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "adapter_config.json",
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
        "LICENSE",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* Weights of other programs beside those that are read here would double what travels. */
static bool is_foreign(const char *name)
{
    static const char *const ends[] = {".bin", ".onnx", ".onnx_data", ".h5",     ".msgpack", ".pt",
                                       ".pth", ".ckpt", ".ot",        ".tflite", ".mlmodel", ".tmp"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        if (strcmp(dot, ends[i]) == 0) return true;
    return false;
}

static model_file_role hf_file(const char *name)
{
    bool is_weights = !strchr(name, '/') && model_name_ends(name, ".safetensors");
    return is_side_file(name) ? MODEL_FILE_SIDE
           : is_weights       ? MODEL_FILE_WEIGHTS
           : is_foreign(name) ? MODEL_FILE_FOREIGN
                              : MODEL_FILE_OTHER;
}

const model_kind model_kind_hf = {
    .name = "huggingface", .recognise = hf_recognises, .describe = hf_describe, .file = hf_file};
