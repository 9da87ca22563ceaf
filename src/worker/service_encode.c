/* service_encode.c: Classify, Tag, Embed and FillMask.
 *
 * One request brings one or many texts. All are tokenised and checked first; then up to MAX_RUNNING
 * of them are in the engine's queue at a time (which runs what it finds there as one ragged batch),
 * so that one large request can neither fill the queue nor be refused for its size. The reply goes
 * out when the last is done. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "infer/tagging.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/service.h"
#include "worker/service_fill.h"

enum {
    MAX_RUNNING = 32,
    MAX_FILLING = 4, /* of fill-mask: each brings up to GAPS_MAX rows of the whole vocabulary */
    MAX_INPUTS = 4096
};

typedef struct encode_call encode_call;

typedef struct encode_item {
    bridge_job job; /* first: the bridge gives it back */
    encode_call *owner;
    encoding enc;
    service_fill fill; /* fill-mask, instead of enc */
    uint64_t id;       /* the engine's */
    bool running;
} encode_item;

struct encode_call {
    worker *w;
    grpc_call *call; /* NULL once answered or gone */
    call_trace trace;
    model_task task;
    Shoal__V1__FillMaskRequest *request; /* the others begin alike: one list of inputs */
    encode_item *items;
    size_t n, n_started, n_running, n_done;
    uint64_t deadline_ns;
    double queue_ms, compute_ms; /* the longest wait, and the work of all */
    size_t n_tokens;
};

static void encode_free(encode_call *e)
{
    for (size_t i = 0; i < e->n; i++) {
        encoding_done(&e->items[i].enc);
        service_fill_done(&e->items[i].fill);
        free(e->items[i].job.values);
    }
    shoal__v1__fill_mask_request__free_unpacked(e->request, NULL);
    free(e->items);
    free(e);
}

/* ---- replies ----------------------------------------------------------------------------------- */

static void fill_timing(const encode_call *e, Shoal__V1__Timing *t)
{
    *t = (Shoal__V1__Timing)SHOAL__V1__TIMING__INIT;
    t->queue_ms = e->queue_ms;
    t->compute_ms = e->compute_ms;
}

static int by_score(const void *a, const void *b)
{
    const Shoal__V1__LabelScore *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

static int classification(const worker *w, float *logits, arena *a, Shoal__V1__Classification *m)
{
    const model_config *mc = model_get_config(w->model);
    *m = (Shoal__V1__Classification)SHOAL__V1__CLASSIFICATION__INIT;
    float *scores = arena_alloc(a, mc->head.n_labels * sizeof *scores);
    Shoal__V1__LabelScore *labels = arena_alloc(a, mc->head.n_labels * sizeof *labels);
    m->labels = arena_alloc(a, mc->head.n_labels * sizeof *m->labels);
    if (!scores || !labels || !m->labels) return SHOAL_ENOMEM;
    engine_scores(w->engine, logits, scores);
    for (size_t i = 0; i < mc->head.n_labels; i++) {
        labels[i] = (Shoal__V1__LabelScore)SHOAL__V1__LABEL_SCORE__INIT;
        labels[i].label = (char *)mc->head.labels[i];
        labels[i].score = scores[i];
    }
    qsort(labels, mc->head.n_labels, sizeof *labels, by_score);
    for (size_t i = 0; i < mc->head.n_labels; i++) m->labels[i] = &labels[i];
    m->n_labels = mc->head.n_labels;
    m->logits = logits;
    m->n_logits = mc->head.n_labels;
    return 0;
}

Shoal__V1__ClassifyReply *service_classify_reply(const worker *w, arena *a, float *logits)
{
    Shoal__V1__ClassifyReply *m = arena_alloc(a, sizeof *m);
    Shoal__V1__Classification *one = arena_alloc(a, sizeof *one), **list = arena_alloc(a, sizeof *list);
    if (!m || !one || !list || classification(w, logits, a, one) != 0) return NULL;
    *list = one;
    *m = (Shoal__V1__ClassifyReply)SHOAL__V1__CLASSIFY_REPLY__INIT;
    m->results = list;
    m->n_results = 1;
    return m;
}

static int tagging(encode_call *e, encode_item *it, const char *text, arena *a, Shoal__V1__Tagging *m)
{
    *m = (Shoal__V1__Tagging)SHOAL__V1__TAGGING__INIT;
    m->n_tokens = (uint32_t)it->enc.n;
    entity *found = NULL;
    size_t n = 0;
    int rc = tagging_entities(model_get_config(e->w->model), &it->enc, it->job.values, &found, &n, NULL);
    Shoal__V1__Span *spans = arena_alloc(a, n * sizeof *spans);
    m->spans = arena_alloc(a, n * sizeof *m->spans);
    if (rc == 0 && n > 0 && (!spans || !m->spans)) rc = SHOAL_ENOMEM;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const entity *f = &found[i];
        spans[i] = (Shoal__V1__Span)SHOAL__V1__SPAN__INIT;
        spans[i].start = f->span.cp_begin;
        spans[i].end = f->span.cp_end;
        spans[i].start_byte = f->span.begin;
        spans[i].end_byte = f->span.end;
        spans[i].label = (char *)f->label;
        spans[i].score = f->score;
        spans[i].text = arena_strndup(a, text + f->span.begin, f->span.end - f->span.begin);
        if (!spans[i].text) rc = SHOAL_ENOMEM;
        m->spans[m->n_spans++] = &spans[i];
    }
    free(found);
    return rc;
}

