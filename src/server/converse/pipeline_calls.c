/* pipeline_calls.c: a run of a pipeline as the answer of a model; see pipeline_calls.h. */
#include "converse/pipeline_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trim.h"
#include "calls/decorator.h"
#include "converse/chat_reply.h"
#include "ensemble/verify_said.h"
#include "process/confirm.h"
#include "process/process.h"
#include "process/process_events.h"

typedef struct chat_pipeline {
    const config_pipeline *pipeline;
    function_table *table;
    Shoal__V1__ModelInfo info;
} chat_pipeline;

typedef struct pipeline_calls {
    decorator_calls base;
    pipeline_options o;
    chat_pipeline *all;
    size_t n;
} pipeline_calls;

/* The request before, asked once more to see whether the reply was a question of ours. */
typedef struct recalled_turn {
    char *answer; /* the user's, which is the input again when the run has ended */
    confirm_book questions;
    uint64_t n_prompt, n_generated; /* tokens that it took */
} recalled_turn;

typedef struct pipeline_call {
    decorator_call base; /* it has no inner call: the run makes its own */
    pipeline_calls *b;
    const chat_pipeline *by;
    chat_case k;
    device_list *devices;
    process_input in;  /* its memory is that of all here */
    process_turn turn; /* before it; reply NULL: there is none */
    process_run *run;
    recalled_turn *recalled; /* NULL: nothing needs to be asked once more */
    char *failure;           /* why there is no run, or no answer; NULL: there is none */
    int failure_status;
    process_watch watch;   /* where its text goes out while it is written */
    response_buffer tells; /* what goes out */
    bool begun, ready;     /* the run; all of it is there */
    env_timer *timer;
} pipeline_call;

/* ---- life of a call ------------------------------------------------------------------------------ */

static void pipeline_call_free(pipeline_call *c)
{
    c->b->base.env->timer_free(c->timer);
    process_run_cancel(c->run);
    if (c->recalled) confirm_book_done(&c->recalled->questions);
    free(c->recalled);
    response_buffer_done(&c->tells);
    chat_case_done(&c->k);
    process_input_done(&c->in);
    decorator_call_done(&c->base);
    free(c);
}

static void pipeline_calls_cancel(model_call *call)
{
    pipeline_call_free((pipeline_call *)call);
}

static void pipeline_calls_finish(pipeline_call *c, const call_result *r)
{
    decorator_call_end(&c->base, r);
    pipeline_call_free(c);
}

static void pipeline_calls_fail(pipeline_call *c, int status, const char *message)
{
    call_result none = call_result_of(c->base.o, status, message);
    pipeline_calls_finish(c, &none);
}

/* ---- telling ------------------------------------------------------------------------------------- */

