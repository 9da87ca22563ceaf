/* backend.c: the kinds of backends, and what they have in common; see backend.h. */
#include "backend/backend.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/packed/regroup.h"

/* Asked from the first to the last: those that look at a file's first bytes stand before those that open it. */
static const backend_kind KINDS[] = {
    {backend_trees_recognises, &backend_trees},   /* LightGBM, XGBoost */
    {backend_vad_recognises, &backend_vad},       /* Silero VAD */
    {backend_stage_recognises, &backend_stage},   /* layers from another one than the first on */
    {backend_speech_recognises, &backend_speech}, /* Whisper */
    {backend_net_recognises, &backend_net},       /* every other network */
};

int backend_source_model(backend_source *s, const model **ret, shoal_err *err)
{
    model_options mo = {.expect_sha256 = s->o->sha256,
                        .no_tokenizer = s->o->layers.first > 0,
                        .regroup = s->o->regroup,
                        .store = &s->o->store};
    int rc = s->model ? 0 : model_open(&s->model, s->o->path, &mo, err);
    *ret = s->model;
    return rc;
}

static int backend_find_kind(backend_source *s, const backend_ops **ret, shoal_err *err)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        int rc = KINDS[i].recognises(s, err);
        *ret = KINDS[i].ops;
        if (rc != 0) return rc < 0 ? rc : 0;
    }
    return err_set(err, SHOAL_EUNSUPPORTED, "%s: no engine here serves this model", s->o->path);
}

/* A folder is not one file that model_open could compare. */
static int backend_check_pin(const backend_options *o, const sha256_digest *file, shoal_err *err)
{
    char hex[65];
    sha256_hex(file, hex);
    if (!o->sha256 || strcasecmp(o->sha256, hex) == 0) return 0;
    return err_set(err, SHOAL_EDIGEST, "%s: its SHA-256 is %s, but %s is pinned", o->path, hex, o->sha256);
}

int backend_open(backend *ret, const backend_options *o, shoal_err *err)
{
    backend_source s = {.o = o};
    backend b = {.name = strdup(o->name)};
    const backend_ops *ops = NULL;
    int rc = b.name ? backend_find_kind(&s, &ops, err) : err_nomem(err);
    if (rc == 0) rc = ops->open(&b.state, &s, &b.digests, err);
    model_free(s.model); /* that nobody took */
    if (rc == 0) {
        b.ops = ops;
        rc = backend_check_pin(o, &b.digests.file, err);
    }
    if (rc != 0) backend_close(&b);
    *ret = b;
    return rc;
}

int backend_start(backend *b, const backend_options *o, const backend_env *env, shoal_err *err)
{
    backend_env own = *env;
    if (b->ops->device) own.arbiter = NULL; /* it does not compute on cores: nothing to lease */
    int rc = b->ops->start ? b->ops->start(b->state, o, &own, err) : 0;
    if (rc != 0) return rc;
    b->about = (backend_about){.architecture = "",
                               .version = "",
                               .quantisation = "",
                               .vocabulary = "",
                               .longer_by = "",
                               .precision = BIT_IDENTITY_FILE,
                               .n_threads = 1,
                               .n_parallel = 1};
    b->ops->describe(b->state, &b->about);
    sampling_override(&b->about.sampling, &o->sampling);
    return 0;
}

void backend_stop(backend *b)
{
    if (b->ops && b->ops->stop) b->ops->stop(b->state);
}

void backend_close(backend *b)
{
    if (b->ops) b->ops->close(b->state);
    free(b->name);
    *b = (backend){0};
}

/* ---- what it can do ------------------------------------------------------------------------------ */

static bool has_op(const backend_ops *ops, model_task task)
{
    switch (task) {
    case TASK_GENERATE:
    case TASK_SEQ2SEQ: return ops->generate;
    case TASK_TRANSCRIBE: return ops->transcribe;
    case TASK_SCORE: return ops->score;
    case TASK_IMAGE: return ops->classify_image;
    case TASK_VAD: return ops->detect;
    default: return ops->encode;
    }
}

/* A stage has no head and no tokens. */
static int refuse_stage(const backend *b, shoal_err *err)
{
    return err_set(err, SHOAL_EUNSUPPORTED, "this is one stage of %s: ask its first stage", b->name);
}

int backend_admit(const backend *b, model_task task, shoal_err *err)
{
    model_task own = b->about.task;
    bool is_its = own == task || (own == TASK_RERANK && task == TASK_CLASSIFY);
    if (b->ops->stage) return refuse_stage(b, err);
    if (is_its && has_op(b->ops, task)) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "%s is a model for the task %s, not %s", b->name, task_name(own),
                   task_name(task));
}

int backend_tokenizer(const backend *b, const char *instead, const tokenizer **ret, shoal_err *err)
{
    if (b->ops->stage) return refuse_stage(b, err);
    *ret = b->about.tokenizer;
    if (*ret) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "%s: %s%s", b->name, b->about.no_tokenizer, instead);
}
