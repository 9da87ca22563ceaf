/* service_encode.c: Classify, Tag, Embed and FillMask: one request, one or many texts (service_items.h). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/tagging.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/service_fill.h"
#include "worker/service_items.h"

enum {
    MAX_RUNNING = 32,
    MAX_FILLING = 4, /* of fill-mask: each brings up to GAPS_MAX rows of the whole vocabulary */
    MAX_INPUTS = 4096
};

typedef struct encode_item {
    call_item item;
    encoding enc;
    service_fill fill; /* fill-mask, instead of enc */
} encode_item;

typedef struct encode_call encode_call;

/* A method. */
typedef struct encode_method {
    model_task task;
    const char *name;
    size_t together; /* of its texts, in the engine's queue */
    const ProtobufCMessageDescriptor *reply;
    /* One of the reply's results, about item i. 0 or SHOAL_ENOMEM. */
    int (*put)(encode_call *e, size_t i, arena *a, ProtobufCMessage *result);
} encode_method;

struct encode_call {
    items_call call;
    const encode_method *method;
    Shoal__V1__FillMaskRequest *request; /* the others begin alike: one list of inputs */
};

static encode_item *encode_item_at(const encode_call *e, size_t i)
{
    return (encode_item *)items_at(&e->call, i);
}

static void encode_call_free(items_call *c)
{
    encode_call *e = (encode_call *)c;
    for (size_t i = 0; i < c->n; i++) {
        encoding_done(&encode_item_at(e, i)->enc);
        service_fill_done(&encode_item_at(e, i)->fill);
        free(encode_item_at(e, i)->item.job.values);
    }
    shoal__v1__fill_mask_request__free_unpacked(e->request, NULL);
}

/* ---- replies ----------------------------------------------------------------------------------- */

