/* script.h: the calls below a decorator, played by a test: every call is noted, and answers what the test
 * says when it says so. Include once a test file.
 *
 *     script s;
 *     script_init(&s);                                   // time stands still: env_sim_run(s.sim, ms)
 *     retry_calls_new(&c, s.env, &s.base, 0, NULL, NULL);       // the decorator under test
 *     heard h = {0};
 *     model_call *call = script_embed(c, &h, 0);         // or script_generate
 *     script_end(s.calls[0], CALL_FAULT_LOST);           // the worker of its first call dies
 *     calls_free(c);                                     // and s, which must have no call left
 *     script_done(&s); */
#ifndef TESTS_CALLS_SCRIPT_H
#define TESTS_CALLS_SCRIPT_H

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
#include "time/env_sim.h"
#include "calls/calls.h"

enum { SCRIPT_MAX = 2048 };

typedef struct script script;
typedef struct scripted { /* one call below; lives until script_done */
    model_call base;
    script *s;
    call_order *order;
    call_terms terms;
    call_events ev;
    uint64_t life;
    bool silent; /* its worker does not answer the registry */
    bool works;  /* whoever watches its process sees it work, or want a core */
    bool open, paused, cancelled;
} scripted;

struct script {
    calls base;
    env_sim *sim;
    const env *env;
    scripted *calls[SCRIPT_MAX];
    size_t n, n_open;
    call_estimate estimate; /* what calls_estimate says; status 0: somebody is there */
    uint64_t alive[8];      /* lives of the replicas: the first that the terms allow gets the call */
    size_t n_alive;
    const char *(*identity)(uint64_t life); /* of a replica; NULL: all have "d1" */
    bool inexact;                           /* no reply goes on elsewhere with the same bits */
    bool no_memory, freed;
    const Shoal__V1__ModelInfo *(*info)(const char *model); /* NULL: nothing is known */
};

/* What came out at the top. */
typedef struct heard {
    int n_events, n_ends, n_started, n_done;
    bool cut;
    char text[1024];
    uint32_t n_cached, n_generated;
    char finish[16];
    int status;
    call_fault fault;
    char message[512], model[32], digest[16], wanted[32]; /* wanted: "" unless another model answered */
    double ms;
    model_call *call; /* to cancel from its own event, if cancels is set */
    bool cancels;
    const char *adapter; /* that its generations name; NULL: none */
    void (*on_end)(void *), *arg;
    bool takes_back; /* of script_generate: it wants to hear of restarts, and takes back what it heard */
    int n_restarted;
} heard;

/* ---- below --------------------------------------------------------------------------------------- */

static inline const char *script_identity(const script *s, uint64_t life)
{
    return s->identity ? s->identity(life) : "d1";
}

static inline uint64_t script_pick(const script *s, const call_terms *t)
{
    for (size_t i = 0; i < s->n_alive; i++) {
        bool fits = !*t->identity || strcmp(t->identity, script_identity(s, s->alive[i])) == 0;
        if (fits && !call_terms_avoids(t, s->alive[i])) return s->alive[i];
    }
    return 0;
}

static inline model_call *script_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    script *s = (script *)base;
    if (s->no_memory) return NULL;
    assert_true(s->n < SCRIPT_MAX);
    scripted *c = calloc(1, sizeof *c);
    *c = (scripted){.base = {base->ops},
                    .s = s,
                    .order = call_order_ref(o),
                    .terms = *t,
                    .ev = *ev,
                    .life = script_pick(s, t),
                    .open = true};
    s->calls[s->n++] = c;
    s->n_open++;
    return &c->base;
}

static inline void script_close(scripted *c)
{
    assert_true(c->open);
    c->open = false;
    c->s->n_open--;
}

static inline void script_cancel(model_call *call)
{
    scripted *c = (scripted *)call;
    script_close(c);
    c->cancelled = true;
}

static inline void script_pause(model_call *call, bool paused)
{
    assert_true(((scripted *)call)->open);
    ((scripted *)call)->paused = paused;
}

static inline bool script_is_at_work(const void *who)
{
    return ((const scripted *)who)->works;
}

