/* fake_calls.h: model calls of a pipeline's run, answered by a test in the order it likes. Include once a
 * test file.
 *
 *     backend b = {0};
 *     process_calls calls = fake_calls(&b);
 *     ... a run starts: b.calls[0 .. b.n) are what it asked ...
 *     answer_label(&b.calls[0], "lights_on", 0.9f);   ... the run goes on ...
 *     fake_calls_done(&b); */
#ifndef TESTS_GATEWAY_FAKE_CALLS_H
#define TESTS_GATEWAY_FAKE_CALLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/process.h"

enum { CALLS_MAX = 16, TEXTS_MAX = 66 };

typedef struct noted {
    const char *model;
    char *text;             /* the first input, or messages_json, or the source */
    char *texts[TEXTS_MAX]; /* choices of a generation; pairs or further inputs of an encoder */
    size_t n_texts;
    void (*classified)(void *, const backend_result *, const Shoal__V1__ClassifyReply *);
    void (*tagged)(void *, const backend_result *, const Shoal__V1__TagReply *);
    void (*embedded)(void *, const backend_result *, const Shoal__V1__EmbedReply *);
    void (*filled)(void *, const backend_result *, const Shoal__V1__FillMaskReply *);
    void (*detected)(void *, const backend_result *, const Shoal__V1__DetectSpeechReply *);
    void (*scored)(void *, const backend_result *, const Shoal__V1__ScoreReply *);
    backend_generate_events generate;
    backend_transcribe_events transcribe;
    char *adapter, *language, *prompt;
    unsigned n_beams;
    void *user;
    bool open, cancelled;
} noted;

struct backend {
    noted calls[CALLS_MAX];
    size_t n;
};

static inline noted *note(backend *b, const char *model, const char *text, void *user)
{
    assert_true(b->n < CALLS_MAX);
    noted *c = &b->calls[b->n++];
    *c = (noted){.model = model, .text = strdup(text), .user = user, .open = true};
    return c;
}

static inline void note_more(noted *c, const char *text)
{
    assert_true(c->n_texts < TEXTS_MAX);
    c->texts[c->n_texts++] = strdup(text);
}

static inline backend_call *
fake_classify(backend *b, const char *model, const Shoal__V1__ClassifyRequest *req,
              const backend_context *ctx,
              void (*done)(void *, const backend_result *, const Shoal__V1__ClassifyReply *), void *user)
{
    noted *c = note(b, model, req->inputs[0]->text, user);
    for (size_t i = 0; i < req->n_inputs; i++)
        if (req->inputs[i]->has_pair) note_more(c, req->inputs[i]->pair);
    c->classified = done;
    c->adapter = strdup(req->adapter);
    return (backend_call *)c;
}

static inline backend_call *
fake_tag(backend *b, const char *model, const Shoal__V1__TagRequest *req, const backend_context *ctx,
         void (*done)(void *, const backend_result *, const Shoal__V1__TagReply *), void *user)
{
    noted *c = note(b, model, req->inputs[0]->text, user);
    c->tagged = done;
    c->adapter = strdup(req->adapter);
    return (backend_call *)c;
}

static inline backend_call *
fake_embed(backend *b, const char *model, const Shoal__V1__EmbedRequest *req, const backend_context *ctx,
           void (*done)(void *, const backend_result *, const Shoal__V1__EmbedReply *), void *user)
{
    noted *c = note(b, model, req->inputs[0]->text, user);
    for (size_t i = 1; i < req->n_inputs; i++) note_more(c, req->inputs[i]->text);
    c->embedded = done;
    c->adapter = strdup(req->adapter);
    return (backend_call *)c;
}

static inline backend_call *
fake_fill(backend *b, const char *model, const Shoal__V1__FillMaskRequest *req, const backend_context *ctx,
          void (*done)(void *, const backend_result *, const Shoal__V1__FillMaskReply *), void *user)
{
    noted *c = note(b, model, req->inputs[0]->text, user);
    c->filled = done;
    c->adapter = strdup(req->adapter);
    return (backend_call *)c;
}

static inline backend_call *fake_generate(backend *b, const char *model,
                                          const Shoal__V1__GenerateRequest *req, const backend_context *ctx,
                                          const backend_generate_events *ev)
{
    bool chats = *req->messages_json;
    noted *c = note(b, model, chats ? req->messages_json : req->text, NULL);
    c->generate = *ev;
    c->n_beams = req->n_beams;
    c->adapter = strdup(req->adapter);
    assert_int_equal(req->parse_tool_calls, chats);
    assert_true(req->max_tokens > 0);
    bool constrained = req->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
    assert_int_equal(constrained, req->n_choices > 0);
    for (size_t i = 0; i < req->n_choices; i++) note_more(c, req->choices[i]);
    return (backend_call *)c;
}

