/* t5.c: T5 and Flan-T5 (Raffel et al. 2019): no positions but a learned bias by distance, which the first
 * layer of each side keeps for all; scores are not scaled. */
#include "model/arch/seq2seq.h"

#define ATTN(to, from)                                              \
    TENSOR(to "q.weight", from "q.weight", 0, DIM_Q, DIM_EMBD),     \
        TENSOR(to "k.weight", from "k.weight", 0, DIM_Q, DIM_EMBD), \
        TENSOR(to "v.weight", from "v.weight", 0, DIM_Q, DIM_EMBD)
#define FFN(to, from)                                                                   \
    TENSOR(to "ffn_gate.weight", from "wi_0.weight", WHEN_GATED, DIM_FF, DIM_EMBD),     \
        TENSOR(to "ffn_up.weight", from "wi_1.weight", WHEN_GATED, DIM_FF, DIM_EMBD),   \
        TENSOR(to "ffn_up.weight", from "wi.weight", WHEN_PLAIN_FFN, DIM_FF, DIM_EMBD), \
        TENSOR(to "ffn_down.weight", from "wo.weight", 0, DIM_EMBD, DIM_FF)
#define SIDE(to, from)                                                                                       \
    TENSOR(to "output_norm.weight", from "final_layer_norm.weight", 0, DIM_EMBD),                            \
        TENSOR(to "blk.0.attn_rel_b.weight",                                                                 \
               from "block.0.layer.0.SelfAttention.relative_attention_bias.weight", RULE_FLOAT, DIM_BUCKETS, \
               DIM_HEADS),                                                                                   \
        TENSOR(to "blk.#.attn_norm.weight", from "block.#.layer.0.layer_norm.weight", 0, DIM_EMBD),          \
        ATTN(to "blk.#.attn_", from "block.#.layer.0.SelfAttention.")

/* GGUF calls the output "o". */
#define OUT(to, from) TENSOR_IN(to "o.weight", to "output.weight", from "o.weight", 0, DIM_EMBD, DIM_Q)
static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "shared.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("token_embd.weight", "encoder.embed_tokens.weight", RULE_ALIAS, DIM_VOCAB, DIM_EMBD),
    TENSOR("token_embd.weight", "decoder.embed_tokens.weight", RULE_ALIAS, DIM_VOCAB, DIM_EMBD),
    TENSOR("output.weight", "lm_head.weight", WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    SIDE("enc.", "encoder."),
    OUT("enc.blk.#.attn_", "encoder.block.#.layer.0.SelfAttention."),
    TENSOR("enc.blk.#.ffn_norm.weight", "encoder.block.#.layer.1.layer_norm.weight", 0, DIM_EMBD),
    FFN("enc.blk.#.", "encoder.block.#.layer.1.DenseReluDense."),
    SIDE("dec.", "decoder."),
    OUT("dec.blk.#.attn_", "decoder.block.#.layer.0.SelfAttention."),
    TENSOR("dec.blk.#.cross_attn_norm.weight", "decoder.block.#.layer.1.layer_norm.weight", 0, DIM_EMBD),
    ATTN("dec.blk.#.cross_attn_", "decoder.block.#.layer.1.EncDecAttention."),
    TENSOR("dec.blk.#.cross_attn_o.weight", "decoder.block.#.layer.1.EncDecAttention.o.weight", 0, DIM_EMBD,
           DIM_Q),
    TENSOR("dec.blk.#.ffn_norm.weight", "decoder.block.#.layer.2.layer_norm.weight", 0, DIM_EMBD),
    FFN("dec.blk.#.", "decoder.block.#.layer.2.DenseReluDense."),
    {0}};

#define SIZE(field, gguf, json, max, flags)                  \
    {                                                        \
        gguf, json, CONF_AT(field), CONF_SIZE, flags, 1, max \
    }