static inline call_place script_where(const model_call *call)
{
    const scripted *c = (const scripted *)call;
    assert_true(c->open);
    return (call_place){.life = c->life,
                        .silent = c->silent,
                        .is_at_work = script_is_at_work,
                        .who = c,
                        .replica_id = "m/0",
                        .digest = "d1",
                        .identity = script_identity(c->s, c->life),
                        .exact_resume = !c->s->inexact,
                        .adapter_digest = *c->order->adapter ? "a1" : ""};
}

static inline void script_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    script *s = (script *)base;
    *ret = s->estimate;
    if (ret->status == 0 && !script_pick(s, t)) ret->status = SHOAL_EUNAVAILABLE;
}

static inline const Shoal__V1__ModelInfo *script_info(calls *base, const char *model, bool *ret_known)
{
    const script *s = (const script *)base;
    if (ret_known) *ret_known = strcmp(model, "m") == 0;
    return s->info ? s->info(model) : NULL;
}

static inline void script_free(calls *base)
{
    script *s = (script *)base;
    assert_int_equal(s->n_open, 0);
    s->freed = true;
}

static inline void script_init(script *s)
{
    static const calls_ops OPS = {.start = script_start,
                                  .pause = script_pause,
                                  .cancel = script_cancel,
                                  .where = script_where,
                                  .estimate = script_estimate,
                                  .info = script_info,
                                  .free = script_free};
    *s = (script){.base = {&OPS}, .sim = env_sim_new(1), .alive = {1, 2}, .n_alive = 2};
    s->env = env_sim_env(s->sim);
}

/* Everybody below must be gone, and no timer left. */
static inline void script_done(script *s)
{
    assert_true(s->freed);
    assert_int_equal(env_sim_timers(s->sim), 0);
    for (size_t i = 0; i < s->n; i++) {
        call_order_unref(s->calls[i]->order);
        free(s->calls[i]);
    }
    env_sim_free(s->sim);
}

/* These replicas live, ending with 0. */
static inline void script_lives(script *s, const uint64_t *lives)
{
    for (s->n_alive = 0; lives[s->n_alive]; s->n_alive++) s->alive[s->n_alive] = lives[s->n_alive];
    s->estimate.status = s->n_alive ? 0 : SHOAL_EUNAVAILABLE;
    s->estimate.may_return = true;
}

/* The call below ends so. */
static inline void script_end_as(scripted *c, int status, call_fault fault)
{
    call_result r = call_result_of(c->order, status, status ? "it failed" : "");
    Shoal__V1__EmbedReply reply = SHOAL__V1__EMBED_REPLY__INIT;
    r.fault = fault;
    r.life = fault == CALL_FAULT_ABSENT ? 0 : c->life;
    r.replica_id = "m/0";
    r.digest = "d1";
    r.identity = script_identity(c->s, c->life);
    r.exact_resume = !c->s->inexact;
    r.adapter_digest = *c->order->adapter ? "a1" : "";
    if (status == 0 && !CALL_TASKS[c->order->task].streams) r.reply = &reply.base;
    script_close(c);
    c->ev.end(&c->ev, &r);
}

static inline void script_end(scripted *c, call_fault fault)
{
    int status = fault == CALL_FAULT_NONE       ? 0
                 : fault == CALL_FAULT_FULL     ? SHOAL_EFULL
                 : fault == CALL_FAULT_NONSENSE ? SHOAL_EINTERNAL
                                                : SHOAL_EUNAVAILABLE;
    script_end_as(c, status, fault);
}

static inline scripted *script_last(script *s)
{
    assert_true(s->n > 0);
    return s->calls[s->n - 1];
}

/* ---- events of a generation ---------------------------------------------------------------------- */

static inline void say_started(scripted *c)
{
    int32_t prompt[] = {7, 8, 9};
    Shoal__V1__Started s = SHOAL__V1__STARTED__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    s.n_prompt = 3;
    s.max_tokens = 50;
    s.prompt_ids = prompt;
    s.n_prompt_ids = 3;
    ev.started = &s;
    c->ev.event(&c->ev, &ev.base);
}

