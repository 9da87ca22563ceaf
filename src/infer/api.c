/* api.c: include/shoal.h on top of the engine: calls that block, results that the caller owns. */
#include "shoal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "infer/engine.h"
#include "infer/tagging.h"

struct shoal_model {
    model *m;
    engine *e;
    isa kernels;
    pthread_mutex_t lock; /* guards n_calls */
    pthread_cond_t idle;  /* n_calls is 0 */
    size_t n_calls;       /* in other threads: they read labels and the tokenizer after the engine's answer */
};

static void enter(shoal_model *m)
{
    pthread_mutex_lock(&m->lock);
    m->n_calls++;
    pthread_mutex_unlock(&m->lock);
}

static int leave(shoal_model *m, int rc)
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

int shoal_model_open(shoal_model **ret, const char *path, const shoal_options *opts, shoal_err *err)
{
    static const shoal_options defaults;
    if (!opts) opts = &defaults;
    shoal_model *m = calloc(1, sizeof *m);
    if (!m) return err_nomem(err);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->idle, NULL);
    int rc = isa_choose(&m->kernels, err);
    if (rc == 0) rc = model_open(&m->m, path, &(model_options){.expect_sha256 = opts->sha256}, err);
    if (rc == SHOAL_EINVALID) { /* a value in the file, while the caller's arguments are fine */
        rc = SHOAL_EFORMAT;
        if (err) err->code = rc;
    }
    sha256_digest d;
    if (rc == 0) rc = model_digest(m->m, &d, err); /* computed once, before other threads may ask */
    if (rc == 0) {
        engine_options eo = {.n_threads = opts->n_threads, .n_ctx = opts->n_ctx, .kv_bytes = opts->kv_bytes};
        rc = engine_new(&m->e, m->m, &eo, err);
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
    engine_free(m->e);
    model_free(m->m);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->idle);
    free(m);
}

int shoal_model_describe(shoal_model *m, shoal_model_info *ret, shoal_err *err)
{
    sha256_digest d;
    int rc = model_digest(m->m, &d, err);
    if (rc != 0) return rc;
    const model_config *c = model_get_config(m->m);
    *ret = (shoal_model_info){
        .name = model_name(m->m),
        .architecture = arch_name(c->arch),
        .quantisation = model_quantisation(m->m),
        .version = model_version(m->m),
        .task = task_name(c->task),
        .isa = isa_name(m->kernels),
        .n_ctx = engine_ctx(m->e),
        .n_vocab = c->n_vocab,
        .n_embd = c->n_embd,
        .n_labels = c->head.n_labels,
        .labels = c->head.labels,
        .notice = model_notice(m->m),
    };
    sha256_hex(&d, ret->digest);
    return 0;
}

static int need_task(const shoal_model *m, model_task task, shoal_err *err)
{
    model_task has = model_get_config(m->m)->task;
    if (has == task) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "%s is a model for \"%s\", not for \"%s\"", model_name(m->m),
                   task_name(has), task_name(task));
}

static int need_tokenizer(const shoal_model *m, shoal_err *err)
{
    if (model_tokenizer(m->m)) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "%s: %s", model_name(m->m), model_tokenizer_error(m->m));
}

static int encode_text(const shoal_model *m, const char *text, const char *pair, unsigned flags,
                       encoding *ret, shoal_err *err)
{
    if (!text) return err_set(err, SHOAL_EINVALID, "the text is NULL");
    int rc = need_tokenizer(m, err);
    if (rc) return rc;
    return tokenizer_encode(model_tokenizer(m->m), text, strlen(text), pair, pair ? strlen(pair) : 0, flags,
                            0, ret, err);
}

/* ---- a call that waits for the engine --------------------------------------------------------- */

/* The engine thread writes under `lock`, the caller waits on `changed`. */
typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    buf text; /* generate: text that the caller has not taken yet */
    int32_t *ids;
    size_t n_ids, cap_ids;
    float *values; /* encode: a copy of the result */
    size_t rows, cols;
    bool done, nomem;
    int status;
    char message[256];
    finish_reason finish;
    gen_timings timings;
} waiter;

static void waiter_init(waiter *w)
{
    *w = (waiter){0};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
}

static void waiter_done(waiter *w)
{
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    buf_done(&w->text);
    free(w->ids);
    free(w->values);
}

