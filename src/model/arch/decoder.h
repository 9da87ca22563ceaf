/* decoder.h: what decoders have in common: the rows of Llama (arch/llama.c), for descriptions to take. */
#ifndef MODEL_ARCH_DECODER_H
#define MODEL_ARCH_DECODER_H

#include <string.h>

#include "model/conf.h"

/* Embedding, last norm, output; attention with its norm; the gated feed-forward with its norm. Biases are
 * optional throughout. */
extern const tensor_rule rules_embed[], rules_attention[], rules_gated[];
extern const char *const ignored_rotary[];

#define DECODER_BASE                                                                               \
    {                                                                                              \
        .norm = {.kind = NORM_RMS, .eps = 1e-6f, .final = true}, .pos.rope.theta = 10000, .ffn = { \
            .act = ACT_SILU,                                                                       \
            .gated = true                                                                          \
        }                                                                                          \
    }

#endif
