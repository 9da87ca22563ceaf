/* bart.c: BART and mBART (Lewis et al. 2019, Liu et al. 2020) and Marian (Junczys-Dowmunt et al. 2018): the
 * original Transformer's two sides; Marian's positions are the fixed sines. */
#include "model/arch/seq2seq.h"

#define SIZE(field, gguf, json, min, max, flags)               \
    {                                                          \
        gguf, json, CONF_AT(field), CONF_SIZE, flags, min, max \
    }
const conf_row conf_seq2seq[] = {
    SIZE(n_layer, "decoder_block_count", "decoder_layers", 1, 1024, CONF_NEEDED),
    SIZE(n_ctx, "context_length", "max_target_positions max_position_embeddings", 1, 16 << 20, CONF_NEEDED),
    SIZE(n_embd, "embedding_length", "d_model", 1, 65536, CONF_NEEDED),
    SIZE(ffn.n_ff, "feed_forward_length", "decoder_ffn_dim", 1, 1 << 20, CONF_NEEDED),
    SIZE(attn.n_head, "attention.head_count", "decoder_attention_heads", 1, 1024, CONF_NEEDED),
    SIZE(n_vocab, "vocab_size", "vocab_size", 1, 4 << 20, CONF_NEEDED),
    SIZE(source.n_layer, "block_count", "encoder_layers", 1, 1024, CONF_NEEDED),
    SIZE(source.n_ctx, "source.context_length", "max_source_positions max_position_embeddings", 1, 1 << 20,
         CONF_NEEDED),
    SIZE(source.n_ff, "source.feed_forward_length", "encoder_ffn_dim", 1, 1 << 20, CONF_NEEDED),
    SIZE(source.n_head, "source.head_count", "encoder_attention_heads", 1, 1024, CONF_NEEDED),
    SIZE(source.n_mel, "source.mel_bands", "num_mel_bins", 1, 1024, CONF_ODD),
    {"shoal.activation", "activation_function", CONF_AT(ffn.act), CONF_ACT, 0, 0, 0},
    {"embedding_scale", NULL, CONF_AT(scale.embd), CONF_F32, CONF_ODD, 0, 1e6},
    {"decoder_start_token_id", "decoder_start_token_id", CONF_AT(start_id), CONF_INT, 0, 0, 4 << 20},
    CONF_END};

int seq2seq_finish(conf *s, model_config *c)
{
    bool scaled = false;
    int64_t start = c->start_id;
    int rc = conf_bool(s, NULL, "scale_embedding", &scaled);
    if (scaled) c->scale.embd = (float)sqrt((double)c->n_embd);
    if (rc == 0 && !s->g && !conf_has(s, NULL, "decoder_start_token_id")) {
        const json_t *id = json_object_get(s->files->generation, "decoder_start_token_id");
        if (!json_is_integer(id)) id = conf_json(s, "bos_token_id pad_token_id");
        if (json_is_integer(id)) start = json_integer_value(id);
    }
    if (rc == 0 && (start < 0 || (size_t)start >= c->n_vocab))
        rc = conf_fail(s, SHOAL_EINVALID, "\"decoder_start_token_id\" %lld is outside the vocabulary of %zu",
                       (long long)start, c->n_vocab);
    c->start_id = (int32_t)start;
    c->source.final_norm = c->norm.final;
    return rc;
}

