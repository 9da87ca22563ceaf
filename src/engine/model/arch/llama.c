/* llama.c: Llama 1 to 3, Mistral and Mixtral (Touvron et al. 2023, Jiang et al. 2023, 2024): the plain
 * decoder, whose rows most other decoders share. */
#include "model/arch/decoder.h"

const tensor_rule rules_embed[] = {
    TENSOR("token_embd.weight", "embed_tokens.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("output_norm.*", "norm.*", RULE_BIAS_MAYBE, DIM_EMBD),
    TENSOR("output.*", "lm_head.*", WHEN_UNTIED | RULE_BIAS_MAYBE, DIM_VOCAB, DIM_EMBD),
    TENSOR("rope_freqs.weight", NULL, RULE_OPTIONAL, DIM_ROPE),
    TENSOR("rope_factors_long.weight", NULL, RULE_OPTIONAL, DIM_ROPE),
    TENSOR("rope_factors_short.weight", NULL, RULE_OPTIONAL, DIM_ROPE),
    {0}};

#define ATTN "layers.#.self_attn."
const tensor_rule rules_attention[] = {
    TENSOR("blk.#.attn_norm.*", "layers.#.input_layernorm.*", RULE_BIAS_MAYBE, DIM_EMBD),
    TENSOR("blk.#.attn_q.*", ATTN "q_proj.*", RULE_BIAS_MAYBE | RULE_ROPE_Q, DIM_Q, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", ATTN "k_proj.*", RULE_BIAS_MAYBE | RULE_ROPE_K, DIM_KV, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", ATTN "v_proj.*", RULE_BIAS_MAYBE, DIM_KV, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", ATTN "o_proj.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_Q),
    {0}};

const tensor_rule rules_qk_norm[] = {TENSOR("blk.#.attn_q_norm.weight", ATTN "q_norm.weight", 0, DIM_HEAD),
                                     TENSOR("blk.#.attn_k_norm.weight", ATTN "k_norm.weight", 0, DIM_HEAD),
                                     {0}};

const tensor_rule rules_gated[] = {
    TENSOR("blk.#.ffn_norm.*", "layers.#.post_attention_layernorm.*", RULE_BIAS_MAYBE | WHEN_FFN_NORM,
           DIM_EMBD),
    TENSOR("blk.#.ffn_gate.*", "layers.#.mlp.gate_proj.*", RULE_BIAS_MAYBE | WHEN_DENSE, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", "layers.#.mlp.up_proj.*", RULE_BIAS_MAYBE | WHEN_DENSE, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", "layers.#.mlp.down_proj.*", RULE_BIAS_MAYBE | WHEN_DENSE, DIM_EMBD, DIM_FF),
    {0}};

#define MOE            "layers.#.block_sparse_moe."
#define UP(name, hf)   TENSOR("blk.#." name, hf, WHEN_EXPERTS, DIM_EXPERTS, DIM_FF_EXPERT, DIM_EMBD)
#define DOWN(name, hf) TENSOR("blk.#." name, hf, WHEN_EXPERTS, DIM_EXPERTS, DIM_EMBD, DIM_FF_EXPERT)
static const tensor_rule rules_experts[] = {
    TENSOR("blk.#.ffn_gate_inp.weight", MOE "gate.weight", WHEN_EXPERTS | RULE_FLOAT, DIM_EXPERTS, DIM_EMBD),
    UP("ffn_gate_exps.weight", MOE "experts.@.w1.weight"),
    UP("ffn_up_exps.weight", MOE "experts.@.w3.weight"),
    DOWN("ffn_down_exps.weight", MOE "experts.@.w2.weight"),
    {0}};

const char *const ignored_rotary[] = {"rotary_emb.inv_freq", "layers.#.self_attn.rotary_emb.inv_freq",
                                      "blk.#.attn_rot_embd.weight", NULL};

static const conf_row rows[] = {
    {"shoal.activation", "hidden_act", CONF_AT(ffn.act), CONF_ACT, CONF_ODD, 0, 0},
    {"attention.sliding_window", "sliding_window", CONF_AT(attn.window), CONF_SIZE, CONF_ODD, 0, 16 << 20},
    {"expert_count", "num_local_experts", CONF_AT(ffn.n_expert), CONF_SIZE, CONF_ODD, 0, 1024},
    {"expert_used_count", "num_experts_per_tok", CONF_AT(ffn.n_used), CONF_SIZE, CONF_ODD, 0, 1024},
    CONF_END};

/* Absent is not null: Mistral's reference has v0.1's window where the file says nothing. */
static int llama_finish(conf *s, model_config *c)
{
    const char *type = "llama";
    int rc = conf_str(s, NULL, "model_type", &type);
    if (rc != 0) return rc;
    if (strcmp(type, "mistral") == 0 && !json_object_get(s->json, "sliding_window")) c->attn.window = 4096;
    c->ffn.n_ff_expert = c->ffn.n_expert ? c->ffn.n_ff : 0;
    c->ffn.sum_to_one = c->ffn.n_expert > 0;
    return decoder_slides(s, c);
}

const arch_def arch_llama = {
    .name = "llama",
    .hf_types = NAMES("llama", "mistral", "mixtral"),
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .base = DECODER_BASE,
    .conf = {conf_sizes, conf_rms, conf_rope, rows},
    .tensors = {rules_embed, rules_attention, rules_gated, rules_experts},
    .prefixes = NAMES("model."),
    .ignored = ignored_rotary,
    .rope = true,
    .pairs = true,
    .finish = llama_finish,
};
