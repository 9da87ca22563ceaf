/* backend_net.c: a network, run by the engine (infer/engine.h); of a network that is cut, its first stage. */
#include <stdlib.h>

#include "backend/backend_net_impl.h"
#include "logging/log.h"
#include "infer/context_plan.h"

int backend_net_recognises(backend_source *s, shoal_err *err)
{
    const model *m;
    int rc = backend_source_model(s, &m, err);
    return rc ? rc : 1;
}

/* ---- life ---------------------------------------------------------------------------------------- */

int backend_net_open_state(net_backend *b, backend_source *s, backend_digests *ret_digests, shoal_err *err)
{
    return backend_model_open(&b->model, s, ret_digests, err);
}

void backend_net_close_state(net_backend *b)
{
    engine_free(b->engine);
    stage_link_close(b->link);
    preprocessor_done(&b->preprocessor);
    backend_model_close(&b->model);
}

static void net_close(void *state)
{
    backend_net_close_state(state);
    free(state);
}

static int net_open(void **ret, backend_source *s, backend_digests *ret_digests, shoal_err *err)
{
    net_backend *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    int rc = backend_net_open_state(b, s, ret_digests, err);
    if (rc == 0)
        *ret = b;
    else
        net_close(b);
    return rc;
}

static int link_stages(net_backend *b, const backend_options *o, shoal_err *err)
{
    const model_config *c = model_get_config(b->model.m);
    int rc = stage_check_part(c, o->layers, err);
    if (rc != 0) return rc;
    if (o->n_stages == 0)
        return o->layers.end == c->n_layer
                   ? 0
                   : err_set(err, SHOAL_EINVALID,
                             "layers %zu:%zu of %zu need the addresses of the others (--stage)",
                             o->layers.first, o->layers.end, c->n_layer);
    stage_link_options lo = {.addresses = o->stages,
                             .n = o->n_stages,
                             .digest = b->model.identity,
                             .name = b->model.name,
                             .part = o->layers,
                             .n_layer = c->n_layer,
                             .n_embd = c->n_embd,
                             .wire = o->wire,
                             .kv_type = o->engine.kv_type,
                             .member = o->member};
    return stage_link_open(&b->link, &lo, err);
}

static int start_engine(net_backend *b, const backend_options *o, const backend_env *env, shoal_err *err)
{
    engine_options eo = o->engine;
    eo.n_threads = backend_model_threads(&b->model, &o->engine);
    eo.arbiter = env->arbiter;
    eo.burst = env->burst;
    eo.burst_user = env->burst_user;
    if (b->link) eo.shards = stage_link_shards(b->link);
    int rc = engine_new(&b->engine, b->model.m, &eo, err);
    if (rc == 0 && model_get_config(b->model.m)->n_ctx)
        b->longer_by = context_plan_key(b->model.m, &o->engine, engine_ctx(b->engine));
    return rc;
}

int backend_net_start(void *state, const backend_options *o, const backend_env *env, shoal_err *err)
{
    net_backend *b = state;
    backend_model_precision(&b->model, o);
    b->exact_resume = o->n_stages <= 1 || o->wire == ROWS_F32;
    int rc = o->layers.end > 0 || o->n_stages > 0 ? link_stages(b, o, err) : 0;
    if (rc == 0) rc = start_engine(b, o, env, err);
    if (rc == 0) rc = preprocessor_open(&b->preprocessor, o->path, b->model.m, b->engine, err);
    if (rc == 0 && b->preprocessor.notice)
        LOG(LOG_WARN, "worker", "model_notice", LOG_S("model", o->name),
            LOG_S("notice", b->preprocessor.notice));
    for (size_t i = 0; rc == 0 && i < o->n_adapters; i++)
        rc = engine_adapter_load(b->engine, o->adapters[i].name, o->adapters[i].path, 1, err);
    return rc;
}

void backend_net_stop(void *state)
{
    net_backend *b = state;
    if (b->engine) engine_stop(b->engine);
}

/* ---- what it is ---------------------------------------------------------------------------------- */

