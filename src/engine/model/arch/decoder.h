/* decoder.h: what decoders have in common: the rows of Llama (arch/llama.c), for descriptions to take. */
#ifndef MODEL_ARCH_DECODER_H
#define MODEL_ARCH_DECODER_H

#include <string.h>

#include "model/config/conf.h"

/* Embedding, last norm, output; attention with its norm; norms of queries and keys, head by head; the gated
 * feed-forward with its norm. Biases are optional throughout. */
extern const tensor_rule rules_embed[], rules_attention[], rules_qk_norm[], rules_gated[];
/* Folders' constants that are computed. */
extern const char *const ignored_rotary[];
/* attention.sliding_window, the activation, and the mixture of experts. */
extern const conf_row conf_window[], conf_activation_row[], conf_experts[];

/* Every layer attends within the window, unless it is as long as the context. */
int decoder_slides(conf *s, model_config *c);
/* Layers whose number (from 1) is no multiple of `every` get the flag; 0: none. */
int decoder_pattern(conf *s, model_config *c, size_t every, uint8_t flag);
/* A folder's window counts only where "use_sliding_window" is true, from layer "max_window_layers" on: Qwen.
 */
int decoder_qwen_window(conf *s, model_config *c);
/* Scores are divided by the root of `by` rather than of the head width. */
void decoder_scale_by(model_config *c, double by);

#define DECODER_RMS   .norm = {.kind = NORM_RMS, .eps = 1e-6f, .final = true}
#define DECODER_LAYER .norm = {.kind = NORM_LAYER, .eps = 1e-5f, .final = true}
#define DECODER_GATED .ffn = {.act = ACT_SILU, .gated = true}
#define DECODER_ROPE  .pos.rope.theta = 10000
#define DECODER_BASE                             \
    {                                            \
        DECODER_RMS, DECODER_ROPE, DECODER_GATED \
    }

#endif
