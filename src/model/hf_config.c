/* hf_config.c: config.json of Hugging Face's transformers, read strictly; see hf_config.h. What would quietly
 * change answers (another head, rotary scaling, kind of positions) is refused by name. */
#include "model/hf_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/arch.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { LABELS_MAX = 65536 };

/* What the readers below share. */
typedef struct hf_reader {
    model_config *c;
    const hf_files *files;
    arena *mem;
    const char *what;
    shoal_err *err;
} hf_reader;

static int read_size(hf_reader *r, const char *key, int64_t max, size_t *ret)
{
    int64_t v = (int64_t)*ret;
    int rc = json_get_int(r->files->config, key, 1, max, &v, r->err);
    if (rc == 0) *ret = (size_t)v;
    return rc;
}

static int need_size(hf_reader *r, const char *key, int64_t max, size_t *ret)
{
    const json_t *v = json_object_get(r->files->config, key);
    if (!v || json_is_null(v)) return err_set(r->err, SHOAL_EINVALID, "\"%s\" is missing", key);
    return read_size(r, key, max, ret);
}

static int read_eps(hf_reader *r, const char *key)
{
    double eps = 1e-6;
    int rc = json_get_num(r->files->config, key, 0, 0.1, &eps, r->err);
    r->c->norm.eps = (float)eps;
    return rc;
}

static int read_activation(hf_reader *r, const char *fallback)
{
    const char *name = fallback;
    int rc = json_get_str(r->files->config, "hidden_act", &name, r->err);
    if (rc != 0) return rc;
    if (activation_parse(name, &r->c->ffn.act)) return 0;
    return err_set(r->err, SHOAL_EUNSUPPORTED, "the activation \"%.40s\" is not supported", name);
}

/* ---- rotary embedding ----------------------------------------------------------------------------- */

static int read_llama3_scaling(hf_reader *r, const json_t *o)
{
    model_config *c = r->c;
    double original = 0;
    int rc = json_get_num(o, "factor", 1, 1e6, &c->pos.rope.factor, r->err);
    if (rc == 0) rc = json_get_num(o, "low_freq_factor", 1e-3, 1e6, &c->pos.rope.low_freq, r->err);
    if (rc == 0) rc = json_get_num(o, "high_freq_factor", 1e-3, 1e6, &c->pos.rope.high_freq, r->err);
    if (rc == 0) rc = json_get_num(o, "original_max_position_embeddings", 1, 1e9, &original, r->err);
    if (rc != 0) return rc;
    c->pos.rope.original_ctx = (size_t)original;
    if (c->pos.rope.factor == 0 || c->pos.rope.original_ctx == 0 || c->pos.rope.low_freq == 0 ||
        c->pos.rope.high_freq <= c->pos.rope.low_freq)
        return err_set(r->err, SHOAL_EINVALID,
                       "llama3 rotary scaling needs factor, original_max_position_embeddings and "
                       "low_freq_factor < high_freq_factor");
    c->pos.rope.scaling = ROPE_LLAMA3;
    return 0;
}

static int read_rope_scaling(hf_reader *r, const json_t *o)
{
    const char *type = "default";
    int rc = json_get_str(o, "type", &type, r->err); /* the name before "rope_type" */
    if (rc == 0) rc = json_get_str(o, "rope_type", &type, r->err);
    if (rc != 0 || strcmp(type, "default") == 0) return rc;
    if (strcmp(type, "llama3") == 0) return read_llama3_scaling(r, o);
    if (strcmp(type, "linear") != 0)
        return err_set(r->err, SHOAL_EUNSUPPORTED,
                       "rotary scaling of type \"%.40s\" is not supported (default, linear and llama3 are)",
                       type);
    double factor = 1;
    rc = json_get_num(o, "factor", 1e-3, 1e6, &factor, r->err);
    r->c->pos.rope.scaling = ROPE_LINEAR;
    r->c->pos.rope.factor = factor;
    return rc;
}

