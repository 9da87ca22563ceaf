/* arch.c: the tables of arch.h and what is derived from them. GGUF's names are the ggml project's, the others
 * those of Hugging Face checkpoints. A new architecture is a row of ARCH_TABLE (model.h), a table here and a
 * pass in infer/. */
#include "model/arch.h"

#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const arch_tensor llama_tensors[] = {
    {"token_embd.weight", "embed_tokens.weight", DIM_EMBD, DIM_VOCAB, 0},
    {"output_norm.weight", "norm.weight", DIM_EMBD, DIM_ONE, 0},
    {"output.weight", "lm_head.weight", DIM_EMBD, DIM_VOCAB, TENSOR_UNTIED},
    {"rope_freqs.weight", NULL, DIM_ROPE, DIM_ONE, TENSOR_OPTIONAL},
    {"blk.#.attn_norm.weight", "layers.#.input_layernorm.weight", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.attn_q.weight", "layers.#.self_attn.q_proj.weight", DIM_EMBD, DIM_Q, TENSOR_ROPE_Q},
    {"blk.#.attn_k.weight", "layers.#.self_attn.k_proj.weight", DIM_EMBD, DIM_KV, TENSOR_ROPE_K},
    {"blk.#.attn_v.weight", "layers.#.self_attn.v_proj.weight", DIM_EMBD, DIM_KV, 0},
    {"blk.#.attn_output.weight", "layers.#.self_attn.o_proj.weight", DIM_Q, DIM_EMBD, 0},
    {"blk.#.attn_q.bias", "layers.#.self_attn.q_proj.bias", DIM_Q, DIM_ONE, TENSOR_OPTIONAL | TENSOR_ROPE_Q},
    {"blk.#.attn_k.bias", "layers.#.self_attn.k_proj.bias", DIM_KV, DIM_ONE, TENSOR_OPTIONAL | TENSOR_ROPE_K},
    {"blk.#.attn_v.bias", "layers.#.self_attn.v_proj.bias", DIM_KV, DIM_ONE, TENSOR_OPTIONAL},
    {"blk.#.attn_output.bias", "layers.#.self_attn.o_proj.bias", DIM_EMBD, DIM_ONE, TENSOR_OPTIONAL},
    {"blk.#.ffn_norm.weight", "layers.#.post_attention_layernorm.weight", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.ffn_gate.weight", "layers.#.mlp.gate_proj.weight", DIM_EMBD, DIM_FF, 0},
    {"blk.#.ffn_up.weight", "layers.#.mlp.up_proj.weight", DIM_EMBD, DIM_FF, 0},
    {"blk.#.ffn_down.weight", "layers.#.mlp.down_proj.weight", DIM_FF, DIM_EMBD, 0},
    {"blk.#.ffn_gate.bias", "layers.#.mlp.gate_proj.bias", DIM_FF, DIM_ONE, TENSOR_OPTIONAL},
    {"blk.#.ffn_up.bias", "layers.#.mlp.up_proj.bias", DIM_FF, DIM_ONE, TENSOR_OPTIONAL},
    {"blk.#.ffn_down.bias", "layers.#.mlp.down_proj.bias", DIM_EMBD, DIM_ONE, TENSOR_OPTIONAL},
};

#define BERT_LAYER "encoder.layer.#."
static const arch_tensor bert_tensors[] = {
    {"token_embd.weight", "embeddings.word_embeddings.weight", DIM_EMBD, DIM_VOCAB, 0},
    {"position_embd.weight", "embeddings.position_embeddings.weight", DIM_EMBD, DIM_CTX, 0},
    {"token_types.weight", "embeddings.token_type_embeddings.weight", DIM_EMBD, DIM_TYPES, 0},
    {"token_embd_norm.weight", "embeddings.LayerNorm.weight", DIM_EMBD, DIM_ONE, 0},
    {"token_embd_norm.bias", "embeddings.LayerNorm.bias", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.attn_q.weight", BERT_LAYER "attention.self.query.weight", DIM_EMBD, DIM_EMBD, 0},
    {"blk.#.attn_q.bias", BERT_LAYER "attention.self.query.bias", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.attn_k.weight", BERT_LAYER "attention.self.key.weight", DIM_EMBD, DIM_EMBD, 0},
    {"blk.#.attn_k.bias", BERT_LAYER "attention.self.key.bias", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.attn_v.weight", BERT_LAYER "attention.self.value.weight", DIM_EMBD, DIM_EMBD, 0},
    {"blk.#.attn_v.bias", BERT_LAYER "attention.self.value.bias", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.attn_output.weight", BERT_LAYER "attention.output.dense.weight", DIM_EMBD, DIM_EMBD, 0},
    {"blk.#.attn_output.bias", BERT_LAYER "attention.output.dense.bias", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.attn_output_norm.weight", BERT_LAYER "attention.output.LayerNorm.weight", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.attn_output_norm.bias", BERT_LAYER "attention.output.LayerNorm.bias", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.ffn_up.weight", BERT_LAYER "intermediate.dense.weight", DIM_EMBD, DIM_FF, 0},
    {"blk.#.ffn_up.bias", BERT_LAYER "intermediate.dense.bias", DIM_FF, DIM_ONE, 0},
    {"blk.#.ffn_down.weight", BERT_LAYER "output.dense.weight", DIM_FF, DIM_EMBD, 0},
    {"blk.#.ffn_down.bias", BERT_LAYER "output.dense.bias", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.layer_output_norm.weight", BERT_LAYER "output.LayerNorm.weight", DIM_EMBD, DIM_ONE, 0},
    {"blk.#.layer_output_norm.bias", BERT_LAYER "output.LayerNorm.bias", DIM_EMBD, DIM_ONE, 0},
    /* The field's names: cls is BERT's pooler (dense, then tanh), cls.output the classifier. */
    {"cls.weight", "pooler.dense.weight", DIM_EMBD, DIM_EMBD, TENSOR_POOLER},
    {"cls.bias", "pooler.dense.bias", DIM_EMBD, DIM_ONE, TENSOR_POOLER},
    {"cls.output.weight", "classifier.weight", DIM_EMBD, DIM_LABELS, TENSOR_LABELLED},
    {"cls.output.bias", "classifier.bias", DIM_LABELS, DIM_ONE, TENSOR_LABELLED},
};

const arch_tensor *arch_tensors(arch a, size_t *ret_n)
{
    switch (a) {
    case ARCH_LLAMA: *ret_n = COUNT(llama_tensors); return llama_tensors;
    case ARCH_BERT: *ret_n = COUNT(bert_tensors); return bert_tensors;
    case ARCH_COUNT: break;
    }
    *ret_n = 0;
    return NULL;
}

size_t arch_side(const model_config *c, arch_dim d)
{
    switch (d) {
    case DIM_ONE: return 1;
    case DIM_EMBD: return c->n_embd;
    case DIM_VOCAB: return c->n_vocab;
    case DIM_CTX: return c->n_ctx;
    case DIM_TYPES: return c->n_types;
    case DIM_FF: return c->ffn.n_ff;
    case DIM_Q: return c->attn.n_head * c->attn.head_dim;
    case DIM_KV: return c->attn.n_head_kv * c->attn.head_dim;
    case DIM_LABELS: return c->head.n_labels;
    case DIM_ROPE: return c->pos.rope.dim / 2;
    }
    return 0;
}

/* Match `name` against a pattern with one '#'; *ret_layer points at the digits. */
static bool matches(const char *pattern, const char *name, const char **ret_layer, size_t *ret_digits)
{
    *ret_digits = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*pattern != *name++) return false;
            continue;
        }
        *ret_layer = name;
        while (*name >= '0' && *name <= '9') name++;
        *ret_digits = (size_t)(name - *ret_layer);
        if (*ret_digits == 0 || *ret_digits > 4 || (**ret_layer == '0' && *ret_digits > 1)) return false;
    }
    return *name == '\0';
}

const arch_tensor *arch_find(arch a, const char *gguf_name)
{
    size_t n, digits;
    const char *layer;
    const arch_tensor *rows = arch_tensors(a, &n);
    for (size_t i = 0; i < n; i++)
        if (matches(rows[i].gguf, gguf_name, &layer, &digits)) return &rows[i];
    return NULL;
}

/* Checkpoints older than 2019 call a norm's weight gamma and its bias beta. */
static void modernise(char *name)
{
    char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".gamma") == 0) strcpy(dot, ".weight");
    if (dot && strcmp(dot, ".beta") == 0) strcpy(dot, ".bias");
}

static const char *without_prefix(const char *hf_name)
{
    static const char *const prefixes[] = {"model.", "bert."};
    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (strncmp(hf_name, prefixes[i], strlen(prefixes[i])) == 0) hf_name += strlen(prefixes[i]);
    return hf_name;
}

bool arch_ignores(arch a, const char *name)
{
    /* Constants that are computed, and heads that only training needs. */
    static const char *const llama[] = {"rotary_emb.inv_freq", "layers.#.self_attn.rotary_emb.inv_freq",
                                        "blk.#.attn_rot_embd.weight"};
    static const char *const bert[] = {"embeddings.position_ids", "cls.predictions.*",
                                       "cls.seq_relationship.*"};
    const char *const *list = a == ARCH_LLAMA ? llama : bert;
    size_t n = a == ARCH_LLAMA ? COUNT(llama) : COUNT(bert), digits;
    const char *layer;
    name = without_prefix(name);
    for (size_t i = 0; i < n; i++) {
        const char *star = strchr(list[i], '*');
        if (star ? strncmp(list[i], name, (size_t)(star - list[i])) == 0
                 : matches(list[i], name, &layer, &digits))
            return true;
    }
    return false;
}

bool arch_name_from_hf(arch a, const char *hf_name, char out[128])
{
    hf_name = without_prefix(hf_name);
    char name[120];
    if (strlen(hf_name) + 3 >= sizeof name) return false;
    strcpy(name, hf_name);
    modernise(name);
    size_t n, digits;
    const char *layer = "";
    const arch_tensor *rows = arch_tensors(a, &n);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].hf || !matches(rows[i].hf, name, &layer, &digits)) continue;
        const char *hash = strchr(rows[i].gguf, '#');
        if (!hash)
            snprintf(out, 128, "%s", rows[i].gguf);
        else
            snprintf(out, 128, "%.*s%.*s%s", (int)(hash - rows[i].gguf), rows[i].gguf, (int)digits, layer,
                     hash + 1);
        return true;
    }
    return false;
}

