/* encoder.h: what encoders have in common. */
#ifndef MODEL_ARCH_ENCODER_H
#define MODEL_ARCH_ENCODER_H

#include <string.h>

#include "model/config/conf.h"

#define TASKS_ENCODER (CAN(TASK_CLASSIFY) | CAN(TASK_TAG) | CAN(TASK_EMBED) | CAN(TASK_FILL_MASK))

/* BERT's: epsilon, causal attention (refused), token types, activation; then what other heads and widths say.
 */
extern const conf_row conf_encoder[], conf_encoder_more[];
/* BERT's layers under "encoder.layer.#.". */
extern const tensor_rule rules_bert_layer[];
extern const char *const ignored_encoder[];

/* The head in front of the last matrix: of classifiers by `act` over the first token; of a fill-mask model
 * dense, the model's own activation, a norm. */
void encoder_head(conf *s, model_config *c, activation act);
/* RoBERTa's positions start behind the padding's id. */
int encoder_offset(conf *s, model_config *c);
/* Widths of embeddings and layers that are the same are no two widths. */
int encoder_refuse(conf *s, const char *key, const char *only);

#define ENCODER_NORM .norm = {.kind = NORM_LAYER, .place = PLACE_POST, .eps = 1e-12f, .embedding = true}
#define ENCODER_BASE                                                                                    \
    {                                                                                                   \
        ENCODER_NORM, .pos.learned = true, .ffn.act = ACT_GELU_ERF, .n_types = 2, .head.act = ACT_TANH, \
                      .tied = true                                                                      \
    }

#endif
