/* modernbert.c: ModernBERT (Warner et al. 2024): norms in front, gated, rotary, most layers local. */
#include "model/arch/encoder.h"

#define QKV(name)                                                                                      \
    TENSOR_IN("blk.#.attn_qkv.*", "blk.#." name, "layers.#.attn.Wqkv.*", RULE_FUSED | RULE_BIAS_MAYBE, \
              DIM_Q, DIM_EMBD)
#define GATED(name)                                                                                       \
    TENSOR_IN("blk.#.ffn_up.*", "blk.#." name, "layers.#.mlp.Wi.*", RULE_FUSED | RULE_BIAS_MAYBE, DIM_FF, \
              DIM_EMBD)
static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "embeddings.tok_embeddings.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("token_embd_norm.*", "embeddings.norm.*", RULE_BIAS_MAYBE, DIM_EMBD),
    TENSOR("output_norm.*", "final_norm.*", RULE_BIAS_MAYBE, DIM_EMBD),
    TENSOR("blk.#.attn_norm.*", "layers.#.attn_norm.*", RULE_BIAS_MAYBE | WHEN_PRE, DIM_EMBD),
    QKV("attn_q.*"),
    QKV("attn_k.*"),
    QKV("attn_v.*"),
    TENSOR("blk.#.attn_output.*", "layers.#.attn.Wo.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.ffn_norm.*", "layers.#.mlp_norm.*", RULE_BIAS_MAYBE, DIM_EMBD),
    GATED("ffn_gate.*"),
    GATED("ffn_up.*"),
    TENSOR("blk.#.ffn_down.*", "layers.#.mlp.Wo.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_FF),
    TENSOR("cls.*", "head.dense.*", RULE_BIAS_MAYBE | WHEN_DENSE_HEAD, DIM_EMBD, DIM_EMBD),
    TENSOR("cls.norm.*", "head.norm.*", RULE_BIAS_MAYBE | WHEN_DENSE_HEAD, DIM_EMBD),
    TENSOR("cls.output.*", "classifier.*", RULE_BIAS | RULE_SMALL | WHEN_LABELS, DIM_LABELS, DIM_EMBD),
    TENSOR("mlm.*", "head.dense.*", RULE_BIAS_MAYBE | WHEN_MASK, DIM_EMBD, DIM_EMBD),
    TENSOR("mlm.norm.*", "head.norm.*", RULE_BIAS_MAYBE | WHEN_MASK, DIM_EMBD),
    TENSOR("output.weight", "decoder.weight", WHEN_MASK | WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("output.bias", "decoder.bias", WHEN_MASK | RULE_OPTIONAL, DIM_VOCAB),
    {0}};

/* The field's converter writes the epsilon under one name and its engine reads the other. */
#define EPS_JSON "norm_eps layer_norm_eps"
static const conf_row rows[] = {
    {"attention.layer_norm_rms_epsilon", EPS_JSON, CONF_AT(norm.eps), CONF_F32, 0, 0, 0.1},
    {"attention.layer_norm_epsilon", EPS_JSON, CONF_AT(norm.eps), CONF_F32, 0, 0, 0.1},
    {"attention.causal", "is_decoder", 0, CONF_FALSE, 0, 0, 0},
    {"hidden_activation", "hidden_activation", CONF_AT(ffn.act), CONF_ACT, 0, 0, 0},
    {"attention.sliding_window", "local_attention", CONF_AT(attn.window), CONF_SIZE, 0, 1, 16 << 20},
    {"rope.freq_base_swa", "local_rope_theta", CONF_AT(pos.local.theta), CONF_F64, 0, 1, 1e12},
    {"shoal.head_activation", "classifier_activation", CONF_AT(head.act), CONF_ACT, CONF_ODD, 0, 0},
    {NULL, "tie_word_embeddings", CONF_AT(tied), CONF_BOOL, 0, 0, 0},
    CONF_END};

/* The embeddings' norm stands for the first layer's. */
static int mark_layers(conf *s, model_config *c)
{
    size_t every = 3;
    uint8_t *layers;
    int rc = conf_size(s, "attention.sliding_window_pattern", "global_attn_every_n_layers", 1, 1024, &every);
    if (rc != 0 || c->n_layer > 1024) return rc;
    bool listed = c->layers != NULL;
    rc = conf_layers_make(s, c, &layers);
    for (size_t i = 0; rc == 0 && !listed && i < c->n_layer; i++) layers[i] = i % every ? LAYER_LOCAL : 0;
    if (rc == 0) layers[0] |= LAYER_NO_PRE;
    return rc;
}

static int modernbert_finish(conf *s, model_config *c)
{
    const char *pool = "cls";
    bool labelled = c->task == TASK_CLASSIFY || c->task == TASK_TAG;
    c->head.dense = c->head.norm = labelled || c->task == TASK_FILL_MASK;
    int rc = conf_str(s, "shoal.classifier_pooling", "classifier_pooling", &pool);
    if (rc == 0 && strcmp(pool, "cls") != 0 && strcmp(pool, "mean") != 0)
        rc = conf_fail(s, SHOAL_EUNSUPPORTED, "pooling \"%.40s\" is not supported (cls and mean are)", pool);
    if (labelled) c->head.pool = strcmp(pool, "cls") == 0 ? POOL_CLS : POOL_MEAN;
    return rc == 0 ? mark_layers(s, c) : rc;
}

static void write_more(gguf_out *o, const model_config *c)
{
    bool labelled = c->task == TASK_CLASSIFY || c->task == TASK_TAG;
    if (labelled) gguf_out_str(o, "shoal.classifier_pooling", c->head.pool == POOL_CLS ? "cls" : "mean");
}

const arch_def arch_modernbert = {
    .name = "modern-bert",
    .hf_types = NAMES("modernbert"),
    .task = TASK_EMBED,
    .tasks = TASKS_ENCODER,
    .base = {.norm = {.kind = NORM_LAYER, .eps = 1e-5f, .embedding = true, .final = true},
             .pos = {.rope.theta = 160000, .local.theta = 10000},
             .attn.window = 128,
             .ffn = {.act = ACT_GELU_ERF, .gated = true},
             .head.act = ACT_GELU_ERF,
             .tied = true},
    .conf = {conf_sizes, rows, conf_rope},
    .tensors = {rules},
    .prefixes = NAMES("model."),
    .rope = true,
    .finish = modernbert_finish,
    .write = write_more,
};