static inline void say_progress(scripted *c, uint32_t n_cached)
{
    Shoal__V1__Progress p = SHOAL__V1__PROGRESS__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    p.n_cached = n_cached;
    p.n_input = 3;
    ev.progress = &p;
    c->ev.event(&c->ev, &ev.base);
}

static inline void say(scripted *c, int32_t id, const char *text)
{
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    d.ids = &id;
    d.n_ids = 1;
    d.text = text_bytes(text);
    d.prob_sum = id;
    ev.delta = &d;
    c->ev.event(&c->ev, &ev.base);
}

static inline void say_done(scripted *c, uint32_t n_cached)
{
    Shoal__V1__Done d = SHOAL__V1__DONE__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    d.n_cached = n_cached;
    ev.done = &d;
    c->ev.event(&c->ev, &ev.base);
}

/* ---- above --------------------------------------------------------------------------------------- */

static inline void hear_end(heard *h, const call_result *r)
{
    h->n_ends++;
    h->status = r->status;
    h->fault = r->fault;
    h->cut = r->cut;
    h->ms = r->ms;
    snprintf(h->message, sizeof h->message, "%s", r->message);
    snprintf(h->model, sizeof h->model, "%s", r->model);
    snprintf(h->digest, sizeof h->digest, "%s", r->digest);
    snprintf(h->wanted, sizeof h->wanted, "%s", r->wanted ? r->wanted : "");
}

static inline void hear_reply(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    assert_int_equal(r->status == 0, reply != NULL);
    hear_end(user, r);
}

static inline void hear_event(void *user, const Shoal__V1__GenerateEvent *ev)
{
    heard *h = user;
    h->n_events++;
    h->n_started += ev->started != NULL;
    if (ev->delta)
        snprintf(h->text + strlen(h->text), sizeof h->text - strlen(h->text), "%.*s",
                 (int)ev->delta->text.len, (const char *)ev->delta->text.data);
    if (ev->done) {
        h->n_done++;
        h->n_cached = ev->done->n_cached;
        h->n_generated = ev->done->n_generated;
        snprintf(h->finish, sizeof h->finish, "%s", ev->done->finish);
    }
    if (h->cancels && h->call) {
        calls_cancel(h->call);
        h->call = NULL;
    }
}

static inline void hear_stream_end(void *user, const call_result *r)
{
    hear_end(user, r);
}

static inline model_call *script_embed(calls *c, heard *h, uint64_t deadline_ns)
{
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, *list[] = {&in};
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    in.text = "a text";
    req.inputs = list;
    req.n_inputs = 1;
    call_context ctx = {.request_id = "r1", .deadline_ns = deadline_ns};
    return h->call = calls_embed(c, "m", &req, &ctx, hear_reply, h);
}

static inline void hear_any_event(const call_events *ev, const ProtobufCMessage *m)
{
    hear_event(ev->user, (const Shoal__V1__GenerateEvent *)m);
}

static inline void hear_any_end(const call_events *ev, const call_result *r)
{
    hear_end(ev->user, r);
}

static inline void hear_restarted(const call_events *ev)
{
    heard *h = ev->user;
    h->n_restarted++;
    h->n_started = 0;
    *h->text = '\0';
}

static inline model_call *script_generate(calls *c, heard *h, uint64_t deadline_ns)
{
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    call_context ctx = {.request_id = "r1", .deadline_ns = deadline_ns};
    calls_generate_events ev = {.user = h, .event = hear_event, .end = hear_stream_end};
    req.messages_json = "[]";
    if (h->adapter) req.adapter = (char *)h->adapter;
    if (!h->takes_back) return h->call = calls_generate(c, "m", &req, &ctx, &ev);
    call_events back = {.user = h,
                        .event = hear_any_event,
                        .end = hear_any_end,
                        .restarted = hear_restarted,
                        .takes_back = true};
    call_order *o = call_order_new(CALL_GENERATE, "m", &req.base, &ctx);
    h->call = calls_start(c, o, &(call_terms){0}, &back);
    call_order_unref(o);
    return h->call;
}

#endif