const char *arch_name(arch a)
{
    switch (a) {
#define CASE(e, name) \
    case e: return name;
        ARCH_TABLE(CASE)
#undef CASE
    case ARCH_COUNT: break;
    }
    return "unknown";
}

bool arch_parse(const char *name, arch *ret)
{
    for (int i = 0; i < ARCH_COUNT; i++) {
        if (strcmp(arch_name((arch)i), name) != 0) continue;
        *ret = (arch)i;
        return true;
    }
    return false;
}

const char *arch_list(void)
{
#define NAME(e, name) ", " name
    return &ARCH_TABLE(NAME)[2]; /* without the first comma */
#undef NAME
}

/* The first name of each is the one we write. */
static const struct {
    const char *name;
    activation act;
} activations[] = {
    {"silu", ACT_SILU},          {"gelu", ACT_GELU_ERF},       {"gelu_pytorch_tanh", ACT_GELU_TANH},
    {"relu", ACT_RELU},          {"swish", ACT_SILU},          {"gelu_python", ACT_GELU_ERF},
    {"gelu_new", ACT_GELU_TANH}, {"gelu_fast", ACT_GELU_TANH},
};

bool activation_parse(const char *name, activation *ret)
{
    for (size_t i = 0; i < COUNT(activations); i++) {
        if (strcmp(activations[i].name, name) != 0) continue;
        *ret = activations[i].act;
        return true;
    }
    return false;
}