static int encode_by_score(const void *a, const void *b)
{
    const Shoal__V1__LabelScore *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

/* top_k 0: all. */
static int classification(const worker *w, float *logits, size_t top_k, arena *a,
                          Shoal__V1__Classification *m)
{
    const model_config *mc = w->backend.about.config;
    *m = (Shoal__V1__Classification)SHOAL__V1__CLASSIFICATION__INIT;
    float *scores = arena_alloc(a, mc->head.n_labels * sizeof *scores);
    Shoal__V1__LabelScore *labels = arena_alloc(a, mc->head.n_labels * sizeof *labels);
    m->labels = arena_alloc(a, mc->head.n_labels * sizeof *m->labels);
    if (!scores || !labels || !m->labels) return SHOAL_ENOMEM;
    w->backend.ops->label_scores(w->backend.state, logits, scores);
    for (size_t i = 0; i < mc->head.n_labels; i++) {
        labels[i] = (Shoal__V1__LabelScore)SHOAL__V1__LABEL_SCORE__INIT;
        labels[i].label = (char *)mc->head.labels[i];
        labels[i].score = scores[i];
    }
    qsort(labels, mc->head.n_labels, sizeof *labels, encode_by_score);
    m->n_labels = top_k && top_k < mc->head.n_labels ? top_k : mc->head.n_labels;
    for (size_t i = 0; i < m->n_labels; i++) m->labels[i] = &labels[i];
    if (m->n_labels < mc->head.n_labels) return 0;
    m->logits = logits;
    m->n_logits = mc->head.n_labels;
    return 0;
}

Shoal__V1__ClassifyReply *service_classify_reply(const worker *w, arena *a, float *logits)
{
    Shoal__V1__ClassifyReply *m = arena_alloc(a, sizeof *m);
    Shoal__V1__Classification *one = arena_alloc(a, sizeof *one), **list = arena_alloc(a, sizeof *list);
    if (!m || !one || !list || classification(w, logits, 0, a, one) != 0) return NULL;
    *list = one;
    *m = (Shoal__V1__ClassifyReply)SHOAL__V1__CLASSIFY_REPLY__INIT;
    m->results = list;
    m->n_results = 1;
    return m;
}

static int put_classification(encode_call *e, size_t i, arena *a, ProtobufCMessage *result)
{
    Shoal__V1__Classification *m = (Shoal__V1__Classification *)result;
    const encode_item *it = encode_item_at(e, i);
    size_t top_k = e->request->top_k;
    int rc = classification(e->call.w, it->item.job.values, top_k, a, m);
    m->n_tokens = (uint32_t)it->enc.n;
    return rc;
}

static int put_tagging(encode_call *e, size_t i, arena *a, ProtobufCMessage *result)
{
    Shoal__V1__Tagging *m = (Shoal__V1__Tagging *)result;
    const encode_item *it = encode_item_at(e, i);
    const char *text = e->request->inputs[i]->text;
    m->n_tokens = (uint32_t)it->enc.n;
    entity *found = NULL;
    size_t n = 0;
    int rc =
        tagging_entities(e->call.w->backend.about.config, &it->enc, it->item.job.values, &found, &n, NULL);
    Shoal__V1__Span *spans = arena_alloc(a, n * sizeof *spans);
    m->spans = arena_alloc(a, n * sizeof *m->spans);
    if (rc == 0 && n > 0 && (!spans || !m->spans)) rc = SHOAL_ENOMEM;
    for (size_t k = 0; rc == 0 && k < n; k++) {
        const entity *f = &found[k];
        spans[k] = (Shoal__V1__Span)SHOAL__V1__SPAN__INIT;
        spans[k].start = f->span.cp_begin;
        spans[k].end = f->span.cp_end;
        spans[k].start_byte = f->span.begin;
        spans[k].end_byte = f->span.end;
        spans[k].label = (char *)f->label;
        spans[k].score = f->score;
        spans[k].text = arena_strndup(a, text + f->span.begin, f->span.end - f->span.begin);
        if (!spans[k].text) rc = SHOAL_ENOMEM;
        m->spans[m->n_spans++] = &spans[k];
    }
    free(found);
    return rc;
}

static int put_embedding(encode_call *e, size_t i, arena *a, ProtobufCMessage *result)
{
    Shoal__V1__Embedding *m = (Shoal__V1__Embedding *)result;
    const encode_item *it = encode_item_at(e, i);
    (void)a;
    m->values = it->item.job.values;
    m->n_values = it->item.job.n_values;
    m->n_tokens = (uint32_t)it->enc.n;
    return 0;
}

static int put_filling(encode_call *e, size_t i, arena *a, ProtobufCMessage *result)
{
    return service_fill_put(e->call.w, &encode_item_at(e, i)->fill, a, (Shoal__V1__Filling *)result);
}

/* The replies are alike but for the type of their results, which is their first field's. */
static int encode_reply(encode_call *e, arena *a, Shoal__V1__Timing *timing)
{
    const ProtobufCMessageDescriptor *type = e->method->reply->fields[0].descriptor;
    Shoal__V1__ClassifyReply m;
    assert(e->method->reply->sizeof_message == sizeof m);
    protobuf_c_message_init(e->method->reply, &m);
    m.results = arena_alloc(a, e->call.n * sizeof *m.results);
    if (!m.results) return SHOAL_ENOMEM;
    for (; m.n_results < e->call.n; m.n_results++) {
        ProtobufCMessage *result = arena_alloc(a, type->sizeof_message);
        if (!result) return SHOAL_ENOMEM;
        protobuf_c_message_init(type, result);
        if (e->method->put(e, m.n_results, a, result) != 0) return SHOAL_ENOMEM;
        m.results[m.n_results] = (Shoal__V1__Classification *)result;
    }
    m.timing = timing;
    return service_call_send(e->call.w, e->call.call, &m.base);
}

static int encode_send_results(items_call *c)
{
    encode_call *e = (encode_call *)c;
    arena *a = arena_new(16384);
    if (!a) return SHOAL_ENOMEM;
    Shoal__V1__Timing timing = SHOAL__V1__TIMING__INIT;
    timing.queue_ms = c->queue_ms;
    timing.compute_ms = c->compute_ms;
    timing.cpu_ms = c->cpu_ms;
    int rc = encode_reply(e, a, &timing);
    arena_free(a);
    return rc;
}

/* ---- running ----------------------------------------------------------------------------------- */

/* For the engine's answer. */
static int encode_make_room(encode_call *e, encode_item *it, shoal_err *err)
{
    const model_config *mc = e->call.w->backend.about.config;
    size_t cols = e->method->task == TASK_EMBED       ? mc->n_embd
                  : e->method->task == TASK_FILL_MASK ? mc->n_vocab
                                                      : mc->head.n_labels,
           rows = e->method->task == TASK_TAG         ? it->enc.n
                  : e->method->task == TASK_FILL_MASK ? it->fill.gaps.n
                                                      : 1;
    it->item.job.n_values = rows * cols;
    it->item.job.values = calloc(it->item.job.n_values, sizeof *it->item.job.values);
    return it->item.job.values ? 0 : err_nomem(err);
}

static int encode_submit(items_call *c, call_item *item, shoal_err *err)
{
    encode_call *e = (encode_call *)c;
    encode_item *it = (encode_item *)item;
    const mask_slots *g = e->method->task == TASK_FILL_MASK ? &it->fill.gaps : NULL;
    const encoding *enc = g ? &g->enc : &it->enc;
    enc_request r = {.ids = enc->ids,
                     .type_ids = enc->type_ids,
                     .n_ids = enc->n,
                     .at = g ? g->at : NULL,
                     .n_at = g ? g->n : 0,
                     .deadline_ns = c->deadline_ns,
                     .latency = (int)e->request->latency,
                     .adapter = *e->request->adapter ? e->request->adapter : NULL};
    int rc = item->job.values ? 0 : encode_make_room(e, it, err);
    if (rc != 0) return rc;
    return c->w->backend.ops->encode(c->w->backend.state, &r, bridge_result, &item->job, &item->id, err);
}

static void encode_took(items_call *c, call_item *item)
{
    bridge_job *j = &item->job;
    if (j->queue_ms > c->queue_ms) c->queue_ms = j->queue_ms;
    c->compute_ms += j->compute_ms;
    c->cpu_ms += j->cpu_ms;
    if (((encode_call *)c)->method->task != TASK_FILL_MASK || j->status != 0) return;
    /* What is wanted of a row of the vocabulary is little; the rows make room for the next. */
    if (service_fill_take(c->w, &((encode_item *)item)->fill, j->values) != 0) j->status = SHOAL_ENOMEM;
    free(j->values);
    j->values = NULL;
}

/* ---- the start --------------------------------------------------------------------------------- */

static size_t truncated_length(const encode_call *e)
{
    size_t limit = e->call.w->backend.about.n_ctx;
    return e->request->truncate_tokens < limit ? e->request->truncate_tokens : limit;
}

/* Ids that the request brought. Another model's are refused only where this vocabulary has no such ids. */
static int encode_take_ids(const encode_call *e, encode_item *it, const Shoal__V1__TextInput *in,
                           shoal_err *err)
{
    size_t n_vocab = e->call.w->backend.about.config->n_vocab;
    if (e->method->task != TASK_EMBED || *in->text || in->has_pair)
        return err_set(err, SHOAL_EINVALID, "token ids take the place of a text that is to be embedded");
    for (size_t i = 0; i < in->n_ids; i++)
        if (in->ids[i] < 0 || (size_t)in->ids[i] >= n_vocab)
            return err_set(
                err, SHOAL_EINVALID,
                "token id %d is not in the vocabulary of %s, which has ids 0 to %zu; ids of another "
                "model's tokenizer mean nothing here: send text (LangChain's OpenAIEmbeddings does "
                "with check_embedding_ctx_length=False)",
                (int)in->ids[i], e->call.w->name, n_vocab - 1);
    return encoding_of_ids(&it->enc, in->ids, in->n_ids) == 0 ? 0 : err_nomem(err);
}

static int encode_read_text(encode_call *e, encode_item *it, const Shoal__V1__TextInput *in, shoal_err *err)
{
    worker *w = e->call.w;
    const tokenizer *t;
    int rc = backend_tokenizer(&w->backend, "", &t, err);
    if (rc == 0) rc = service_check_utf8(in->text, "text", err);
    if (rc == 0) rc = service_check_utf8(in->pair, "pair", err);
    if (rc == 0 && e->method->task == TASK_FILL_MASK)
        return service_fill_prepare(&it->fill, w, in, e->request->top_k, err);
    if (rc == 0)
        rc = tokenizer_encode(t, in->text, strlen(in->text), in->has_pair ? in->pair : NULL, strlen(in->pair),
                              TOK_ADD_SPECIAL, 0, &it->enc, err);
    return rc;
}

static int encode_tokenize(encode_call *e, encode_item *it, const Shoal__V1__TextInput *in, shoal_err *err)
{
    int rc = in->n_ids ? encode_take_ids(e, it, in, err) : encode_read_text(e, it, in, err);
    if (rc == 0 && e->method->task == TASK_EMBED && e->request->truncate_tokens > 0)
        (void)encoding_truncate(&it->enc, truncated_length(e));
    return rc;
}

static const char CUT[] = ": split the text, or ask for \"truncate\": true, which embeds its beginning";

static int encode_prepare_item(encode_call *e, size_t i, const Shoal__V1__TextInput *in, shoal_err *err)
{
    worker *w = e->call.w;
    encode_item *it = encode_item_at(e, i);
    int rc = encode_tokenize(e, it, in, err);
    size_t n = e->method->task == TASK_FILL_MASK ? it->fill.gaps.enc.n : it->enc.n;
    if (rc == 0 && n > w->backend.about.n_ctx)
        rc = err_set(err, SHOAL_ELIMIT,
                     "This model's maximum context length is %zu tokens, and the text has %zu (model %s)%s",
                     w->backend.about.n_ctx, n, w->name, e->method->task == TASK_EMBED ? CUT : "");
    if (rc == 0 && n == 0) rc = err_set(err, SHOAL_EINVALID, "the text is empty");
    if (rc != 0) return e->call.n > 1 ? err_prefix(err, rc, "input[%zu]", i) : rc;
    e->call.n_tokens += n;
    return 0;
}

static int encode_prepare(items_call *c, const uint8_t *msg, size_t n, shoal_err *err)
{
    encode_call *e = (encode_call *)c;
    ProtobufCMessage *m;
    int rc = service_call_unpack(&shoal__v1__fill_mask_request__descriptor, msg, n, &m, err);
    if (rc != 0) return rc;
    e->request = (Shoal__V1__FillMaskRequest *)m;
    size_t n_inputs = e->request->n_inputs;
    if (n_inputs == 0 || n_inputs > MAX_INPUTS)
        return err_set(err, n_inputs ? SHOAL_ELIMIT : SHOAL_EINVALID, "%zu inputs: give from 1 to %d",
                       n_inputs, MAX_INPUTS);
    rc = items_make(&e->call, n_inputs, err);
    for (size_t i = 0; rc == 0 && i < n_inputs; i++)
        rc = encode_prepare_item(e, i, e->request->inputs[i], err);
    return rc;
}

static void encode_begin(worker *w, grpc_call *c, const encode_method *m, const uint8_t *msg, size_t n)
{
    static const items_ops OPS = {.item_size = sizeof(encode_item),
                                  .tokens = "tokens",
                                  .submit = encode_submit,
                                  .took = encode_took,
                                  .reply = encode_send_results,
                                  .free = encode_call_free};
    encode_call *e = (encode_call *)items_begin(&OPS, sizeof *e, w, c, m->name);
    if (!e) return;
    e->method = m;
    e->call.together = m->together;
    items_run(&e->call, m->task, encode_prepare, msg, n);
}

/* The other requests have the fields of FillMaskRequest but one, so all are read as that. */
#define ENCODE_METHOD(method, task, name, together, put)                                                \
    void service_##method(void *user, grpc_call *c, const uint8_t *msg, size_t n)                       \
    {                                                                                                   \
        static const encode_method M = {task, name, together, &shoal__v1__##method##_reply__descriptor, \
                                        put};                                                           \
        encode_begin(user, c, &M, msg, n);                                                              \
    }
ENCODE_METHOD(classify, TASK_CLASSIFY, "Classify", MAX_RUNNING, put_classification)
ENCODE_METHOD(tag, TASK_TAG, "Tag", MAX_RUNNING, put_tagging)
ENCODE_METHOD(embed, TASK_EMBED, "Embed", MAX_RUNNING, put_embedding)
ENCODE_METHOD(fill_mask, TASK_FILL_MASK, "FillMask", MAX_FILLING, put_filling)
