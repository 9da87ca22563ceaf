/* electra.c: ELECTRA (Clark et al. 2020), whose embeddings may be narrower than its layers, and ALBERT (Lan
 * et al. 2019), which runs one layer over and over. */
#include "model/arch/encoder.h"

#define EMBED                                                                                            \
    TENSOR("token_embd.weight", "embeddings.word_embeddings.weight", 0, DIM_VOCAB, DIM_EMBD_IN),         \
        TENSOR("position_embd.weight", "embeddings.position_embeddings.weight", RULE_SMALL, DIM_CTX,     \
               DIM_EMBD_IN),                                                                             \
        TENSOR("token_types.weight", "embeddings.token_type_embeddings.weight", RULE_SMALL | WHEN_TYPES, \
               DIM_TYPES, DIM_EMBD_IN),                                                                  \
        TENSOR("token_embd_norm.*", "embeddings.LayerNorm.*", RULE_BIAS, DIM_EMBD_IN)

static const tensor_rule rules[] = {
    EMBED,
    TENSOR("token_embd_proj.*", "embeddings_project.*", RULE_BIAS | WHEN_WIDENED, DIM_EMBD, DIM_EMBD_IN),
    TENSOR("cls.*", "classifier.dense.*", RULE_BIAS | WHEN_DENSE_HEAD, DIM_EMBD, DIM_EMBD),
    TENSOR("cls.output.*", "classifier.out_proj.*", RULE_BIAS | RULE_SMALL | WHEN_LABELS, DIM_LABELS,
           DIM_EMBD),
    TENSOR("cls.output.*", "classifier.*", RULE_ALIAS | RULE_BIAS | WHEN_LABELS, DIM_LABELS, DIM_EMBD),
    TENSOR("mlm.*", "generator_predictions.dense.*", RULE_BIAS | WHEN_MASK, DIM_EMBD_IN, DIM_EMBD),
    TENSOR("mlm.norm.*", "generator_predictions.LayerNorm.*", RULE_BIAS | WHEN_MASK, DIM_EMBD_IN),
    TENSOR("output.weight", "generator_lm_head.weight", WHEN_MASK | WHEN_UNTIED, DIM_VOCAB, DIM_EMBD_IN),
    TENSOR("output.bias", "generator_lm_head.bias", WHEN_MASK, DIM_VOCAB),
    {0}};

static int electra_finish(conf *s, model_config *c)
{
    encoder_head(s, c, ACT_GELU_ERF);
    if (c->n_embd_in == c->n_embd) c->n_embd_in = 0;
    return encoder_refuse(s, "position_embedding_type", "absolute");
}

const arch_def arch_electra = {
    .name = "electra",
    .hf_types = NAMES("electra"),
    .task = TASK_EMBED,
    .tasks = TASKS_ENCODER,
    .base = ENCODER_BASE,
    .conf = {conf_sizes, conf_encoder, conf_encoder_more},
    .tensors = {rules, rules_bert_layer},
    .prefixes = NAMES("model.", "electra."),
    .ignored = NAMES("embeddings.position_ids", "discriminator_predictions.*"),
    .finish = electra_finish,
};

/* ---- ALBERT ----------------------------------------------------------------------------------------- */

#define LAYER "encoder.albert_layer_groups.#.albert_layers.0."
static const tensor_rule albert_rules[] = {
    EMBED,
    TENSOR("token_embd_proj.*", "encoder.embedding_hidden_mapping_in.*", RULE_BIAS, DIM_EMBD, DIM_EMBD_IN),
    TENSOR("blk.#.attn_q.*", LAYER "attention.query.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", LAYER "attention.key.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", LAYER "attention.value.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", LAYER "attention.dense.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output_norm.*", LAYER "attention.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", LAYER "ffn.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", LAYER "ffn_output.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    TENSOR("blk.#.layer_output_norm.*", LAYER "full_layer_layer_norm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("cls.*", "pooler.*", RULE_BIAS | WHEN_DENSE_HEAD, DIM_EMBD, DIM_EMBD),
    TENSOR("cls.output.*", "classifier.*", RULE_BIAS | RULE_SMALL | WHEN_LABELS, DIM_LABELS, DIM_EMBD),
    TENSOR("mlm.*", "predictions.dense.*", RULE_BIAS | WHEN_MASK, DIM_EMBD_IN, DIM_EMBD),
    TENSOR("mlm.norm.*", "predictions.LayerNorm.*", RULE_BIAS | WHEN_MASK, DIM_EMBD_IN),
    TENSOR("output.weight", "predictions.decoder.weight", WHEN_MASK | WHEN_UNTIED, DIM_VOCAB, DIM_EMBD_IN),
    TENSOR("output.bias", "predictions.bias", WHEN_MASK, DIM_VOCAB),
    TENSOR("output.bias", "predictions.decoder.bias", RULE_ALIAS | WHEN_MASK, DIM_VOCAB),
    {0}};

static int finish_albert(conf *s, model_config *c)
{
    int64_t groups = 1, inner = 1;
    encoder_head(s, c, ACT_TANH);
    c->n_layer_file = 1;
    int rc = conf_int(s, NULL, "num_hidden_groups", 1, 1024, &groups);
    if (rc == 0) rc = conf_int(s, NULL, "inner_group_num", 1, 1024, &inner);
    if (rc == 0 && (groups != 1 || inner != 1))
        rc = conf_fail(s, SHOAL_EUNSUPPORTED, "%lld groups of %lld layers are not supported (one of one is)",
                       (long long)groups, (long long)inner);
    if (rc == 0 && (c->n_embd_in == 0 || c->n_embd_in == c->n_embd))
        rc = conf_fail(s, SHOAL_EUNSUPPORTED, "embeddings as wide as the layers (%zu) are not supported here",
                       c->n_embd);
    return rc == 0 ? encoder_refuse(s, "position_embedding_type", "absolute") : rc;
}

const arch_def arch_albert = {
    .name = "albert",
    .hf_types = NAMES("albert"),
    .task = TASK_EMBED,
    .tasks = TASKS_ENCODER,
    .base = {ENCODER_NORM, .pos.learned = true, .ffn.act = ACT_GELU_TANH, .n_types = 2, .head.act = ACT_TANH,
             .tied = true},
    .conf = {conf_sizes, conf_encoder, conf_encoder_more},
    .tensors = {albert_rules},
    .prefixes = NAMES("model.", "albert."),
    .ignored = NAMES("embeddings.position_ids", "sop_classifier.*"),
    .finish = finish_albert,
};