static int read_rope(hf_reader *r)
{
    const json_t *config = r->files->config, *params = json_object_get(config, "rope_parameters");
    const json_t *scaling = json_is_object(params) ? params : json_object_get(config, "rope_scaling");
    double partial = 1;
    if (params && !json_is_null(params) && !json_is_object(params))
        return err_set(r->err, SHOAL_EINVALID, "\"rope_parameters\" must be an object");
    r->c->pos.rope.theta = 10000;
    int rc = json_get_num(config, "rope_theta", 1, 1e12, &r->c->pos.rope.theta, r->err);
    if (rc == 0) rc = json_get_num(config, "partial_rotary_factor", 0, 1, &partial, r->err);
    if (rc == 0 && json_is_object(scaling)) {
        rc = json_get_num(scaling, "rope_theta", 1, 1e12, &r->c->pos.rope.theta, r->err);
        if (rc == 0) rc = json_get_num(scaling, "partial_rotary_factor", 0, 1, &partial, r->err);
        if (rc == 0) rc = read_rope_scaling(r, scaling);
    }
    r->c->pos.rope.dim = (size_t)((double)r->c->attn.head_dim * partial);
    return rc;
}

/* ---- labels and pooling ----------------------------------------------------------------------------- */

static int label_index(const char *key, size_t n, size_t *ret)
{
    char *end;
    unsigned long v = strtoul(key, &end, 10);
    if (*key < '0' || *key > '9' || *end || v >= n) return SHOAL_EINVALID;
    *ret = v;
    return 0;
}

static int read_id2label(hf_reader *r, json_t *map)
{
    size_t n = json_object_size(map);
    if (n == 0 || n > LABELS_MAX)
        return err_set(r->err, SHOAL_EINVALID, "\"id2label\" has %zu labels; 1 to %d are allowed", n,
                       LABELS_MAX);
    const char **labels = arena_alloc(r->mem, n * sizeof *labels);
    if (!labels) return err_nomem(r->err);
    const char *key;
    json_t *v;
    json_object_foreach(map, key, v)
    {
        size_t i;
        if (label_index(key, n, &i) != 0 || labels[i])
            return err_set(r->err, SHOAL_EINVALID,
                           "\"id2label\" has the key \"%.40s\"; its %zu keys must be 0 to %zu", key, n,
                           n - 1);
        const char *label = json_string_value(v);
        if (!label || strlen(label) != json_string_length(v))
            return err_set(r->err, SHOAL_EINVALID, "\"id2label\" entry %zu is no plain string", i);
        if (!(labels[i] = arena_strdup(r->mem, label))) return err_nomem(r->err);
    }
    r->c->head.labels = labels;
    r->c->head.n_labels = n;
    return 0;
}

static int read_labels(hf_reader *r)
{
    const json_t *config = r->files->config;
    json_t *map = json_object_get(config, "id2label");
    const char *problem = "";
    int rc = json_get_str(config, "problem_type", &problem, r->err);
    if (rc != 0) return rc;
    r->c->head.multi_label = strcmp(problem, "multi_label_classification") == 0;
    if (json_is_object(map)) return read_id2label(r, map);
    size_t n = 2; /* the reference's default when a configuration names no labels */
    rc = read_size(r, "num_labels", LABELS_MAX, &n);
    if (rc != 0) return rc;
    const char **labels = arena_alloc(r->mem, n * sizeof *labels);
    if (!labels) return err_nomem(r->err);
    for (size_t i = 0; i < n; i++)
        if (!(labels[i] = arena_printf(r->mem, "LABEL_%zu", i))) return err_nomem(r->err);
    r->c->head.labels = labels;
    r->c->head.n_labels = n;
    return 0;
}

static int pooling_mode(hf_reader *r, const char *mode)
{
    if (strcmp(mode, "mean") == 0)
        r->c->head.pool = POOL_MEAN;
    else if (strcmp(mode, "cls") == 0)
        r->c->head.pool = POOL_CLS;
    else
        return err_set(r->err, SHOAL_EUNSUPPORTED, "pooling \"%.40s\" is not supported (mean and cls are)",
                       mode);
    return 0;
}

static int read_st_pooling(hf_reader *r)
{
    static const char *const others[] = {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
                                         "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"};
    const json_t *o = r->files->st_pooling;
    if (!json_is_object(o)) return 0;
    bool mean = false, cls = false;
    int rc = json_get_bool(o, "pooling_mode_mean_tokens", &mean, r->err);
    if (rc == 0) rc = json_get_bool(o, "pooling_mode_cls_token", &cls, r->err);
    for (size_t i = 0; rc == 0 && i < COUNT(others); i++)
        if (json_is_true(json_object_get(o, others[i]))) rc = pooling_mode(r, others[i]);
    if (rc == 0 && mean && cls) rc = pooling_mode(r, "cls and mean together");
    if (rc == 0) r->c->head.pool = cls ? POOL_CLS : POOL_MEAN;
    return rc;
}