static const conf_row rows[] = {
    SIZE(n_ctx, "context_length", "n_positions", 16 << 20, 0),
    SIZE(n_embd, "embedding_length", "d_model", 65536, CONF_NEEDED),
    SIZE(ffn.n_ff, "feed_forward_length", "d_ff", 1 << 20, CONF_NEEDED),
    SIZE(source.n_layer, "block_count", "num_layers", 1024, CONF_NEEDED),
    SIZE(n_layer, "decoder_block_count", "num_decoder_layers num_layers", 1024, 0),
    SIZE(attn.n_head, "attention.head_count", "num_heads", 1024, CONF_NEEDED),
    SIZE(attn.head_dim, "attention.key_length", "d_kv", 4096, CONF_NEEDED),
    SIZE(attn.head_dim, "attention.value_length", NULL, 4096, CONF_SAME),
    SIZE(n_vocab, "vocab_size", "vocab_size", 4 << 20, CONF_NEEDED),
    {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon", CONF_AT(norm.eps), CONF_F32, 0, 0, 0.1},
    {"attention.layer_norm_epsilon", NULL, CONF_AT(norm.eps), CONF_F32, 0, 0, 0.1},
    SIZE(pos.buckets.n, "attention.relative_buckets_count", "relative_attention_num_buckets", 65536, 0),
    SIZE(pos.buckets.max_distance, "shoal.relative_max_distance", "relative_attention_max_distance", 1 << 20,
         CONF_ODD),
    {"decoder_start_token_id", "decoder_start_token_id", CONF_AT(start_id), CONF_INT, 0, 0, 4 << 20},
    {"shoal.activation", NULL, CONF_AT(ffn.act), CONF_ACT, 0, 0, 0},
    {"shoal.logit_scale", NULL, CONF_AT(scale.logits), CONF_F32, CONF_ODD, 0, 1e6},
    CONF_END};

/* "relu", "gated-gelu": the latter is the tanh form, as the reference has it. */
static int read_projection(conf *s, model_config *c)
{
    const char *name = "relu";
    int rc = conf_str(s, NULL, "feed_forward_proj", &name);
    if (rc != 0) return rc;
    c->ffn.gated = strncmp(name, "gated-", 6) == 0;
    if (strcmp(name, "gated-gelu") == 0) {
        c->ffn.act = ACT_GELU_TANH;
        return 0;
    }
    if (c->ffn.gated) name += 6;
    if (activation_parse(name, &c->ffn.act)) return 0;
    return conf_fail(s, SHOAL_EUNSUPPORTED, "the activation \"%.40s\" is not supported", name);
}

/* Tied embeddings are scaled when they serve as output, unless a newer folder says otherwise. */
static int read_output_scale(conf *s, model_config *c)
{
    bool scaled = c->tied;
    int rc = conf_bool(s, NULL, "scale_decoder_outputs", &scaled);
    if (rc == 0 && scaled) c->scale.logits = (float)(1 / sqrt((double)c->n_embd));
    return rc;
}

static int t5_finish(conf *s, model_config *c)
{
    int rc = s->g ? 0 : read_projection(s, c);
    if (rc == 0 && !s->g) rc = read_output_scale(s, c);
    if (s->g) {
        c->ffn.gated = conf_tensor(s, "enc.blk.0.ffn_gate.weight") != NULL;
        if (!conf_has(s, "shoal.activation", NULL)) c->ffn.act = c->ffn.gated ? ACT_GELU_TANH : ACT_RELU;
        if (c->tied && !conf_has(s, "shoal.task", NULL))
            c->scale.logits = (float)(1 / sqrt((double)c->n_embd));
    }
    if (c->n_layer == 0) c->n_layer = c->source.n_layer;
    c->source.n_head = c->attn.n_head;
    c->source.n_ff = c->ffn.n_ff;
    c->source.n_ctx = c->n_ctx;
    return rc == 0 ? seq2seq_finish(s, c) : rc;
}

const arch_def arch_t5 = {
    .name = "t5",
    .hf_types = NAMES("t5", "mt5"),
    .task = TASK_SEQ2SEQ,
    .tasks = CAN(TASK_SEQ2SEQ),
    .base = {.n_ctx = 512,
             .norm = {.kind = NORM_RMS, .eps = 1e-6f, .final = true},
             .pos.buckets = {.n = 32, .max_distance = 128},
             .attn.scale = 1,
             .ffn.act = ACT_RELU,
             .tied = true},
    .conf = {rows},
    .tensors = {rules},
    .ignored = NAMES("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
                     "dec.blk.#.cross_attn_rel_b.weight"),
    .finish = t5_finish,
};
