/* quantize_meta.c: metadata of the files we write; see quantize_meta.h. Keys are those of the GGUF
 * specification, for other programs to read; what it has no key for begins with "shoal.". */
#include "model/quantize_meta.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "model/arch.h"
#include "model/model_priv.h"

/* general.file_type of a file whose matrices are mostly of one type (numbers: the GGUF specification). */
static uint32_t file_type(dtype t)
{
    switch (t) {
    case DT_F32: return 0;
    case DT_F16: return 1;
    case DT_Q4_0: return 2;
    case DT_Q4_1: return 3;
    case DT_Q8_0: return 7;
    case DT_BF16: return 32;
    case DT_COUNT: break;
    }
    return 0;
}

static void put_arch_u32(gguf_out *o, const model_config *c, const char *name, size_t v)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", arch_name(c->arch), name);
    gguf_out_u32(o, key, (uint32_t)v);
}

static void put_arch_f32(gguf_out *o, const model_config *c, const char *name, double v)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", arch_name(c->arch), name);
    gguf_out_f32(o, key, (float)v);
}

static void put_llama(gguf_out *o, const model_config *c)
{
    put_arch_u32(o, c, "attention.head_count_kv", c->attn.n_head_kv);
    put_arch_f32(o, c, "attention.layer_norm_rms_epsilon", (double)c->norm.eps);
    put_arch_u32(o, c, "attention.key_length", c->attn.head_dim);
    put_arch_u32(o, c, "attention.value_length", c->attn.head_dim);
    put_arch_f32(o, c, "rope.freq_base", c->pos.rope.theta);
    put_arch_u32(o, c, "rope.dimension_count", c->pos.rope.dim);
    put_arch_u32(o, c, "vocab_size", c->n_vocab);
    if (c->pos.rope.scaling == ROPE_LINEAR) {
        gguf_out_str(o, "llama.rope.scaling.type", "linear");
        put_arch_f32(o, c, "rope.scaling.factor", c->pos.rope.factor);
    }
    if (c->n_eos) gguf_out_array(o, "shoal.eos_token_ids", GGUF_I32, c->eos_ids, c->n_eos);
}

static void put_bert(gguf_out *o, const model_config *c)
{
    put_arch_f32(o, c, "attention.layer_norm_epsilon", (double)c->norm.eps);
    gguf_out_bool(o, "bert.attention.causal", false);
    gguf_out_u32(o, "tokenizer.ggml.token_type_count", (uint32_t)c->n_types);
    gguf_out_str(o, "shoal.activation", activation_name(c->ffn.act));
    /* The field's pooling numbers: 0 none, 1 mean, 2 first token, 4 first token into a classifier. */
    put_arch_u32(o, c, "pooling_type",
                 c->task == TASK_CLASSIFY   ? 4
                 : c->task == TASK_TAG      ? 0
                 : c->head.pool == POOL_CLS ? 2
                                            : 1);
    if (c->task == TASK_EMBED) {
        gguf_out_str(o, "shoal.pooling", c->head.pool == POOL_CLS ? "cls" : "mean");
        gguf_out_bool(o, "shoal.normalize", c->head.normalize);
    } else {
        gguf_out_strings(o, "bert.classifier.output_labels", c->head.labels, NULL, c->head.n_labels);
        gguf_out_bool(o, "shoal.multi_label", c->head.multi_label);
    }
}

static void put_sizes(gguf_out *o, const model_config *c)
{
    put_arch_u32(o, c, "block_count", c->n_layer);
    put_arch_u32(o, c, "context_length", c->n_ctx);
    put_arch_u32(o, c, "embedding_length", c->n_embd);
    put_arch_u32(o, c, "feed_forward_length", c->ffn.n_ff);
    put_arch_u32(o, c, "attention.head_count", c->attn.n_head);
    if (c->arch == ARCH_LLAMA)
        put_llama(o, c);
    else
        put_bert(o, c);
}

/* A folder's file; absent leaves *out empty. */
static int read_file(const model *m, const char *file, buf *out, shoal_err *err)
{
    buf path = {0};
    int rc = buf_printf(&path, "%s/%s", m->path, file);
    if (rc != 0)
        rc = err_nomem(err);
    else if (file_exists(path.data))
        rc = file_read(out, path.data, MODEL_JSON_MAX, err);
    buf_done(&path);
    return rc;
}

static int put_folder_tokenizer(gguf_out *o, const model *m, shoal_err *err)
{
    buf json = {0}, config_text = {0};
    json_t *config = NULL;
    int rc = read_file(m, "tokenizer.json", &json, err);
    if (rc == 0) rc = read_file(m, "tokenizer_config.json", &config_text, err);
    if (rc == 0 && config_text.len) rc = json_parse(&config, config_text.data, config_text.len, m->path, err);
    if (rc == 0 && json.len)
        rc = quantize_put_tokenizer(o, json.data, json.len, config, &m->config, m->path, err);
    json_decref(config);
    buf_done(&config_text);
    buf_done(&json);
    return rc;
}

static int put_folder(gguf_out *o, const model *m, shoal_err *err)
{
    gguf_out_str(o, "general.architecture", arch_name(m->config.arch));
    gguf_out_str(o, "general.type", "model");
    gguf_out_str(o, "shoal.task", task_name(m->config.task));
    put_sizes(o, &m->config);
    int rc = put_folder_tokenizer(o, m, err);
    if (m->chat) {
        const char *source = chat_template_source(m->chat);
        gguf_out_str(o, "tokenizer.chat_template", source);
    }
    return rc;
}

/* Keys that we write anew for every file. */
static bool is_ours(const char *key)
{
    static const char *const ours[] = {"general.name", "general.version", "general.file_type",
                                       "general.quantization_version", "general.alignment"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(key, ours[i]) == 0) return true;
    return false;
}

int quantize_put_metadata(gguf_out *o, const model *m, const quantize_options *opts, shoal_err *err)
{
    const char *version = opts->version ? opts->version : m->version;
    int rc = 0;
    if (m->is_folder)
        rc = put_folder(o, m, err);
    else
        for (size_t i = 0; i < m->file->n_kv; i++)
            if (!is_ours(m->file->kv[i].key)) gguf_out_copy(o, &m->file->kv[i]);
    gguf_out_str(o, "general.name", opts->name ? opts->name : m->name);
    if (*version) gguf_out_str(o, "general.version", version);
    gguf_out_u32(o, "general.file_type", file_type(opts->type));
    gguf_out_u32(o, "general.quantization_version", 2);
    return rc;
}
