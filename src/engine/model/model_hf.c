/* model_hf.c: a Hugging Face folder -> model. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/hub_file.h"
#include "json/json.h"
#include "model/config/hf_config.h"
#include "model/model_adopt.h"
#include "model/model_build.h"
#include "model/model_ct2.h"
#include "model/model_priv.h"
#include "model/model_unknown.h"
#include "model/files/safetensors.h"

enum { CONFIG_MAX = 16 << 20, INDEX_MAX = 64 << 20 };

static char *model_hf_join(const model *m, const char *file)
{
    return arena_printf(m->mem, "%s/%s", m->path, file);
}

/* A JSON file of the folder; absent is fine and leaves *ret alone. */
static int read_optional(const model *m, const char *file, json_t **ret, shoal_err *err)
{
    char *path = model_hf_join(m, file);
    if (!path) return err_nomem(err);
    return file_exists(path) ? hub_file_parse_json(ret, path, CONFIG_MAX, err) : 0;
}

/* *ret_unknown: the family when nobody has described it. */
static int read_configs(model *m, const char **ret_unknown, shoal_err *err)
{
    json_t *config = NULL, *generation = NULL, *pool = NULL, *st_pooling = NULL, *st_modules = NULL,
           *st_bert = NULL;
    char *path = model_hf_join(m, "config.json");
    int rc = path ? hub_file_parse_json(&config, path, CONFIG_MAX, err) : err_nomem(err);
    if (rc == 0) rc = read_optional(m, "generation_config.json", &generation, err);
    if (rc == 0) rc = read_optional(m, "pooling.json", &pool, err);
    if (rc == 0) rc = read_optional(m, "1_Pooling/config.json", &st_pooling, err);
    if (rc == 0) rc = read_optional(m, "modules.json", &st_modules, err);
    if (rc == 0) rc = read_optional(m, "sentence_bert_config.json", &st_bert, err);
    if (rc == 0) {
        hf_files files = {.config = config,
                          .generation = generation,
                          .pooling = pool,
                          .st_pooling = st_pooling,
                          .st_modules = st_modules,
                          .st_bert = st_bert};
        rc = hf_config_read(&m->config, &files, m->mem, path, err);
        const char *type = json_string_value(json_object_get(config, "model_type"));
        if (rc == SHOAL_EUNSUPPORTED && type && !arch_by_hf(type)) *ret_unknown = arena_strdup(m->mem, type);
    }
    json_decref(config);
    json_decref(generation);
    json_decref(pool);
    json_decref(st_pooling);
    json_decref(st_modules);
    json_decref(st_bert);
    return rc;
}

/* ---- weights ------------------------------------------------------------------------------------------- */

static int load_shards(model *m, const char *const *files, size_t n, st_list *list, shoal_err *err)
{
    int rc = model_build_maps(m, n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        char *path = model_hf_join(m, files[i]);
        if (!path) return err_nomem(err);
        if (packed_identity_known(&m->identity)) rc = packed_identify_also(&m->identity, path, err);
        if (rc == 0) rc = model_build_map_file(m, path, err);
        if (rc == 0) rc = safetensors_parse(list, m->mem, m->maps[i].data, m->maps[i].len, path, err);
    }
    return rc;
}

static const char CONVERT[] =
    "%s: its weights are in %s, a pickle, which may run programs and is not read; convert them: cd %s && "
    "python3 -c "
    "'import glob, torch; from safetensors.torch import save_file; d = {}; [d.update(torch.load(f, \"cpu\", "
    "weights_only=True)) for f in glob.glob(\"pytorch_model*.bin\")]; save_file({k: v.clone().contiguous() "
    "for k, v "
    "in d.items()}, \"model.safetensors\")'";

static int no_weights(const model *m, shoal_err *err)
{
    static const char *const pickles[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        char *path = model_hf_join(m, pickles[i]);
        if (!path) return err_nomem(err);
        if (file_exists(path)) return err_set(err, SHOAL_EUNSUPPORTED, CONVERT, m->path, pickles[i], m->path);
    }
    return err_set(err, SHOAL_ENOTFOUND, "%s: has neither model.safetensors nor model.safetensors.index.json",
                   m->path);
}

static int find_shards(model *m, const char ***ret_files, size_t *ret_n, shoal_err *err)
{
    static const char *const single[] = {"model.safetensors"};
    char *index = model_hf_join(m, "model.safetensors.index.json"), *path = model_hf_join(m, single[0]);
    if (!index || !path) return err_nomem(err);
    if (!file_exists(index)) {
        if (!file_exists(path)) return no_weights(m, err);
        *ret_files = (const char **)single;
        *ret_n = 1;
        return 0;
    }
    buf text = {0};
    int rc = hub_file_read_json(&text, index, INDEX_MAX, err);
    if (rc == 0) rc = safetensors_index_parse(ret_files, ret_n, m->mem, text.data, text.len, index, err);
    buf_done(&text);
    return rc;
}

/* Say which tensors are strange, where they can be had; else what err says already stands. */
static int model_hf_refuse(model *m, const char *type, shoal_err *err)
{
    const char **files;
    size_t n;
    st_list list = {0};
    shoal_err unused;
    int rc = find_shards(m, &files, &n, &unused);
    if (rc == 0) rc = load_shards(m, files, n, &list, &unused);
    if (rc == 0) model_unknown(m->path, type, NAME_HF, list.items, list.n, err);
    safetensors_list_done(&list);
    return rc == SHOAL_ENOMEM ? err_nomem(err) : SHOAL_EUNSUPPORTED;
}

