/* model_gguf.c: a GGUF file -> model. */
#include <string.h>

#include "model/arch.h"
#include "model/model_build.h"
#include "model/model_priv.h"

enum { LABELS_MAX = 65536, TOKENS_MAX = 4 << 20 };

/* One reader of "ARCH.something" keys; the first failure sticks. */
typedef struct gguf_reader {
    model *m;
    gguf *g;
    shoal_err *err;
    int rc;
} gguf_reader;

static const char *arch_key(gguf_reader *r, const char *name)
{
    const char *key = arena_printf(r->m->mem, "%s.%s", arch_name(r->m->config.arch), name);
    if (!key && r->rc == 0) r->rc = err_nomem(r->err);
    return key;
}

static void read_size(gguf_reader *r, const char *name, bool needed, size_t *ret)
{
    const char *key = arch_key(r, name);
    if (r->rc != 0) return;
    int64_t v = (int64_t)*ret;
    if (needed && !gguf_find(r->g, key))
        r->rc = err_set(r->err, SHOAL_EFORMAT, "%s: \"%s\" is missing", r->m->path, key);
    if (r->rc == 0) r->rc = gguf_get_int(r->g, key, 1, 1 << 24, &v, r->err);
    if (r->rc == 0) *ret = (size_t)v;
}

static void read_num(gguf_reader *r, const char *name, double min, double max, double *ret)
{
    const char *key = arch_key(r, name);
    if (r->rc == 0) r->rc = gguf_get_num(r->g, key, min, max, ret, r->err);
}

static const tensor *file_tensor(const gguf *g, const char *name)
{
    for (size_t i = 0; i < g->n_tensors; i++)
        if (strcmp(g->tensors[i].name, name) == 0) return &g->tensors[i];
    return NULL;
}

static void read_sizes(gguf_reader *r)
{
    model_config *c = &r->m->config;
    const tensor *embd = file_tensor(r->g, "token_embd.weight");
    c->n_vocab = embd ? embd->dims[1] : 0;
    read_size(r, "vocab_size", false, &c->n_vocab);
    read_size(r, "context_length", true, &c->n_ctx);
    read_size(r, "embedding_length", true, &c->n_embd);
    read_size(r, "block_count", true, &c->n_layer);
    read_size(r, "feed_forward_length", true, &c->ffn.n_ff);
    read_size(r, "attention.head_count", true, &c->attn.n_head);
    if (r->rc != 0) return;
    c->attn.head_dim = c->n_embd % c->attn.n_head == 0 ? c->n_embd / c->attn.n_head : 0;
    c->attn.n_head_kv = c->attn.n_head;
}

/* ---- families -------------------------------------------------------------------------------- */

static void read_rope(gguf_reader *r)
{
    model_config *c = &r->m->config;
    const char *type = "none", *key = arch_key(r, "rope.scaling.type");
    double factor = 1;
    c->pos.rope.theta = 10000;
    c->pos.rope.dim = c->attn.head_dim;
    c->pos.rope.interleaved = true;
    read_num(r, "rope.freq_base", 1, 1e12, &c->pos.rope.theta);
    read_size(r, "rope.dimension_count", false, &c->pos.rope.dim);
    read_num(r, "rope.scale_linear", 1e-3, 1e6, &factor); /* the key before rope.scaling.* */
    if (r->rc == 0) r->rc = gguf_get_str(r->g, key, &type, r->err);
    if (r->rc != 0) return;
    if (strcmp(type, "linear") == 0)
        read_num(r, "rope.scaling.factor", 1e-3, 1e6, &factor);
    else if (strcmp(type, "none") != 0)
        r->rc = err_set(r->err, SHOAL_EUNSUPPORTED,
                        "%s: rotary scaling of type \"%.40s\" is not supported (none, linear and llama3 are)",
                        r->m->path, type);
    c->pos.rope.scaling = factor == 1 ? ROPE_PLAIN : ROPE_LINEAR;
    c->pos.rope.factor = factor;
}