static void waiter_finish(waiter *w, int status, const char *message)
{
    w->done = true;
    w->status = status;
    snprintf(w->message, sizeof w->message, "%s", message ? message : shoal_err_text(status));
}

static void waiter_add_id(waiter *w, int32_t id)
{
    if (w->n_ids == w->cap_ids) {
        size_t cap = w->cap_ids ? 2 * w->cap_ids : 64;
        int32_t *p = realloc(w->ids, cap * sizeof *p);
        if (!p) {
            w->nomem = true;
            return;
        }
        w->ids = p;
        w->cap_ids = cap;
    }
    w->ids[w->n_ids++] = id;
}

static void on_generated(void *user, const gen_event *ev)
{
    waiter *w = user;
    pthread_mutex_lock(&w->lock);
    if (ev->text_len && buf_append(&w->text, ev->text, ev->text_len) != 0) w->nomem = true;
    if (ev->kind == EVENT_TOKEN) {
        waiter_add_id(w, ev->id);
    } else {
        w->finish = ev->finish;
        w->timings = ev->timings;
        waiter_finish(w, ev->status, ev->message);
    }
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void on_encoded(void *user, const enc_result *r)
{
    waiter *w = user;
    pthread_mutex_lock(&w->lock);
    if (r->status == 0) {
        size_t bytes = r->rows * r->cols * sizeof *w->values;
        w->values = malloc(bytes ? bytes : 1);
        if (w->values) memcpy(w->values, r->values, bytes);
        w->nomem = !w->values;
        w->rows = r->rows;
        w->cols = r->cols;
    }
    waiter_finish(w, r->status, r->message);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* ---- generate ---------------------------------------------------------------------------------- */

static void take_generation(waiter *w, buf *text, size_t n_prompt, shoal_generation *ret)
{
    *ret = (shoal_generation){
        .n_bytes = text->len,
        .ids = w->ids,
        .n_ids = w->n_ids,
        .n_prompt = n_prompt,
        .stopped = w->finish == FINISH_STOP,
        .mean_prob = w->timings.mean_prob,
        .prefill_ms = w->timings.prefill_ms,
        .decode_ms = w->timings.decode_ms,
    };
    ret->text = buf_take(text);
    w->ids = NULL;
}

/* Hand text to fn as it comes, until the engine is done; the whole of it gathers in `all`. */
static void follow(shoal_model *m, waiter *w, uint64_t id, shoal_text_fn fn, void *user, buf *all)
{
    bool stopped = false;
    buf piece = {0};
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->done && w->text.len == 0) pthread_cond_wait(&w->changed, &w->lock);
        buf swap = piece;
        piece = w->text;
        w->text = swap;
        buf_clear(&w->text);
        bool done = w->done;
        pthread_mutex_unlock(&w->lock);
        if (piece.len && !stopped) {
            buf_append(all, piece.data, piece.len);
            if (fn && fn(user, piece.data, piece.len) != 0) {
                stopped = true;
                engine_cancel(m->e, id);
            }
        }
        buf_clear(&piece);
        pthread_mutex_lock(&w->lock);
        if (done && w->text.len == 0) break;
    }
    if (stopped && w->status == 0) waiter_finish(w, SHOAL_ECANCELLED, "stopped by the caller");
    pthread_mutex_unlock(&w->lock);
    buf_done(&piece);
}

static int generate_ids(shoal_model *m, const encoding *prompt, const shoal_generate_options *o,
                        shoal_text_fn fn, void *user, shoal_generation *ret, shoal_err *err)
{
    static const shoal_generate_options defaults;
    if (!o) o = &defaults;
    grammar_spec form = {.kind = o->json_schema ? GRAMMAR_JSON_SCHEMA : GRAMMAR_JSON_OBJECT,
                         .schema = o->json_schema};
    gen_request r = {
        .ids = prompt->ids,
        .n_ids = prompt->n,
        .max_tokens = o->max_tokens,
        .sampling = {.temperature = o->temperature,
                     .top_k = o->top_k,
                     .top_p = o->top_p,
                     .min_p = o->min_p,
                     .repetition_penalty = o->repetition_penalty,
                     .seed = o->seed},
        .stop = o->stop,
        .n_stop = o->n_stop,
        .form = o->json_schema || o->json_object ? &form : NULL,
    };
    waiter w;
    waiter_init(&w);
    uint64_t id = 0;
    buf all = {0};
    int rc = engine_generate(m->e, &r, on_generated, &w, &id, err);
    if (rc == 0) {
        follow(m, &w, id, fn, user, &all);
        rc = w.status;
        if (rc == 0 && (w.nomem || all.failed))
            rc = err_nomem(err);
        else if (rc != 0)
            err_set(err, rc, "%s", w.message);
        if (ret && (rc == 0 || rc == SHOAL_ECANCELLED)) take_generation(&w, &all, prompt->n, ret);
    }
    buf_done(&all);
    waiter_done(&w);
    return rc;
}

