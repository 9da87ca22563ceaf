/* service_generate.c: Generate: a prompt in, a stream of deltas out.
 *
 * Life of a call: unpack → prompt to token ids (prompt.h) → engine_generate → Started → Delta for what each
 * wake of the bridge brings, Progress while there is nothing to bring → Done. A reply that another worker
 * began goes the same way: the engine tells its text so far, with which the parser of calls gets to where it
 * was, and the delta drops what the client has of it. When the client leaves, the engine is told and the job
 * lives on until the engine lets go of it. When it only does not read, the generation rests until it does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "base/progress.h"
#include "json/sampling.h"
#include "base/utf8.h"
#include "grammar/grammar_schema.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/delta.h"
#include "worker/constraint.h"
#include "worker/prompt.h"
#include "worker/service.h"

enum {
    MAX_STOPS = 32,
    MAX_BIAS = 1024,
    MAX_TOP = 20,
    REST_BYTES = 32 << 10, /* unsent bytes at which a generation rests, and at which it goes on */
    GO_ON_BYTES = 8 << 10,
    REST_LOOK_MS = 5,
    HEARTBEAT_MS = 50, /* no stream of a worker that works is silent for longer than two of these */
};

typedef struct gen_job gen_job;
struct gen_job {
    bridge_job job; /* first: the bridge gives it back */
    worker *w;
    grpc_call *call; /* NULL once answered or gone */
    call_trace trace;
    uint64_t id; /* the engine's */
    bool logprobs, votes, called_tool;
    size_t n_stops;   /* strings of the request that may end it */
    size_t n_resumed; /* tokens that others have sent */
    /* Of a prompt whose tokens' log-probabilities are to come, in one delta with its text. */
    size_t n_unjudged;
    bool has_progress;
    Shoal__V1__Progress progress;
    toolcall_parser *tools; /* NULL: text goes out as it is */
    json_t *offered;        /* the functions, as calls of them are held; NULL: none */
    delta delta;
    bool rests;
    gen_job *next_resting;
    bool told; /* something since the last look */
    gen_job *next, *prev;
};

/* ---- readers that do not keep up ----------------------------------------------------------------- */

static void look_after_resting(uv_timer_t *t)
{
    worker *w = t->data;
    for (gen_job **at = &w->generations.resting, *g; (g = *at);) {
        if (g->call && grpc_call_unsent(g->call) > GO_ON_BYTES) {
            at = &g->next_resting;
            continue;
        }
        *at = g->next_resting;
        g->rests = false;
        w->backend.ops->pause(w->backend.state, g->id, false);
    }
    if (!w->generations.resting) uv_timer_stop(t);
}

static void rest_if_unread(gen_job *g)
{
    worker *w = g->w;
    if (g->rests || g->votes || !g->call || grpc_call_unsent(g->call) <= REST_BYTES) return;
    g->rests = true;
    g->next_resting = w->generations.resting;
    w->generations.resting = g;
    w->backend.ops->pause(w->backend.state, g->id, true);
    if (!uv_is_active((uv_handle_t *)w->generations.rest_timer))
        uv_timer_start(w->generations.rest_timer, look_after_resting, REST_LOOK_MS, REST_LOOK_MS);
}

static void forget_resting(gen_job *g)
{
    for (gen_job **at = &g->w->generations.resting; *at; at = &(*at)->next_resting) {
        if (*at != g) continue;
        *at = g->next_resting;
        return;
    }
}

static void generate_free_handle(uv_handle_t *h)
{
    free(h);
}

static int generate_open_timer(uv_timer_t **ret, worker *w, shoal_err *err)
{
    *ret = malloc(sizeof **ret);
    if (!*ret) return err_nomem(err);
    uv_timer_init(w->loop, *ret);
    (*ret)->data = w;
    return 0;
}

static void close_timer(uv_timer_t **t)
{
    if (*t) uv_close((uv_handle_t *)*t, generate_free_handle);
    *t = NULL;
}

int service_generate_open(worker *w, shoal_err *err)
{
    int rc = generate_open_timer(&w->generations.rest_timer, w, err);
    return rc == 0 ? generate_open_timer(&w->generations.heartbeat_timer, w, err) : rc;
}

