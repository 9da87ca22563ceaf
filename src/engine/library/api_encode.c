/* api_encode.c: shoal_classify, shoal_rerank, shoal_tag and shoal_embed; see include/shoal.h. */
#include <stdlib.h>
#include <string.h>

#include "library/api_impl.h"
#include "net/tagging.h"

static void on_encoded(void *user, const enc_result *r)
{
    api_waiter *w = user;
    pthread_mutex_lock(&w->lock);
    if (r->status == 0) {
        size_t bytes = r->rows * r->cols * sizeof *w->values;
        w->values = malloc(bytes ? bytes : 1);
        if (w->values) memcpy(w->values, r->values, bytes);
        w->nomem = !w->values;
        w->rows = r->rows;
        w->cols = r->cols;
    }
    api_waiter_finish(w, r->status, r->message);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Put a tokenised text into the engine; on_encoded finishes w. */
static int encode_start(shoal_model *m, const encoding *enc, api_waiter *w, uint64_t *ret_id, shoal_err *err)
{
    enc_request r = {.ids = enc->ids, .type_ids = enc->type_ids, .n_ids = enc->n};
    return engine_encode(m->e, &r, on_encoded, w, ret_id, err);
}

static int encode_wait(api_waiter *w, shoal_err *err)
{
    pthread_mutex_lock(&w->lock);
    while (!w->done) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    if (w->status != 0) return err_set(err, w->status, "%s", w->message);
    return w->nomem ? err_nomem(err) : 0;
}

int api_encode_run(shoal_model *m, const enc_request *r, api_waiter *w, shoal_err *err)
{
    uint64_t id;
    int rc = engine_encode(m->e, r, on_encoded, w, &id, err);
    return rc != 0 ? rc : encode_wait(w, err);
}

/* Tokenise and run; on success the encoding and w->values are the caller's (encoding_done, waiter_done). */
static int encode_run(shoal_model *m, model_task task, const char *text, const char *pair, encoding *enc,
                      api_waiter *w, shoal_err *err)
{
    int rc = api_need_task(m, task, err);
    if (rc == 0) rc = api_encode_text(m, text, pair, TOK_ADD_SPECIAL, enc, err);
    if (rc != 0) return rc;
    enc_request r = {.ids = enc->ids, .type_ids = enc->type_ids, .n_ids = enc->n};
    return api_encode_run(m, &r, w, err);
}

static int compare_labels(const void *x, const void *y)
{
    const shoal_label *a = x, *b = y;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return strcmp(a->name, b->name);
}

int api_sort_labels(const shoal_model *m, float *logits, size_t n_tokens, shoal_classification *ret,
                    shoal_err *err)
{
    const model_config *c = model_get_config(m->m);
    size_t n = c->head.n_labels;
    shoal_label *labels = calloc(n ? n : 1, sizeof *labels);
    float *scores = calloc(n ? n : 1, sizeof *scores);
    if (!labels || !scores) {
        free(labels);
        free(scores);
        return err_nomem(err);
    }
    engine_scores(m->e, logits, scores);
    for (size_t i = 0; i < n; i++) labels[i] = (shoal_label){.name = c->head.labels[i], .score = scores[i]};
    qsort(labels, n, sizeof *labels, compare_labels);
    *ret = (shoal_classification){.labels = labels, .logits = logits, .n_labels = n, .n_tokens = n_tokens};
    free(scores);
    return 0;
}

static int do_classify(shoal_model *m, const char *text, const char *pair, shoal_classification *ret,
                       shoal_err *err)
{
    encoding enc = {0};
    api_waiter w;
    api_waiter_init(&w);
    int rc = encode_run(m, TASK_CLASSIFY, text, pair, &enc, &w, err);
    if (rc == 0) rc = api_sort_labels(m, w.values, enc.n, ret, err);
    if (rc == 0) w.values = NULL;
    encoding_done(&enc);
    api_waiter_done(&w);
    return rc;
}

int shoal_classify(shoal_model *m, const char *text, const char *pair, shoal_classification *ret,
                   shoal_err *err)
{
    api_enter(m);
    return api_leave(m, do_classify(m, text, pair, ret, err));
}

void shoal_classification_done(shoal_classification *c)
{
    free(c->labels);
    free(c->logits);
    *c = (shoal_classification){0};
}

/* ---- rerank -------------------------------------------------------------------------------------- */

enum { RERANK_TOGETHER = 32 }; /* documents in the queue at a time, which leaves room for other callers */

typedef struct rerank_item {
    encoding enc;
    api_waiter w;
    uint64_t id;
} rerank_item;

/* documents[0..n), n at most RERANK_TOGETHER. What was started is waited for, whatever happens. */
static int rerank_some(shoal_model *m, const char *query, const char *const *documents, size_t n,
                       float *scores, shoal_err *err)
{
    rerank_item *items = calloc(n, sizeof *items);
    if (!items) return err_nomem(err);
    size_t n_started = 0;
    int rc = 0;
    while (rc == 0 && n_started < n) {
        rerank_item *it = &items[n_started];
        rc = api_encode_text(m, query, documents[n_started], TOK_ADD_SPECIAL, &it->enc, err);
        if (rc == 0) api_waiter_init(&it->w);
        if (rc == 0 && (rc = encode_start(m, &it->enc, &it->w, &it->id, err))) api_waiter_done(&it->w);
        if (rc == 0)
            n_started++;
        else
            encoding_done(&it->enc);
    }
    for (size_t i = 0; i < n_started; i++) {
        int waited = encode_wait(&items[i].w, rc ? NULL : err);
        if (rc == 0) rc = waited;
        if (rc == 0) engine_scores(m->e, items[i].w.values, &scores[i]);
        api_waiter_done(&items[i].w);
        encoding_done(&items[i].enc);
    }
    free(items);
    return rc;
}

static int do_rerank(shoal_model *m, const char *query, const char *const *documents, size_t n,
                     float *ret_scores, shoal_err *err)
{
    model_task task = api_task(m);
    if (!(task == TASK_RERANK || task == TASK_CLASSIFY) || model_get_config(m->m)->head.n_labels != 1)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s is a model for \"%s\" and does not rank documents",
                       api_name(m), task_name(task));
    for (size_t i = 0; i < n; i++)
        if (!documents[i]) return err_set(err, SHOAL_EINVALID, "document %zu is NULL", i);
    float *scores = calloc(n ? n : 1, sizeof *scores);
    if (!scores) return err_nomem(err);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i += RERANK_TOGETHER) {
        size_t some = n - i < RERANK_TOGETHER ? n - i : RERANK_TOGETHER;
        rc = rerank_some(m, query, documents + i, some, scores + i, err);
    }
    if (rc == 0) memcpy(ret_scores, scores, n * sizeof *scores);
    free(scores);
    return rc;
}