static inline noted *note_bytes(backend *b, const char *model, ProtobufCBinaryData bytes, void *user)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(bytes.len < 60 ? bytes.len : 60), (const char *)bytes.data);
    return note(b, model, text, user);
}

static inline backend_call *fake_transcribe(backend *b, const char *model,
                                            const Shoal__V1__TranscribeRequest *req,
                                            const backend_context *ctx, const backend_transcribe_events *ev)
{
    noted *c = note_bytes(b, model, req->audio, NULL);
    c->transcribe = *ev;
    c->language = strdup(req->language);
    c->prompt = strdup(req->prompt);
    return (backend_call *)c;
}

static inline backend_call *
fake_detect(backend *b, const char *model, const Shoal__V1__DetectSpeechRequest *req,
            const backend_context *ctx,
            void (*done)(void *, const backend_result *, const Shoal__V1__DetectSpeechReply *), void *user)
{
    noted *c = note_bytes(b, model, req->audio, user);
    c->detected = done;
    return (backend_call *)c;
}

static inline backend_call *
fake_image(backend *b, const char *model, const Shoal__V1__ImageRequest *req, const backend_context *ctx,
           void (*done)(void *, const backend_result *, const Shoal__V1__ClassifyReply *), void *user)
{
    noted *c = note_bytes(b, model, req->image, user);
    c->classified = done;
    return (backend_call *)c;
}

static inline backend_call *
fake_score(backend *b, const char *model, const Shoal__V1__ScoreRequest *req, const backend_context *ctx,
           void (*done)(void *, const backend_result *, const Shoal__V1__ScoreReply *), void *user)
{
    noted *c = note_bytes(b, model, req->csv, user);
    c->scored = done;
    return (backend_call *)c;
}

static inline void fake_cancel(backend_call *call)
{
    noted *c = (noted *)call;
    assert_true(c->open);
    c->open = false;
    c->cancelled = true;
}

static inline process_calls fake_calls(backend *b)
{
    return (process_calls){.b = b,
                           .classify = fake_classify,
                           .tag = fake_tag,
                           .embed = fake_embed,
                           .fill_mask = fake_fill,
                           .generate = fake_generate,
                           .transcribe = fake_transcribe,
                           .detect = fake_detect,
                           .classify_image = fake_image,
                           .score = fake_score,
                           .cancel = fake_cancel};
}

static inline void fake_calls_done(backend *b)
{
    for (size_t i = 0; i < b->n; i++) {
        free(b->calls[i].text);
        free(b->calls[i].adapter);
        free(b->calls[i].language);
        free(b->calls[i].prompt);
        for (size_t k = 0; k < b->calls[i].n_texts; k++) free(b->calls[i].texts[k]);
    }
}

/* ---- answers ----------------------------------------------------------------------------------------- */

static inline backend_result fake_result(int status, const char *message)
{
    return (backend_result){.status = status,
                            .message = message,
                            .model = "m",
                            .replica_id = "m/0",
                            .version = "1",
                            .quantisation = "q8_0",
                            .digest = "d",
                            .ms = 1.5};
}

/* Each input of the call gets one label with its score. */
static inline void answer_scores(noted *c, const char *label, const float *scores, size_t n)
{
    Shoal__V1__LabelScore l[TEXTS_MAX], *labels[TEXTS_MAX];
    Shoal__V1__Classification k[TEXTS_MAX], *results[TEXTS_MAX];
    Shoal__V1__ClassifyReply reply = SHOAL__V1__CLASSIFY_REPLY__INIT;
    for (size_t i = 0; i < n; i++) {
        l[i] = (Shoal__V1__LabelScore)SHOAL__V1__LABEL_SCORE__INIT;
        l[i].label = (char *)label;
        l[i].score = scores[i];
        labels[i] = &l[i];
        k[i] = (Shoal__V1__Classification)SHOAL__V1__CLASSIFICATION__INIT;
        k[i].labels = &labels[i];
        k[i].n_labels = 1;
        k[i].n_tokens = 5;
        results[i] = &k[i];
    }
    reply.results = results;
    reply.n_results = n;
    backend_result r = fake_result(0, "");
    c->open = false;
    c->classified(c->user, &r, &reply);
}

static inline void answer_label(noted *c, const char *label, float score)
{
    answer_scores(c, label, &score, 1);
}

