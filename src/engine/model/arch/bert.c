/* bert.c: BERT (Devlin et al. 2018), whose rows most other encoders share. */
#include "model/arch/encoder.h"

#define LAYER "encoder.layer.#."
const tensor_rule rules_bert_layer[] = {
    TENSOR("blk.#.attn_q.*", LAYER "attention.self.query.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", LAYER "attention.self.key.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", LAYER "attention.self.value.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", LAYER "attention.output.dense.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output_norm.*", LAYER "attention.output.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", LAYER "intermediate.dense.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", LAYER "output.dense.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    TENSOR("blk.#.layer_output_norm.*", LAYER "output.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    {0}};

static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "embeddings.word_embeddings.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("position_embd.weight", "embeddings.position_embeddings.weight", RULE_SMALL, DIM_CTX, DIM_EMBD),
    /* Other engines add its rows to floats and know no F16 here. */
    TENSOR("token_types.weight", "embeddings.token_type_embeddings.weight", RULE_FLOAT | WHEN_TYPES,
           DIM_TYPES, DIM_EMBD),
    TENSOR("token_embd_norm.*", "embeddings.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    /* The field's names: cls is BERT's pooler (dense, then tanh), cls.output the classifier. */
    TENSOR("cls.*", "pooler.dense.*", RULE_BIAS | WHEN_DENSE_HEAD, DIM_EMBD, DIM_EMBD),
    TENSOR("cls.output.*", "classifier.*", RULE_BIAS | RULE_SMALL | WHEN_LABELS, DIM_LABELS, DIM_EMBD),
    TENSOR("mlm.*", "cls.predictions.transform.dense.*", RULE_BIAS | WHEN_MASK, DIM_EMBD, DIM_EMBD),
    TENSOR("mlm.norm.*", "cls.predictions.transform.LayerNorm.*", RULE_BIAS | WHEN_MASK, DIM_EMBD),
    TENSOR("output.weight", "cls.predictions.decoder.weight", WHEN_MASK | WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("output.bias", "cls.predictions.bias", WHEN_MASK, DIM_VOCAB),
    TENSOR("output.bias", "cls.predictions.decoder.bias", RULE_ALIAS | WHEN_MASK, DIM_VOCAB),
    {0}};

const conf_row conf_encoder[] = {
    {"attention.layer_norm_epsilon", "layer_norm_eps", CONF_AT(norm.eps), CONF_F32, 0, 0, 0.1},
    {"attention.causal", "is_decoder", 0, CONF_FALSE, 0, 0, 0},
    {"tokenizer.ggml.token_type_count", "type_vocab_size", CONF_AT(n_types), CONF_SIZE, 0, 0, 1024},
    {"shoal.activation", "hidden_act", CONF_AT(ffn.act), CONF_ACT, 0, 0, 0},
    CONF_END};

const conf_row conf_encoder_more[] = {
    {"shoal.head_activation", NULL, CONF_AT(head.act), CONF_ACT, CONF_ODD, 0, 0},
    {"shoal.n_embd_in", "embedding_size", CONF_AT(n_embd_in), CONF_SIZE, CONF_ODD, 1, 65536},
    {"shoal.n_layer_file", NULL, CONF_AT(n_layer_file), CONF_SIZE, CONF_ODD, 1, 1024},
    {"attention.relative_buckets_count", "relative_attention_num_buckets", CONF_AT(pos.buckets.n), CONF_SIZE,
     CONF_ODD, 1, 65536},
    CONF_END};

const char *const ignored_encoder[] = {"embeddings.position_ids", "embeddings.token_type_ids", "pooler.*",
                                       "cls.seq_relationship.*", NULL};

void encoder_head(conf *s, model_config *c, activation act)
{
    const tensor *types = conf_tensor(s, "token_types.weight");
    bool told = s->g && c->n_types > 0 && conf_has(s, "tokenizer.ggml.token_type_count", NULL);
    if (s->g && !(types && told)) c->n_types = types ? types->dims[1] : 0;
    if (c->task == TASK_CLASSIFY || c->task == TASK_FILL_MASK) c->head.dense = true;
    if (c->task == TASK_CLASSIFY) c->head.pool = POOL_CLS;
    if (!s->g) c->head.act = act;
    if (c->task != TASK_FILL_MASK) return;
    c->head.act = c->ffn.act;
    c->head.norm = true;
}

int encoder_offset(conf *s, model_config *c)
{
    size_t pad = 1;
    int rc = conf_size(s, NULL, "pad_token_id", 0, 1024, &pad);
    if (s->g || rc != 0) return rc;
    c->pos.offset = pad + 1;
    if (c->n_ctx <= c->pos.offset)
        return conf_fail(s, SHOAL_EINVALID, "%zu positions behind %zu of padding leave none", c->n_ctx,
                         c->pos.offset);
    c->n_ctx -= c->pos.offset;
    return 0;
}

int encoder_refuse(conf *s, const char *key, const char *only)
{
    const char *value = only;
    int rc = conf_str(s, NULL, key, &value);
    if (rc != 0 || strcmp(value, only) == 0) return rc;
    return conf_fail(s, SHOAL_EUNSUPPORTED, "\"%s\": \"%.40s\" is not supported (\"%s\" is)", key, value,
                     only);
}

static int bert_finish(conf *s, model_config *c)
{
    encoder_head(s, c, ACT_TANH);
    /* The field's converter writes DistilBERT as BERT and leaves out what its classifier applies, ReLU; but of
     * the two BERT alone has token types. */
    bool distilled = s->g && c->task == TASK_CLASSIFY && c->n_types == 0;
    if (distilled && !conf_has(s, "shoal.head_activation", NULL)) c->head.act = ACT_RELU;
    return encoder_refuse(s, "position_embedding_type", "absolute");
}

const arch_def arch_bert = {
    .name = "bert",
    .hf_types = NAMES("bert"),
    .task = TASK_EMBED,
    .tasks = TASKS_ENCODER,
    .base = ENCODER_BASE,
    .conf = {conf_sizes, conf_encoder, conf_encoder_more},
    .tensors = {rules, rules_bert_layer},
    .prefixes = NAMES("model.", "bert."),
    .ignored = ignored_encoder,
    .needs_pooler = true,
    .finish = bert_finish,
};
