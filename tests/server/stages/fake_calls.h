/* fake_calls.h: model calls of a pipeline's run, answered by a test in the order it likes. Include once a
 * test file.
 *
 *     fake_calls b;
 *     input.time = fake_time();
 *     process_run_start(&run, &input, fake_calls_init(&b), ...);
 *     ... b.calls[0 .. b.n) are what the run asked ...
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

#include "../../text_bytes.h"
#include "process/process.h"
#include "time/env_sim.h"

enum { CALLS_MAX = 500, TEXTS_MAX = 66 };

typedef struct noted {
    model_call base; /* first: it is the call */
    call_order *order;
    const char *model;
    call_task task;
    char *text;             /* the first input, or messages_json, or the source */
    char *texts[TEXTS_MAX]; /* choices of a generation; pairs or further inputs of an encoder */
    size_t n_texts;
    call_events ev;
    char *adapter, *language, *prompt;
    char *tools; /* of a generation; "": none are offered */
    Shoal__V1__GenerateRequest__ToolChoice tool_choice;
    unsigned n_beams;
    bool open, cancelled, paused;
} noted;

typedef struct fake_calls {
    calls base; /* first: it is the seam */
    noted calls[CALLS_MAX];
    size_t n;
} fake_calls;

static inline void note_more(noted *c, const char *text)
{
    assert_true(c->n_texts < TEXTS_MAX);
    c->texts[c->n_texts++] = strdup(text);
}

static inline void note_inputs(noted *c, Shoal__V1__TextInput **inputs, size_t n)
{
    c->text = strdup(inputs[0]->text);
    for (size_t i = 0; i < n; i++)
        if (inputs[i]->has_pair) note_more(c, inputs[i]->pair);
    for (size_t i = 1; i < n; i++)
        if (!inputs[i]->has_pair) note_more(c, inputs[i]->text);
}

static inline void note_bytes(noted *c, ProtobufCBinaryData bytes)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(bytes.len < 60 ? bytes.len : 60), (const char *)bytes.data);
    c->text = strdup(text);
}

static inline void note_sound(noted *c, const Shoal__V1__TranscribeRequest *req)
{
    note_bytes(c, req->audio);
    c->language = strdup(req->language);
    c->prompt = strdup(req->prompt);
}

static inline void note_generate(noted *c, const Shoal__V1__GenerateRequest *req)
{
    bool chats = *req->messages_json;
    c->text = strdup(chats ? req->messages_json : req->text);
    c->n_beams = req->n_beams;
    c->adapter = strdup(req->adapter);
    c->tools = strdup(req->tools_json);
    c->tool_choice = req->tool_choice;
    bool offers = req->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__TOOLS;
    assert_int_equal(offers, *req->tools_json != 0);
    assert_int_equal(req->parse_tool_calls,
                     chats && req->tool_choice != SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NONE);
    assert_true(req->max_tokens > 0);
    bool constrained = req->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
    assert_int_equal(constrained, req->n_choices > 0);
    for (size_t i = 0; i < req->n_choices; i++) note_more(c, req->choices[i]);
}

static inline void note_request(noted *c, const ProtobufCMessage *m)
{
    const Shoal__V1__ClassifyRequest *texts = (const void *)m;
    const char *const *adapter = task_field(m, "adapter");
    switch (c->task) {
    case CALL_CLASSIFY:
    case CALL_TAG:
    case CALL_EMBED:
    case CALL_FILL_MASK:
        note_inputs(c, texts->inputs, texts->n_inputs);
        c->adapter = strdup(*adapter);
        break;
    case CALL_GENERATE: note_generate(c, (const void *)m); break;
    case CALL_TRANSCRIBE: note_sound(c, (const void *)m); break;
    case CALL_DETECT:
    case CALL_CLASSIFY_IMAGE:
    case CALL_SCORE: note_bytes(c, ((const Shoal__V1__ScoreRequest *)m)->csv); break;
    default: fail_msg("no stage makes a call of %s", CALL_TASKS[c->task].name);
    }
}

