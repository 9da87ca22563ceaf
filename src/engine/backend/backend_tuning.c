/* backend_tuning.c: see backend_tuning.h. */
#include "backend/backend_tuning.h"

#include "model/packed/regroup.h"

int backend_tune(backend_options *o, const tuning *t, shoal_err *err)
{
    const char *kept = t->kv_type ? tuning_kv_type_words[t->kv_type] : "";
    o->engine.max_batch = t->max_batch;
    o->engine.max_queue = t->max_queue;
    o->engine.prefill_chunk = t->prefill_chunk;
    o->engine.no_drafts = t->drafts != 0;
    o->full_window = t->audio_window != 0;
    if (!kv_type_parse(kept, &o->engine.kv_type))
        return err_set(err, SHOAL_EINVALID, "keys and values are kept as %s, not %s", kv_type_choices, kept);
    return t->regroup ? regroup_parse(tuning_regroup_words[t->regroup], &o->regroup, err) : 0;
}

int backend_check_tuning(const backend_options *o, const model *m, shoal_err *err)
{
    if (m) return net_check_kv_type(m, o->engine.kv_type, err);
    bool asked = o->regroup || o->engine.kv_type != KV_AS_WEIGHTS || o->n_adapters > 0;
    return asked ? preprocessor_refuse_of_trees(o->path, err) : 0;
}