/* The next event, or the end. An event may cancel the call, so nothing is done behind it: the timer goes on. */
static void pipeline_calls_tell(pipeline_call *c)
{
    if (c->base.paused) return; /* a pause's end goes on */
    if (!response_buffer_has_more(&c->tells)) {
        if (!c->ready) return; /* more text comes */
        call_result r = call_result_of(c->base.o, 0, "");
        r.model = c->by->pipeline->name;
        pipeline_calls_finish(c, &r);
        return;
    }
    ProtobufCMessage *m = response_buffer_next(&c->tells, c->base.o);
    if (!m) {
        pipeline_calls_fail(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    c->b->base.env->timer_start(c->timer, 0);
    c->base.ev.event(&c->base.ev, m);
    response_buffer_free(m);
}

static void pipeline_calls_pause(model_call *call, bool paused)
{
    pipeline_call *c = (pipeline_call *)call;
    c->base.paused = paused;
    if (c->begun) process_run_pause(c->run, paused);
    if (c->begun && !paused) c->b->base.env->timer_start(c->timer, 0);
}

/* ---- text while it is written ---------------------------------------------------------------------- */

/* A reply that no function's call, result or form can take the place of: what was told cannot be taken back, and "Turning on
 * Lamp." is a claim. */
static bool is_streamed(const pipeline_call *c)
{
    const chat_case *k = &c->k;
    return !pipeline_may_call(c->by->pipeline) && !k->formed && !k->forced && k->n_made == 0 &&
           !function_table_offers_states(c->by->table, k);
}

static void on_stage(void *user, const char *entry)
{
    (void)user;
    (void)entry;
}

static void on_text(void *user, const char *text, size_t n)
{
    pipeline_call *c = user;
    Shoal__V1__Started started = SHOAL__V1__STARTED__INIT;
    Shoal__V1__Delta delta = SHOAL__V1__DELTA__INIT;
    Shoal__V1__GenerateEvent first = SHOAL__V1__GENERATE_EVENT__INIT, more = SHOAL__V1__GENERATE_EVENT__INIT;
    bool begins = !c->tells.model;
    if (begins) response_buffer_init(&c->tells, c->by->pipeline->name);
    first.started = &started;
    if (begins) response_buffer_note(&c->tells, c->base.o, &first.base);
    delta.text = (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)text, .len = n};
    more.delta = &delta;
    response_buffer_note(&c->tells, c->base.o, &more.base);
    c->b->base.env->timer_start(c->timer,
                                0); /* told from there: an event may end the call, and with it the run */
}

static int end_streamed(pipeline_call *c, const process_outcome *out)
{
    Shoal__V1__Done done = SHOAL__V1__DONE__INIT;
    Shoal__V1__GenerateEvent last = SHOAL__V1__GENERATE_EVENT__INIT;
    done.finish = "stop";
    done.n_prompt = (uint32_t)out->n_prompt_tokens;
    done.n_generated = (uint32_t)out->n_generated_tokens;
    last.done = &done;
    response_buffer_note(&c->tells, c->base.o, &last.base);
    return c->tells.lost ? SHOAL_ENOMEM : 0;
}

/* How many tokens it took, for verify_said_make to begin and end the events with. */
static void note_counts(response_buffer *to, const pipeline_call *c, const process_outcome *out)
{
    uint64_t prompt = out->n_prompt_tokens + (c->recalled ? c->recalled->n_prompt : 0);
    uint64_t generated = out->n_generated_tokens + (c->recalled ? c->recalled->n_generated : 0);
    Shoal__V1__Started started = SHOAL__V1__STARTED__INIT;
    Shoal__V1__Done done = SHOAL__V1__DONE__INIT;
    Shoal__V1__GenerateEvent first = SHOAL__V1__GENERATE_EVENT__INIT, last = SHOAL__V1__GENERATE_EVENT__INIT;
    started.n_prompt = done.n_prompt = (uint32_t)prompt;
    done.n_generated = (uint32_t)generated;
    first.started = &started;
    last.done = &done;
    response_buffer_note(to, c->base.o, &first.base);
    response_buffer_note(to, c->base.o, &last.base);
}

/* tool_choice wants a call, and this would be none. After a call was made for the message it has what it wants. */
static int refuse_uncalled(pipeline_call *c, const verify_answer *reply)
{
    c->failure_status = SHOAL_EUNSUPPORTED;
    c->failure = arena_printf(c->in.memory,
                              "'%s' calls no offered function for this message, as \"tool_choice\" demands; "
                              "with \"auto\" it would say: %.300s",
                              c->by->pipeline->name, reply->text);
    return c->failure ? SHOAL_EUNSUPPORTED : SHOAL_ENOMEM;
}

static int refuse_form(pipeline_call *c, const char *why)
{
    c->failure_status = SHOAL_EINVALID;
    c->failure = arena_printf(
        c->in.memory,
        "'%s' replies with {\"text\": \"...\", \"calls\": [{\"name\": \"...\", \"arguments\": {...}}]}, "
        "which the schema does not take (%s): give it a schema with \"text\" or \"calls\", or "
        "\"json_object\" (response_format), or ask a model",
        c->by->pipeline->name, why);
    return c->failure ? SHOAL_EUNSUPPORTED : SHOAL_ENOMEM;
}

/* SHOAL_EUNSUPPORTED: there is a failure. */
static int make_reply(pipeline_call *c, verify_answer *ret, const process_outcome *out)
{
    const process_input *in = &c->in;
    const char *why = NULL;
    json_t *answer = process_outcome_json(out);
    int rc = answer ? 0 : SHOAL_ENOMEM;
    *ret = (verify_answer){.text = ""};
    if (!rc && c->k.formed)
        rc = chat_reply_make_form(&ret->text, &why, c->by->table, &c->k, in->devices, in->n_devices, answer,
                                  in->memory);
    else if (!rc)
        rc = chat_reply_make(ret, c->by->table, &c->k, in->devices, in->n_devices, answer, in->memory);
    json_decref(answer);
    return why && !rc ? refuse_form(c, why) : rc;
}

static int make_events(pipeline_call *c, const process_outcome *out)
{
    verify_answer reply;
    verify_case plain = {.given = ""};
    response_buffer counts;
    const char *name = c->by->pipeline->name;
    int rc = make_reply(c, &reply, out);
    if (rc) return rc;
    if (c->k.forced && c->k.n_made == 0 && reply.n_calls == 0) return refuse_uncalled(c, &reply);
    response_buffer_init(&counts, name);
    note_counts(&counts, c, out);
    rc = verify_said_make(&c->tells, &counts, c->base.o, &plain, &reply, name);
    response_buffer_done(&counts);
    return rc;
}

/* ---- the run ------------------------------------------------------------------------------------- */

static void on_run_failed(pipeline_call *c, const process_outcome *out)
{
    char text[512];
    call_result r = *out->failure;
    snprintf(text, sizeof text, "stage '%.64s': %.400s", out->failed->name, r.message);
    r.message = text;
    pipeline_calls_finish(c, &r);
}

static void pipeline_calls_on_done(void *user, const process_outcome *out)
{
    pipeline_call *c = user;
    c->run = NULL;
    if (out->failed) {
        on_run_failed(c, out);
        return;
    }
    int rc = c->tells.model ? end_streamed(c, out) : make_events(c, out);
    if (rc) {
        pipeline_calls_fail(c, rc == SHOAL_EUNSUPPORTED ? c->failure_status : SHOAL_ENOMEM,
                            rc == SHOAL_EUNSUPPORTED ? c->failure : "out of memory");
        return;
    }
    c->ready = true;
    c->b->base.env->timer_start(c->timer, 0);
}

/* ---- a question of the reply before ---------------------------------------------------------------- */

/* The questions live in a session of this request alone. */
static int recall_turn(pipeline_call *c)
{
    process_input *in = &c->in;
    if (!c->turn.reply || c->failure) return 0;
    if (process_may_answer(&in->first_stages, in)) return SHOAL_ENOMEM;
    if (!in->first_stages) return 0;
    char *request = arena_strdup(in->memory, c->turn.request);
    in->session = arena_strdup(in->memory, "chat");
    c->recalled = calloc(1, sizeof *c->recalled);
    if (!request || !in->session || !c->recalled) return SHOAL_ENOMEM;
    c->recalled->answer = in->text;
    in->confirms = &c->recalled->questions;
    in->text = request;
    in->subject = c->turn.subject;
    return 0;
}

static void on_recalled(void *user, const process_outcome *out)
{
    pipeline_call *c = user;
    process_input *in = &c->in;
    api_error e;
    c->run = NULL;
    if (out->failed) {
        on_run_failed(c, out);
        return;
    }
    json_t *answer = process_outcome_json(out);
    const char *text = json_string_value(json_object_get(answer, "text"));
    bool same = text && trim_equal(text, c->turn.reply);
    json_decref(answer);
    c->recalled->n_prompt = out->n_prompt_tokens;
    c->recalled->n_generated = out->n_generated_tokens;
    in->text = c->recalled->answer;
    in->first_stages = 0;
    if (!answer || (out->asks && same && process_take_answer(in, &e))) {
        pipeline_calls_fail(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    if (!in->asked_by) in->subject = NULL; /* a yes means nothing else */
    in->confirms = NULL;                   /* what is asked from now on, the next request recalls */
    c->b->base.env->timer_start(c->timer, 0);
}

static void pipeline_calls_begin(pipeline_call *c)
{
    const call_order *o = c->base.o;
    call_context ctx = call_context_beside(o, "pipeline");
    if (c->failure) {
        pipeline_calls_fail(c, c->failure_status, c->failure);
        return;
    }
    c->in.executor = c->b->o.executor ? *c->b->o.executor : NULL;
    c->in.hosts = c->b->o.hosts ? *c->b->o.hosts : NULL;
    c->in.mcp = c->b->o.mcp ? *c->b->o.mcp : NULL;
    shoal_err err;
    process_done_fn done = c->in.confirms ? on_recalled : pipeline_calls_on_done;
    c->begun = !c->in.confirms;
    c->watch = (process_watch){.user = c, .stage = on_stage, .text = on_text};
    c->in.watch = c->begun && is_streamed(c) ? &c->watch : NULL;
    /* c is gone when the end comes inside this call. */
    if (process_run_start(&c->run, &c->in, c->b->base.inner, &ctx, done, c, &err))
        pipeline_calls_fail(c, SHOAL_ENOMEM, "out of memory");
}

static void pipeline_calls_on_timer(void *arg)
{
    pipeline_call *c = arg;
    if (c->begun)
        pipeline_calls_tell(c);
    else
        pipeline_calls_begin(c);
}

/* ---- the request --------------------------------------------------------------------------------- */

static bool is_too_long(const pipeline_call *c)
{
    return c->k.question && strlen(c->k.question) > pipeline_input_max(c->by->pipeline);
}

/* What a pipeline cannot do; NULL: it can do all. */
static char *refusal(pipeline_call *c, const Shoal__V1__GenerateRequest *q)
{
    const char *name = c->by->pipeline->name, *what = NULL;
    size_t max = pipeline_input_max(c->by->pipeline);
    c->failure_status = SHOAL_EINVALID;
    if (q->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES) what = "one of given texts";
    if (q->logprobs) what = "logprobs";
    if (q->n_beams > 1) what = "a beam search";
    if (q->n_ids) what = "token ids";
    if (*q->chat_template) what = "a reply by a chat template";
    if (what)
        return arena_printf(c->in.memory,
                            "'%s' is a pipeline and does not give %s: leave that out, or ask a model", name,
                            what);
    if (!c->k.question)
        return arena_printf(c->in.memory, "'%s' answers a message of a user, and there is none", name);
    if (!*c->k.question)
        return arena_printf(c->in.memory, "the last message of the user is empty: '%s' needs text to answer",
                            name);
    c->failure_status = SHOAL_ELIMIT;
    if (is_too_long(c))
        return arena_printf(c->in.memory, "the last message has %zu bytes, and '%s' takes %zu at most",
                            strlen(c->k.question), name, max);
    return NULL;
}

static bool needs_refusal(const pipeline_call *c, const Shoal__V1__GenerateRequest *q)
{
    bool chooses = q->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
    return chooses || q->logprobs || q->n_beams > 1 || q->n_ids || *q->chat_template || !c->k.question ||
           !*c->k.question || is_too_long(c);
}

/* What each message of the user means behind those before it, up to the last. */
static int take_turns(pipeline_call *c)
{
    process_input *in = &c->in;
    const chat_case *k = &c->k;
    for (size_t i = 0; i <= k->n_turns; i++) {
        const char *said = i < k->n_turns ? k->turns[i].request : k->question ? k->question : "";
        api_error e;
        in->subject = in->asked_by = NULL;
        in->text = arena_strdup(in->memory, said);
        if (!in->text || (c->turn.reply && process_take_turn(in, &c->turn, &e))) return SHOAL_ENOMEM;
        if (i < k->n_turns)
            c->turn = (process_turn){in->text, in->subject ? in->subject : "", k->turns[i].reply};
    }
    return 0;
}

/* Those that the request names, else the configuration's; with what its functions bring. */
static int take_devices(pipeline_call *c)
{
    process_input *in = &c->in;
    const function_table *t = c->by->table;
    const config_pipeline *p = c->by->pipeline;
    device_list *l = c->devices = arena_alloc(in->memory, sizeof *l);
    if (!l || function_table_devices(l, t, &c->k, in->memory)) return SHOAL_ENOMEM;
    pipeline_lend_units(p, l->at, l->n);
    function_table_lend_units(l->at, l->n, t, &c->k);
    for (size_t i = 0; !c->devices->n && i < p->n_devices && i < DEVICES_MAX; i++) l->at[i] = p->devices[i];
    if (!l->n) l->n = p->n_devices < DEVICES_MAX ? p->n_devices : DEVICES_MAX;
    if (function_table_add_offered(l, t, &c->k, in->memory) ||
        function_table_add_services(l->at, l->n, t, &c->k, in->memory))
        return SHOAL_ENOMEM;
    in->devices = l->at;
    in->n_devices = l->n;
    return 0;
}

static int take_request(pipeline_call *c, const Shoal__V1__GenerateRequest *q)
{
    process_input *in = &c->in;
    const config_pipeline *p = c->by->pipeline;
    if (chat_case_read(&c->k, q, in->memory)) return SHOAL_ENOMEM;
    in->pipeline = p;
    if (take_devices(c)) return SHOAL_ENOMEM;
    in->context =
        pipeline_uses(p, "context") ? arena_strdup(in->memory, c->k.system) : arena_strdup(in->memory, "");
    in->time = c->b->base.env;
    if (!in->context || take_turns(c)) return SHOAL_ENOMEM;
    if (needs_refusal(c, q) && !(c->failure = refusal(c, q))) return SHOAL_ENOMEM;
    return recall_turn(c);
}

static pipeline_call *pipeline_call_new(pipeline_calls *b, const chat_pipeline *by, const call_order *o)
{
    pipeline_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->b = b;
    c->by = by;
    c->in.memory = arena_new(0);
    c->timer = b->base.env->timer_new(b->base.env->user, pipeline_calls_on_timer, c);
    Shoal__V1__GenerateRequest *q = (Shoal__V1__GenerateRequest *)call_order_request(o);
    bool read = q && c->in.memory && c->timer && take_request(c, q) == 0;
    if (q) response_buffer_free(&q->base);
    if (read) return c;
    b->base.env->timer_free(c->timer);
    free(c->recalled);
    chat_case_done(&c->k);
    process_input_done(&c->in);
    free(c);
    return NULL;
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static const chat_pipeline *pipeline_calls_of(const pipeline_calls *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(b->all[i].pipeline->name, name) == 0) return &b->all[i];
    return NULL;
}

static model_call *pipeline_calls_start(calls *base, call_order *o, const call_terms *t,
                                        const call_events *ev)
{
    pipeline_calls *b = (pipeline_calls *)base;
    const chat_pipeline *by = o->task == CALL_GENERATE ? pipeline_calls_of(b, o->model) : NULL;
    if (!by) return calls_start(b->base.inner, o, t, ev);
    pipeline_call *c = pipeline_call_new(b, by, o);
    if (!c) return NULL;
    decorator_call_init(&c->base, base, o, t, ev);
    b->base.env->timer_start(c->timer, 0);
    return &c->base.base;
}

static call_place pipeline_calls_where(const model_call *call)
{
    const pipeline_call *c = (const pipeline_call *)call;
    return (call_place){.model = c->by->pipeline->name};
}

static void pipeline_calls_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    pipeline_calls *b = (pipeline_calls *)base;
    if (o->task == CALL_GENERATE && pipeline_calls_of(b, o->model))
        *ret = (call_estimate){.n_ready = 1};
    else
        calls_estimate(b->base.inner, o, t, ret);
}

static const Shoal__V1__ModelInfo *pipeline_calls_info(calls *base, const char *model, bool *ret_known)
{
    pipeline_calls *b = (pipeline_calls *)base;
    const chat_pipeline *by = pipeline_calls_of(b, model);
    if (!by) return calls_info(b->base.inner, model, ret_known);
    if (ret_known) *ret_known = true;
    return &by->info;
}

static void pipeline_calls_close(pipeline_calls *b)
{
    for (size_t i = 0; i < b->n; i++) function_table_free(b->all[i].table);
    free(b->all);
}

static void pipeline_calls_free(calls *base)
{
    pipeline_calls *b = (pipeline_calls *)base;
    decorator_calls_done(&b->base);
    pipeline_calls_close(b);
    free(b);
}

static const calls_ops OPS = {.start = pipeline_calls_start,
                              .pause = pipeline_calls_pause,
                              .cancel = pipeline_calls_cancel,
                              .where = pipeline_calls_where,
                              .estimate = pipeline_calls_estimate,
                              .info = pipeline_calls_info,
                              .free = pipeline_calls_free};

/* ---- which pipelines ----------------------------------------------------------------------------- */

static bool is_chat_model(const gateway_config *c, const config_pipeline *p)
{
    pipeline_facts nothing = {.input = "?"};
    size_t stage;
    bool speaks = false;
    for (unsigned i = 0; i < p->n_stages; i++) speaks |= (p->stages[i].kind->gives & GIVES_TEXT) != 0;
    bool taken =
        config_find_model(c, p->name) || config_ensemble_find(c, p->name) || route_find(&c->book, p->name);
    return speaks && !taken && pipeline_lacks_surely(p, &nothing, &stage) == N_MEDIA;
}

const config_pipeline *pipeline_calls_find(const gateway_config *c, const char *name)
{
    const config_pipeline *p = pipeline_find(c->pipelines, c->n_pipelines, name);
    return p && is_chat_model(c, p) ? p : NULL;
}

static int open_one(pipeline_calls *b, const gateway_config *c, size_t i, shoal_err *err)
{
    const config_pipeline *p = &c->pipelines[i];
    chat_pipeline *to = &b->all[b->n];
    shoal_err why;
    if (!is_chat_model(c, p)) return 0;
    int rc = function_table_load(&to->table, p->functions, &why);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc) return config_fail(c, err, "pipelines[%zu].functions: %s", i, why.message);
    b->n++;
    to->pipeline = p;
    to->info = (Shoal__V1__ModelInfo)SHOAL__V1__MODEL_INFO__INIT;
    to->info.name = (char *)(uintptr_t)p->name;
    to->info.task = (char *)(uintptr_t) "generate";
    to->info.has_chat_template = true;
    return 0;
}

static int open_all(pipeline_calls *b, const gateway_config *c, shoal_err *err)
{
    b->all = calloc(c->n_pipelines + 1, sizeof *b->all);
    int rc = b->all ? 0 : err_nomem(err);
    for (size_t i = 0; !rc && i < c->n_pipelines; i++) rc = open_one(b, c, i, err);
    return rc;
}

int pipeline_calls_new(calls **ret, const env *env_, calls *inner, const pipeline_options *opts,
                       shoal_err *err)
{
    pipeline_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    b->o = *opts;
    int rc = open_all(b, opts->config, err);
    if (rc) {
        pipeline_calls_close(b);
        free(b);
        return rc;
    }
    decorator_calls_init(&b->base, &OPS, env_, inner);
    *ret = &b->base.base;
    return 0;
}

int pipeline_calls_check(const gateway_config *c, shoal_err *err)
{
    pipeline_calls b = {0};
    int rc = open_all(&b, c, err);
    pipeline_calls_close(&b);
    return rc;
}
