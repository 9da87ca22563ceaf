/* net.c: which operations compute a configuration. */
#include "net/passes.h"

#include "net/mixer.h"

/* Mixers with a state read it from a sequence's, which a pass over whole texts has not. */
static bool has_state(const model_config *c)
{
    for (size_t i = 0; i < c->n_layer; i++)
        if (mixer_of(config_layer(c, i))->state_bytes) return true;
    return false;
}

const net_ops *net_ops_for(const model_config *c, shoal_err *err)
{
    if (c->task == TASK_EMBED && has_state(c)) {
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

int net_check_kv_type(const model *m, kv_type t, shoal_err *err)
{
    if (t == KV_AS_WEIGHTS) return 0;
    const net_ops *ops = net_ops_for(model_get_config(m), err);
    if (!ops) return SHOAL_EUNSUPPORTED;
    kv_shape shape = ops->roles & NET_DECODES ? ops->kv(m) : (kv_shape){0};
    if (shape.n_layer > 0) return kv_shape_keep_as(&shape, t, err);
    return err_set(
        err, SHOAL_EUNSUPPORTED,
        "this model keeps no keys and values from step to step, as %s or otherwise: leave their type out",
        kv_type_name(t));
}

bool net_kv_type_deviates(const model *m, kv_type t)
{
    const net_ops *ops = t == KV_AS_WEIGHTS ? NULL : net_ops_for(model_get_config(m), NULL);
    return ops && ops->roles & NET_DECODES && ops->kv(m).type != kv_type_dtype(t);
}