static void read_st_modules(hf_reader *r)
{
    if (!json_is_array(r->files->st_modules)) return;
    r->c->head.normalize = false;
    size_t i;
    json_t *module;
    json_array_foreach((json_t *)r->files->st_modules, i, module)
    {
        const char *type = json_string_value(json_object_get(module, "type"));
        if (type && strstr(type, ".Normalize")) r->c->head.normalize = true;
    }
}

/* Mean and normalised unless the folder says otherwise. */
static int read_pooling(hf_reader *r)
{
    r->c->head.pool = POOL_MEAN;
    r->c->head.normalize = true;
    int rc = read_st_pooling(r);
    read_st_modules(r);
    const json_t *p = r->files->pooling;
    if (rc != 0 || !json_is_object(p)) return rc;
    const char *mode = NULL;
    const json_t *first = json_object_get(p, "0");
    if (json_is_object(first)) rc = json_get_str(first, "mode", &mode, r->err);
    if (rc == 0 && mode) rc = pooling_mode(r, mode);
    if (rc == 0) rc = json_get_bool(p, "normalize", &r->c->head.normalize, r->err);
    return rc;
}

/* ---- end of text ------------------------------------------------------------------------------------- */

static int add_eos(hf_reader *r, const json_t *v)
{
    json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
    if (id < 0 || (size_t)id >= r->c->n_vocab)
        return err_set(r->err, SHOAL_EINVALID, "\"eos_token_id\" %lld is outside the vocabulary of %zu",
                       (long long)id, r->c->n_vocab);
    if (r->c->n_eos == COUNT(r->c->eos_ids))
        return err_set(r->err, SHOAL_ELIMIT, "more than %zu end-of-text ids", COUNT(r->c->eos_ids));
    r->c->eos_ids[r->c->n_eos++] = (int32_t)id;
    return 0;
}

static int read_eos(hf_reader *r)
{
    const json_t *v = json_object_get(r->files->generation, "eos_token_id");
    if (!v || json_is_null(v)) v = json_object_get(r->files->config, "eos_token_id");
    if (!v || json_is_null(v)) return 0;
    if (!json_is_array(v)) return add_eos(r, v);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(v); i++) rc = add_eos(r, json_array_get(v, i));
    return rc;
}

/* ---- families ------------------------------------------------------------------------------------------ */

static int read_sizes(hf_reader *r)
{
    model_config *c = r->c;
    int rc = need_size(r, "vocab_size", 4 << 20, &c->n_vocab);
    if (rc == 0) rc = need_size(r, "hidden_size", 65536, &c->n_embd);
    if (rc == 0) rc = need_size(r, "num_hidden_layers", 1024, &c->n_layer);
    if (rc == 0) rc = need_size(r, "num_attention_heads", 1024, &c->attn.n_head);
    if (rc == 0) rc = need_size(r, "intermediate_size", 1 << 20, &c->ffn.n_ff);
    if (rc == 0) rc = need_size(r, "max_position_embeddings", 16 << 20, &c->n_ctx);
    if (rc != 0) return rc;
    c->attn.head_dim = c->n_embd % c->attn.n_head == 0 ? c->n_embd / c->attn.n_head : 0;
    c->attn.n_head_kv = c->attn.n_head;
    return 0;
}

static int read_llama(hf_reader *r)
{
    int rc = read_size(r, "num_key_value_heads", 1024, &r->c->attn.n_head_kv);
    if (rc == 0) rc = read_size(r, "head_dim", 4096, &r->c->attn.head_dim);
    if (rc == 0) rc = read_eps(r, "rms_norm_eps");
    if (rc == 0) rc = json_get_bool(r->files->config, "tie_word_embeddings", &r->c->tied, r->err);
    if (rc == 0) rc = read_activation(r, "silu");
    if (rc == 0 && r->c->ffn.act != ACT_SILU)
        rc = err_set(r->err, SHOAL_EUNSUPPORTED,
                     "a llama model with another activation than silu is not supported");
    if (rc == 0) rc = read_rope(r);
    return rc != 0 ? rc : read_eos(r);
}

