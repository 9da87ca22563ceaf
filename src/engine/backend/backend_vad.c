/* backend_vad.c: a voice activity detector (Silero's), window by window of a sound where it is asked for. */
#include <stdlib.h>

#include "backend/backend_model.h"
#include "speech/vad_model.h"

typedef struct vad_backend {
    backend_model model; /* what it is; its weights are the detector's own */
    vad_model *detector;
} vad_backend;

int backend_vad_recognises(backend_source *s, shoal_err *err)
{
    return backend_model_is_for(s, TASK_VAD, err);
}

static void vad_close(void *state)
{
    vad_backend *b = state;
    vad_model_free(b->detector);
    backend_model_close(&b->model);
    free(b);
}

static int vad_open(void **ret, backend_source *s, backend_digests *ret_digests, shoal_err *err)
{
    vad_backend *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    int rc = backend_model_open(&b->model, s, ret_digests, err);
    if (rc == 0)
        *ret = b;
    else
        vad_close(b);
    return rc;
}

static int vad_start(void *state, const backend_options *o, const backend_env *env, shoal_err *err)
{
    vad_backend *b = state;
    backend_model_threads(&b->model, &o->engine);
    return vad_model_open(&b->detector, o->path, err);
}

static void vad_describe(const void *state, backend_about *ret)
{
    backend_model_describe(&((const vad_backend *)state)->model, ret);
}

static int vad_detect(const void *state, sound *s, float **ret, size_t *ret_n, shoal_err *err)
{
    return vad_model_all(((const vad_backend *)state)->detector, s, ret, ret_n, err);
}

const backend_ops backend_vad = {.name = "vad",
                                 .engine = BIT_IDENTITY_ENGINE,
                                 .numerics = NUMERICS_CONTRACT,
                                 .open = vad_open,
                                 .start = vad_start,
                                 .describe = vad_describe,
                                 .detect = vad_detect,
                                 .close = vad_close};
