/* stablelm.c: StableLM 2 (Bellagente et al. 2024): Llama with norms of mean and variance, a quarter of each
 * head rotated; the 12 B model has both branches side by side and norms every head by itself. */
#include "model/arch/decoder.h"

#define NORM "layers.#.self_attn."
static const tensor_rule rules[] = {
    TENSOR("blk.#.attn_q_norm.weight", NORM "q_layernorm.norms.@.weight", WHEN_QK_NORM, DIM_HEADS, DIM_HEAD),
    TENSOR("blk.#.attn_k_norm.weight", NORM "k_layernorm.norms.@.weight", WHEN_QK_NORM, DIM_HEADS_KV,
           DIM_HEAD),
    {0}};

static const conf_row rows[] = {{"use_parallel_residual", "use_parallel_residual", CONF_AT(branch),
                                 CONF_CHOICE, 0, BRANCH_SERIAL, BRANCH_ONE_NORM},
                                CONF_END};

static int stablelm_finish(conf *s, model_config *c)
{
    bool norms = conf_tensor(s, "blk.0.attn_q_norm.weight") != NULL;
    int rc = conf_bool(s, NULL, "qk_layernorm", &norms);
    c->attn.qk_norm = norms ? QK_NORM_EACH : QK_NORM_NONE;
    if (!s->g && !conf_has(s, NULL, "partial_rotary_factor rope_pct rope_parameters"))
        c->pos.rope.dim = c->attn.head_dim / 4; /* the reference's default */
    return rc;
}

const arch_def arch_stablelm = {
    .name = "stablelm",
    .hf_types = NAMES("stablelm"),
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .base = {DECODER_LAYER, DECODER_ROPE, DECODER_GATED},
    .conf = {conf_sizes, conf_layer, conf_rope, conf_activation_row, rows},
    .tensors = {rules_embed, rules_attention, rules_gated, rules},
    .prefixes = NAMES("model."),
    .ignored = ignored_rotary,
    .rope = true,
    .finish = stablelm_finish,
};