void service_generate_close(worker *w)
{
    close_timer(&w->generations.rest_timer);
    close_timer(&w->generations.heartbeat_timer);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void list_job(gen_job *g)
{
    worker *w = g->w;
    g->next = w->generations.first;
    if (g->next) g->next->prev = g;
    w->generations.first = g;
}

static void unlist_job(gen_job *g)
{
    if (g->next) g->next->prev = g->prev;
    *(g->prev ? &g->prev->next : &g->w->generations.first) = g->next;
    if (!g->w->generations.first && g->w->generations.heartbeat_timer)
        uv_timer_stop(g->w->generations.heartbeat_timer);
}

static void gen_free(gen_job *g)
{
    if (!g) return;
    if (g->rests) forget_resting(g);
    unlist_job(g);
    toolcall_free(g->tools);
    json_decref(g->offered);
    delta_done(&g->delta);
    free(g);
}

static void cancel_generation(const gen_job *g)
{
    g->w->backend.ops->cancel(g->w->backend.state, g->id);
}

/* ---- the stream -------------------------------------------------------------------------------- */

/* The answer cannot be whole any more. */
static void generate_give_up(gen_job *g)
{
    grpc_call *c = g->call;
    g->call = NULL;
    cancel_generation(g);
    grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
}

/* What the client says that it has is not how this reply begins. */
static void refuse_begun(gen_job *g)
{
    shoal_err err;
    grpc_call *c = g->call;
    g->call = NULL;
    cancel_generation(g);
    err_set(&err, SHOAL_EINVALID, "resume_bytes does not fit: no piece of the text of resume_ids ends there");
    service_call_refuse(g->w, c, &g->trace, &err);
}

static void send_delta(gen_job *g)
{
    if (!g->call || (delta_is_empty(&g->delta) && !delta_failed(&g->delta))) return;
    buf *out = &g->w->scratch;
    buf_clear(out);
    g->told = true;
    if (delta_pack(&g->delta, out) == 0)
        grpc_call_send(g->call, out->data, out->len);
    else
        generate_give_up(g);
}

static void generate_send_progress(gen_job *g)
{
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    ev.progress = &g->progress;
    if (!g->has_progress || !g->call) return;
    g->has_progress = false;
    g->told = true;
    if (service_call_send(g->w, g->call, &ev.base) != 0) generate_give_up(g);
}

/* Who waits for a place, or for others' steps, is told that the engine goes on, if it does; not who has not
 * read what came before. */
static void send_heartbeats(uv_timer_t *t)
{
    worker *w = t->data;
    uint64_t now = progress_count(); /* a step may last */
    bool goes_on = now != w->generations.progress_seen;
    w->generations.progress_seen = now;
    for (gen_job *g = w->generations.first; g; g = g->next) {
        if (goes_on && !g->told && g->call && grpc_call_unsent(g->call) == 0) {
            g->has_progress = true;
            generate_send_progress(g);
        }
        g->told = false;
    }
}

static void tool_text(void *user, const char *s, size_t n)
{
    gen_job *g = user;
    if (delta_has_tools(&g->delta)) send_delta(g); /* within one message, text stands before calls */
    delta_add_text(&g->delta, s, n);
}

static void tool_begin(void *user, int index, const char *name)
{
    delta_add_tool_begin(&((gen_job *)user)->delta, index, name);
}

static void tool_arguments(void *user, int index, const char *json, size_t n)
{
    delta_add_tool_arguments(&((gen_job *)user)->delta, index, json, n);
}

/* Where text may come as well, a call can begin in ways that the grammar does not know. */
static bool tool_may(void *user, const char *name, const char *json, size_t n)
{
    const gen_job *g = user;
    json_t *args = NULL;
    bool ok = false;
    size_t i;
    json_t *tool;
    if (json_parse(&args, json, n, "arguments", NULL) != 0) return false;
    json_array_foreach(g->offered, i, tool)
    {
        const json_t *f = json_object_get(tool, "function"), *schema = json_object_get(f, "parameters");
        const char *own = json_string_value(json_object_get(f, "name"));
        if (own && strcmp(own, name) == 0) ok |= !json_is_object(schema) || schema_admits(schema, args);
    }
    json_decref(args);
    return ok;
}

static void tool_end(void *user, int index)
{
    ((gen_job *)user)->called_tool = true;
}

static void note_progress(gen_job *g, const gen_event *ev)
{
    g->has_progress = true;
    g->progress.n_read = (uint32_t)ev->n_read;
    g->progress.n_input = (uint32_t)ev->n_input;
    g->progress.n_cached = (uint32_t)ev->n_cached;
}

/* Behind the token that the last one was about. */
static void send_ballot(gen_job *g, const gen_event *of)
{
    Shoal__V1__Ballot b = SHOAL__V1__BALLOT__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    send_delta(g);
    b.position = (uint32_t)of->n_read;
    b.values = (ProtobufCBinaryData){of->text_len, (uint8_t *)of->text};
    ev.ballot = &b;
    if (g->call && service_call_send(g->w, g->call, &ev.base) != 0) generate_give_up(g);
}

/* What the engine says of the end behind them is nobody's question here. */
static void note_judged(gen_job *g, const gen_event *ev)
{
    if (g->n_unjudged == 0) return;
    g->n_unjudged--;
    delta_add_logprob(&g->delta, g->w->backend.about.tokenizer, ev);
    if (g->n_unjudged == 0) send_delta(g);
}

static void gen_token(bridge_job *j, const gen_event *ev)
{
    gen_job *g = (gen_job *)j;
    if (!g->call) return;
    if (ev->kind == EVENT_PROGRESS) {
        note_progress(g, ev);
        return;
    }
    if (ev->kind == EVENT_BALLOT) {
        send_ballot(g, ev);
        return;
    }
    if (ev->kind == EVENT_JUDGED) {
        note_judged(g, ev);
        return;
    }
    if (ev->id >= 0 && delta_skips(&g->delta)) {
        refuse_begun(g);
        return;
    }
    if (ev->id >= 0) delta_add_id(&g->delta, ev->id, ev->prob_sum);
    if (ev->id >= 0 && g->logprobs) delta_add_logprob(&g->delta, g->w->backend.about.tokenizer, ev);
    delta_add_thought(&g->delta, ev->thought, ev->thought_len);
    if (!g->tools)
        delta_add_text(&g->delta, ev->text, ev->text_len);
    else if (toolcall_push(g->tools, ev->text, ev->text_len))
        g->delta.text.failed = true; /* ends the call, as text that found no memory does */
}

/* A vote would wait for ever for the mean of a ballot that never left. */
static void gen_overflow(bridge_job *j)
{
    cancel_generation((gen_job *)j);
}

static void gen_flush(bridge_job *j)
{
    generate_send_progress((gen_job *)j);
    if (((gen_job *)j)->n_unjudged == 0) send_delta((gen_job *)j);
    rest_if_unread((gen_job *)j);
}

static void log_done(const gen_job *g, const char *finish)
{
    const gen_timings *t = &g->job.timings;
    LOG(LOG_INFO, "worker", "call_done", LOG_S("request_id", g->trace.request_id),
        LOG_S("trace_id", g->trace.trace_id), LOG_S("method", "Generate"), LOG_S("model", g->w->name),
        LOG_S("version", g->w->backend.about.version),
        LOG_S("quantisation", g->w->backend.about.quantisation), LOG_S("finish", finish),
        LOG_I("prompt_tokens", t->n_prompt), LOG_I("cached_tokens", t->n_cached),
        LOG_I("tokens", t->n_generated), LOG_I("resumed_tokens", g->n_resumed),
        LOG_I("drafted_tokens", t->n_drafted), LOG_I("accepted_tokens", t->n_accepted),
        LOG_F("queue_ms", t->queue_ms), LOG_F("prefill_ms", t->prefill_ms), LOG_F("decode_ms", t->decode_ms),
        LOG_F("ms", clock_ms_since(g->trace.start_ns)));
}

static void generate_send_done(gen_job *g)
{
    bool cut = g->tools && toolcall_is_open(g->tools);
    if (g->tools && toolcall_end(g->tools, g->job.finish == FINISH_LENGTH)) g->delta.text.failed = true;
    if (delta_skips(&g->delta))
        refuse_begun(g);
    else
        send_delta(g);
    if (!g->call) return;
    const gen_timings *t = &g->job.timings;
    Shoal__V1__Done d = SHOAL__V1__DONE__INIT;
    bool length = g->job.finish == FINISH_LENGTH;
    d.finish = length && (cut || !g->called_tool) ? "length" : g->called_tool && !cut ? "tool_calls" : "stop";
    d.n_prompt = (uint32_t)t->n_prompt;
    d.n_cached = (uint32_t)t->n_cached;
    d.n_generated = (uint32_t)t->n_generated;
    d.n_reasoning = (uint32_t)t->n_thought;
    d.n_drafted = (uint32_t)t->n_drafted;
    d.n_accepted = (uint32_t)t->n_accepted;
    d.queue_ms = t->queue_ms;
    d.prefill_ms = t->prefill_ms;
    d.decode_ms = t->decode_ms;
    d.cpu_ms = t->cpu_ms;
    d.mean_prob = t->mean_prob;
    if (g->job.n_stop <= g->n_stops) d.n_stop = (uint32_t)g->job.n_stop; /* else it was a marker of calls */
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    ev.done = &d;
    log_done(g, d.finish);
    service_call_reply(g->w, g->call, &ev.base);
}

static void gen_done(bridge_job *j)
{
    gen_job *g = (gen_job *)j;
    if (g->call && j->status == 0) {
        generate_send_done(g);
    } else if (g->call) {
        shoal_err err;
        bool ours = j->status == SHOAL_ECANCELLED; /* nobody but a closing engine cancels a live call */
        err_set(&err, ours ? SHOAL_EUNAVAILABLE : j->status, "%s",
                ours ? "the worker is shutting down" : j->message);
        service_call_refuse(g->w, g->call, &g->trace, &err);
    }
    gen_free(g);
}

void service_generate_gone(gen_job *g)
{
    g->call = NULL;
    LOG(LOG_INFO, "worker", "call_cancelled", LOG_S("request_id", g->trace.request_id),
        LOG_S("trace_id", g->trace.trace_id), LOG_S("method", "Generate"), LOG_S("model", g->w->name),
        LOG_F("ms", clock_ms_since(g->trace.start_ns)));
    cancel_generation(g);
}

static void generate_call_gone(void *user, grpc_call *c)
{
    service_generate_gone(user);
}

uint64_t service_generate_id(const gen_job *g)
{
    return g->id;
}

/* ---- the request ------------------------------------------------------------------------------- */

static int generate_check_sampling(const Shoal__V1__Sampling *s, shoal_err *err)
{
    int rc = 0;
#define CHECK(field, min, max) \
    if (rc == 0) rc = sampling_check(#field, (double)s->field, err);
    SAMPLING_TABLE(CHECK)
#undef CHECK
    if (rc == 0 && s->n_bias > MAX_BIAS)
        rc = err_set(err, SHOAL_EINVALID, "%zu logit biases: at most %d", s->n_bias, MAX_BIAS);
    return rc;
}

static int convert_bias(const worker *w, const Shoal__V1__Sampling *s, logit_bias *ret, shoal_err *err)
{
    size_t n_vocab = w->backend.about.config->n_vocab;
    for (size_t i = 0; i < s->n_bias; i++) {
        ret[i] = (logit_bias){.id = s->bias[i]->id, .bias = s->bias[i]->bias};
        if (ret[i].id < 0 || (size_t)ret[i].id >= n_vocab || !isfinite(ret[i].bias))
            return err_set(err, SHOAL_EINVALID, "logit bias of token %d: the vocabulary has %zu tokens",
                           ret[i].id, n_vocab);
    }
    return 0;
}

/* What the request did not say, from what the model says. */
static void fill_unsaid(Shoal__V1__Sampling *s, const sampling_defaults *d)
{
#define FILL(field, min, max) \
    if (s->unsaid & d->said & SAMPLING_BIT(field)) s->field = d->field;
    SAMPLING_TABLE(FILL)
#undef FILL
    if (s->unsaid & d->said & SAMPLING_BIT(top_p)) sampling_top_p(&s->top_p);
    s->unsaid &= ~d->said;
}

static int convert_sampling(const worker *w, const Shoal__V1__Sampling *asked, sampling *ret,
                            logit_bias **ret_bias, shoal_err *err)
{
    if (!asked) return 0;
    Shoal__V1__Sampling filled = *asked;
    const Shoal__V1__Sampling *s = &filled;
    fill_unsaid(&filled, &w->backend.about.sampling);
    int rc = generate_check_sampling(s, err);
    if (rc == 0 && s->n_bias > 0) {
        *ret_bias = calloc(s->n_bias, sizeof **ret_bias);
        rc = *ret_bias ? convert_bias(w, s, *ret_bias, err) : err_nomem(err);
    }
    if (rc != 0) return rc;
    *ret = (sampling){.temperature = s->temperature,
                      .top_k = (int)s->top_k,
                      .top_p = s->top_p,
                      .min_p = s->min_p,
                      .repetition_penalty = s->repetition_penalty,
                      .presence_penalty = s->presence_penalty,
                      .frequency_penalty = s->frequency_penalty,
                      .seed = s->seed,
                      .bias = *ret_bias,
                      .n_bias = s->n_bias};
    return 0;
}

static int generate_check_request(const Shoal__V1__GenerateRequest *r, shoal_err *err)
{
    int rc = service_check_utf8(r->text, "text", err);
    if (rc == 0) rc = service_check_utf8(r->schema, "schema", err);
    for (size_t i = 0; rc == 0 && i < r->n_stop; i++) rc = service_check_utf8(r->stop[i], "stop", err);
    if (rc == 0 && r->n_stop > MAX_STOPS)
        rc = err_set(err, SHOAL_EINVALID, "%zu stop strings: at most %d", r->n_stop, MAX_STOPS);
    if (rc == 0 && r->n_top > MAX_TOP)
        rc = err_set(err, SHOAL_EINVALID, "%u alternatives a token: at most %d", r->n_top, MAX_TOP);
    if (rc == 0 && (r->n_prompt_ids || r->in_thought) && !(*r->messages_json && r->n_prompt_ids))
        rc = err_set(err, SHOAL_EINVALID, "prompt_ids, with or without in_thought, stand for messages_json");
    if (rc == 0 && r->vote && r->echo && r->logprobs)
        rc = err_set(
            err, SHOAL_EUNSUPPORTED,
            "echo with logprobs: what a prompt is worth is one model's word, and no vote is held on it");
    if (rc == 0 && r->only_prompt && (r->vote || r->n_beams > 1 || r->n_resume_ids))
        rc = err_set(err, SHOAL_EINVALID,
                     "only_prompt goes with no vote, no beams and no reply that is resumed");
    if (rc == 0) rc = constraint_check(r, err);
    return rc;
}

/* Splits the reply into text and calls, of the offered tools alone; without tools a model that was trained to
 * call some may do so. */
static int new_parser(gen_job *g, const Shoal__V1__GenerateRequest *r, const prompt *p, shoal_err *err)
{
    json_t *tools = NULL;
    toolcall_sink sink = {
        .user = g, .text = tool_text, .begin = tool_begin, .arguments = tool_arguments, .end = tool_end};
    bool parse = r->parse_tool_calls || r->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__TOOLS;
    int rc = 0;
    if (parse && *r->tools_json) rc = json_parse(&tools, r->tools_json, strlen(r->tools_json), "tools", err);
    if (rc == SHOAL_EFORMAT) rc = err->code = SHOAL_EINVALID;
    bool held = r->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__TOOLS;
    if (held && r->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_AUTO) sink.may = tool_may;
    if (rc == 0 && parse && !(g->tools = toolcall_new(&sink, p->calls, tools))) rc = err_nomem(err);
    g->offered = tools;
    return rc;
}

/* A source is no prompt whose tokens follow each other. */
static bool prompt_is_judged(const Shoal__V1__GenerateRequest *r, const prompt *p)
{
    return r->echo && r->logprobs && r->n_resume_ids == 0 && r->resume_bytes == 0 && !p->has_source;
}

static int new_job(gen_job **ret, worker *w, grpc_call *c, const Shoal__V1__GenerateRequest *r,
                   const prompt *p, shoal_err *err)
{
    gen_job *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(err);
    g->job.b = w->bridge;
    g->job.on_token = gen_token;
    g->job.on_flush = gen_flush;
    g->job.on_done = gen_done;
    g->job.on_overflow = gen_overflow;
    g->w = w;
    g->call = c;
    g->logprobs = r->logprobs;
    g->votes = r->vote != NULL;
    g->n_resumed = r->n_resume_ids;
    g->n_unjudged = prompt_is_judged(r, p) ? p->n - 1 : 0;
    g->progress = (Shoal__V1__Progress)SHOAL__V1__PROGRESS__INIT;
    g->progress.n_input = (uint32_t)(p->n + r->n_resume_ids);
    delta_skip(&g->delta, r->resume_bytes);
    list_job(g);
    int rc = new_parser(g, r, p, err);
    if (rc == 0)
        *ret = g;
    else
        gen_free(g);
    return rc;
}

/* Started, and the prompt's own text when the request wants it back. */
static void send_started(gen_job *g, const Shoal__V1__GenerateRequest *r, const prompt *p)
{
    Shoal__V1__Started s = SHOAL__V1__STARTED__INIT;
    size_t room = g->w->backend.about.n_ctx - p->n;
    bool rendered = *r->messages_json && !r->n_prompt_ids;
    s.n_prompt = (uint32_t)(p->has_source ? p->enc.n : p->n);
    s.max_tokens = r->max_tokens && r->max_tokens < room ? r->max_tokens : (uint32_t)room;
    s.n_prompt_ids = rendered ? p->n : 0;
    s.prompt_ids = (int32_t *)p->ids;
    s.in_thought = rendered && p->in_thought;
    if (*r->tools_json && p->calls_label) s.tool_syntax = (char *)p->calls_label;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    ev.started = &s;
    if (service_call_send(g->w, g->call, &ev.base) != 0) {
        generate_give_up(g);
        return;
    }
    if (!r->echo) return;
    buf text = {0};
    const tokenizer *t = g->w->backend.about.tokenizer;
    if (*r->text)
        buf_puts(&text, r->text);
    else if (t)
        text.failed |= tokenizer_decode(t, p->ids, p->n, false, &text) != 0;
    delta_add_text(&g->delta, text.data, text.len);
    g->delta.text.failed |= text.failed;
    buf_done(&text);
    if (prompt_is_judged(r, p)) delta_add_first(&g->delta, t, p->ids[0]);
    if (g->n_unjudged == 0) send_delta(g);
}

/* Control tokens that mean calls or thoughts are to be seen; in a prompt of text nothing is looked for. */
static void show_markers(gen_request *q, const Shoal__V1__GenerateRequest *r, const prompt *p)
{
    bool calls = *r->messages_json || r->parse_tool_calls ||
                 r->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__TOOLS;
    if (calls) q->calls = p->calls;
    q->may_call =
        calls && *r->tools_json && r->tool_choice != SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NONE;
}

/* Whoever gets the prompt back with log-probabilities gets those of its tokens, too; in a reply that goes on
 * they have come. Where there is to be no reply at all, the engine looks at the last one for its sake. */
static size_t judged_from(const Shoal__V1__GenerateRequest *r, const prompt *p)
{
    if (prompt_is_judged(r, p)) return 1;
    return r->only_prompt ? p->n : 0;
}

/* The reply is calls and nothing else. */
static bool must_call(const Shoal__V1__GenerateRequest *r)
{
    return r->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__TOOLS &&
           (r->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_REQUIRED ||
            r->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NAMED);
}

/* A request on its way to the engine: everything of it that may take long is made first (get_ready), on a
 * thread of the pool where that pays, and the rest on the loop (begin). */
typedef struct gen_start {
    pool_job work; /* first */
    worker *w;
    grpc_call *call; /* NULL once it has gone */
    call_trace trace;
    buf message; /* of a request that is still to be unpacked */
    Shoal__V1__GenerateRequest *unpacked;
    const Shoal__V1__GenerateRequest *r;
    prompt prompt;
    sampling sampling;
    logit_bias *bias;
    output_constraint constraint;
    grammar *grammar; /* of constraint */
    bool votes;
    void (*begun)(grpc_call *c, gen_job *g);
    int rc;
    shoal_err err;
} gen_start;

static void start_done(gen_start *st)
{
    grammar_free(st->grammar);
    constraint_done(&st->constraint);
    free(st->bias);
    prompt_done(&st->prompt);
    if (st->unpacked) shoal__v1__generate_request__free_unpacked(st->unpacked, NULL);
    buf_done(&st->message);
}

static int generate_make_constraint(gen_start *st, shoal_err *err)
{
    const prompt *p = &st->prompt;
    const backend *b = &st->w->backend;
    int rc = constraint_init(&st->constraint, st->w->backend.about.quotes_results, st->r, err);
    constraint_add_model(&st->constraint, p->calls, p->shows_thinking ? p->thinking : NULL, p->in_thought);
    if (rc != 0 || !st->constraint.spec) return rc;
    do rc = b->ops->grammar(b->state, st->constraint.spec, &st->grammar, err);
    while ((rc == SHOAL_EUNSUPPORTED || rc == SHOAL_ELIMIT) && constraint_relax(&st->constraint, err));
    return rc;
}

/* Any thread: st is all that it changes. */
static int get_ready(gen_start *st, shoal_err *err)
{
    int rc = generate_check_request(st->r, err);
    if (rc == 0) rc = convert_sampling(st->w, st->r->sampling, &st->sampling, &st->bias, err);
    if (rc == 0) rc = prompt_make(&st->prompt, st->w, st->r, err);
    return rc == 0 ? generate_make_constraint(st, err) : rc;
}

static int generate_submit(gen_job *g, gen_start *st, shoal_err *err)
{
    const Shoal__V1__GenerateRequest *r = st->r;
    const prompt *p = &st->prompt;
    const char *stop[MAX_STOPS + 2];
    size_t n_stop = 0;
    while (n_stop < r->n_stop && !must_call(r)) { /* a call's own words end nothing */
        stop[n_stop] = r->stop[n_stop];
        n_stop++;
    }
    g->n_stops = n_stop;
    /* A model that starts a call although it may not has said what it had to say. */
    const char *marker = toolcall_marker(p->calls);
    if (r->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NONE && marker)
        stop[n_stop++] = marker;
    if (p->stop) stop[n_stop++] = p->stop;
    enc_request source = {.ids = p->enc.ids, .type_ids = p->enc.type_ids, .n_ids = p->enc.n};
    gen_request q = {.ids = p->ids,
                     .n_ids = p->n,
                     .source = p->has_source ? &source : NULL,
                     .n_beams = r->n_beams,
                     .length_penalty = r->length_penalty,
                     .early_stopping = r->early_stopping,
                     .max_tokens = r->max_tokens,
                     .sampling = st->sampling,
                     .stop = stop,
                     .n_stop = n_stop,
                     .end = p->end >= 0 ? &p->end : NULL,
                     .ignore_eos = r->ignore_eos,
                     .min_tokens = r->min_tokens,
                     .logprobs = r->logprobs,
                     .n_top = (int)r->n_top,
                     .form = st->constraint.spec,
                     .grammar = &st->grammar,
                     .thinking = p->thinking,
                     .in_thought = p->in_thought,
                     .adapter = *r->adapter ? r->adapter : NULL,
                     .progress = true,
                     .keeps_pages = r->keeps_pages,
                     .votes = g->votes,
                     .geometric = g->votes && r->vote->geometric,
                     .resume_ids = r->resume_ids,
                     .n_resume = r->n_resume_ids,
                     .resume_prob_sum = r->resume_prob_sum,
                     .n_deaths = r->resume_deaths,
                     .deadline_ns = grpc_call_deadline_ns(g->call),
                     .latency = (int)r->latency,
                     .judge_from = judged_from(r, p),
                     .only_judges = r->only_prompt,
                     .group = service_call_group(&g->trace)};
    show_markers(&q, r, p);
    if (st->constraint.tools) { /* as they are held now */
        json_decref(g->offered);
        g->offered = json_incref(st->constraint.tools);
    }
    return g->w->backend.ops->generate(g->w->backend.state, &q, bridge_event, &g->job, &g->id, err);
}

static int generate_begin(gen_start *st, gen_job **ret, shoal_err *err)
{
    worker *w = st->w;
    gen_job *g = NULL;
    int rc = new_job(&g, w, st->call, st->r, &st->prompt, err);
    if (rc != 0) return rc;
    g->trace = st->trace;
    rc = generate_submit(g, st, err);
    if (rc != 0) {
        gen_free(g);
        return rc;
    }
    *ret = g;
    if (!uv_is_active((uv_handle_t *)w->generations.heartbeat_timer))
        uv_timer_start(w->generations.heartbeat_timer, send_heartbeats, HEARTBEAT_MS, HEARTBEAT_MS);
    send_started(g, st->r, &st->prompt);
    return 0;
}

/* ---- requests that take long to get ready: the thread pool ----------------------------------------- */

static int generate_unpack(gen_start *st, const uint8_t *msg, size_t n, shoal_err *err)
{
    ProtobufCMessage *m;
    int rc = service_call_unpack(&shoal__v1__generate_request__descriptor, msg, n, &m, err);
    st->r = st->unpacked = (Shoal__V1__GenerateRequest *)m;
    if (rc == 0 && st->votes && !st->r->vote)
        rc = err_set(err, SHOAL_EINVALID, "the first message of Vote has no vote");
    if (rc == 0 && !st->votes && st->r->vote)
        rc = err_set(err, SHOAL_EINVALID, "a reply that is voted on is asked of Vote");
    return rc;
}

static int begin_and_tell(gen_start *st, shoal_err *err)
{
    gen_job *g;
    int rc = generate_begin(st, &g, err);
    if (rc == 0 && g->call) { /* else it has ended for want of memory */
        grpc_call_on_cancel(g->call, generate_call_gone, g);
        if (st->begun) st->begun(g->call, g);
    }
    return rc;
}

static void generate_start_run(pool_job *work)
{
    gen_start *st = (gen_start *)work;
    if (!st->unpacked)
        st->rc = generate_unpack(st, (const uint8_t *)st->message.data, st->message.len, &st->err);
    if (st->rc == 0) st->rc = get_ready(st, &st->err);
}

static void start_ran(pool_job *work, bool ran)
{
    gen_start *st = (gen_start *)work;
    worker *w = st->w;
    int rc = st->call && st->rc == 0 ? begin_and_tell(st, &st->err) : st->rc;
    if (st->call && rc != 0) service_call_refuse(w, st->call, &st->trace, &st->err);
    start_done(st);
    free(st);
    service_blocking_ended(w);
}

static void start_gone(void *user, grpc_call *c)
{
    gen_start *st = user;
    st->call = NULL;
    pool_drop(&st->w->pool, &st->work); /* may free it */
}

/* *st is moved where it returns 0. */
static int generate_start_later(gen_start *st, const uint8_t *msg, size_t n, shoal_err *err)
{
    worker *w = st->w;
    int rc = service_check_blocking(w, err);
    if (rc == 0 && !st->unpacked && buf_append(&st->message, msg, n) != 0) rc = err_nomem(err);
    gen_start *own = rc == 0 ? malloc(sizeof *own) : NULL;
    if (!own) return rc ? rc : err_nomem(err);
    *own = *st;
    w->blocking.n++;
    grpc_call_on_cancel(own->call, start_gone, own);
    pool_start(&w->pool, &own->work, n > SERVICE_LONG_BYTES, generate_start_run, start_ran);
    return 0;
}

/* A short request with a schema, a pattern, tools or a template can take as long as a long one. */
static bool takes_long(const Shoal__V1__GenerateRequest *r)
{
    return r->constraint != SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__NONE || *r->chat_template;
}

int service_generate_start(worker *w, grpc_call *c, const call_trace *trace, bool votes, const uint8_t *msg,
                           size_t n, void (*begun)(grpc_call *c, gen_job *g), shoal_err *err)
{
    gen_start st = {.w = w, .call = c, .trace = *trace, .votes = votes, .begun = begun};
    model_task own = w->backend.about.task;
    bool is_long = n > SERVICE_LONG_BYTES;
    int rc = service_call_admit(w, own == TASK_SEQ2SEQ ? own : TASK_GENERATE, err);
    if (rc == 0 && !is_long) rc = generate_unpack(&st, msg, n, err);
    if (rc == 0 && (is_long || takes_long(st.r))) {
        rc = generate_start_later(&st, msg, n, err);
        if (rc == 0) return 0;
    } else if (rc == 0) {
        rc = get_ready(&st, err);
        if (rc == 0) rc = begin_and_tell(&st, err);
    }
    start_done(&st);
    return rc;
}

void service_generate(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    call_trace trace;
    shoal_err err;
    service_call_begin(w, c, "Generate", &trace);
    if (service_generate_start(w, c, &trace, false, msg, n, NULL, &err) != 0)
        service_call_refuse(w, c, &trace, &err);
}
