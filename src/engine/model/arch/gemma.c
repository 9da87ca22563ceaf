/* gemma.c: Gemma 1, 2 and 3 (Gemma Team 2024, 2025): embeddings are multiplied by the root of the width and
 * folders keep norms less 1; from 2 on every branch has a norm at both ends and layers are local in turn. */
#include <math.h>

#include "model/arch/decoder.h"

#define COMMON                                                                                   \
    .task = TASK_GENERATE, .tasks = CAN(TASK_GENERATE), .ignored = ignored_rotary, .rope = true, \
    .norms_plus_one = true

#define GELU .ffn = {.act = ACT_GELU_TANH, .gated = true}

static int scale_embeddings(conf *s, model_config *c)
{
    c->scale.embd = (float)sqrt((double)c->n_embd);
    return 0;
}

/* Gemma 1's "hidden_act" says gelu and the reference computes its tanh form. */
static const conf_row act_row[] = {
    {"shoal.activation", "hidden_activation", CONF_AT(ffn.act), CONF_ACT, CONF_ODD, 0, 0}, CONF_END};

const arch_def arch_gemma = {
    .name = "gemma",
    .hf_types = NAMES("gemma"),
    .base = {DECODER_RMS, DECODER_ROPE, GELU, .tied = true},
    .conf = {conf_sizes, conf_rms, conf_rope, act_row},
    .tensors = {rules_embed, rules_attention, rules_gated},
    .prefixes = NAMES("model."),
    .finish = scale_embeddings,
    COMMON,
};

/* ---- Gemma 2 and 3 ---------------------------------------------------------------------------------- */

#define FFN "layers.#.mlp."
static const tensor_rule rules_sandwich[] = {
    TENSOR("blk.#.post_attention_norm.weight", "layers.#.post_attention_layernorm.weight", 0, DIM_EMBD),
    TENSOR("blk.#.ffn_norm.weight", "layers.#.pre_feedforward_layernorm.weight", 0, DIM_EMBD),
    TENSOR("blk.#.ffn_gate.weight", FFN "gate_proj.weight", 0, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_up.weight", FFN "up_proj.weight", 0, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.weight", FFN "down_proj.weight", 0, DIM_EMBD, DIM_FF),
    TENSOR("blk.#.post_ffw_norm.weight", "layers.#.post_feedforward_layernorm.weight", 0, DIM_EMBD),
    {0}};

static const conf_row rows[] = {
    {"attention.sliding_window", "sliding_window", CONF_AT(attn.window), CONF_SIZE, 0, 0, 16 << 20},
    {"attn_logit_softcapping", "attn_logit_softcapping", CONF_AT(attn.softcap), CONF_F32, CONF_ODD, 0, 1e6},
    {"final_logit_softcapping", "final_logit_softcapping", CONF_AT(scale.softcap), CONF_F32, CONF_ODD, 0,
     1e6},
    {"attention.scale", NULL, CONF_AT(attn.scale), CONF_F32, CONF_ODD, 0, 1e3},
    {"rope.freq_base_swa", "rope_local_base_freq", CONF_AT(pos.local.theta), CONF_F64, CONF_ODD, 1, 1e12},
    {"shoal.activation", "hidden_activation", CONF_AT(ffn.act), CONF_ACT, CONF_ODD, 0, 0},
    {NULL, "use_bidirectional_attention", 0, CONF_FALSE, 0, 0, 0},
    CONF_END};

static bool is_null(const conf *s, const char *key)
{
    return json_is_null(json_object_get(s->json, key));
}

/* The largest of each kind divides scores by the root of width / heads, which GGUF files do not say. */
static int finish_common(conf *s, model_config *c, size_t every, size_t layers_of_largest)
{
    double by = 0;
    int rc = conf_num(s, NULL, "query_pre_attn_scalar", 1, 1e6, &by);
    if (rc != 0) return rc;
    if (s->g && c->attn.scale == 0 && c->n_layer == layers_of_largest)
        by = (double)c->n_embd / (double)c->attn.n_head;
    decoder_scale_by(c, by);
    if (is_null(s, "attn_logit_softcapping")) c->attn.softcap = 0;
    if (is_null(s, "final_logit_softcapping")) c->scale.softcap = 0;
    if (c->attn.window > 0 && !c->layers) rc = decoder_pattern(s, c, every, LAYER_LOCAL);
    return rc == 0 ? scale_embeddings(s, c) : rc;
}

static int finish_gemma2(conf *s, model_config *c)
{
    return finish_common(s, c, 2, 46);
}

const arch_def arch_gemma2 = {
    .name = "gemma2",
    .hf_types = NAMES("gemma2"),
    .base = {.norm = {.kind = NORM_RMS, .place = PLACE_SANDWICH, .eps = 1e-6f, .final = true},
             DECODER_ROPE,
             GELU,
             .attn = {.softcap = 50, .window = 4096},
             .scale.softcap = 30,
             .tied = true},
    .conf = {conf_sizes, conf_rms, conf_rope, rows},
    .tensors = {rules_embed, rules_attention, rules_sandwich},
    .prefixes = NAMES("model."),
    .finish = finish_gemma2,
    COMMON,
};

static int finish_gemma3(conf *s, model_config *c)
{
    size_t every = 6;
    int rc = conf_size(s, "attention.sliding_window_pattern",
                       "sliding_window_pattern _sliding_window_pattern", 1, 1024, &every);
    return rc == 0 ? finish_common(s, c, every, 62) : rc;
}

/* Of Gemma 3 with pictures the text part is taken. */
const arch_def arch_gemma3 = {
    .name = "gemma3",
    .hf_types = NAMES("gemma3_text", "gemma3"),
    .base = {.norm = {.kind = NORM_RMS, .place = PLACE_SANDWICH, .eps = 1e-6f, .final = true},
             .pos = {.rope.theta = 1000000, .local.theta = 10000},
             GELU,
             .attn = {.window = 4096, .qk_norm = QK_NORM_HEAD},
             .tied = true},
    .conf = {conf_sizes, conf_rms, conf_rope, rows},
    .tensors = {rules_embed, rules_attention, rules_qk_norm, rules_sandwich},
    .prefixes = NAMES("language_model.", "model.", "language_model."),
    .text_config = true,
    .finish = finish_gemma3,
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .ignored = NAMES("rotary_emb.inv_freq", "layers.#.self_attn.rotary_emb.inv_freq", "vision_tower.*",
                     "multi_modal_projector.*"),
    .rope = true,
    .norms_plus_one = true,
};
