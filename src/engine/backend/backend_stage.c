/* backend_stage.c: some layers of a network whose first stage is elsewhere (infer/stage.h). It has no engine:
 * steps come over Stage.Run, whose service (worker/service_stage.c) computes them on a thread of its own. */
#include <stdlib.h>

#include "backend/backend_model.h"

typedef struct stage_backend {
    backend_model model;
    stage *stage;
} stage_backend;

int backend_stage_recognises(backend_source *s, shoal_err *err)
{
    return s->o->layers.first > 0;
}

static void stage_backend_close(void *state)
{
    stage_backend *b = state;
    stage_free(b->stage);
    backend_model_close(&b->model);
    free(b);
}

static int stage_backend_open(void **ret, backend_source *s, backend_digests *ret_digests, shoal_err *err)
{
    stage_backend *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    int rc = backend_model_open(&b->model, s, ret_digests, err);
    if (rc == 0)
        *ret = b;
    else
        stage_backend_close(b);
    return rc;
}

static int stage_backend_start(void *state, const backend_options *o, const backend_env *env, shoal_err *err)
{
    stage_backend *b = state;
    stage_options so = {.part = o->layers,
                        .n_threads = backend_model_threads(&b->model, &o->engine),
                        .n_ctx = o->engine.n_ctx,
                        .max_batch = o->engine.max_batch,
                        .kv_bytes = o->engine.kv_bytes,
                        .kv_type = o->engine.kv_type,
                        .arbiter = env->arbiter};
    backend_model_precision(&b->model, o);
    if (o->n_stages > 0 || o->n_adapters > 0)
        return err_set(err, SHOAL_EINVALID,
                       "a stage of layers %zu:%zu has no stages and no adapters of its own", o->layers.first,
                       o->layers.end);
    return stage_new(&b->stage, b->model.m, &so, err);
}

static void stage_backend_describe(const void *state, backend_about *ret)
{
    backend_model_describe(&((const stage_backend *)state)->model, ret);
}

static stage *stage_backend_stage(void *state)
{
    return ((stage_backend *)state)->stage;
}

const backend_ops backend_stage = {.name = "stage",
                                   .engine = BIT_IDENTITY_ENGINE,
                                   .numerics = NUMERICS_CONTRACT,
                                   .open = stage_backend_open,
                                   .start = stage_backend_start,
                                   .describe = stage_backend_describe,
                                   .stage = stage_backend_stage,
                                   .close = stage_backend_close};
