/* mpnet.c: MPNet (Song et al. 2020): BERT with a learned bias by distance, positions as RoBERTa has them and
 * no token types. */
#include "model/arch/encoder.h"

#define LAYER "encoder.layer.#."
static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "embeddings.word_embeddings.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("position_embd.weight", "embeddings.position_embeddings.weight", RULE_SMALL | RULE_OFFSET, DIM_CTX,
           DIM_EMBD),
    TENSOR("token_embd_norm.*", "embeddings.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.0.attn_rel_b.weight", "encoder.relative_attention_bias.weight", RULE_FLOAT, DIM_BUCKETS,
           DIM_HEADS),
    TENSOR("blk.#.attn_q.*", LAYER "attention.attn.q.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", LAYER "attention.attn.k.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", LAYER "attention.attn.v.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", LAYER "attention.attn.o.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output_norm.*", LAYER "attention.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", LAYER "intermediate.dense.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", LAYER "output.dense.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    TENSOR("blk.#.layer_output_norm.*", LAYER "output.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("cls.*", "classifier.dense.*", RULE_BIAS | WHEN_DENSE_HEAD, DIM_EMBD, DIM_EMBD),
    TENSOR("cls.output.*", "classifier.out_proj.*", RULE_BIAS | RULE_SMALL | WHEN_LABELS, DIM_LABELS,
           DIM_EMBD),
    TENSOR("cls.output.*", "classifier.*", RULE_ALIAS | RULE_BIAS | WHEN_LABELS, DIM_LABELS, DIM_EMBD),
    TENSOR("mlm.*", "lm_head.dense.*", RULE_BIAS | WHEN_MASK, DIM_EMBD, DIM_EMBD),
    TENSOR("mlm.norm.*", "lm_head.layer_norm.*", RULE_BIAS | WHEN_MASK, DIM_EMBD),
    TENSOR("output.weight", "lm_head.decoder.weight", WHEN_MASK | WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("output.bias", "lm_head.bias", WHEN_MASK, DIM_VOCAB),
    TENSOR("output.bias", "lm_head.decoder.bias", RULE_ALIAS | WHEN_MASK, DIM_VOCAB),
    {0}};

static const conf_row rows[] = {
    {"attention.layer_norm_epsilon", "layer_norm_eps", CONF_AT(norm.eps), CONF_F32, 0, 0, 0.1},
    {"attention.causal", "is_decoder", 0, CONF_FALSE, 0, 0, 0},
    {"shoal.activation", "hidden_act", CONF_AT(ffn.act), CONF_ACT, 0, 0, 0},
    CONF_END};

static int mpnet_finish(conf *s, model_config *c)
{
    encoder_head(s, c, ACT_TANH);
    c->pos.buckets.max_distance = 128; /* the reference knows no other */
    return encoder_offset(s, c);
}

const arch_def arch_mpnet = {
    .name = "mpnet",
    .hf_types = NAMES("mpnet"),
    .task = TASK_EMBED,
    .tasks = TASKS_ENCODER,
    .base = {ENCODER_NORM, .pos = {.learned = true, .buckets.n = 32}, .ffn.act = ACT_GELU_ERF,
             .head.act = ACT_TANH, .tied = true},
    .conf = {conf_sizes, rows, conf_encoder_more},
    .tensors = {rules},
    .prefixes = NAMES("model.", "mpnet."),
    .ignored = ignored_encoder,
    .finish = mpnet_finish,
};
