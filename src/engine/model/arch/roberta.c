/* roberta.c: RoBERTa (Liu et al. 2019), XLM-R and CamemBERT: BERT with other heads, whose positions start
 * behind the padding's; DistilBERT (Sanh et al. 2019) with other names. In GGUF both are "bert". */
#include "model/arch/encoder.h"

static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "embeddings.word_embeddings.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("position_embd.weight", "embeddings.position_embeddings.weight", RULE_SMALL | RULE_OFFSET, DIM_CTX,
           DIM_EMBD),
    TENSOR("token_types.weight", "embeddings.token_type_embeddings.weight", RULE_FLOAT | WHEN_TYPES,
           DIM_TYPES, DIM_EMBD),
    TENSOR("token_embd_norm.*", "embeddings.LayerNorm.*", RULE_BIAS, DIM_EMBD),
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

static int finish_roberta(conf *s, model_config *c)
{
    encoder_head(s, c, ACT_TANH);
    int rc = encoder_refuse(s, "position_embedding_type", "absolute");
    return rc == 0 ? encoder_offset(s, c) : rc;
}

const arch_def arch_roberta = {
    .name = "bert",
    .hf_types = NAMES("roberta", "xlm-roberta", "camembert"),
    .task = TASK_EMBED,
    .tasks = TASKS_ENCODER,
    .base = ENCODER_BASE,
    .conf = {conf_sizes, conf_encoder, conf_encoder_more},
    .tensors = {rules, rules_bert_layer},
    .prefixes = NAMES("model.", "roberta."),
    .ignored = ignored_encoder,
    .finish = finish_roberta,
};

/* ---- DistilBERT ------------------------------------------------------------------------------------- */

#define LAYER "transformer.layer.#."
static const tensor_rule distil_rules[] = {
    TENSOR("token_embd.weight", "embeddings.word_embeddings.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("position_embd.weight", "embeddings.position_embeddings.weight", RULE_SMALL, DIM_CTX, DIM_EMBD),
    TENSOR("token_embd_norm.*", "embeddings.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.attn_q.*", LAYER "attention.q_lin.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", LAYER "attention.k_lin.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", LAYER "attention.v_lin.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", LAYER "attention.out_lin.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output_norm.*", LAYER "sa_layer_norm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", LAYER "ffn.lin1.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", LAYER "ffn.lin2.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    TENSOR("blk.#.layer_output_norm.*", LAYER "output_layer_norm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("cls.*", "pre_classifier.*", RULE_BIAS | WHEN_DENSE_HEAD, DIM_EMBD, DIM_EMBD),
    TENSOR("cls.output.*", "classifier.*", RULE_BIAS | RULE_SMALL | WHEN_LABELS, DIM_LABELS, DIM_EMBD),
    TENSOR("mlm.*", "vocab_transform.*", RULE_BIAS | WHEN_MASK, DIM_EMBD, DIM_EMBD),
    TENSOR("mlm.norm.*", "vocab_layer_norm.*", RULE_BIAS | WHEN_MASK, DIM_EMBD),
    TENSOR("output.weight", "vocab_projector.weight", WHEN_MASK | WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("output.bias", "vocab_projector.bias", WHEN_MASK, DIM_VOCAB),
    {0}};

static const conf_row distil_rows[] = {
    {"attention.layer_norm_epsilon", NULL, CONF_AT(norm.eps), CONF_F32, 0, 0, 0.1},
    {"attention.causal", NULL, 0, CONF_FALSE, 0, 0, 0},
    {"shoal.activation", "activation", CONF_AT(ffn.act), CONF_ACT, 0, 0, 0},
    {"shoal.head_activation", NULL, CONF_AT(head.act), CONF_ACT, 0, 0, 0},
    CONF_END};

static int finish_distil(conf *s, model_config *c)
{
    encoder_head(s, c, ACT_RELU);
    return 0;
}

const arch_def arch_distilbert = {
    .name = "bert",
    .hf_types = NAMES("distilbert"),
    .task = TASK_EMBED,
    .tasks = TASKS_ENCODER,
    .base = {ENCODER_NORM, .pos.learned = true, .ffn.act = ACT_GELU_ERF, .tied = true},
    .conf = {conf_sizes, distil_rows},
    .tensors = {distil_rules},
    .prefixes = NAMES("model.", "distilbert."),
    .ignored = ignored_encoder,
    .finish = finish_distil,
};