void backend_net_describe(const void *state, backend_about *ret)
{
    const net_backend *b = state;
    backend_model_describe(&b->model, ret);
    ret->labels = b->preprocessor.labels;
    ret->n_labels = b->preprocessor.n_labels;
    ret->n_raw = b->preprocessor.n_raw;
    ret->rows = b->preprocessor.spec;
    ret->n_ctx = engine_ctx(b->engine);
    ret->exact_resume = b->exact_resume;
    ret->takes_adapters = !b->link;
    if (b->longer_by) ret->longer_by = b->longer_by;
    if (ret->task == TASK_GENERATE || ret->task == TASK_SEQ2SEQ) ret->n_parallel = engine_width(b->engine);
}

void backend_net_stats(const void *state, engine_stats *ret)
{
    engine_get_stats(((const net_backend *)state)->engine, ret);
}

bool backend_net_adapter(const void *state, size_t i, char ret_name[64], char ret_digest[65])
{
    return engine_adapter_name(((const net_backend *)state)->engine, i, ret_name, ret_digest);
}

/* ---- requests ------------------------------------------------------------------------------------ */

static int net_generate(void *state, const gen_request *r, gen_event_fn fn, void *user, uint64_t *ret_id,
                        shoal_err *err)
{
    return engine_generate(((net_backend *)state)->engine, r, fn, user, ret_id, err);
}

static int net_grammar(void *state, const grammar_spec *form, grammar **ret, shoal_err *err)
{
    return engine_grammar(((net_backend *)state)->engine, form, ret, err);
}

static int net_ballot(void *state, uint64_t id, size_t position, const float *mean, size_t n)
{
    return engine_ballot(((net_backend *)state)->engine, id, position, mean, n);
}

static void net_pause(void *state, uint64_t id, bool paused)
{
    engine_pause(((net_backend *)state)->engine, id, paused);
}

void backend_net_cancel(void *state, uint64_t id)
{
    engine_cancel(((net_backend *)state)->engine, id);
}

static int net_encode(void *state, const enc_request *r, enc_result_fn fn, void *user, uint64_t *ret_id,
                      shoal_err *err)
{
    return engine_encode(((net_backend *)state)->engine, r, fn, user, ret_id, err);
}

static void net_label_scores(const void *state, const float *logits, float *ret_scores)
{
    engine_scores(((const net_backend *)state)->engine, logits, ret_scores);
}

static void net_word_scores(const void *state, float *row)
{
    engine_word_scores(((const net_backend *)state)->engine, row);
}

/* ---- rows and pictures --------------------------------------------------------------------------- */

static int net_score(const void *state, csv *c, uint64_t deadline_ns, scorer_row_fn row, void *user,
                     preprocessor_totals *ret_totals, shoal_err *err)
{
    return preprocessor_score(&((const net_backend *)state)->preprocessor, c, deadline_ns, row, user,
                              ret_totals, err);
}

static int net_pixels(const void *state, const void *bytes, size_t n, const image_limits *limits, float **ret,
                      shoal_err *err)
{
    return preprocessor_pixels(&((const net_backend *)state)->preprocessor, bytes, n, limits, ret, err);
}

static int net_classify_image(const void *state, const float *pixels, uint64_t deadline_ns,
                              const cancel_check *cancel, float *ret_logits, shoal_err *err)
{
    return preprocessor_look_at(&((const net_backend *)state)->preprocessor, pixels, deadline_ns, cancel,
                                ret_logits, err);
}

const backend_ops backend_net = {.name = "net",
                                 .engine = BIT_IDENTITY_ENGINE,
                                 .numerics = NUMERICS_CONTRACT,
                                 .open = net_open,
                                 .start = backend_net_start,
                                 .describe = backend_net_describe,
                                 .stats = backend_net_stats,
                                 .adapter = backend_net_adapter,
                                 .generate = net_generate,
                                 .grammar = net_grammar,
                                 .ballot = net_ballot,
                                 .pause = net_pause,
                                 .cancel = backend_net_cancel,
                                 .encode = net_encode,
                                 .label_scores = net_label_scores,
                                 .word_scores = net_word_scores,
                                 .score = net_score,
                                 .pixels = net_pixels,
                                 .classify_image = net_classify_image,
                                 .stop = backend_net_stop,
                                 .close = net_close};
