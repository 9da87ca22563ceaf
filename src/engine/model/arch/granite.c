/* granite.c: Granite 3 (IBM 2024): Llama with four factors. */
#include "model/arch/decoder.h"

static const conf_row rows[] = {
    {"attention.scale", "attention_multiplier", CONF_AT(attn.scale), CONF_F32, 0, 0, 1e3},
    {"embedding_scale", "embedding_multiplier", CONF_AT(scale.embd), CONF_F32, 0, 0, 1e6},
    {"residual_scale", "residual_multiplier", CONF_AT(scale.residual), CONF_F32, 0, 0, 1e6},
    CONF_END};

/* Files have what logits are divided by. */
static int granite_finish(conf *s, model_config *c)
{
    double by = 1;
    int rc = conf_num(s, "logit_scale", "logits_scaling", 1e-6, 1e6, &by);
    c->scale.logits = (float)(1 / by);
    return rc;
}

static void write_scale(gguf_out *o, const model_config *c)
{
    char key[96];
    gguf_out_f32(o, conf_key(c->arch, "logit_scale", key), 1 / c->scale.logits);
}

const arch_def arch_granite = {
    .name = "granite",
    .hf_types = NAMES("granite"),
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .base = DECODER_BASE,
    .conf = {conf_sizes, conf_rms, conf_rope, conf_activation_row, rows},
    .tensors = {rules_embed, rules_attention, rules_gated},
    .prefixes = NAMES("model."),
    .ignored = ignored_rotary,
    .rope = true,
    .pairs = true,
    .finish = granite_finish,
    .write = write_scale,
};
