/* olmo2.c: OLMo 2 (OLMo Team 2025): norms only behind the branches, and over the whole width of q and k. */
#include "model/arch/decoder.h"

#define ATTN "layers.#.self_attn."
static const tensor_rule rules[] = {
    TENSOR("blk.#.attn_q.weight", ATTN "q_proj.weight", 0, DIM_Q, DIM_EMBD),
    TENSOR("blk.#.attn_k.weight", ATTN "k_proj.weight", 0, DIM_KV, DIM_EMBD),
    TENSOR("blk.#.attn_v.weight", ATTN "v_proj.weight", 0, DIM_KV, DIM_EMBD),
    TENSOR("blk.#.attn_output.weight", ATTN "o_proj.weight", 0, DIM_EMBD, DIM_Q),
    TENSOR("blk.#.attn_q_norm.weight", ATTN "q_norm.weight", 0, DIM_Q),
    TENSOR("blk.#.attn_k_norm.weight", ATTN "k_norm.weight", 0, DIM_KV),
    TENSOR("blk.#.post_attention_norm.weight", "layers.#.post_attention_layernorm.weight", 0, DIM_EMBD),
    TENSOR("blk.#.ffn_gate.weight", "layers.#.mlp.gate_proj.weight", 0, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_up.weight", "layers.#.mlp.up_proj.weight", 0, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.weight", "layers.#.mlp.down_proj.weight", 0, DIM_EMBD, DIM_FF),
    TENSOR("blk.#.post_ffw_norm.weight", "layers.#.post_feedforward_layernorm.weight", 0, DIM_EMBD),
    {0}};

const arch_def arch_olmo2 = {
    .name = "olmo2",
    .hf_types = NAMES("olmo2"),
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .base = {.norm = {.kind = NORM_RMS, .place = PLACE_OUTPUT, .eps = 1e-5f, .final = true},
             DECODER_ROPE,
             DECODER_GATED,
             .attn.qk_norm = QK_NORM_WIDTH},
    .conf = {conf_sizes, conf_rms, conf_rope, conf_activation_row},
    .tensors = {rules_embed, rules},
    .prefixes = NAMES("model."),
    .ignored = ignored_rotary,
    .rope = true,
};
