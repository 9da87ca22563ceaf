/* bert.c: BERT (Devlin et al. 2018) and what its heads are. */
#include "model/arch/encoder.h"

#define LAYER "encoder.layer.#."
static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "embeddings.word_embeddings.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("position_embd.weight", "embeddings.position_embeddings.weight", RULE_SMALL, DIM_CTX, DIM_EMBD),
    TENSOR("token_types.weight", "embeddings.token_type_embeddings.weight", RULE_SMALL | WHEN_TYPES,
           DIM_TYPES, DIM_EMBD),
    TENSOR("token_embd_norm.*", "embeddings.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.attn_q.*", LAYER "attention.self.query.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", LAYER "attention.self.key.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", LAYER "attention.self.value.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", LAYER "attention.output.dense.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output_norm.*", LAYER "attention.output.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", LAYER "intermediate.dense.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", LAYER "output.dense.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    TENSOR("blk.#.layer_output_norm.*", LAYER "output.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    /* The field's names: cls is BERT's pooler (dense, then tanh), cls.output the classifier. */
    TENSOR("cls.*", "pooler.dense.*", RULE_BIAS | WHEN_DENSE_HEAD, DIM_EMBD, DIM_EMBD),
    TENSOR("cls.output.*", "classifier.*", RULE_BIAS | RULE_SMALL | WHEN_LABELS, DIM_LABELS, DIM_EMBD),
    {0}};

static const conf_row rows[] = {
    {"attention.layer_norm_epsilon", "layer_norm_eps", CONF_AT(norm.eps), CONF_F32, 0, 0, 0.1},
    {"attention.causal", "is_decoder", 0, CONF_FALSE, 0, 0, 0},
    {"tokenizer.ggml.token_type_count", "type_vocab_size", CONF_AT(n_types), CONF_SIZE, 0, 1, 1024},
    {"shoal.activation", "hidden_act", CONF_AT(ffn.act), CONF_ACT, 0, 0, 0},
    CONF_END};

static int finish(conf *s, model_config *c)
{
    const char *positions = "absolute";
    const tensor *types = conf_tensor(s, "token_types.weight");
    if (s->g) c->n_types = types ? types->dims[1] : 0;
    c->head.dense = c->task == TASK_CLASSIFY;
    c->head.act = ACT_TANH;
    int rc = conf_str(s, NULL, "position_embedding_type", &positions);
    if (rc == 0 && strcmp(positions, "absolute") != 0)
        rc = conf_fail(s, SHOAL_EUNSUPPORTED, "BERT with \"%.40s\" positions is not supported", positions);
    return rc;
}

const arch_def arch_bert = {
    .name = "bert",
    .hf_types = NAMES("bert"),
    .task = TASK_EMBED,
    .tasks = TASKS_ENCODER,
    .base = ENCODER_BASE,
    .conf = {conf_sizes, rows},
    .tensors = {rules},
    .prefixes = NAMES("model.", "bert."),
    .ignored = NAMES("embeddings.position_ids", "cls.predictions.*", "cls.seq_relationship.*"),
    .needs_pooler = true,
    .finish = finish,
};