/* One span, or none. */
static inline void answer_spans(noted *c, bool any)
{
    Shoal__V1__Span s = SHOAL__V1__SPAN__INIT, *spans[] = {&s};
    Shoal__V1__Tagging t = SHOAL__V1__TAGGING__INIT, *results[] = {&t};
    Shoal__V1__TagReply reply = SHOAL__V1__TAG_REPLY__INIT;
    s.start = 13;
    s.end = 20;
    s.label = "house_place";
    s.text = "kitchen";
    t.spans = spans;
    t.n_spans = any;
    reply.results = results;
    reply.n_results = 1;
    backend_result r = fake_result(0, "");
    c->open = false;
    c->tagged(c->user, &r, &reply);
}

/* n vectors of two numbers. */
static inline void answer_vectors(noted *c, float (*v)[2], size_t n)
{
    Shoal__V1__Embedding e[TEXTS_MAX], *results[TEXTS_MAX];
    Shoal__V1__EmbedReply reply = SHOAL__V1__EMBED_REPLY__INIT;
    for (size_t i = 0; i < n; i++) {
        e[i] = (Shoal__V1__Embedding)SHOAL__V1__EMBEDDING__INIT;
        e[i].values = v[i];
        e[i].n_values = 2;
        e[i].n_tokens = 3;
        results[i] = &e[i];
    }
    reply.results = results;
    reply.n_results = n;
    backend_result r = fake_result(0, "");
    c->open = false;
    c->embedded(c->user, &r, &reply);
}

/* One word for each gap. */
static inline void answer_words(noted *c, const char *const *words, size_t n)
{
    Shoal__V1__Guess g[TEXTS_MAX], *guesses[TEXTS_MAX];
    Shoal__V1__Gap gaps[TEXTS_MAX], *list[TEXTS_MAX];
    Shoal__V1__Filling f = SHOAL__V1__FILLING__INIT, *results[] = {&f};
    Shoal__V1__FillMaskReply reply = SHOAL__V1__FILL_MASK_REPLY__INIT;
    char sequence[TEXTS_MAX][64];
    for (size_t i = 0; i < n; i++) {
        snprintf(sequence[i], sizeof sequence[i], "with %s", words[i]);
        g[i] = (Shoal__V1__Guess)SHOAL__V1__GUESS__INIT;
        g[i].token = (char *)words[i];
        g[i].sequence = sequence[i];
        g[i].score = 0.75f;
        guesses[i] = &g[i];
        gaps[i] = (Shoal__V1__Gap)SHOAL__V1__GAP__INIT;
        gaps[i].guesses = &guesses[i];
        gaps[i].n_guesses = 1;
        list[i] = &gaps[i];
    }
    f.gaps = list;
    f.n_gaps = n;
    reply.results = results;
    reply.n_results = 1;
    backend_result r = fake_result(0, "");
    c->open = false;
    c->filled(c->user, &r, &reply);
}

static inline void say_call(noted *c, const char *text, const char *tool, const char *arguments,
                            uint32_t index)
{
    Shoal__V1__ToolCallDelta t = SHOAL__V1__TOOL_CALL_DELTA__INIT, *tools[] = {&t};
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    d.text = (char *)text;
    if (tool) {
        t.index = index;
        t.name = (char *)tool;
        t.arguments = (char *)arguments;
        d.tool_calls = tools;
        d.n_tool_calls = 1;
    }
    ev.delta = &d;
    c->generate.event(c->generate.user, &ev);
}

static inline void end_reply(noted *c, double mean_prob)
{
    Shoal__V1__Done d = SHOAL__V1__DONE__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    d.finish = "stop";
    d.n_prompt = 40;
    d.n_generated = 9;
    d.mean_prob = mean_prob;
    ev.done = &d;
    c->generate.event(c->generate.user, &ev);
    backend_result r = fake_result(0, "");
    c->open = false;
    c->generate.end(c->generate.user, &r);
}

static inline void break_call(noted *c)
{
    backend_result r = fake_result(SHOAL_EUNAVAILABLE, "the worker died");
    c->open = false;
    if (c->classified)
        c->classified(c->user, &r, NULL);
    else if (c->tagged)
        c->tagged(c->user, &r, NULL);
    else if (c->embedded)
        c->embedded(c->user, &r, NULL);
    else if (c->filled)
        c->filled(c->user, &r, NULL);
    else if (c->detected)
        c->detected(c->user, &r, NULL);
    else if (c->scored)
        c->scored(c->user, &r, NULL);
    else if (c->transcribe.end)
        c->transcribe.end(c->transcribe.user, &r);
    else
        c->generate.end(c->generate.user, &r);
}

#endif
