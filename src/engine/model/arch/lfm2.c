/* lfm2.c: LFM 2 (Liquid AI 2025): most layers are short gated convolutions, the others attend. */
#include "model/arch/decoder.h"

#define ATTN "layers.#.self_attn."
static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "embed_tokens.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR_IN("token_embd_norm.weight", "output_norm.weight", "embedding_norm.weight", 0, DIM_EMBD),
    TENSOR("output.weight", "lm_head.weight", WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("blk.#.attn_norm.weight", "layers.#.operator_norm.weight", 0, DIM_EMBD),
    TENSOR("blk.#.attn_q.weight", ATTN "q_proj.weight", WHEN_ATTN, DIM_Q, DIM_EMBD),
    TENSOR("blk.#.attn_k.weight", ATTN "k_proj.weight", WHEN_ATTN, DIM_KV, DIM_EMBD),
    TENSOR("blk.#.attn_v.weight", ATTN "v_proj.weight", WHEN_ATTN, DIM_KV, DIM_EMBD),
    TENSOR("blk.#.attn_output.weight", ATTN "out_proj.weight", WHEN_ATTN, DIM_EMBD, DIM_Q),
    TENSOR("blk.#.attn_q_norm.weight", ATTN "q_layernorm.weight", WHEN_ATTN, DIM_HEAD),
    TENSOR("blk.#.attn_k_norm.weight", ATTN "k_layernorm.weight", WHEN_ATTN, DIM_HEAD),
    TENSOR("blk.#.shortconv.conv.weight", "layers.#.conv.conv.weight", WHEN_CONV | RULE_FLOAT, DIM_EMBD,
           DIM_TAPS),
    TENSOR("blk.#.shortconv.in_proj.weight", "layers.#.conv.in_proj.weight", WHEN_CONV, DIM_THREE_EMBD,
           DIM_EMBD),
    TENSOR("blk.#.shortconv.out_proj.weight", "layers.#.conv.out_proj.weight", WHEN_CONV, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.ffn_norm.weight", "layers.#.ffn_norm.weight", 0, DIM_EMBD),
    TENSOR("blk.#.ffn_gate.weight", "layers.#.feed_forward.w1.weight", 0, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_up.weight", "layers.#.feed_forward.w3.weight", 0, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.weight", "layers.#.feed_forward.w2.weight", 0, DIM_EMBD, DIM_FF),
    {0}};

static const conf_row rows[] = {
    {"attention.layer_norm_rms_epsilon", "norm_eps block_norm_eps", CONF_AT(norm.eps), CONF_F32, CONF_TOLD, 0,
     0.1},
    {"shortconv.l_cache", "conv_L_cache", CONF_AT(n_conv), CONF_SIZE, CONF_NEEDED, 1, 64},
    {NULL, "conv_bias", 0, CONF_FALSE, 0, 0, 0},
    CONF_END};

/* Only here it is a list when written, and its zeros are the convolutions. */
static const conf_row read_heads[] = {{"attention.head_count_kv", "num_key_value_heads",
                                       CONF_AT(attn.n_head_kv), CONF_SIZE, CONF_QUIET, 0, 1024},
                                      CONF_END};

static int layers_of_heads(conf *s, model_config *c)
{
    char key[96];
    size_t n = 0;
    const void *list = NULL;
    uint8_t *layers;
    const gguf_kv *kv = gguf_find(s->g, conf_key(s->def, "attention.head_count_kv", key));
    if (!kv || kv->type != GGUF_ARRAY) return 0;
    int rc = gguf_get_array(s->g, key, kv->elem, &n, &list, s->err);
    if (rc == 0 && n != c->n_layer)
        rc = conf_fail(s, SHOAL_EFORMAT, "\"%s\" tells of %zu layers; the model has %zu", key, n, c->n_layer);
    if (rc == 0) rc = conf_layers_make(s, c, &layers);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (((const uint32_t *)list)[i] == 0) layers[i] = LAYER_CONV;
    return rc;
}

/* Older folders list the attending layers instead of every layer's type. */
static int layers_of_list(conf *s, model_config *c)
{
    const json_t *list = conf_json(s, "full_attn_idxs");
    uint8_t *layers;
    int rc = list ? decoder_pattern(s, c, c->n_layer + 1, LAYER_CONV) : 0;
    if (rc == 0 && list) rc = conf_layers_make(s, c, &layers);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        json_int_t at = json_integer_value(json_array_get(list, i));
        if (at < 0 || (size_t)at >= c->n_layer)
            return conf_fail(s, SHOAL_EINVALID, "\"full_attn_idxs\" names layer %lld", (long long)at);
        layers[at] = 0;
    }
    return rc;
}

/* The width is two thirds of what the folder says, rounded up, where it says so. */
static int adjust_width(conf *s, model_config *c)
{
    bool adjust = true;
    double times = 1;
    size_t multiple = 256;
    int rc = conf_size(s, NULL, "block_ff_dim", 1, 1 << 20, &c->ffn.n_ff);
    if (rc == 0) rc = conf_bool(s, NULL, "block_auto_adjust_ff_dim", &adjust);
    if (rc == 0) rc = conf_num(s, NULL, "block_ffn_dim_multiplier", 1e-3, 1e3, &times);
    if (rc == 0) rc = conf_size(s, NULL, "block_multiple_of", 1, 1 << 20, &multiple);
    if (rc != 0 || !adjust) return rc;
    size_t n = (size_t)(times * (double)(2 * c->ffn.n_ff / 3));
    c->ffn.n_ff = (n + multiple - 1) / multiple * multiple;
    return 0;
}

static int lfm2_finish(conf *s, model_config *c)
{
    int rc = c->n_layer > 1024 ? 0 : s->g ? 0 : adjust_width(s, c);
    if (rc != 0 || c->layers || c->n_layer > 1024) return rc;
    return s->g ? layers_of_heads(s, c) : layers_of_list(s, c);
}

static void write_heads(gguf_out *o, const model_config *c)
{
    int32_t heads[1024];
    char key[96];
    for (size_t i = 0; i < c->n_layer; i++)
        heads[i] = config_layer(c, i) & LAYER_CONV ? 0 : (int32_t)c->attn.n_head_kv;
    gguf_out_array(o, conf_key(c->arch, "attention.head_count_kv", key), GGUF_I32, heads, c->n_layer);
}

const arch_def arch_lfm2 = {
    .name = "lfm2",
    .hf_types = NAMES("lfm2"),
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .base = {.norm = {.kind = NORM_RMS, .eps = 1e-5f, .final = true},
             .pos.rope.theta = 1000000,
             DECODER_GATED,
             .attn.qk_norm = QK_NORM_HEAD,
             .tied = true},
    .conf = {conf_sizes, rows, conf_rope, read_heads},
    .tensors = {rules},
    .prefixes = NAMES("model."),
    .rope = true,
    .finish = lfm2_finish,
    .write = write_heads,
};