const char *activation_name(activation a)
{
    for (size_t i = 0; i < COUNT(activations); i++)
        if (activations[i].act == a) return activations[i].name;
    return "unknown";
}

const char *task_name(model_task t)
{
    switch (t) {
#define CASE(e, name) \
    case e: return name;
        TASK_TABLE(CASE)
#undef CASE
    case TASK_COUNT: break;
    }
    return "unknown";
}

bool task_parse(const char *name, model_task *ret)
{
    for (int i = 0; i < TASK_COUNT; i++) {
        if (strcmp(task_name((model_task)i), name) != 0) continue;
        *ret = (model_task)i;
        return true;
    }
    return false;
}

static int check_heads(const model_config *c, const char *what, shoal_err *err)
{
    if (c->attn.head_dim == 0)
        return err_set(err, SHOAL_EINVALID, "%s: a width of %zu cannot be divided among %zu heads", what,
                       c->n_embd, c->attn.n_head);
    if (c->attn.n_head % c->attn.n_head_kv != 0)
        return err_set(err, SHOAL_EINVALID, "%s: %zu query heads cannot share %zu key/value heads", what,
                       c->attn.n_head, c->attn.n_head_kv);
    if (c->arch == ARCH_BERT && c->attn.n_head * c->attn.head_dim != c->n_embd)
        return err_set(err, SHOAL_EINVALID, "%s: %zu heads of %zu do not make a width of %zu", what,
                       c->attn.n_head, c->attn.head_dim, c->n_embd);
    if (c->arch == ARCH_LLAMA &&
        (c->pos.rope.dim == 0 || c->pos.rope.dim % 2 != 0 || c->pos.rope.dim > c->attn.head_dim))
        return err_set(err, SHOAL_EINVALID, "%s: %zu rotary dimensions in heads of %zu", what,
                       c->pos.rope.dim, c->attn.head_dim);
    return 0;
}

