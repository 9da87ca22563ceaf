/* encoder.h: what encoders have in common. */
#ifndef MODEL_ARCH_ENCODER_H
#define MODEL_ARCH_ENCODER_H

#include <string.h>

#include "model/conf.h"

#define TASKS_ENCODER (CAN(TASK_CLASSIFY) | CAN(TASK_TAG) | CAN(TASK_EMBED))

#define ENCODER_BASE                                                                         \
    {                                                                                        \
        .norm = {.kind = NORM_LAYER, .place = PLACE_POST, .eps = 1e-12f, .embedding = true}, \
        .pos.learned = true, .ffn.act = ACT_GELU_ERF, .n_types = 2                           \
    }

#endif
