/* opt.c: OPT (Zhang et al. 2022): learned positions behind two rows of padding; the 350 M model has its norms
 * behind the sums and embeddings of half the width. */
#include "model/arch/decoder.h"

#define ATTN "layers.#.self_attn."
static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "embed_tokens.weight", 0, DIM_VOCAB, DIM_EMBD_IN),
    TENSOR("position_embd.weight", "embed_positions.weight", RULE_SMALL | RULE_OFFSET, DIM_CTX, DIM_EMBD),
    TENSOR("token_embd_proj.weight", "project_in.weight", WHEN_WIDENED, DIM_EMBD, DIM_EMBD_IN),
    TENSOR("output_proj.weight", "project_out.weight", WHEN_WIDENED, DIM_EMBD_IN, DIM_EMBD),
    TENSOR("output_norm.*", "final_layer_norm.*", RULE_BIAS | WHEN_FINAL, DIM_EMBD),
    TENSOR("output.weight", "lm_head.weight", WHEN_UNTIED, DIM_VOCAB, DIM_EMBD_IN),
    TENSOR("blk.#.attn_norm.*", "layers.#.self_attn_layer_norm.*", RULE_BIAS | WHEN_FRONT, DIM_EMBD),
    TENSOR("blk.#.attn_output_norm.*", "layers.#.self_attn_layer_norm.*", RULE_BIAS | WHEN_POST, DIM_EMBD),
    TENSOR("blk.#.attn_q.*", ATTN "q_proj.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", ATTN "k_proj.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", ATTN "v_proj.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", ATTN "out_proj.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.ffn_norm.*", "layers.#.final_layer_norm.*", RULE_BIAS | WHEN_FRONT, DIM_EMBD),
    TENSOR("blk.#.layer_output_norm.*", "layers.#.final_layer_norm.*", RULE_BIAS | WHEN_POST, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", "layers.#.fc1.*", RULE_BIAS_MAYBE, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", "layers.#.fc2.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_FF),
    {0}};

static const conf_row rows[] = {
    {"shoal.norm_in_front", "do_layer_norm_before", CONF_AT(norm.place), CONF_CHOICE, 0, PLACE_POST,
     PLACE_PRE},
    {"shoal.n_embd_in", "word_embed_proj_dim", CONF_AT(n_embd_in), CONF_SIZE, CONF_ODD, 1, 65536},
    CONF_END};

static int opt_finish(conf *s, model_config *c)
{
    bool removed = false, affine = true;
    int rc = conf_bool(s, NULL, "_remove_final_layer_norm", &removed);
    if (rc == 0) rc = conf_bool(s, NULL, "layer_norm_elementwise_affine", &affine);
    if (rc == 0 && !affine) rc = conf_fail(s, SHOAL_EUNSUPPORTED, "norms without weights are not supported");
    if (c->n_embd_in == c->n_embd) c->n_embd_in = 0;
    c->norm.final =
        s->g ? conf_tensor(s, "output_norm.weight") != NULL : c->norm.place == PLACE_PRE && !removed;
    c->pos.offset = s->g ? 0 : 2;
    return rc;
}

const arch_def arch_opt = {
    .name = "opt",
    .hf_types = NAMES("opt"),
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .base = {DECODER_LAYER, .pos.learned = true, .ffn.act = ACT_RELU, .tied = true},
    .conf = {conf_sizes, conf_layer, conf_activation_row, rows},
    .tensors = {rules},
    .prefixes = NAMES("model.", "decoder."),
    .finish = opt_finish,
};
