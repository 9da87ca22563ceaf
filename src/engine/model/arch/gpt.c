/* gpt.c: GPT-2 (Radford et al. 2019), whose folders keep matrices transposed; GPT-Neo, whose every other
 * layer is local and whose scores are not scaled; GPT-NeoX and Pythia (Black et al. 2022), whose folders fuse
 * q, k and v head by head. */
#include "model/arch/decoder.h"

#define COMMON .task = TASK_GENERATE, .tasks = CAN(TASK_GENERATE)

static int widen_four_times(conf *s, model_config *c)
{
    if (c->ffn.n_ff == 0) c->ffn.n_ff = 4 * c->n_embd;
    return 0;
}

#define EMBED                                                                        \
    TENSOR("token_embd.weight", "wte.weight", 0, DIM_VOCAB, DIM_EMBD),               \
        TENSOR("position_embd.weight", "wpe.weight", RULE_SMALL, DIM_CTX, DIM_EMBD), \
        TENSOR("output_norm.*", "ln_f.*", RULE_BIAS, DIM_EMBD),                      \
        TENSOR("output.weight", "lm_head.weight", WHEN_UNTIED, DIM_VOCAB, DIM_EMBD), \
        TENSOR("blk.#.attn_norm.*", "h.#.ln_1.*", RULE_BIAS, DIM_EMBD),              \
        TENSOR("blk.#.ffn_norm.*", "h.#.ln_2.*", RULE_BIAS, DIM_EMBD)

/* ---- GPT-2 ------------------------------------------------------------------------------------------ */

#define TURNED (RULE_BIAS | RULE_TRANSPOSED)
#define QKV(name) \
    TENSOR_IN("blk.#.attn_qkv.*", "blk.#." name, "h.#.attn.c_attn.*", TURNED | RULE_FUSED, DIM_EMBD, DIM_EMBD)
