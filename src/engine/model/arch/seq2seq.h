/* seq2seq.h: what encoder-decoders have in common. */
#ifndef MODEL_ARCH_SEQ2SEQ_H
#define MODEL_ARCH_SEQ2SEQ_H

#include <math.h>
#include <string.h>

#include "model/config/conf.h"

/* Sizes of both sides, heads, activation and the id a reply begins with, as BART, Marian and Whisper say
 * them. */
extern const conf_row conf_seq2seq[];

/* start_id from generation_config.json where config.json has none; the encoder's place of norms and its last
 * norm as the decoder's; with "scale_embedding" the embeddings' factor. */
int seq2seq_finish(conf *s, model_config *c);

#endif