static int reply_classify(encode_call *e, arena *a, Shoal__V1__Timing *timing)
{
    Shoal__V1__ClassifyReply m = SHOAL__V1__CLASSIFY_REPLY__INIT;
    Shoal__V1__Classification *results = arena_alloc(a, e->n * sizeof *results);
    m.results = arena_alloc(a, e->n * sizeof *m.results);
    if (!results || !m.results) return SHOAL_ENOMEM;
    for (; m.n_results < e->n; m.n_results++) {
        const encode_item *it = &e->items[m.n_results];
        if (classification(e->w, it->job.values, a, &results[m.n_results]) != 0) return SHOAL_ENOMEM;
        results[m.n_results].n_tokens = (uint32_t)it->enc.n;
        m.results[m.n_results] = &results[m.n_results];
    }
    m.timing = timing;
    return service_call_send(e->w, e->call, &m.base);
}

static int reply_tag(encode_call *e, arena *a, Shoal__V1__Timing *timing)
{
    Shoal__V1__TagReply m = SHOAL__V1__TAG_REPLY__INIT;
    Shoal__V1__Tagging *results = arena_alloc(a, e->n * sizeof *results);
    m.results = arena_alloc(a, e->n * sizeof *m.results);
    if (!results || !m.results) return SHOAL_ENOMEM;
    for (size_t i = 0; i < e->n; i++) {
        if (tagging(e, &e->items[i], e->request->inputs[i]->text, a, &results[i]) != 0) return SHOAL_ENOMEM;
        m.results[m.n_results++] = &results[i];
    }
    m.timing = timing;
    return service_call_send(e->w, e->call, &m.base);
}

static int reply_embed(encode_call *e, arena *a, Shoal__V1__Timing *timing)
{
    Shoal__V1__EmbedReply m = SHOAL__V1__EMBED_REPLY__INIT;
    Shoal__V1__Embedding *results = arena_alloc(a, e->n * sizeof *results);
    m.results = arena_alloc(a, e->n * sizeof *m.results);
    if (!results || !m.results) return SHOAL_ENOMEM;
    for (size_t i = 0; i < e->n; i++) {
        results[i] = (Shoal__V1__Embedding)SHOAL__V1__EMBEDDING__INIT;
        results[i].values = e->items[i].job.values;
        results[i].n_values = e->items[i].job.n_values;
        results[i].n_tokens = (uint32_t)e->items[i].enc.n;
        m.results[m.n_results++] = &results[i];
    }
    m.timing = timing;
    return service_call_send(e->w, e->call, &m.base);
}

static int reply_fill(encode_call *e, arena *a, Shoal__V1__Timing *timing)
{
    Shoal__V1__FillMaskReply m = SHOAL__V1__FILL_MASK_REPLY__INIT;
    Shoal__V1__Filling *results = arena_alloc(a, e->n * sizeof *results);
    m.results = arena_alloc(a, e->n * sizeof *m.results);
    if (!results || !m.results) return SHOAL_ENOMEM;
    for (size_t i = 0; i < e->n; i++) {
        if (service_fill_put(e->w, &e->items[i].fill, a, &results[i]) != 0) return SHOAL_ENOMEM;
        m.results[m.n_results++] = &results[i];
    }
    m.timing = timing;
    return service_call_send(e->w, e->call, &m.base);
}

static int send_results(encode_call *e)
{
    arena *a = arena_new(16384);
    if (!a) return SHOAL_ENOMEM;
    Shoal__V1__Timing timing;
    fill_timing(e, &timing);
    int rc = e->task == TASK_CLASSIFY    ? reply_classify(e, a, &timing)
             : e->task == TASK_TAG       ? reply_tag(e, a, &timing)
             : e->task == TASK_FILL_MASK ? reply_fill(e, a, &timing)
                                         : reply_embed(e, a, &timing);
    arena_free(a);
    return rc;
}

