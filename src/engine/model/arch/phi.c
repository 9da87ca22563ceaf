/* phi.c: Phi 1 to 2, whose attention and feed-forward read one norm side by side (Gunasekar et al. 2023), and
 * Phi 3 and 4, which are Llama's with fused matrices (Abdin et al. 2024). */
#include "model/arch/decoder.h"

#define ATTN "layers.#.self_attn."
static const tensor_rule phi2_rules[] = {
    TENSOR("token_embd.weight", "embed_tokens.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("output_norm.*", "final_layernorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("output.*", "lm_head.*", RULE_BIAS_MAYBE | WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("blk.#.attn_norm.*", "layers.#.input_layernorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.attn_q.*", ATTN "q_proj.*", RULE_BIAS, DIM_Q, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", ATTN "k_proj.*", RULE_BIAS, DIM_KV, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", ATTN "v_proj.*", RULE_BIAS, DIM_KV, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", ATTN "dense.*", RULE_BIAS, DIM_EMBD, DIM_Q),
    TENSOR("blk.#.ffn_up.*", "layers.#.mlp.fc1.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", "layers.#.mlp.fc2.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    {0}};

/* Older files have the three in one. */
#define OLD (RULE_ALIAS | RULE_FUSED | RULE_BIAS)
static const tensor_rule phi2_old[] = {
    TENSOR_IN("blk.#.attn_qkv.*", "blk.#.attn_q.*", NULL, OLD, DIM_Q, DIM_EMBD),
    TENSOR_IN("blk.#.attn_qkv.*", "blk.#.attn_k.*", NULL, OLD, DIM_KV, DIM_EMBD),
    TENSOR_IN("blk.#.attn_qkv.*", "blk.#.attn_v.*", NULL, OLD, DIM_KV, DIM_EMBD),
    {0}};

static const conf_row phi2_rows[] = {{"shoal.qk_layernorm", "qk_layernorm", 0, CONF_FALSE, CONF_QUIET, 0, 0},
                                     CONF_END};

const arch_def arch_phi2 = {
    .name = "phi2",
    .hf_types = NAMES("phi"),
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .base = {DECODER_LAYER, DECODER_ROPE, .ffn.act = ACT_GELU_TANH, .branch = BRANCH_ONE_NORM},
    .conf = {conf_sizes, conf_layer, conf_rope, conf_activation_row, phi2_rows},
    .tensors = {phi2_rules, phi2_old},
    .prefixes = NAMES("model."),
    .ignored = ignored_rotary,
    .rope = true,
};

#define QKV(name, dim)                                                                                 \
    TENSOR_IN("blk.#.attn_qkv.*", "blk.#." name, ATTN "qkv_proj.*", RULE_FUSED | RULE_BIAS_MAYBE, dim, \
              DIM_EMBD)
#define BOTH(name)                                                                                          \
    TENSOR_IN("blk.#.ffn_up.weight", "blk.#." name, "layers.#.mlp.gate_up_proj.weight", RULE_FUSED, DIM_FF, \
              DIM_EMBD)
static const tensor_rule phi3_rules[] = {
    TENSOR("blk.#.attn_norm.weight", "layers.#.input_layernorm.weight", 0, DIM_EMBD),
    QKV("attn_q.*", DIM_Q),
    QKV("attn_k.*", DIM_KV),
    QKV("attn_v.*", DIM_KV),
    TENSOR("blk.#.attn_output.*", ATTN "o_proj.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_Q),
    TENSOR("blk.#.ffn_norm.weight", "layers.#.post_attention_layernorm.weight", 0, DIM_EMBD),
    BOTH("ffn_gate.weight"),
    BOTH("ffn_up.weight"),
    TENSOR("blk.#.ffn_down.weight", "layers.#.mlp.down_proj.weight", 0, DIM_EMBD, DIM_FF),
    {0}};

/* Written also where there is none: other engines guess a window when the key is missing. */
static const conf_row phi3_window[] = {
    {"attention.sliding_window", "sliding_window", CONF_AT(attn.window), CONF_SIZE, 0, 0, 16 << 20},
    CONF_END};

const arch_def arch_phi3 = {
    .name = "phi3",
    .hf_types = NAMES("phi3"),
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .base = DECODER_BASE,
    .conf = {conf_sizes, conf_rms, conf_rope, conf_activation_row, phi3_window},
    .tensors = {rules_embed, phi3_rules},
    .prefixes = NAMES("model."),
    .ignored = ignored_rotary,
    .rope = true,
    .finish = decoder_slides,
};