#define ATTN(to, from)                                                    \
    TENSOR(to "q.*", from "q_proj.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),     \
        TENSOR(to "k.*", from "k_proj.*", RULE_BIAS, DIM_EMBD, DIM_EMBD), \
        TENSOR(to "v.*", from "v_proj.*", RULE_BIAS, DIM_EMBD, DIM_EMBD)

/* One side: its layers' self-attention and feed-forward, norms in front (mBART) or behind. */
#define SIDE(to, from, ff)                                                                                   \
    TENSOR(to "token_embd_norm.*", from "layernorm_embedding.*", RULE_BIAS | WHEN_LEARNED, DIM_EMBD),        \
        TENSOR(to "output_norm.*", from "layer_norm.*", RULE_BIAS | WHEN_FINAL, DIM_EMBD),                   \
        ATTN(to "blk.#.attn_", from "layers.#.self_attn."),                                                  \
        TENSOR(to "blk.#.attn_output.*", from "layers.#.self_attn.out_proj.*", RULE_BIAS, DIM_EMBD,          \
               DIM_EMBD),                                                                                    \
        TENSOR(to "blk.#.attn_norm.*", from "layers.#.self_attn_layer_norm.*", RULE_BIAS | WHEN_FRONT,       \
               DIM_EMBD),                                                                                    \
        TENSOR(to "blk.#.attn_output_norm.*", from "layers.#.self_attn_layer_norm.*", RULE_BIAS | WHEN_POST, \
               DIM_EMBD),                                                                                    \
        TENSOR(to "blk.#.ffn_norm.*", from "layers.#.final_layer_norm.*", RULE_BIAS | WHEN_FRONT, DIM_EMBD), \
        TENSOR(to "blk.#.layer_output_norm.*", from "layers.#.final_layer_norm.*", RULE_BIAS | WHEN_POST,    \
               DIM_EMBD),                                                                                    \
        TENSOR(to "blk.#.ffn_up.*", from "layers.#.fc1.*", RULE_BIAS, ff, DIM_EMBD),                         \
        TENSOR(to "blk.#.ffn_down.*", from "layers.#.fc2.*", RULE_BIAS, DIM_EMBD, ff)

#define CROSS(to) "decoder.layers.#.encoder_attn" to
static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "shared.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("token_embd.weight", "decoder.embed_tokens.weight", RULE_ALIAS, DIM_VOCAB, DIM_EMBD),
    TENSOR("token_embd.weight", "encoder.embed_tokens.weight", RULE_ALIAS, DIM_VOCAB, DIM_EMBD),
    TENSOR("output.weight", "lm_head.weight", WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("output.bias", "final_logits_bias", RULE_OPTIONAL, DIM_VOCAB),
    TENSOR("enc.position_embd.weight", "encoder.embed_positions.weight",
           RULE_SMALL | RULE_OFFSET | WHEN_LEARNED, DIM_SOURCE_CTX, DIM_EMBD),
    TENSOR("dec.position_embd.weight", "decoder.embed_positions.weight",
           RULE_SMALL | RULE_OFFSET | WHEN_LEARNED, DIM_CTX, DIM_EMBD),
    SIDE("enc.", "encoder.", DIM_SOURCE_FF),
    SIDE("dec.", "decoder.", DIM_FF),
    ATTN("dec.blk.#.cross_attn_", CROSS(".")),
    TENSOR("dec.blk.#.cross_attn_o.*", CROSS(".out_proj.*"), RULE_BIAS, DIM_EMBD, DIM_EMBD),
    TENSOR("dec.blk.#.cross_attn_norm.*", CROSS("_layer_norm.*"), RULE_BIAS | WHEN_FRONT, DIM_EMBD),
    TENSOR("dec.blk.#.cross_attn_output_norm.*", CROSS("_layer_norm.*"), RULE_BIAS | WHEN_POST, DIM_EMBD),
    {0}};

static int finish_bart(conf *s, model_config *c)
{
    c->pos.offset = s->g ? 0 : 2;
    return seq2seq_finish(s, c);
}

#define COMMON                                                                                    \
    .task = TASK_SEQ2SEQ, .tasks = CAN(TASK_SEQ2SEQ), .conf = {conf_seq2seq}, .tensors = {rules}, \
    .prefixes = NAMES("model.")

const arch_def arch_bart = {
    .name = "bart",
    .hf_types = NAMES("bart"),
    .base = {.norm = {.kind = NORM_LAYER, .place = PLACE_POST, .eps = 1e-5f, .embedding = true},
             .pos.learned = true,
             .ffn.act = ACT_GELU_ERF,
             .tied = true},
    .finish = finish_bart,
    COMMON,
};

const arch_def arch_mbart = {
    .name = "mbart",
    .hf_types = NAMES("mbart"),
    .base = {.norm = {.kind = NORM_LAYER, .eps = 1e-5f, .embedding = true, .final = true},
             .pos.learned = true,
             .ffn.act = ACT_GELU_ERF,
             .tied = true},
    .finish = finish_bart,
    COMMON,
};

static int finish_marian(conf *s, model_config *c)
{
    bool shared = true;
    int rc = conf_bool(s, NULL, "share_encoder_decoder_embeddings", &shared);
    if (rc == 0 && !shared)
        rc = conf_fail(s, SHOAL_EUNSUPPORTED,
                       "two vocabularies (\"share_encoder_decoder_embeddings\": false) are "
                       "not supported");
    return rc == 0 ? seq2seq_finish(s, c) : rc;
}

const arch_def arch_marian = {
    .name = "marian",
    .hf_types = NAMES("marian"),
    .base = {.norm = {.kind = NORM_LAYER, .place = PLACE_POST, .eps = 1e-5f},
             .pos.sinusoidal = true,
             .ffn.act = ACT_SILU,
             .tied = true},
    .ignored = NAMES("encoder.embed_positions.weight", "decoder.embed_positions.weight"),
    .finish = finish_marian,
    COMMON,
};