static void finish(encode_call *e)
{
    shoal_err err;
    if (send_results(e) != 0) {
        err_nomem(&err);
        service_call_refuse(e->w, e->call, &e->trace, &err);
        e->call = NULL;
        return;
    }
    LOG(LOG_INFO, "worker", "call_done", LOG_S("request_id", e->trace.request_id),
        LOG_S("method", e->trace.method), LOG_S("model", e->w->name), LOG_S("version", e->w->version),
        LOG_S("quantisation", e->w->quantisation), LOG_I("inputs", e->n), LOG_I("tokens", e->n_tokens),
        LOG_F("queue_ms", e->queue_ms), LOG_F("compute_ms", e->compute_ms),
        LOG_F("ms", clock_ms_since(e->trace.start_ns)));
    grpc_call_end(e->call, GRPC_OK, NULL);
    e->call = NULL;
}

/* ---- running ----------------------------------------------------------------------------------- */

static void cancel_running(encode_call *e)
{
    for (size_t i = 0; i < e->n_started; i++)
        if (e->items[i].running) engine_cancel(e->w->engine, e->items[i].id);
}

static void fail(encode_call *e, const shoal_err *err)
{
    grpc_call *c = e->call;
    e->call = NULL;
    service_call_refuse(e->w, c, &e->trace, err);
    cancel_running(e);
}

/* For the engine's answer. */
static int make_room(encode_call *e, encode_item *it, shoal_err *err)
{
    const model_config *mc = model_get_config(e->w->model);
    size_t cols = e->task == TASK_EMBED       ? mc->n_embd
                  : e->task == TASK_FILL_MASK ? mc->n_vocab
                                              : mc->head.n_labels,
           rows = e->task == TASK_TAG         ? it->enc.n
                  : e->task == TASK_FILL_MASK ? it->fill.gaps.n
                                              : 1;
    it->job.n_values = rows * cols;
    it->job.values = calloc(it->job.n_values, sizeof *it->job.values);
    return it->job.values ? 0 : err_nomem(err);
}

/* Put the next inputs into the engine's queue. A full queue is a refusal only when nothing of this
 * request is running: otherwise its own results make room. */
static void submit_more(encode_call *e)
{
    size_t together = e->task == TASK_FILL_MASK ? MAX_FILLING : MAX_RUNNING;
    while (e->call && e->n_started < e->n && e->n_running < together) {
        encode_item *it = &e->items[e->n_started];
        const gaps *g = e->task == TASK_FILL_MASK ? &it->fill.gaps : NULL;
        const encoding *enc = g ? &g->enc : &it->enc;
        enc_request r = {.ids = enc->ids,
                         .type_ids = enc->type_ids,
                         .n_ids = enc->n,
                         .at = g ? g->at : NULL,
                         .n_at = g ? g->n : 0,
                         .deadline_ns = e->deadline_ns,
                         .latency = (int)e->request->latency,
                         .adapter = *e->request->adapter ? e->request->adapter : NULL};
        shoal_err err;
        int rc = it->job.values ? 0 : make_room(e, it, &err);
        if (rc == 0) rc = engine_encode(e->w->engine, &r, bridge_result, &it->job, &it->id, &err);
        if (rc == SHOAL_EFULL && e->n_running > 0) return;
        if (rc != 0) {
            fail(e, &err);
            return;
        }
        it->running = true;
        e->n_started++;
        e->n_running++;
    }
}

static void item_done(bridge_job *j)
{
    encode_item *it = (encode_item *)j;
    encode_call *e = it->owner;
    it->running = false;
    e->n_running--;
    e->n_done++;
    if (j->queue_ms > e->queue_ms) e->queue_ms = j->queue_ms;
    e->compute_ms += j->compute_ms;
    /* What is wanted of a row of the vocabulary is little; the rows make room for the next. */
    if (e->task == TASK_FILL_MASK && j->status == 0) {
        if (service_fill_take(e->w, &it->fill, j->values) != 0) j->status = SHOAL_ENOMEM;
        free(j->values);
        j->values = NULL;
    }
    if (e->call && j->status != 0) {
        shoal_err err;
        bool ours = j->status == SHOAL_ECANCELLED; /* nobody but a closing engine cancels a live call */
        err_set(&err, ours ? SHOAL_EUNAVAILABLE : j->status, "%s",
                ours ? "the worker is shutting down" : j->message);
        fail(e, &err);
    }
    submit_more(e);
    if (e->call && e->n_done == e->n) finish(e);
    if (e->n_running == 0 && !e->call) encode_free(e);
}

