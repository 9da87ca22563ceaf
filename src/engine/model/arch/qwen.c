/* qwen.c: Qwen 2 and 2.5 (biases of q, k, v), Qwen 3 (norms of queries and keys) and its mixtures of experts
 * (Yang et al. 2024, 2025). */
#include "model/arch/decoder.h"

#define COMMON                                                                       \
    .task = TASK_GENERATE, .tasks = CAN(TASK_GENERATE), .prefixes = NAMES("model."), \
    .ignored = ignored_rotary, .rope = true

const arch_def arch_qwen2 = {
    .name = "qwen2",
    .hf_types = NAMES("qwen2"),
    .base = DECODER_BASE,
    .conf = {conf_sizes, conf_rms, conf_rope, conf_activation_row, conf_window},
    .tensors = {rules_embed, rules_attention, rules_gated},
    .finish = decoder_qwen_window,
    COMMON,
};

const arch_def arch_qwen3 = {
    .name = "qwen3",
    .hf_types = NAMES("qwen3"),
    .base = {DECODER_RMS, DECODER_ROPE, DECODER_GATED, .attn.qk_norm = QK_NORM_HEAD},
    .conf = {conf_sizes, conf_rms, conf_rope, conf_activation_row, conf_window},
    .tensors = {rules_embed, rules_attention, rules_qk_norm, rules_gated},
    .finish = decoder_qwen_window,
    COMMON,
};

#define EXPERT "layers.#.mlp.experts.@."
static const tensor_rule rules_experts[] = {TENSOR("blk.#.ffn_gate_inp.weight", "layers.#.mlp.gate.weight",
                                                   WHEN_EXPERTS | RULE_FLOAT, DIM_EXPERTS, DIM_EMBD),
                                            TENSOR("blk.#.ffn_gate_exps.weight", EXPERT "gate_proj.weight",
                                                   WHEN_EXPERTS, DIM_EXPERTS, DIM_FF_EXPERT, DIM_EMBD),
                                            TENSOR("blk.#.ffn_up_exps.weight", EXPERT "up_proj.weight",
                                                   WHEN_EXPERTS, DIM_EXPERTS, DIM_FF_EXPERT, DIM_EMBD),
                                            TENSOR("blk.#.ffn_down_exps.weight", EXPERT "down_proj.weight",
                                                   WHEN_EXPERTS, DIM_EXPERTS, DIM_EMBD, DIM_FF_EXPERT),
                                            {0}};

/* Dense are the layers that "mlp_only_layers" lists and those between every "decoder_sparse_step"-th. */
static int mark_dense(conf *s, model_config *c)
{
    const json_t *list = conf_json(s, "mlp_only_layers");
    size_t step = 1;
    uint8_t *layers;
    int rc = conf_size(s, NULL, "decoder_sparse_step", 1, 1024, &step);
    if (rc == 0 && step > 1) rc = decoder_pattern(s, c, step, LAYER_DENSE);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        json_int_t layer = json_integer_value(json_array_get(list, i));
        if (layer < 0 || (size_t)layer >= c->n_layer || c->n_layer > 1024)
            return conf_fail(s, SHOAL_EINVALID, "\"mlp_only_layers\" names layer %lld", (long long)layer);
        rc = conf_layers_make(s, c, &layers);
        if (rc == 0) layers[layer] |= LAYER_DENSE;
    }
    return rc;
}

static int finish_moe(conf *s, model_config *c)
{
    int rc = decoder_qwen_window(s, c);
    if (!s->g && !conf_has(s, NULL, "norm_topk_prob")) c->ffn.sum_to_one = false;
    return rc == 0 ? mark_dense(s, c) : rc;
}

const arch_def arch_qwen3moe = {
    .name = "qwen3moe",
    .hf_types = NAMES("qwen3_moe"),
    .base = {DECODER_RMS, DECODER_ROPE, .attn.qk_norm = QK_NORM_HEAD,
             .ffn = {.act = ACT_SILU, .gated = true, .n_used = 8, .sum_to_one = true}},
    .conf = {conf_sizes, conf_rms, conf_rope, conf_experts, conf_window},
    .tensors = {rules_embed, rules_attention, rules_qk_norm, rules_gated, rules_experts},
    .finish = finish_moe,
    COMMON,
};
