/* deberta.c: DeBERTa v2 and v3 (He et al. 2020, 2021): no positions but distances, in log-spaced buckets,
 * that meet queries and keys through the same matrices. */
#include "model/arch/encoder.h"

#define LAYER "encoder.layer.#."
static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "embeddings.word_embeddings.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("token_types.weight", "embeddings.token_type_embeddings.weight", RULE_SMALL | WHEN_TYPES,
           DIM_TYPES, DIM_EMBD),
    TENSOR("token_embd_norm.*", "embeddings.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("rel_embd.weight", "encoder.rel_embeddings.weight", RULE_SMALL, DIM_RELATIVE, DIM_EMBD),
    TENSOR("rel_embd_norm.*", "encoder.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.attn_q.*", LAYER "attention.self.query_proj.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_k.*", LAYER "attention.self.key_proj.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_v.*", LAYER "attention.self.value_proj.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output.*", LAYER "attention.output.dense.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("blk.#.attn_output_norm.*", LAYER "attention.output.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("blk.#.ffn_up.*", LAYER "intermediate.dense.*", RULE_BIAS, DIM_FF, DIM_EMBD),
    TENSOR("blk.#.ffn_down.*", LAYER "output.dense.*", RULE_BIAS, DIM_EMBD, DIM_FF),
    TENSOR("blk.#.layer_output_norm.*", LAYER "output.LayerNorm.*", RULE_BIAS, DIM_EMBD),
    TENSOR("cls.*", "pooler.dense.*", RULE_BIAS | WHEN_DENSE_HEAD, DIM_EMBD, DIM_EMBD),
    TENSOR("cls.output.*", "classifier.*", RULE_BIAS | RULE_SMALL | WHEN_LABELS, DIM_LABELS, DIM_EMBD),
    TENSOR("mlm.*", "cls.predictions.transform.dense.*", RULE_BIAS | WHEN_MASK, DIM_EMBD, DIM_EMBD),
    TENSOR("mlm.norm.*", "cls.predictions.transform.LayerNorm.*", RULE_BIAS | WHEN_MASK, DIM_EMBD),
    TENSOR("output.weight", "cls.predictions.decoder.weight", WHEN_MASK | WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("output.bias", "cls.predictions.bias", WHEN_MASK, DIM_VOCAB),
    TENSOR("output.bias", "cls.predictions.decoder.bias", RULE_ALIAS | WHEN_MASK, DIM_VOCAB),
    {0}};

static const conf_row rows[] = {
    {"shoal.relative_buckets", "position_buckets", CONF_AT(pos.relative), CONF_SIZE, 0, 1, 65536},
    {"shoal.relative_max", NULL, CONF_AT(pos.relative_max), CONF_SIZE, 0, 1, 16 << 20},
    {"shoal.head_activation", "pooler_hidden_act", CONF_AT(head.act), CONF_ACT, CONF_ODD, 0, 0},
    {NULL, "position_biased_input", 0, CONF_FALSE, 0, 0, 0},
    CONF_END};

/* A list, or in older files "p2c|c2p". */
static bool both_ways(const json_t *types)
{
    const char *text = json_string_value(types);
    if (text) return strcmp(text, "p2c|c2p") == 0 || strcmp(text, "c2p|p2c") == 0;
    bool to_position = false, to_content = false;
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        to_position = to_position || (type && strcmp(type, "c2p") == 0);
        to_content = to_content || (type && strcmp(type, "p2c") == 0);
    }
    return json_array_size(types) == 2 && to_position && to_content;
}

/* Only what published models of v2 and v3 have is computed; the rest is refused by name. */
static int check_variant(conf *s)
{
    bool relative = false, shared = false;
    int64_t kernel = 0;
    int rc = conf_bool(s, NULL, "relative_attention", &relative);
    if (rc == 0) rc = conf_bool(s, NULL, "share_att_key", &shared);
    if (rc == 0) rc = conf_int(s, NULL, "conv_kernel_size", 0, 1024, &kernel);
    if (rc == 0) rc = encoder_refuse(s, "norm_rel_ebd", "layer_norm");
    if (rc != 0) return rc;
    const char *lacks = !relative ? "without \"relative_attention\""
                        : !shared ? "without \"share_att_key\""
                        : kernel  ? "with \"conv_kernel_size\""
                        : !both_ways(conf_json(s, "pos_att_type"))
                            ? "whose \"pos_att_type\" is not c2p and p2c"
                            : NULL;
    return lacks ? conf_fail(s, SHOAL_EUNSUPPORTED, "a DeBERTa %s is not supported", lacks) : 0;
}

static int deberta_finish(conf *s, model_config *c)
{
    int64_t longest = -1;
    encoder_head(s, c, c->head.act);
    if (s->g) return 0;
    int rc = check_variant(s);
    if (rc == 0) rc = conf_int(s, NULL, "max_relative_positions", -1, 16 << 20, &longest);
    c->pos.relative_max = longest < 1 ? c->n_ctx : (size_t)longest;
    if (rc == 0 && c->pos.relative == 0)
        rc = conf_fail(s, SHOAL_EUNSUPPORTED, "a DeBERTa without \"position_buckets\" is not supported");
    return rc;
}

const arch_def arch_deberta = {
    .name = "deberta-v2",
    .hf_types = NAMES("deberta-v2"),
    .task = TASK_EMBED,
    .tasks = TASKS_ENCODER,
    .base = {.norm = {.kind = NORM_LAYER, .place = PLACE_POST, .eps = 1e-7f, .embedding = true},
             .ffn.act = ACT_GELU_ERF,
             .head.act = ACT_GELU_ERF,
             .tied = true},
    .conf = {conf_sizes, conf_encoder, rows},
    .tensors = {rules},
    .prefixes = NAMES("model.", "deberta."),
    .ignored = NAMES("embeddings.position_ids", "embeddings.position_embeddings.weight", "lm_predictions.*",
                     "mask_predictions.*"),
    .finish = deberta_finish,
};