static int load_weights(model *m, shoal_err *err)
{
    const char **files;
    size_t n;
    st_list list = {0};
    int rc = find_shards(m, &files, &n, err);
    if (rc == 0) rc = load_shards(m, files, n, &list, err);
    if (rc == 0) rc = model_adopt(m, NAME_HF, list.items, list.n, err);
    safetensors_list_done(&list);
    return rc;
}

/* ---- tokenizer and template ------------------------------------------------------------------ */

static int load_tokenizer(model *m, shoal_err *err)
{
    return model_build_tokenizer(m, tokenizer_from_folder(&m->tok, m->path, err), err);
}

/* The template in tokenizer_config.json: a string, or a list of named ones of which "default" counts. */
static const json_t *configured_template(const json_t *config)
{
    const json_t *v = json_object_get(config, "chat_template");
    if (!json_is_array(v)) return v;
    const json_t *first = json_object_get(json_array_get(v, 0), "template");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(v, i), "name"));
        if (name && strcmp(name, "default") == 0) return json_object_get(json_array_get(v, i), "template");
    }
    return first;
}

static int load_template(model *m, const buf *config_text, const char *config_path, shoal_err *err)
{
    char *jinja = model_hf_join(m, "chat_template.jinja");
    if (!jinja) return err_nomem(err);
    if (file_exists(jinja)) {
        buf source = {0};
        int rc = file_read(&source, jinja, MODEL_JSON_MAX, err);
        if (rc == 0) rc = hub_file_check(source.data, source.len, jinja, err);
        if (rc == 0) rc = model_build_template(m, source.data ? source.data : "", source.len, jinja, err);
        buf_done(&source);
        return rc;
    }
    if (config_text->len == 0) return 0;
    json_t *config = NULL;
    int rc = json_parse(&config, config_text->data, config_text->len, config_path, err);
    if (rc != 0) return rc;
    const json_t *t = configured_template(config);
    if (json_is_string(t))
        rc = model_build_template(m, json_string_value(t), json_string_length(t), config_path, err);
    json_decref(config);
    return rc;
}

static int load_text_side(model *m, bool no_tokenizer, shoal_err *err)
{
    buf config = {0};
    char *path = model_hf_join(m, "tokenizer_config.json");
    int rc = path ? 0 : err_nomem(err);
    if (rc == 0 && file_exists(path)) rc = hub_file_read_json(&config, path, MODEL_JSON_MAX, err);
    if (rc == 0 && !no_tokenizer) rc = load_tokenizer(m, err);
    if (rc == 0) rc = load_template(m, &config, path, err);
    buf_done(&config);
    return rc;
}

static int load_input_text(model *m, const char *file, const char **ret, shoal_err *err)
{
    buf text = {0};
    char *path = model_hf_join(m, file);
    if (!path) return err_nomem(err);
    if (!file_exists(path)) return 0;
    int rc = hub_file_read_json(&text, path, MODEL_INPUT_JSON_MAX, err);
    if (rc == 0) rc = model_build_input(m, ret, text.data ? text.data : "", text.len, path, err);
    buf_done(&text);
    return rc;
}

/* What stands in front of the network, for those that read no text. */
static int load_input_side(model *m, shoal_err *err)
{
    model_task task = m->config.task;
    int rc = 0;
    if (task == TASK_TRANSCRIBE) rc = load_input_text(m, "generation_config.json", &m->generation_json, err);
    if (rc == 0 && (task == TASK_TRANSCRIBE || task == TASK_IMAGE))
        rc = load_input_text(m, "preprocessor_config.json", &m->preprocessor_json, err);
    if (rc == 0 && task == TASK_SCORE) rc = load_input_text(m, "config.json", &m->series_json, err);
    return rc;
}

/* CTranslate2's folder has no such configuration; what stands for it is made from its weights. */
int model_load_ct2(model *m, const model_options *opts, shoal_err *err)
{
    ct2_configs made = {0};
    st_list list = {0};
    char *generation = NULL;
    int rc = model_ct2_read(m, &made, &list, err);
    hf_files files = {.config = made.config, .generation = made.generation};
    if (rc == 0) rc = hf_config_read(&m->config, &files, m->mem, m->path, err);
    if (rc == 0) rc = model_adopt(m, NAME_HF, list.items, list.n, err);
    if (rc == 0 && !(generation = json_dumps(made.generation, JSON_COMPACT))) rc = err_nomem(err);
    if (rc == 0) rc = model_build_input(m, &m->generation_json, generation, strlen(generation), m->path, err);
    if (rc == 0) rc = load_text_side(m, opts->no_tokenizer, err);
    if (rc == 0) rc = load_input_text(m, "preprocessor_config.json", &m->preprocessor_json, err);
    free(generation);
    json_decref(made.config);
    json_decref(made.generation);
    safetensors_list_done(&list);
    return rc;
}

int model_load_hf(model *m, const model_options *opts, shoal_err *err)
{
    const char *unknown = NULL;
    int rc = read_configs(m, &unknown, err);
    if (unknown) return model_hf_refuse(m, unknown, err);
    if (rc == 0) rc = load_weights(m, err);
    if (rc == 0) rc = load_text_side(m, opts->no_tokenizer, err);
    if (rc == 0) rc = load_input_side(m, err);
    return rc;
}