static void add_eos(gguf_reader *r, int64_t id)
{
    model_config *c = &r->m->config;
    if (id < 0 || r->rc != 0) return;
    if ((uint64_t)id >= c->n_vocab) {
        r->rc = err_set(r->err, SHOAL_EFORMAT, "%s: the end-of-text id %lld is outside the vocabulary of %zu",
                        r->m->path, (long long)id, c->n_vocab);
        return;
    }
    for (size_t i = 0; i < c->n_eos; i++)
        if (c->eos_ids[i] == id) return;
    if (c->n_eos < sizeof c->eos_ids / sizeof *c->eos_ids) c->eos_ids[c->n_eos++] = (int32_t)id;
}

static void read_eos(gguf_reader *r)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    size_t n = 0;
    const void *list = NULL;
    if (r->rc == 0) r->rc = gguf_get_array(r->g, "shoal.eos_token_ids", GGUF_I32, &n, &list, r->err);
    for (size_t i = 0; i < n; i++) add_eos(r, ((const int32_t *)list)[i]);
    for (size_t i = 0; !list && i < sizeof keys / sizeof *keys; i++) {
        int64_t id = -1;
        if (r->rc == 0) r->rc = gguf_get_int(r->g, keys[i], -1, UINT32_MAX, &id, r->err);
        add_eos(r, id == UINT32_MAX ? -1 : id);
    }
}

/* Files of neighbouring families carry this name too; what sets them apart must not be lost. */
static void read_variants(gguf_reader *r)
{
    int64_t window = 0, experts = 0; /* dense files may say 0 */
    const char *window_key = arch_key(r, "attention.sliding_window"),
               *experts_key = arch_key(r, "expert_count");
    if (r->rc == 0) r->rc = gguf_get_int(r->g, window_key, 0, UINT32_MAX, &window, r->err);
    if (r->rc == 0) r->rc = gguf_get_int(r->g, experts_key, 0, UINT32_MAX, &experts, r->err);
    r->m->config.attn.window = (size_t)window;
    if (r->rc == 0 && experts)
        r->rc = err_set(r->err, SHOAL_EUNSUPPORTED, "%s: a mixture of %lld experts is not supported",
                        r->m->path, (long long)experts);
}

static void read_llama(gguf_reader *r)
{
    model_config *c = &r->m->config;
    double eps = 1e-5;
    size_t value_length;
    c->task = TASK_GENERATE;
    c->ffn.act = ACT_SILU;
    read_size(r, "attention.head_count_kv", false, &c->attn.n_head_kv);
    read_size(r, "attention.key_length", false, &c->attn.head_dim);
    value_length = c->attn.head_dim;
    read_size(r, "attention.value_length", false, &value_length);
    if (r->rc == 0 && value_length != c->attn.head_dim)
        r->rc = err_set(r->err, SHOAL_EUNSUPPORTED,
                        "%s: heads with keys of %zu and values of %zu are not supported", r->m->path,
                        c->attn.head_dim, value_length);
    read_num(r, "attention.layer_norm_rms_epsilon", 0, 0.1, &eps);
    c->norm.eps = (float)eps;
    c->tied = !file_tensor(r->g, "output.weight");
    read_rope(r);
    read_eos(r);
    read_variants(r);
}

static void read_labels(gguf_reader *r)
{
    model_config *c = &r->m->config;
    const char *key = arch_key(r, "classifier.output_labels");
    const char *const *strings = NULL;
    const size_t *lens = NULL;
    size_t n = 0;
    const tensor *out = file_tensor(r->g, "cls.output.weight");
    c->head.n_labels = out ? out->dims[1] : 0;
    if (r->rc == 0) r->rc = gguf_get_strings(r->g, key, &n, &strings, &lens, r->err);
    if (r->rc == 0) r->rc = gguf_get_bool(r->g, "shoal.multi_label", &c->head.multi_label, r->err);
    if (r->rc != 0) return;
    if (c->head.n_labels > LABELS_MAX || (strings && n != c->head.n_labels)) {
        r->rc = err_set(r->err, SHOAL_EFORMAT, "%s: %zu labels for a classifier of %zu outputs", r->m->path,
                        n, c->head.n_labels);
        return;
    }
    c->head.labels = arena_alloc(r->m->mem, c->head.n_labels * sizeof *c->head.labels + 1);
    for (size_t i = 0; c->head.labels && i < c->head.n_labels; i++) {
        c->head.labels[i] =
            strings ? arena_strndup(r->m->mem, strings[i], lens[i]) : arena_printf(r->m->mem, "LABEL_%zu", i);
        if (!c->head.labels[i]) c->head.labels = NULL;
    }
    if (!c->head.labels) r->rc = err_nomem(r->err);
}