int shoal_rerank(shoal_model *m, const char *query, const char *const *documents, size_t n, float *ret_scores,
                 shoal_err *err)
{
    api_enter(m);
    return api_leave(m, do_rerank(m, query, documents, n, ret_scores, err));
}

static int do_tag(shoal_model *m, const char *text, shoal_tagging *ret, shoal_err *err)
{
    encoding enc = {0};
    api_waiter w;
    api_waiter_init(&w);
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
    api_waiter_done(&w);
    return rc;
}

int shoal_tag(shoal_model *m, const char *text, shoal_tagging *ret, shoal_err *err)
{
    api_enter(m);
    return api_leave(m, do_tag(m, text, ret, err));
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
    api_waiter w;
    api_waiter_init(&w);
    int rc = encode_run(m, TASK_EMBED, text, NULL, &enc, &w, err);
    if (rc == 0) {
        *ret = (shoal_embedding){.values = w.values, .n = w.cols, .n_tokens = enc.n};
        w.values = NULL;
    }
    encoding_done(&enc);
    api_waiter_done(&w);
    return rc;
}

int shoal_embed(shoal_model *m, const char *text, shoal_embedding *ret, shoal_err *err)
{
    api_enter(m);
    return api_leave(m, do_embed(m, text, ret, err));
}

void shoal_embedding_done(shoal_embedding *e)
{
    free(e->values);
    *e = (shoal_embedding){0};
}
