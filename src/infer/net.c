/* net.c: which operations compute a configuration. */
#include "infer/passes.h"

/* A decoder's convolutions read what a cache keeps, which a pass over whole texts has not. */
static bool convolves(const model_config *c)
{
    for (size_t i = 0; i < c->n_layer; i++)
        if (config_layer(c, i) & LAYER_CONV) return true;
    return false;
}

const net_ops *net_ops_for(const model_config *c, shoal_err *err)
{
    if (c->task == TASK_EMBED && convolves(c)) {
        err_set(err, SHOAL_EUNSUPPORTED, "embedding with short convolutions is not supported");
        return NULL;
    }
    switch (c->task) {
    case TASK_GENERATE: return &decoder_ops;
    case TASK_CLASSIFY:
    case TASK_TAG:
    case TASK_EMBED:
    case TASK_RERANK:
    case TASK_FILL_MASK:
    case TASK_IMAGE: return &encoder_ops;
    case TASK_SEQ2SEQ:
    case TASK_TRANSCRIBE: return &encdec_ops;
    case TASK_SCORE: return &recurrent_ops;
    default: break;
    }
    err_set(err, SHOAL_EUNSUPPORTED, "no network here computes the task \"%s\"", task_name(c->task));
    return NULL;
}