static int do_generate(shoal_model *m, const char *prompt, const shoal_generate_options *opts,
                       shoal_text_fn fn, void *user, shoal_generation *ret, shoal_err *err)
{
    int rc = need_task(m, TASK_GENERATE, err);
    encoding enc = {0};
    if (rc == 0) rc = encode_text(m, prompt, NULL, TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, &enc, err);
    if (rc == 0) rc = generate_ids(m, &enc, opts, fn, user, ret, err);
    encoding_done(&enc);
    return rc;
}

int shoal_generate(shoal_model *m, const char *prompt, const shoal_generate_options *opts, shoal_text_fn fn,
                   void *user, shoal_generation *ret, shoal_err *err)
{
    enter(m);
    return leave(m, do_generate(m, prompt, opts, fn, user, ret, err));
}

static json_t *messages_json(const shoal_message *messages, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        json_t *one = json_pack("{s:s, s:s}", "role", messages[i].role, "content", messages[i].content);
        if (!one || json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int no_template(const shoal_model *m, shoal_err *err)
{
    const char *why = model_chat_template_error(m->m);
    if (why)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s: its chat template cannot be used: %s; give it a raw prompt", model_name(m->m),
                       why);
    return err_set(err, SHOAL_EUNSUPPORTED, "%s has no chat template: give it a raw prompt",
                   model_name(m->m));
}

static int do_chat(shoal_model *m, const shoal_message *messages, size_t n_messages,
                   const shoal_generate_options *opts, shoal_text_fn fn, void *user, shoal_generation *ret,
                   shoal_err *err)
{
    int rc = need_task(m, TASK_GENERATE, err);
    if (rc != 0) return rc;
    const chat_template *t = model_chat_template(m->m);
    if (!t) return no_template(m, err);
    json_t *list = messages_json(messages, n_messages);
    if (!list) return err_set(err, SHOAL_EINVALID, "a message has no role, no content, or is not UTF-8");
    encoding enc = {0};
    rc = need_tokenizer(m, err);
    if (rc == 0) rc = chat_prompt_encode(t, model_tokenizer(m->m), list, NULL, &enc, err);
    if (rc == 0) rc = generate_ids(m, &enc, opts, fn, user, ret, err);
    encoding_done(&enc);
    json_decref(list);
    return rc;
}

int shoal_chat(shoal_model *m, const shoal_message *messages, size_t n_messages,
               const shoal_generate_options *opts, shoal_text_fn fn, void *user, shoal_generation *ret,
               shoal_err *err)
{
    enter(m);
    return leave(m, do_chat(m, messages, n_messages, opts, fn, user, ret, err));
}

void shoal_generation_done(shoal_generation *g)
{
    free(g->text);
    free(g->ids);
    *g = (shoal_generation){0};
}

/* ---- encoders ------------------------------------------------------------------------------------ */

/* Tokenise and run; on success the encoding and w->values are the caller's (encoding_done, waiter_done). */
static int encode_run(shoal_model *m, model_task task, const char *text, const char *pair, encoding *enc,
                      waiter *w, shoal_err *err)
{
    int rc = need_task(m, task, err);
    if (rc == 0) rc = encode_text(m, text, pair, TOK_ADD_SPECIAL, enc, err);
    if (rc != 0) return rc;
    uint64_t id;
    enc_request r = {.ids = enc->ids, .type_ids = enc->type_ids, .n_ids = enc->n};
    rc = engine_encode(m->e, &r, on_encoded, w, &id, err);
    if (rc != 0) return rc;
    pthread_mutex_lock(&w->lock);
    while (!w->done) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    if (w->status != 0) return err_set(err, w->status, "%s", w->message);
    return w->nomem ? err_nomem(err) : 0;
}

static int compare_labels(const void *x, const void *y)
{
    const shoal_label *a = x, *b = y;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int do_classify(shoal_model *m, const char *text, const char *pair, shoal_classification *ret,
                       shoal_err *err)
{
    encoding enc = {0};
    waiter w;
    waiter_init(&w);
    int rc = encode_run(m, TASK_CLASSIFY, text, pair, &enc, &w, err);
    if (rc == 0) {
        const model_config *c = model_get_config(m->m);
        size_t n = c->head.n_labels;
        shoal_label *labels = calloc(n ? n : 1, sizeof *labels);
        float *scores = calloc(n ? n : 1, sizeof *scores);
        if (!labels || !scores) {
            free(labels);
            rc = err_nomem(err);
        } else {
            engine_scores(m->e, w.values, scores);
            for (size_t i = 0; i < n; i++)
                labels[i] = (shoal_label){.name = c->head.labels[i], .score = scores[i]};
            qsort(labels, n, sizeof *labels, compare_labels);
            *ret = (shoal_classification){
                .labels = labels, .logits = w.values, .n_labels = n, .n_tokens = enc.n};
            w.values = NULL;
        }
        free(scores);
    }
    encoding_done(&enc);
    waiter_done(&w);
    return rc;
}

int shoal_classify(shoal_model *m, const char *text, const char *pair, shoal_classification *ret,
                   shoal_err *err)
{
    enter(m);
    return leave(m, do_classify(m, text, pair, ret, err));
}

void shoal_classification_done(shoal_classification *c)
{
    free(c->labels);
    free(c->logits);
    *c = (shoal_classification){0};
}

static int do_tag(shoal_model *m, const char *text, shoal_tagging *ret, shoal_err *err)
{
    encoding enc = {0};
    waiter w;
    waiter_init(&w);
    entity *found = NULL;
    size_t n = 0;
    int rc = encode_run(m, TASK_TAG, text, NULL, &enc, &w, err);
    if (rc == 0) rc = tagging_entities(model_get_config(m->m), &enc, w.values, &found, &n, err);
    if (rc == 0) {
        shoal_span *spans = calloc(n ? n : 1, sizeof *spans);
        if (!spans) {
            rc = err_nomem(err);
        } else {
            for (size_t i = 0; i < n; i++)
                spans[i] = (shoal_span){.start = found[i].span.cp_begin,
                                        .end = found[i].span.cp_end,
                                        .start_byte = found[i].span.begin,
                                        .end_byte = found[i].span.end,
                                        .label = found[i].label,
                                        .score = found[i].score};
            *ret = (shoal_tagging){
                .spans = spans, .n_spans = n, .logits = w.values, .n_tokens = w.rows, .n_labels = w.cols};
            w.values = NULL;
        }
    }
    free(found);
    encoding_done(&enc);
    waiter_done(&w);
    return rc;
}

int shoal_tag(shoal_model *m, const char *text, shoal_tagging *ret, shoal_err *err)
{
    enter(m);
    return leave(m, do_tag(m, text, ret, err));
}

void shoal_tagging_done(shoal_tagging *t)
{
    free(t->spans);
    free(t->logits);
    *t = (shoal_tagging){0};
}

static int do_embed(shoal_model *m, const char *text, shoal_embedding *ret, shoal_err *err)
{
    encoding enc = {0};
    waiter w;
    waiter_init(&w);
    int rc = encode_run(m, TASK_EMBED, text, NULL, &enc, &w, err);
    if (rc == 0) {
        *ret = (shoal_embedding){.values = w.values, .n = w.cols, .n_tokens = enc.n};
        w.values = NULL;
    }
    encoding_done(&enc);
    waiter_done(&w);
    return rc;
}

int shoal_embed(shoal_model *m, const char *text, shoal_embedding *ret, shoal_err *err)
{
    enter(m);
    return leave(m, do_embed(m, text, ret, err));
}

void shoal_embedding_done(shoal_embedding *e)
{
    free(e->values);
    *e = (shoal_embedding){0};
}