static void read_pooling(gguf_reader *r)
{
    model_config *c = &r->m->config;
    const char *mode = NULL, *key = arch_key(r, "pooling_type");
    int64_t type = 1;
    c->head.normalize = true;
    if (r->rc == 0) r->rc = gguf_get_str(r->g, "shoal.pooling", &mode, r->err);
    if (r->rc == 0) r->rc = gguf_get_bool(r->g, "shoal.normalize", &c->head.normalize, r->err);
    if (r->rc == 0 && !mode) r->rc = gguf_get_int(r->g, key, 0, UINT32_MAX, &type, r->err);
    if (r->rc != 0) return;
    /* The field's numbers: 0 none (the caller pools; we take the mean), 1 mean, 2 first token. */
    if (!mode && type <= 2) mode = type == 2 ? "cls" : "mean";
    if (mode && strcmp(mode, "cls") == 0)
        c->head.pool = POOL_CLS;
    else if (mode && strcmp(mode, "mean") == 0)
        c->head.pool = POOL_MEAN;
    else
        r->rc = err_set(r->err, SHOAL_EUNSUPPORTED,
                        "%s: pooling \"%.40s\" (type %lld) is not supported (mean and cls are)", r->m->path,
                        mode ? mode : "", (long long)type);
}

static void read_activation(gguf_reader *r)
{
    const char *name = "gelu";
    if (r->rc == 0) r->rc = gguf_get_str(r->g, "shoal.activation", &name, r->err);
    if (r->rc == 0 && !activation_parse(name, &r->m->config.ffn.act))
        r->rc = err_set(r->err, SHOAL_EUNSUPPORTED, "%s: the activation \"%.40s\" is not supported",
                        r->m->path, name);
}

static void read_task(gguf_reader *r)
{
    model_config *c = &r->m->config;
    const char *task = NULL;
    if (r->rc == 0) r->rc = gguf_get_str(r->g, "shoal.task", &task, r->err);
    c->task = file_tensor(r->g, "cls.output.weight") ? TASK_CLASSIFY : TASK_EMBED;
    if (r->rc == 0 && task && (!task_parse(task, &c->task) || c->task == TASK_GENERATE))
        r->rc = err_set(r->err, SHOAL_EUNSUPPORTED, "%s: the task \"%.40s\" is not supported for bert",
                        r->m->path, task);
}

static void read_bert(gguf_reader *r)
{
    model_config *c = &r->m->config;
    double eps = 1e-12;
    int64_t types = 2;
    bool causal = false;
    const char *causal_key = arch_key(r, "attention.causal");
    const tensor *rows = file_tensor(r->g, "token_types.weight");
    if (rows) types = (int64_t)rows->dims[1];
    read_num(r, "attention.layer_norm_epsilon", 0, 0.1, &eps);
    c->norm.eps = (float)eps;
    if (r->rc == 0) r->rc = gguf_get_int(r->g, "tokenizer.ggml.token_type_count", 1, 1024, &types, r->err);
    if (r->rc == 0) r->rc = gguf_get_bool(r->g, causal_key, &causal, r->err);
    if (r->rc == 0 && causal)
        r->rc = err_set(r->err, SHOAL_EUNSUPPORTED, "%s: BERT with causal attention is not supported",
                        r->m->path);
    c->n_types = (size_t)types;
    read_activation(r);
    read_task(r);
    if (c->task == TASK_EMBED)
        read_pooling(r);
    else
        read_labels(r);
}