static const tensor_rule gpt2_rules[] = {
    EMBED,
    QKV("attn_q.*"),
    QKV("attn_k.*"),
    QKV("attn_v.*"),
    TENSOR("blk.#.attn_output.*", "h.#.attn.c_proj.*", TURNED, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", "h.#.mlp.c_fc.*", TURNED, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", "h.#.mlp.c_proj.*", TURNED, DIM_EMBD, DIM_FF),
    {0}};

static const conf_row gpt2_rows[] = {
    {NULL, "scale_attn_by_inverse_layer_idx", 0, CONF_FALSE, 0, 0, 0},
    {NULL, "add_cross_attention", 0, CONF_FALSE, 0, 0, 0},
    {"shoal.attention_scale", NULL, CONF_AT(attn.scale), CONF_F32, CONF_ODD, 0, 1e3},
    CONF_END};

static int finish_gpt2(conf *s, model_config *c)
{
    bool scaled = true;
    int rc = conf_bool(s, NULL, "scale_attn_weights", &scaled);
    if (!scaled) c->attn.scale = 1;
    return rc == 0 ? widen_four_times(s, c) : rc;
}

const arch_def arch_gpt2 = {
    .name = "gpt2",
    .hf_types = NAMES("gpt2"),
    .base = {DECODER_LAYER, .pos.learned = true, .ffn.act = ACT_GELU_TANH, .tied = true},
    .conf = {conf_sizes, conf_layer, conf_activation_row, gpt2_rows},
    .tensors = {gpt2_rules},
    .prefixes = NAMES("transformer."),
    .ignored = NAMES("h.#.attn.bias", "h.#.attn.masked_bias"),
    .finish = finish_gpt2,
    COMMON,
};

/* ---- GPT-Neo ---------------------------------------------------------------------------------------- */

#define ATTN "h.#.attn.attention."
static const tensor_rule neo_rules[] = {
    EMBED,
    TENSOR("blk.#.attn_q.weight", ATTN "q_proj.weight", 0, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_k.weight", ATTN "k_proj.weight", 0, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_v.weight", ATTN "v_proj.weight", 0, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", ATTN "out_proj.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", "h.#.mlp.c_fc.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", "h.#.mlp.c_proj.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    {0}};

static const conf_row neo_rows[] = {
    {"attention.sliding_window", "window_size", CONF_AT(attn.window), CONF_SIZE, 0, 1, 16 << 20}, CONF_END};

/* Where layers are not listed they alternate: every published model has [[["global", "local"], n / 2]]. */
static int finish_neo(conf *s, model_config *c)
{
    int rc = widen_four_times(s, c);
    if (rc != 0 || c->layers) return rc;
    rc = decoder_pattern(s, c, c->n_layer + 1, LAYER_LOCAL);
    for (size_t i = 0; rc == 0 && c->layers && i < c->n_layer; i += 2) ((uint8_t *)c->layers)[i] = 0;
    return rc;
}

const arch_def arch_gptneo = {
    .name = "gptneo",
    .hf_types = NAMES("gpt_neo"),
    .base = {DECODER_LAYER, .pos.learned = true, .attn = {.scale = 1, .window = 256},
             .ffn.act = ACT_GELU_TANH, .tied = true},
    .conf = {conf_sizes, conf_layer, conf_activation_row, neo_rows},
    .tensors = {neo_rules},
    .prefixes = NAMES("transformer."),
    .ignored = NAMES("h.#.attn.attention.bias", "h.#.attn.attention.masked_bias"),
    .finish = finish_neo,
    COMMON,
};

/* ---- GPT-NeoX --------------------------------------------------------------------------------------- */

#define TURNS (RULE_FUSED | RULE_PER_HEAD | RULE_BIAS_MAYBE)
#define TAKES(name)                                                                                    \
    TENSOR_IN("blk.#.attn_qkv.*", "blk.#." name, "layers.#.attention.query_key_value.*", TURNS, DIM_Q, \
              DIM_EMBD)
static const tensor_rule neox_rules[] = {
    TENSOR("token_embd.weight", "embed_in.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("output_norm.*", "final_layer_norm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("output.weight", "embed_out.weight", WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("blk.#.attn_norm.*", "layers.#.input_layernorm.*", RULE_BIAS, DIM_EMBD),
    TAKES("attn_q.*"),
    TAKES("attn_k.*"),
    TAKES("attn_v.*"),
    TENSOR("blk.#.attn_output.*", "layers.#.attention.dense.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_Q),
    TENSOR("blk.#.ffn_norm.*", "layers.#.post_attention_layernorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", "layers.#.mlp.dense_h_to_4h.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", "layers.#.mlp.dense_4h_to_h.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    {0}};

static const conf_row neox_rows[] = {{"use_parallel_residual", "use_parallel_residual", CONF_AT(branch),
                                      CONF_CHOICE, 0, BRANCH_SERIAL, BRANCH_TWO_NORMS},
                                     CONF_END};

static int finish_neox(conf *s, model_config *c)
{
    double partial = 0.25; /* the reference's default */
    if (s->g || conf_has(s, NULL, "rotary_pct partial_rotary_factor rope_parameters")) return 0;
    c->pos.rope.dim = (size_t)((double)c->attn.head_dim * partial);
    return 0;
}

const arch_def arch_gptneox = {
    .name = "gptneox",
    .hf_types = NAMES("gpt_neox"),
    .base = {DECODER_LAYER, DECODER_ROPE, .ffn.act = ACT_GELU_ERF, .branch = BRANCH_TWO_NORMS},
    .conf = {conf_sizes, conf_layer, conf_rope, conf_activation_row, neox_rows},
    .tensors = {neox_rules},
    .prefixes = NAMES("gpt_neox."),
    .ignored = NAMES("layers.#.attention.bias", "layers.#.attention.masked_bias",
                     "layers.#.attention.rotary_emb.inv_freq"),
    .rope = true,
    .finish = finish_neox,
    COMMON,
};
