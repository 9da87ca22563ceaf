/* api.c: include/shoal.h on top of the engine: a model's life, and what the calls share. Calls block, results
 * are the caller's. */
#define _GNU_SOURCE
#include "library/api_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "kinds/model_kind.h"
#include "model/packed/regroup.h"

void api_enter(shoal_model *m)
{
    pthread_mutex_lock(&m->lock);
    m->n_calls++;
    pthread_mutex_unlock(&m->lock);
}

int api_leave(shoal_model *m, int rc)
{
    pthread_mutex_lock(&m->lock);
    if (--m->n_calls == 0) pthread_cond_broadcast(&m->idle);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static void wait_for_calls(shoal_model *m)
{
    pthread_mutex_lock(&m->lock);
    while (m->n_calls > 0) pthread_cond_wait(&m->idle, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

static char *last_part(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    return strndup(path + begin, n - begin);
}

/* What a caller's digest is compared with lies in the file's bytes alone, so only a folder's is left to do
 * for networks. */
static int check_pin(const shoal_model *m, const char *path, const char *sha256, shoal_err *err)
{
    if (!sha256 || strcasecmp(sha256, m->digest) == 0) return 0;
    return err_set(err, SHOAL_EDIGEST, "%s: its SHA-256 is %s, but %.64s is pinned", path, m->digest, sha256);
}

static bool is_said(const char *option)
{
    return option && *option;
}

static int open_trees(shoal_model *m, const char *path, const shoal_options *opts, shoal_err *err)
{
    sha256_digest d;
    if (is_said(opts->adapter) || is_said(opts->regroup) || is_said(opts->kv_type))
        return preprocessor_refuse_of_trees(path, err);
    int rc = preprocessor_open_trees(&m->in, path, err);
    if (rc == 0) rc = scorer_digest(m->in.trees, &d, err);
    if (rc != 0) return rc;
    sha256_hex(&d, m->digest);
    m->name = last_part(path);
    return m->name ? check_pin(m, path, opts->sha256, err) : err_nomem(err);
}

static int open_network(shoal_model *m, const char *path, const shoal_options *opts, shoal_err *err)
{
    sha256_digest d;
    engine_options eo = {.n_threads = opts->n_threads,
                         .n_ctx = opts->n_ctx,
                         .kv_bytes = opts->kv_bytes,
                         .adapter = opts->adapter,
                         .adapter_strength = opts->adapter_strength};
    const packed_store store = {.folder = opts->packed, .read_only = true};
    if (opts->kv_type && !kv_type_parse(opts->kv_type, &eo.kv_type))
        return err_set(err, SHOAL_EINVALID, "kv_type: keys and values are kept as %s, not \"%s\"",
                       kv_type_choices, opts->kv_type);
    model_options mo = {.expect_sha256 = opts->sha256, .store = &store};
    int rc = opts->regroup ? regroup_parse(opts->regroup, &mo.regroup, err) : 0;
    if (rc == 0) rc = model_open(&m->m, path, &mo, err);
    if (rc == 0) rc = model_digest(m->m, &d, err); /* computed once, before other threads may ask */
    if (rc != 0) return rc;
    sha256_hex(&d, m->digest);
    rc = engine_new(&m->e, m->m, &eo, err);
    return rc == 0 ? preprocessor_open(&m->in, path, m->m, m->e, err) : rc;
}

int shoal_model_open(shoal_model **ret, const char *path, const shoal_options *opts, shoal_err *err)
{
    static const shoal_options defaults;
    if (!opts) opts = &defaults;
    shoal_model *m = calloc(1, sizeof *m);
    if (!m) return err_nomem(err);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->idle, NULL);
    int rc = isa_choose(&m->kernels, err);
    bool trees = rc == 0 && model_kind_of(path) == &model_kind_trees;
    if (rc == 0) rc = (trees ? open_trees : open_network)(m, path, opts, err);
    if (rc == SHOAL_EINVALID) { /* a value in the file, while the caller's arguments are fine */
        rc = SHOAL_EFORMAT;
        if (err) err->code = rc;
    }
    if (rc == 0)
        *ret = m;
    else
        shoal_model_close(m);
    return rc;
}

void shoal_model_close(shoal_model *m)
{
    if (!m) return;
    if (m->e) engine_stop(m->e);
    wait_for_calls(m);
    preprocessor_done(&m->in);
    engine_free(m->e);
    model_free(m->m);
    free(m->name);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->idle);
    free(m);
}

/* Trees and whatever else has no engine have no matrices to adapt. */
static int need_engine(const shoal_model *m, shoal_err *err)
{
    return m->e ? 0 : err_set(err, SHOAL_EUNSUPPORTED, "%s takes no adapter", m->name);
}

int shoal_adapter_load(shoal_model *m, const char *name, const char *path, float strength, shoal_err *err)
{
    int rc = need_engine(m, err);
    if (rc) return rc;
    api_enter(m);
    return api_leave(m, engine_adapter_load(m->e, name, path, strength, err));
}

int shoal_adapter_unload(shoal_model *m, const char *name, shoal_err *err)
{
    int rc = need_engine(m, err);
    if (rc) return rc;
    api_enter(m);
    return api_leave(m, engine_adapter_unload(m->e, name, err));
}

static shoal_model_info describe_trees(const shoal_model *m)
{
    const forest_info *info = forest_about(scorer_forest(m->in.trees));
    return (shoal_model_info){.name = m->name,
                              .architecture = info->format,
                              .quantisation = "",
                              .version = "",
                              .task = task_name(TASK_SCORE),
                              .isa = isa_name(m->kernels),
                              .n_labels = m->in.n_labels,
                              .labels = m->in.labels};
}

static shoal_model_info describe_network(const shoal_model *m)
{
    const chat_template *chat = model_chat_template(m->m);
    const model_config *c = model_get_config(m->m);
    return (shoal_model_info){
        .name = model_name(m->m),
        .architecture = arch_name(c->arch),
        .quantisation = model_file_type(m->m),
        .version = model_version(m->m),
        .task = task_name(c->task),
        .isa = isa_name(m->kernels),
        .n_ctx = engine_ctx(m->e),
        .n_vocab = c->n_vocab,
        .n_embd = c->n_embd,
        .n_labels = c->head.n_labels,
        .labels = c->head.labels,
        .tool_syntax =
            chat && !model_chat_template_is_default(m->m) ? chat_template_calls(chat, NULL)->name : NULL,
        .notice = model_notice(m->m) ? model_notice(m->m) : m->in.notice,
    };
}

int shoal_model_describe(shoal_model *m, shoal_model_info *ret, shoal_err *err)
{
    *ret = m->m ? describe_network(m) : describe_trees(m);
    memcpy(ret->digest, m->digest, sizeof ret->digest);
    return 0;
}

const char *api_name(const shoal_model *m)
{
    return m->m ? model_name(m->m) : m->name;
}

model_task api_task(const shoal_model *m)
{
    return m->m ? model_get_config(m->m)->task : TASK_SCORE;
}

int api_need_task(const shoal_model *m, model_task task, shoal_err *err)
{
    model_task has = api_task(m);
    if (has == task || (has == TASK_RERANK && task == TASK_CLASSIFY)) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "%s is a model for \"%s\", not for \"%s\"", api_name(m),
                   task_name(has), task_name(task));
}