static void call_gone(void *user, grpc_call *c)
{
    encode_call *e = user;
    e->call = NULL;
    LOG(LOG_INFO, "worker", "call_cancelled", LOG_S("request_id", e->trace.request_id),
        LOG_S("method", e->trace.method), LOG_S("model", e->w->name));
    cancel_running(e);
}

/* ---- the start --------------------------------------------------------------------------------- */

static int tokenize(encode_call *e, encode_item *it, const Shoal__V1__TextInput *in, shoal_err *err)
{
    worker *w = e->w;
    const tokenizer *t = model_tokenizer(w->model);
    if (!t) return err_set(err, SHOAL_EUNSUPPORTED, "%s: %s", w->name, model_tokenizer_error(w->model));
    int rc = service_check_utf8(in->text, "text", err);
    if (rc == 0) rc = service_check_utf8(in->pair, "pair", err);
    if (rc == 0 && e->task == TASK_FILL_MASK)
        return service_fill_prepare(&it->fill, w, in, e->request->top_k, err);
    if (rc == 0)
        rc = tokenizer_encode(t, in->text, strlen(in->text), in->has_pair ? in->pair : NULL, strlen(in->pair),
                              TOK_ADD_SPECIAL, 0, &it->enc, err);
    return rc;
}

static int prepare_item(encode_call *e, size_t i, const Shoal__V1__TextInput *in, shoal_err *err)
{
    worker *w = e->w;
    encode_item *it = &e->items[i];
    it->owner = e;
    it->job.b = w->bridge;
    it->job.on_done = item_done;
    int rc = tokenize(e, it, in, err);
    size_t n = e->task == TASK_FILL_MASK ? it->fill.gaps.enc.n : it->enc.n;
    if (rc == 0 && n > engine_ctx(w->engine))
        rc = err_set(err, SHOAL_ELIMIT, "%zu tokens are longer than the context of %s, %zu tokens", n,
                     w->name, engine_ctx(w->engine));
    if (rc == 0 && n == 0) rc = err_set(err, SHOAL_EINVALID, "the text is empty");
    if (rc != 0) return e->n > 1 ? err_prefix(err, rc, "input %zu", i) : rc;
    e->n_tokens += n;
    return 0;
}

static int prepare(encode_call *e, const uint8_t *msg, size_t n, shoal_err *err)
{
    int rc = service_call_admit(e->w, e->task, err);
    if (rc != 0) return rc;
    ProtobufCMessage *m;
    rc = service_call_unpack(&shoal__v1__fill_mask_request__descriptor, msg, n, &m, err);
    if (rc != 0) return rc;
    e->request = (Shoal__V1__FillMaskRequest *)m;
    size_t n_inputs = e->request->n_inputs;
    if (n_inputs == 0 || n_inputs > MAX_INPUTS)
        return err_set(err, n_inputs ? SHOAL_ELIMIT : SHOAL_EINVALID, "%zu inputs: give from 1 to %d",
                       n_inputs, MAX_INPUTS);
    e->items = calloc(n_inputs, sizeof *e->items);
    if (!e->items) return err_nomem(err);
    e->n = n_inputs;
    for (size_t i = 0; rc == 0 && i < n_inputs; i++) rc = prepare_item(e, i, e->request->inputs[i], err);
    return rc;
}

static void start(worker *w, grpc_call *c, model_task task, const char *method, const uint8_t *msg, size_t n)
{
    encode_call *e = calloc(1, sizeof *e);
    if (!e) {
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    e->w = w;
    e->call = c;
    e->task = task;
    e->deadline_ns = grpc_call_deadline_ns(c);
    service_call_begin(w, c, method, &e->trace);
    shoal_err err;
    if (prepare(e, msg, n, &err) != 0) {
        service_call_refuse(w, c, &e->trace, &err);
        encode_free(e);
        return;
    }
    grpc_call_on_cancel(c, call_gone, e);
    submit_more(e);
    if (e->n_running == 0) encode_free(e);
}

/* The other requests have the fields of FillMaskRequest but one, so all are read as that. */
void service_classify(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    start(user, c, TASK_CLASSIFY, "Classify", msg, n);
}

void service_tag(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    start(user, c, TASK_TAG, "Tag", msg, n);
}

void service_embed(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    start(user, c, TASK_EMBED, "Embed", msg, n);
}

void service_fill_mask(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    start(user, c, TASK_FILL_MASK, "FillMask", msg, n);
}