static int read_config(model *m, gguf *g, shoal_err *err)
{
    const char *name = NULL;
    int rc = gguf_get_str(g, "general.architecture", &name, err);
    if (rc == 0 && !name)
        rc = err_set(err, SHOAL_EFORMAT, "%s: \"general.architecture\" is missing", m->path);
    if (rc == 0 && !arch_parse(name, &m->config.arch))
        rc = err_set(err, SHOAL_EUNSUPPORTED, "%s: the architecture \"%.40s\" is not supported (%s are)",
                     m->path, name, arch_list());
    if (rc != 0) return rc;
    gguf_reader r = {.m = m, .g = g, .err = err};
    read_sizes(&r);
    if (r.rc == 0 && m->config.arch == ARCH_LLAMA) read_llama(&r);
    if (r.rc == 0 && m->config.arch == ARCH_BERT) read_bert(&r);
    return r.rc != 0 ? r.rc : arch_check_config(&m->config, m->path, err);
}

/* ---- tokenizer ------------------------------------------------------------------------------- */

static int read_tokens(gguf *g, tokenizer_gguf *t, shoal_err *err)
{
    size_t n_types = 0, n_scores = 0;
    const void *types = NULL, *scores = NULL;
    int rc = gguf_get_str(g, "tokenizer.ggml.model", &t->model, err);
    if (rc == 0) rc = gguf_get_str(g, "tokenizer.ggml.pre", &t->pre, err);
    if (rc == 0)
        rc = gguf_get_strings(g, "tokenizer.ggml.tokens", &t->n_tokens, &t->tokens, &t->token_lens, err);
    if (rc == 0)
        rc = gguf_get_strings(g, "tokenizer.ggml.merges", &t->n_merges, &t->merges, &t->merge_lens, err);
    if (rc == 0) rc = gguf_get_array(g, "tokenizer.ggml.token_type", GGUF_I32, &n_types, &types, err);
    if (rc == 0) rc = gguf_get_array(g, "tokenizer.ggml.scores", GGUF_F32, &n_scores, &scores, err);
    if (rc != 0) return rc;
    if (t->n_tokens > TOKENS_MAX || (types && n_types != t->n_tokens) || (scores && n_scores != t->n_tokens))
        return err_set(err, SHOAL_EFORMAT, "%s: %zu tokens with %zu token types and %zu scores", g->what,
                       t->n_tokens, n_types, n_scores);
    t->token_types = types;
    t->scores = scores;
    return 0;
}

static int read_flag(const gguf *g, const char *key, int *ret, shoal_err *err)
{
    bool v = false;
    *ret = -1;
    int rc = gguf_get_bool(g, key, &v, err);
    if (rc == 0 && gguf_find(g, key)) *ret = v;
    return rc;
}

static int read_special(const gguf *g, tokenizer_gguf *t, shoal_err *err)
{
    const struct {
        const char *key;
        int64_t *id;
    } ids[] = {
        {"tokenizer.ggml.bos_token_id", &t->bos},
        {"tokenizer.ggml.eos_token_id", &t->eos},
        {"tokenizer.ggml.unknown_token_id", &t->unk},
        {"tokenizer.ggml.padding_token_id", &t->pad},
        {"tokenizer.ggml.cls_token_id", &t->cls},
        {"tokenizer.ggml.mask_token_id", &t->mask},
        /* the misspelling is the format's; newer files have it right */
        {"tokenizer.ggml.seperator_token_id", &t->sep},
        {"tokenizer.ggml.separator_token_id", &t->sep},
    };
    int rc = 0;
    t->sep = -1;
    for (size_t i = 0; rc == 0 && i < sizeof ids / sizeof *ids; i++) {
        if (ids[i].id != &t->sep) *ids[i].id = -1;
        rc = gguf_get_int(g, ids[i].key, -1, UINT32_MAX, ids[i].id, err);
        if (rc == 0 && *ids[i].id >= (int64_t)t->n_tokens) *ids[i].id = -1;
    }
    if (rc == 0) rc = read_flag(g, "tokenizer.ggml.add_bos_token", &t->add_bos, err);
    if (rc == 0) rc = read_flag(g, "tokenizer.ggml.add_eos_token", &t->add_eos, err);
    if (rc == 0) rc = read_flag(g, "tokenizer.ggml.normalizer.lowercase", &t->lowercase, err);
    return rc;
}

