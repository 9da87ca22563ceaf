/* letters.h: a model that embeds: how often a text has each letter. Its calls are answered from the loop, in
 * order.
 *
 *     letters m;
 *     letters_open(&m, &loop);
 *     m.longest = 100;             // a longer text is over its context
 *     m.status = SHOAL_EUNAVAILABLE; // every call fails so
 *
 * As a cross-encoder it likes short passages. */
#ifndef TESTS_RETRIEVE_LETTERS_H
#define TESTS_RETRIEVE_LETTERS_H

#include <uv.h>

#include "calls/calls.h"
#include "check.h"

enum { LETTERS = 26 };

typedef struct letters_call {
    model_call base; /* first: it is the call */
    struct letters *m;
    call_order *order;
    call_events ev;
    struct letters_call *next;
} letters_call;

typedef struct letters {
    calls base; /* first: it is the seam */
    uv_idle_t idle;
    letters_call *waiting;
    size_t longest, n_calls, n_texts;
    int status;
    const char *digest;
} letters;

static inline void letters_of(const char *text, float v[LETTERS])
{
    memset(v, 0, LETTERS * sizeof *v);
    for (; *text; text++)
        if ((*text | 32) >= 'a' && (*text | 32) <= 'z') v[(*text | 32) - 'a'] += 1;
}

static inline void letters_embed(letters_call *c, call_result *r, const Shoal__V1__EmbedRequest *q)
{
    static float values[64][LETTERS];
    static Shoal__V1__Embedding all[64];
    static Shoal__V1__Embedding *list[64];
    static Shoal__V1__EmbedReply reply;
    shoal__v1__embed_reply__init(&reply);
    for (size_t i = 0; i < q->n_inputs; i++) {
        if (strlen(q->inputs[i]->text) > c->m->longest) r->status = SHOAL_ELIMIT;
        letters_of(q->inputs[i]->text, values[i]);
        shoal__v1__embedding__init(&all[i]);
        all[i].values = values[i];
        all[i].n_values = LETTERS;
        list[i] = &all[i];
        c->m->n_texts++;
    }
    reply.results = list;
    reply.n_results = q->n_inputs;
    r->reply = &reply.base;
}

static inline void letters_rank(call_result *r, const Shoal__V1__ClassifyRequest *q)
{
    static Shoal__V1__LabelScore labels[64], *one[64];
    static Shoal__V1__Classification all[64], *list[64];
    static Shoal__V1__ClassifyReply reply;
    shoal__v1__classify_reply__init(&reply);
    for (size_t i = 0; i < q->n_inputs; i++) {
        shoal__v1__label_score__init(&labels[i]);
        shoal__v1__classification__init(&all[i]);
        labels[i].score = 1.0f / (float)(1 + strlen(q->inputs[i]->pair));
        one[i] = &labels[i];
        all[i].labels = &one[i];
        all[i].n_labels = 1;
        list[i] = &all[i];
    }
    reply.results = list;
    reply.n_results = q->n_inputs;
    r->reply = &reply.base;
}

static inline void letters_answer(uv_idle_t *idle)
{
    letters *m = idle->data;
    letters_call *c = m->waiting;
    if (!c) {
        uv_idle_stop(idle);
        return;
    }
    m->waiting = c->next;
    call_result r = {.status = m->status,
                     .message = m->status ? "the model is away" : "",
                     .digest = m->digest,
                     .model = "letters",
                     .replica_id = "",
                     .version = "",
                     .quantisation = ""};
    ProtobufCMessage *q = call_order_request(c->order);
    if (r.status == 0 && c->order->task == CALL_EMBED) letters_embed(c, &r, (const void *)q);
    if (r.status == 0 && c->order->task == CALL_CLASSIFY) letters_rank(&r, (const void *)q);
    if (r.status != 0) r.reply = NULL;
    c->ev.end(&c->ev, &r);
    protobuf_c_message_free_unpacked(q, NULL);
    call_order_unref(c->order);
    free(c);
}

static inline model_call *letters_start(calls *base, call_order *o, const call_terms *t,
                                        const call_events *ev)
{
    letters *m = (letters *)base;
    letters_call *c = calloc(1, sizeof *c), **end = &m->waiting;
    *c = (letters_call){.base = {base->ops}, .m = m, .order = call_order_ref(o), .ev = *ev};
    while (*end) end = &(*end)->next;
    *end = c;
    m->n_calls++;
    uv_idle_start(&m->idle, letters_answer);
    return &c->base;
}

static inline void letters_cancel(model_call *call)
{
    letters_call *c = (letters_call *)call, **at = &c->m->waiting;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    call_order_unref(c->order);
    free(c);
}

static inline void letters_open(letters *m, uv_loop_t *loop)
{
    static const calls_ops OPS = {.start = letters_start, .cancel = letters_cancel};
    *m = (letters){.base = {&OPS}, .longest = 100000, .digest = "letters-1"};
    uv_idle_init(loop, &m->idle);
    m->idle.data = m;
}

static inline void letters_close(letters *m)
{
    assert_null(m->waiting);
    uv_close((uv_handle_t *)&m->idle, NULL);
}

#endif
