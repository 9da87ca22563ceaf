/* quantize_meta.c: metadata of the files we write; see quantize_meta.h. Keys are those of the GGUF
 * specification, for other programs to read; what it has no key for begins with "shoal.". */
#include "model/quantize/quantize_meta.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/hub_file.h"
#include "json/json.h"
#include "model/config/conf.h"
#include "model/model_priv.h"
#include "model/quantize/quantize_types.h"

/* A folder's file; absent leaves *out empty. */
static int quantize_meta_read_file(const model *m, const char *file, buf *out, shoal_err *err)
{
    buf path = {0};
    int rc = buf_printf(&path, "%s/%s", m->path, file);
    if (rc != 0)
        rc = err_nomem(err);
    else if (file_exists(path.data))
        rc = hub_file_read_json(out, path.data, MODEL_JSON_MAX, err);
    buf_done(&path);
    return rc;
}

static void put_id(gguf_out *o, const char *key, int64_t id)
{
    if (id >= 0) gguf_out_u32(o, key, (uint32_t)id);
}

/* A SentencePiece .model. */
static int put_pieces(gguf_out *o, const model *m, shoal_err *err)
{
    tokenizer_gguf t;
    arena *mem = arena_new(65536);
    int rc = mem ? tokenizer_folder_gguf(&t, mem, m->config.n_vocab, m->path, err) : err_nomem(err);
    if (rc == 0 && t.n_tokens > 0) {
        gguf_out_str(o, "tokenizer.ggml.model", t.model);
        gguf_out_str(o, "tokenizer.ggml.pre", "default");
        gguf_out_strings(o, "tokenizer.ggml.tokens", t.tokens, t.token_lens, t.n_tokens);
        gguf_out_array(o, "tokenizer.ggml.scores", GGUF_F32, t.scores, t.n_tokens);
        gguf_out_array(o, "tokenizer.ggml.token_type", GGUF_I32, t.token_types, t.n_tokens);
        put_id(o, "tokenizer.ggml.bos_token_id", t.bos);
        put_id(o, "tokenizer.ggml.eos_token_id", t.eos);
        put_id(o, "tokenizer.ggml.unknown_token_id", t.unk);
        gguf_out_bool(o, "tokenizer.ggml.add_bos_token", t.add_bos);
        gguf_out_bool(o, "tokenizer.ggml.add_eos_token", t.add_eos);
        gguf_out_bool(o, "tokenizer.ggml.add_space_prefix", t.space_prefix > 0);
        gguf_out_bool(o, "tokenizer.ggml.remove_extra_whitespaces", t.remove_extra_spaces);
        gguf_out_bool(o, "tokenizer.ggml.treat_whitespace_as_suffix", t.space_suffix);
        if (t.charsmap_len)
            gguf_out_array(o, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, t.charsmap, t.charsmap_len);
    }
    arena_free(mem);
    return rc;
}

static int put_folder_tokenizer(gguf_out *o, const model *m, shoal_err *err)
{
    buf json = {0}, config_text = {0};
    json_t *config = NULL;
    int rc = tokenizer_folder_json(&json, m->path, err);
    if (rc == 0) rc = quantize_meta_read_file(m, "tokenizer_config.json", &config_text, err);
    if (rc == 0 && config_text.len) rc = json_parse(&config, config_text.data, config_text.len, m->path, err);
    if (rc == 0 && json.len)
        rc = quantize_put_tokenizer(o, json.data, json.len, config, &m->config, m->path, err);
    else if (rc == 0)
        rc = put_pieces(o, m, err);
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
    conf_write(o, &m->config);
    int rc = m->tok_path    ? quantize_put_llama2c(o, m->tok_path, m->config.n_vocab, err)
             : m->is_folder ? put_folder_tokenizer(o, m, err)
                            : 0;
    if (m->chat && !m->default_chat) {
        const char *source = chat_template_source(m->chat);
        gguf_out_str(o, "tokenizer.chat_template", source);
    }
    if (m->generation_json) gguf_out_str(o, "shoal.generation_config", m->generation_json);
    if (m->preprocessor_json) gguf_out_str(o, "shoal.preprocessor_config", m->preprocessor_json);
    if (m->series_json) gguf_out_str(o, "shoal.series_config", m->series_json);
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
    if (!m->file)
        rc = put_folder(o, m, err);
    else
        for (size_t i = 0; i < m->file->n_kv; i++)
            if (!is_ours(m->file->kv[i].key)) gguf_out_copy(o, &m->file->kv[i]);
    gguf_out_str(o, "general.name", opts->name ? opts->name : m->name);
    if (*version) gguf_out_str(o, "general.version", version);
    gguf_out_u32(o, "general.file_type", quantize_types_file_type(opts));
    gguf_out_u32(o, "general.quantization_version", 2);
    return rc;
}