static int read_bert(hf_reader *r)
{
    const char *positions = "absolute";
    bool decoder = false;
    r->c->n_types = 2;
    int rc = read_size(r, "type_vocab_size", 1024, &r->c->n_types);
    if (rc == 0) rc = read_eps(r, "layer_norm_eps");
    if (rc == 0) rc = read_activation(r, "gelu");
    if (rc == 0) rc = json_get_str(r->files->config, "position_embedding_type", &positions, r->err);
    if (rc == 0) rc = json_get_bool(r->files->config, "is_decoder", &decoder, r->err);
    if (rc == 0 && decoder) rc = err_set(r->err, SHOAL_EUNSUPPORTED, "BERT as a decoder is not supported");
    if (rc == 0 && strcmp(positions, "absolute") != 0)
        rc = err_set(r->err, SHOAL_EUNSUPPORTED, "BERT with \"%.40s\" positions is not supported", positions);
    if (rc != 0) return rc;
    r->c->tied = false;
    if (r->c->task == TASK_EMBED) return read_pooling(r);
    return read_labels(r);
}

static int read_task(hf_reader *r)
{
    static const struct {
        const char *name;
        arch arch;
        model_task task;
    } known[] = {
        {"LlamaForCausalLM", ARCH_LLAMA, TASK_GENERATE},
        {"MistralForCausalLM", ARCH_LLAMA, TASK_GENERATE},
        {"BertForSequenceClassification", ARCH_BERT, TASK_CLASSIFY},
        {"BertForTokenClassification", ARCH_BERT, TASK_TAG},
        {"BertModel", ARCH_BERT, TASK_EMBED},
    };
    const json_t *list = json_object_get(r->files->config, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    if (!name) {
        r->c->task = r->c->arch == ARCH_LLAMA ? TASK_GENERATE : TASK_EMBED;
        return 0;
    }
    for (size_t i = 0; i < COUNT(known); i++) {
        if (known[i].arch != r->c->arch || strcmp(known[i].name, name) != 0) continue;
        r->c->task = known[i].task;
        return 0;
    }
    /* sentence-transformers folders may keep the head the encoder was trained with. */
    if (r->c->arch == ARCH_BERT && (r->files->pooling || r->files->st_pooling)) {
        r->c->task = TASK_EMBED;
        return 0;
    }
    return err_set(r->err, SHOAL_EUNSUPPORTED,
                   "the head \"%.60s\" is not supported (LlamaForCausalLM, MistralForCausalLM, "
                   "BertForSequenceClassification, "
                   "BertForTokenClassification and BertModel are)",
                   name);
}

/* Absent is not null: the reference's own default is v0.1's. */
static int read_window(hf_reader *r)
{
    r->c->attn.window = json_object_get(r->files->config, "sliding_window") ? 0 : 4096;
    return read_size(r, "sliding_window", 16 << 20, &r->c->attn.window);
}

static int read_config(hf_reader *r)
{
    const char *type = NULL;
    if (!json_is_object(r->files->config)) return err_set(r->err, SHOAL_EINVALID, "not a JSON object");
    int rc = json_get_str(r->files->config, "model_type", &type, r->err);
    if (rc == 0 && !type) rc = err_set(r->err, SHOAL_EINVALID, "\"model_type\" is missing");
    if (rc != 0) return rc;
    bool mistral = strcmp(type, "mistral") == 0; /* llama with a window, or without */
    if (!arch_parse(mistral ? "llama" : type, &r->c->arch))
        return err_set(r->err, SHOAL_EUNSUPPORTED, "the architecture \"%.40s\" is not supported (%s are)",
                       type, arch_list());
    rc = mistral ? read_window(r) : 0;
    if (rc == 0) rc = read_task(r);
    if (rc == 0) rc = read_sizes(r);
    if (rc != 0) return rc;
    return r->c->arch == ARCH_LLAMA ? read_llama(r) : read_bert(r);
}

int hf_config_read(model_config *ret, const hf_files *files, arena *mem, const char *what, shoal_err *err)
{
    model_config c = {0};
    hf_reader r = {.c = &c, .files = files, .mem = mem, .what = what, .err = err};
    int rc = read_config(&r);
    if (rc != 0) return err_prefix(err, rc, "%s", what);
    rc = arch_check_config(&c, what, err);
    if (rc == 0) *ret = c;
    return rc;
}