/* Borrowed from the file, NULL when it has none. */
static const char *tokenizer_json(const gguf *g, size_t *ret_len)
{
    const gguf_kv *kv = gguf_find(g, "tokenizer.huggingface.json");
    return kv ? gguf_string(kv, ret_len) : NULL;
}

static int load_tokenizer(model *m, gguf *g, shoal_err *err)
{
    size_t len, config_len = 0;
    const char *json = tokenizer_json(g, &len);
    const gguf_kv *kv = gguf_find(g, "shoal.tokenizer_config");
    const char *config = kv ? gguf_string(kv, &config_len) : NULL;
    if (json) return tokenizer_from_json(&m->tok, json, len, config, config_len, m->path, err);
    tokenizer_gguf t = {0};
    int rc = read_tokens(g, &t, err);
    if (rc == 0) rc = read_special(g, &t, err);
    if (rc != 0) return rc;
    if (!t.model || !t.tokens)
        return err_set(err, SHOAL_ENOTFOUND, "%s: the file holds no tokenizer", m->path);
    return tokenizer_from_gguf(&m->tok, &t, m->path, err);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int load_text_side(model *m, gguf *g, bool no_tokenizer, shoal_err *err)
{
    int rc = no_tokenizer ? 0 : model_build_tokenizer(m, load_tokenizer(m, g, err), err);
    const gguf_kv *kv = gguf_find(g, "tokenizer.chat_template");
    const char *results = "";
    size_t len;
    if (rc == 0) rc = gguf_get_str(g, "shoal.tool_results", &results, err);
    m->quotes_results = strcmp(results, "quote") == 0;
    const char *source = kv ? gguf_string(kv, &len) : NULL;
    if (rc != 0 || !source) return rc;
    return model_build_template(m, source, len, m->path, err);
}

static int adopt_tensors(model *m, const gguf *g, shoal_err *err)
{
    m->tensors = arena_alloc(m->mem, g->n_tensors * sizeof *m->tensors + 1);
    if (!m->tensors) return err_nomem(err);
    for (size_t i = 0; i < g->n_tensors; i++) {
        if (!arch_find(m->config.arch, g->tensors[i].name)) {
            int rc = model_build_unknown(m, g->tensors[i].name, err);
            if (rc != 0) return rc;
            continue;
        }
        tensor *t = &m->tensors[m->n_tensors++];
        *t = g->tensors[i];
        t->name = arena_strdup(m->mem, t->name);
        if (!t->name) return err_nomem(err);
    }
    return 0;
}

static int read_names(model *m, gguf *g, shoal_err *err)
{
    const char *name = m->name, *version = "";
    int rc = gguf_get_str(g, "general.name", &name, err);
    if (rc == 0) rc = gguf_get_str(g, "general.version", &version, err);
    if (rc != 0) return rc;
    m->name = arena_strdup(m->mem, name);
    m->version = arena_strdup(m->mem, version);
    return m->name && m->version ? 0 : err_nomem(err);
}

static int read_window(model *m, gguf *g, shoal_err *err)
{
    if (m->config.arch != ARCH_LLAMA) return 0;
    const char *names[3] = {m->name, NULL, NULL};
    int rc = gguf_get_str(g, "general.basename", &names[1], err);
    if (rc == 0) rc = gguf_get_str(g, "general.base_model.0.name", &names[2], err);
    bool unrecorded = !gguf_find(g, "llama.attention.sliding_window") && model_build_is_mistral(m, names, 3);
    return rc == 0 ? model_build_window(m, m->config.attn.window, unrecorded, err) : rc;
}

int model_load_gguf(model *m, const model_options *opts, shoal_err *err)
{
    int rc = model_build_maps(m, 1, err);
    if (rc == 0) rc = model_build_map_file(m, m->path, err);
    if (rc == 0) rc = gguf_parse(&m->file, m->maps[0].data, m->maps[0].len, m->path, err);
    if (rc == 0) rc = read_config(m, m->file, err);
    if (rc == 0) rc = read_names(m, m->file, err);
    if (rc == 0) rc = read_window(m, m->file, err);
    if (rc == 0) rc = adopt_tensors(m, m->file, err);
    if (rc == 0) rc = load_text_side(m, m->file, opts->no_tokenizer, err);
    return rc;
}