int arch_check_config(const model_config *c, const char *what, shoal_err *err)
{
    /* Far above any small model, far below what makes products of three sides overflow. */
    const struct {
        const char *name;
        size_t value, max;
    } sizes[] = {
        {"vocabulary", c->n_vocab, 4u << 20},
        {"context", c->n_ctx, 16u << 20},
        {"width", c->n_embd, 65536},
        {"layer count", c->n_layer, 1024},
        {"head count", c->attn.n_head, 1024},
        {"key/value head count", c->attn.n_head_kv, 1024},
        {"feed-forward width", c->ffn.n_ff, 1u << 20},
    };
    for (size_t i = 0; i < COUNT(sizes); i++)
        if (sizes[i].value == 0 || sizes[i].value > sizes[i].max)
            return err_set(err, SHOAL_EINVALID, "%s: a %s of %zu; 1 to %zu are allowed", what, sizes[i].name,
                           sizes[i].value, sizes[i].max);
    if (c->attn.head_dim > 4096)
        return err_set(err, SHOAL_EINVALID, "%s: heads of %zu dimensions; at most 4096 are allowed", what,
                       c->attn.head_dim);
    if (c->arch == ARCH_BERT && (c->n_types == 0 || c->n_types > 1024))
        return err_set(err, SHOAL_EINVALID, "%s: %zu token types; 1 to 1024 are allowed", what, c->n_types);
    if (!(c->norm.eps >= 0 && c->norm.eps < 1))
        return err_set(err, SHOAL_EINVALID, "%s: a norm epsilon of %g", what, (double)c->norm.eps);
    if ((c->task == TASK_CLASSIFY || c->task == TASK_TAG) &&
        (c->head.n_labels == 0 || c->head.n_labels > 65536))
        return err_set(err, SHOAL_EINVALID, "%s: %zu labels; 1 to 65536 are allowed", what, c->head.n_labels);
    return check_heads(c, what, err);
}

size_t arch_rope_source_row(size_t row, size_t head_dim)
{
    size_t head = row / head_dim, i = row % head_dim;
    return head * head_dim + (i % 2) * (head_dim / 2) + i / 2;
}

void arch_rope_factors(const model_config *c, float *out, size_t n)
{
    const double two_pi = 6.283185307179586;
    double longest = (double)c->pos.rope.original_ctx / c->pos.rope.low_freq;
    double shortest = (double)c->pos.rope.original_ctx / c->pos.rope.high_freq;
    for (size_t i = 0; i < n; i++) {
        double wavelength = two_pi * math_pow(c->pos.rope.theta, 2.0 * (double)i / (double)c->pos.rope.dim);
        if (wavelength < shortest) {
            out[i] = 1;
        } else if (wavelength > longest) {
            out[i] = (float)c->pos.rope.factor;
        } else {
            double smooth = ((double)c->pos.rope.original_ctx / wavelength - c->pos.rope.low_freq) /
                            (c->pos.rope.high_freq - c->pos.rope.low_freq);
            out[i] = (float)(1 / ((1 - smooth) / c->pos.rope.factor + smooth));
        }
    }
}
