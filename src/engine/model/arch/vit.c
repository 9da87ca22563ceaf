/* vit.c: ViT (Dosovitskiy et al. 2020): BERT with norms in front, over the patches of a picture. */
#include "model/arch/encoder.h"

#define LAYER "encoder.layer.#."
static const tensor_rule rules[] = {
    TENSOR("patch_embd.*", "embeddings.patch_embeddings.projection.*", RULE_BIAS | RULE_SMALL, DIM_EMBD,
           DIM_CHANNELS, DIM_PATCH, DIM_PATCH),
    TENSOR("cls_embd.weight", "embeddings.cls_token", 0, DIM_EMBD),
    TENSOR("position_embd.weight", "embeddings.position_embeddings", RULE_SMALL, DIM_PLACES, DIM_EMBD),
    TENSOR("output_norm.*", "layernorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.attn_norm.*", LAYER "layernorm_before.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.attn_q.*", LAYER "attention.attention.query.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", LAYER "attention.attention.key.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", LAYER "attention.attention.value.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", LAYER "attention.output.dense.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.ffn_norm.*", LAYER "layernorm_after.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", LAYER "intermediate.dense.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", LAYER "output.dense.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    TENSOR("cls.output.*", "classifier.*", RULE_BIAS | RULE_SMALL | WHEN_LABELS, DIM_LABELS, DIM_EMBD),
    {0}};

#define SIZE(field, gguf, json, max)                               \
    {                                                              \
        gguf, json, CONF_AT(field), CONF_SIZE, CONF_NEEDED, 1, max \
    }
static const conf_row rows[] = {
    SIZE(n_layer, "block_count", "num_hidden_layers", 1024),
    SIZE(n_embd, "embedding_length", "hidden_size", 65536),
    SIZE(ffn.n_ff, "feed_forward_length", "intermediate_size", 1 << 20),
    SIZE(attn.n_head, "attention.head_count", "num_attention_heads", 1024),
    SIZE(image.size, "image_size", "image_size", 4096),
    SIZE(image.patch, "patch_size", "patch_size", 4096),
    SIZE(image.channels, "num_channels", "num_channels", 16),
    {"attention.layer_norm_epsilon", "layer_norm_eps", CONF_AT(norm.eps), CONF_F32, 0, 0, 0.1},
    {"shoal.activation", "hidden_act", CONF_AT(ffn.act), CONF_ACT, 0, 0, 0},
    CONF_END};

static int vit_finish(conf *s, model_config *c)
{
    if (c->image.patch > c->image.size || c->image.size % c->image.patch != 0)
        return conf_fail(s, SHOAL_EINVALID, "a picture of %zu cannot be cut into patches of %zu",
                         c->image.size, c->image.patch);
    size_t side = c->image.size / c->image.patch;
    c->n_ctx = side * side + 1;
    return 0;
}

const arch_def arch_vit = {
    .name = "vit",
    .hf_types = NAMES("vit"),
    .task = TASK_IMAGE,
    .tasks = CAN(TASK_IMAGE),
    .base = {.norm = {.kind = NORM_LAYER, .eps = 1e-12f, .final = true},
             .pos.learned = true,
             .ffn.act = ACT_GELU_ERF,
             .head.pool = POOL_CLS,
             .image = {.size = 224, .patch = 16, .channels = 3}},
    .conf = {rows},
    .tensors = {rules},
    .prefixes = NAMES("vit."),
    .ignored = NAMES("pooler.*", "embeddings.mask_token"),
    .finish = vit_finish,
};