int api_need_tokenizer(const shoal_model *m, shoal_err *err)
{
    if (m->m && model_tokenizer(m->m)) return 0;
    if (!m->m) return err_set(err, SHOAL_EUNSUPPORTED, "%s is made of trees and reads no text", m->name);
    return err_set(err, SHOAL_EUNSUPPORTED, "%s: %s", model_name(m->m), model_tokenizer_error(m->m));
}

int api_encode_text(const shoal_model *m, const char *text, const char *pair, unsigned flags, encoding *ret,
                    shoal_err *err)
{
    if (!text) return err_set(err, SHOAL_EINVALID, "the text is NULL");
    int rc = api_need_tokenizer(m, err);
    if (rc) return rc;
    return tokenizer_encode(model_tokenizer(m->m), text, strlen(text), pair, pair ? strlen(pair) : 0, flags,
                            0, ret, err);
}

/* ---- a call that waits for the engine --------------------------------------------------------- */

void api_waiter_init(api_waiter *w)
{
    *w = (api_waiter){0};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
}

void api_waiter_done(api_waiter *w)
{
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    buf_done(&w->text);
    buf_done(&w->thought);
    free(w->ids);
    free(w->values);
}

void api_waiter_finish(api_waiter *w, int status, const char *message)
{
    w->done = true;
    w->status = status;
    snprintf(w->message, sizeof w->message, "%s", message ? message : shoal_err_text(status));
}
