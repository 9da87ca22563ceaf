/* whisper.c: Whisper (Radford et al. 2022): two convolutions over log-mel frames, then BART with norms in
 * front. */
#include "model/arch/seq2seq.h"

#define ATTN(to, from)                                                          \
    TENSOR(to "q.*", from "q_proj.*", RULE_BIAS, DIM_EMBD, DIM_EMBD),           \
        TENSOR(to "k.*", from "k_proj.*", RULE_BIAS_MAYBE, DIM_EMBD, DIM_EMBD), \
        TENSOR(to "v.*", from "v_proj.*", RULE_BIAS, DIM_EMBD, DIM_EMBD)
#define SIDE(to, from, ff)                                                                           \
    TENSOR(to "output_norm.*", from "layer_norm.*", RULE_BIAS, DIM_EMBD),                            \
        TENSOR(to "blk.#.attn_norm.*", from "layers.#.self_attn_layer_norm.*", RULE_BIAS, DIM_EMBD), \
        ATTN(to "blk.#.attn_", from "layers.#.self_attn."),                                          \
        TENSOR(to "blk.#.attn_output.*", from "layers.#.self_attn.out_proj.*", RULE_BIAS, DIM_EMBD,  \
               DIM_EMBD),                                                                            \
        TENSOR(to "blk.#.ffn_norm.*", from "layers.#.final_layer_norm.*", RULE_BIAS, DIM_EMBD),      \
        TENSOR(to "blk.#.ffn_up.*", from "layers.#.fc1.*", RULE_BIAS, ff, DIM_EMBD),                 \
        TENSOR(to "blk.#.ffn_down.*", from "layers.#.fc2.*", RULE_BIAS, DIM_EMBD, ff)

static const tensor_rule rules[] = {
    TENSOR("token_embd.weight", "decoder.embed_tokens.weight", 0, DIM_VOCAB, DIM_EMBD),
    TENSOR("output.weight", "proj_out.weight", WHEN_UNTIED, DIM_VOCAB, DIM_EMBD),
    TENSOR("enc.conv1.*", "encoder.conv1.*", RULE_BIAS | RULE_SMALL, DIM_EMBD, DIM_MEL, DIM_THREE),
    TENSOR("enc.conv2.*", "encoder.conv2.*", RULE_BIAS | RULE_SMALL, DIM_EMBD, DIM_EMBD, DIM_THREE),
    TENSOR("enc.position_embd.weight", "encoder.embed_positions.weight", RULE_SMALL, DIM_SOURCE_CTX,
           DIM_EMBD),
    TENSOR("dec.position_embd.weight", "decoder.embed_positions.weight", RULE_SMALL, DIM_CTX, DIM_EMBD),
    SIDE("enc.", "encoder.", DIM_SOURCE_FF),
    SIDE("dec.", "decoder.", DIM_FF),
    TENSOR("dec.blk.#.cross_attn_norm.*", "decoder.layers.#.encoder_attn_layer_norm.*", RULE_BIAS, DIM_EMBD),
    ATTN("dec.blk.#.cross_attn_", "decoder.layers.#.encoder_attn."),
    TENSOR("dec.blk.#.cross_attn_o.*", "decoder.layers.#.encoder_attn.out_proj.*", RULE_BIAS, DIM_EMBD,
           DIM_EMBD),
    {0}};

static int whisper_finish(conf *s, model_config *c)
{
    if (c->source.n_mel == 0) return conf_fail(s, SHOAL_EINVALID, "\"num_mel_bins\" is missing");
    return seq2seq_finish(s, c);
}

const arch_def arch_whisper = {
    .name = "whisper",
    .hf_types = NAMES("whisper"),
    .task = TASK_TRANSCRIBE,
    .tasks = CAN(TASK_TRANSCRIBE),
    .base = {.norm = {.kind = NORM_LAYER, .eps = 1e-5f, .final = true},
             .pos.learned = true,
             .ffn.act = ACT_GELU_ERF,
             .tied = true},
    .conf = {conf_seq2seq},
    .tensors = {rules},
    .prefixes = NAMES("model."),
    .finish = whisper_finish,
};