static inline model_call *fake_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    fake_calls *b = (fake_calls *)base;
    assert_true(b->n < CALLS_MAX);
    noted *c = &b->calls[b->n++];
    ProtobufCMessage *m = call_order_request(o);
    *c = (noted){.base = {base->ops},
                 .order = call_order_ref(o),
                 .model = o->model,
                 .task = o->task,
                 .ev = *ev,
                 .open = true};
    note_request(c, m);
    protobuf_c_message_free_unpacked(m, NULL);
    return &c->base;
}

static inline void fake_pause(model_call *call, bool paused)
{
    ((noted *)call)->paused = paused;
}

static inline void fake_cancel(model_call *call)
{
    noted *c = (noted *)call;
    assert_true(c->open);
    c->open = false;
    c->cancelled = true;
}

/* The time of all runs of a test program, which passes only in env_sim_run. */
static inline env_sim *fake_sim(void)
{
    static env_sim *sim;
    if (!sim) sim = env_sim_new(1);
    assert_non_null(sim);
    return sim;
}

static inline const env *fake_time(void)
{
    return env_sim_env(fake_sim());
}

/* Long lists of rules go on where they let the loop have its turn. */
static inline void fake_turns(void)
{
    env_sim_run(fake_sim(), 0);
}

/* What the test has is the test's. */
static inline void fake_free(calls *c)
{
    (void)c;
}

static inline calls *fake_calls_init(fake_calls *b)
{
    static const calls_ops OPS = {
        .start = fake_start, .pause = fake_pause, .cancel = fake_cancel, .free = fake_free};
    *b = (fake_calls){.base = {&OPS}};
    return &b->base;
}

static inline void fake_calls_done(fake_calls *b)
{
    for (size_t i = 0; i < b->n; i++) {
        call_order_unref(b->calls[i].order);
        free(b->calls[i].text);
        free(b->calls[i].adapter);
        free(b->calls[i].language);
        free(b->calls[i].prompt);
        free(b->calls[i].tools);
        for (size_t k = 0; k < b->calls[i].n_texts; k++) free(b->calls[i].texts[k]);
    }
}

/* ---- answers ----------------------------------------------------------------------------------------- */

static inline call_result fake_result(int status, const char *message)
{
    return (call_result){.status = status,
                         .message = message,
                         .model = "m",
                         .replica_id = "m/0",
                         .version = "1",
                         .quantisation = "q8_0",
                         .digest = "d",
                         .ms = 1.5};
}

static inline void end_call(noted *c, int status, const char *message, const ProtobufCMessage *reply)
{
    call_result r = fake_result(status, message);
    r.reply = reply;
    c->open = false;
    c->ev.end(&c->ev, &r);
    fake_turns();
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
    end_call(c, 0, "", &reply.base);
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
    end_call(c, 0, "", &reply.base);
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
    end_call(c, 0, "", &reply.base);
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
    end_call(c, 0, "", &reply.base);
}

static inline void say_call(noted *c, const char *text, const char *tool, const char *arguments,
                            uint32_t index)
{
    Shoal__V1__ToolCallDelta t = SHOAL__V1__TOOL_CALL_DELTA__INIT, *tools[] = {&t};
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    d.text = text_bytes(text);
    if (tool) {
        t.index = index;
        t.name = (char *)tool;
        t.arguments = (char *)arguments;
        d.tool_calls = tools;
        d.n_tool_calls = 1;
    }
    ev.delta = &d;
    c->ev.event(&c->ev, &ev.base);
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
    c->ev.event(&c->ev, &ev.base);
    end_call(c, 0, "", NULL);
}

static inline void break_call(noted *c)
{
    end_call(c, SHOAL_EUNAVAILABLE, "the worker died", NULL);
}

#endif
