/* process.c: a run of a pipeline: starts each stage when it may, and makes the answer of what they found. */
#include "gateway/process_run.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

#define DEFAULT_MAX_TOKENS 128

static const char *text_of(const buf *b)
{
    return b->data && b->len ? b->data : "";
}

static void stage_done(stage_run *s)
{
    buf_done(&s->why);
    buf_done(&s->label);
    buf_done(&s->text);
    for (size_t i = 0; i < s->n_tools; i++) {
        buf_done(&s->tools[i].name);
        buf_done(&s->tools[i].arguments);
    }
    json_decref(s->slots);
    json_decref(s->trace);
}

static void run_free(process_run *r)
{
    for (size_t i = 0; i < r->n_stages; i++) stage_done(&r->stages[i]);
    arena_free(r->memory);
    free(r->facts);
    free(r);
}

static void cancel_calls(process_run *r)
{
    for (size_t i = 0; i < r->n_stages; i++) {
        if (!r->stages[i].call) continue;
        r->calls->cancel(r->stages[i].call);
        r->stages[i].call = NULL;
    }
}

static stage_fact *fact_of(stage_run *s)
{
    return &s->run->facts[s - s->run->stages];
}

static pipeline_facts facts_of(const process_run *r)
{
    return (pipeline_facts){.input = r->in->text,
                            .devices = r->in->devices,
                            .n_devices = r->in->n_devices,
                            .context = r->in->context,
                            .stages = r->facts};
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* v NULL: it could not be made. */
static void put(process_run *r, json_t *o, const char *key, json_t *v)
{
    if (json_object_set_new(o, key, v) != 0) r->lacks_memory = true;
}

static void add(process_run *r, json_t *array, json_t *v)
{
    if (json_array_append_new(array, v) != 0) r->lacks_memory = true;
}

/* A score or a time to six decimals: more would be noise. */
static json_t *rounded(double v)
{
    return json_real(round(v * 1e6) / 1e6);
}

static json_t *trace_new(const stage_run *s, bool ran)
{
    json_t *t = json_object();
    put(s->run, t, "stage", json_string(s->stage->name));
    put(s->run, t, "kind", json_string(stage_kind_name(s->stage->kind)));
    if (s->stage->model) put(s->run, t, "model", json_string(s->stage->model));
    put(s->run, t, "ran", json_boolean(ran));
    put(s->run, t, "why", json_string(text_of(&s->why)));
    return t;
}

static void trace_result(stage_run *s, const backend_result *r)
{
    const stage_fact *f = fact_of(s);
    json_t *t = s->trace = trace_new(s, true);
    put(s->run, t, "ms", json_real(round(r->ms * 1e3) / 1e3));
    put(s->run, t, "replica", json_string(r->replica_id));
    put(s->run, t, "version", json_string(r->version));
    put(s->run, t, "quantisation", json_string(r->quantisation));
    if (f->state == STAGE_FAILED) {
        put(s->run, t, "error", json_string(r->message));
        return;
    }
    if (s->n_prompt) put(s->run, t, "prompt_tokens", json_integer(s->n_prompt));
    if (s->stage->kind == STAGE_CLASSIFY) {
        put(s->run, t, "label", json_string(f->label));
        put(s->run, t, "score", rounded(f->score));
    } else if (s->stage->kind == STAGE_GENERATE) {
        put(s->run, t, "completion_tokens", json_integer(s->n_generated));
        put(s->run, t, "mean_prob", rounded(f->mean_prob));
        put(s->run, t, "finish_reason", json_string(s->finish));
    }
}

static void trace_rule(stage_run *s)
{
    json_t *t = s->trace = trace_new(s, true);
    put(s->run, t, "verdict", json_string(fact_of(s)->label));
}

static json_t *call_json(process_run *r, const char *name, const char *arguments)
{
    json_t *o = json_object(), *args = NULL;
    int rc = json_parse(&args, arguments, strlen(arguments), "arguments", NULL);
    if (rc == SHOAL_ENOMEM) r->lacks_memory = true;
    if (rc != 0) args = json_string(arguments); /* not JSON: the caller sees what the model said */
    put(r, o, "name", json_string(name));
    put(r, o, "arguments", args);
    return o;
}

/* The first stage of this kind that is done. */
static stage_run *result_of(process_run *r, stage_kind kind)
{
    for (size_t i = 0; i < r->n_stages; i++)
        if (r->stages[i].stage->kind == kind && r->facts[i].state == STAGE_DONE) return &r->stages[i];
    return NULL;
}

/* Whose text and calls are the answer: the last stage that has something to say. */
static stage_run *speaker_of(process_run *r)
{
    for (size_t i = r->n_stages; i-- > 0;) {
        stage_kind k = r->stages[i].stage->kind;
        bool speaks = k == STAGE_GENERATE || k == STAGE_CHECK ||
                      ((k == STAGE_GROUND || k == STAGE_LINE) && *r->facts[i].text);
        if (speaks && r->facts[i].state == STAGE_DONE) return &r->stages[i];
    }
    return NULL;
}

/* What a stage calls, as a JSON array; of a rule those calls alone that it stands for. */
static json_t *calls_json(process_run *r, const stage_run *s)
{
    json_t *all = json_array();
    if (!s) return all;
    for (size_t i = 0; i < s->n_tools; i++)
        add(r, all, call_json(r, text_of(&s->tools[i].name), text_of(&s->tools[i].arguments)));
    for (size_t i = 0; i < s->n_calls; i++)
        add(r, all, call_json(r, s->calls[i].name, s->calls[i].arguments));
    return all;
}

static json_t *usage_json(process_run *r, process_outcome *o)
{
    for (size_t i = 0; i < r->n_stages; i++) {
        o->n_prompt_tokens += r->stages[i].n_prompt;
        o->n_generated_tokens += r->stages[i].n_generated;
    }
    json_t *u = json_object();
    put(r, u, "prompt_tokens", json_integer((json_int_t)o->n_prompt_tokens));
    put(r, u, "completion_tokens", json_integer((json_int_t)o->n_generated_tokens));
    put(r, u, "total_tokens", json_integer((json_int_t)(o->n_prompt_tokens + o->n_generated_tokens)));
    return u;
}

static json_t *intent_json(process_run *r, stage_run *s)
{
    if (!s) return json_null();
    json_t *o = json_object();
    put(r, o, "label", json_string(fact_of(s)->label));
    put(r, o, "score", rounded(fact_of(s)->score));
    return o;
}

static json_t *answer_json(process_run *r, process_outcome *o)
{
    stage_run *intent = result_of(r, STAGE_CLASSIFY), *slots = result_of(r, STAGE_TAG);
    stage_run *reply = speaker_of(r);
    json_t *a = json_object(), *trace = json_array(), *calls = calls_json(r, reply);
    put(r, a, "object", json_string("shoal.process"));
    put(r, a, "pipeline", json_string(r->in->pipeline->name));
    put(r, a, "text", reply ? json_string(process_text(reply)) : json_null());
    put(r, a, "intent", intent_json(r, intent));
    put(r, a, "slots", slots ? json_incref(slots->slots) : json_array());
    put(r, a, "tool_call", json_array_size(calls) ? json_incref(json_array_get(calls, 0)) : json_null());
    if (json_array_size(calls) > 1) put(r, a, "tool_calls", json_incref(calls));
    json_decref(calls);
    for (size_t i = 0; i < r->n_stages; i++) add(r, trace, json_incref(r->stages[i].trace));
    put(r, a, "trace", trace);
    put(r, a, "usage", usage_json(r, o));
    return a;
}

static backend_result out_of_memory(const config_stage *s)
{
    return (backend_result){.status = SHOAL_ENOMEM,
                            .message = "out of memory",
                            .model = s->model ? s->model : "",
                            .replica_id = "",
                            .version = "",
                            .quantisation = "",
                            .digest = ""};
}

static void finish(process_run *r, const config_stage *failed, const backend_result *failure)
{
    process_outcome o = {.failed = failed, .failure = failure};
    cancel_calls(r);
    for (size_t i = 0; i < r->n_stages; i++) o.partial = o.partial || r->facts[i].state == STAGE_FAILED;
    if (!failed) o.answer = answer_json(r, &o);
    backend_result none = out_of_memory(r->stages[0].stage);
    if (!failed && r->lacks_memory) {
        o.failed = r->stages[0].stage;
        o.failure = &none;
    }
    r->done(r->user, &o);
    json_decref(o.answer);
    run_free(r);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static void step(process_run *r);

static bool result_is_cut(const stage_run *s)
{
    bool cut = s->label.failed || s->text.failed;
    for (size_t i = 0; i < s->n_tools; i++) cut |= s->tools[i].name.failed || s->tools[i].arguments.failed;
    return cut;
}

/* The call of s has ended: note what came, and go on. The run may be dead afterwards. */
static void settle(stage_run *s, const backend_result *r)
{
    process_run *run = s->run;
    stage_fact *f = fact_of(s);
    backend_result cut = *r;
    if (r->status == 0 && result_is_cut(s)) {
        cut.status = SHOAL_ENOMEM;
        cut.message = "out of memory";
        r = &cut;
    }
    s->call = NULL;
    f->state = r->status ? STAGE_FAILED : STAGE_DONE;
    if (f->state == STAGE_DONE) {
        f->label = text_of(&s->label);
        f->text = text_of(&s->text);
    }
    trace_result(s, r);
    /* Optional is what a model cannot do, not what this process lacks the memory for. */
    if (r->status && (!s->stage->optional || r->status == SHOAL_ENOMEM))
        finish(run, s->stage, r);
    else
        step(run);
}

static void settle_broken(stage_run *s, const backend_result *r, int status, const char *message)
{
    backend_result broken = *r;
    broken.status = status;
    broken.message = message;
    settle(s, &broken);
}

static void on_classified(void *user, const backend_result *r, const Shoal__V1__ClassifyReply *reply)
{
    stage_run *s = user;
    if (r->status) {
        settle(s, r);
        return;
    }
    if (!reply || reply->n_results != 1 || reply->results[0]->n_labels == 0) {
        settle_broken(s, r, SHOAL_EPROTOCOL, "the worker sent no label");
        return;
    }
    const Shoal__V1__LabelScore *best = reply->results[0]->labels[0];
    buf_puts(&s->label, best->label);
    fact_of(s)->score = best->score;
    s->n_prompt = reply->results[0]->n_tokens;
    settle(s, r);
}

static json_t *span_json(process_run *r, const Shoal__V1__Span *sp)
{
    json_t *o = json_object();
    put(r, o, "start", json_integer(sp->start));
    put(r, o, "end", json_integer(sp->end));
    put(r, o, "label", json_string(sp->label));
    put(r, o, "text", json_string(sp->text));
    put(r, o, "score", rounded(sp->score));
    return o;
}

static void on_tagged(void *user, const backend_result *r, const Shoal__V1__TagReply *reply)
{
    stage_run *s = user;
    if (r->status) {
        settle(s, r);
        return;
    }
    s->slots = json_array();
    if (!reply || reply->n_results != 1 || !s->slots) {
        settle_broken(s, r, SHOAL_EPROTOCOL, "the worker sent no spans");
        return;
    }
    const Shoal__V1__Tagging *t = reply->results[0];
    for (size_t i = 0; i < t->n_spans; i++) add(s->run, s->slots, span_json(s->run, t->spans[i]));
    s->n_prompt = t->n_tokens;
    settle(s, r);
}

static void on_tool_delta(stage_run *s, const Shoal__V1__ToolCallDelta *d)
{
    if (d->index >= TOOL_CALLS_MAX) return;
    if (d->index >= s->n_tools) s->n_tools = d->index + 1;
    if (d->name) buf_puts(&s->tools[d->index].name, d->name);
    if (d->arguments) buf_puts(&s->tools[d->index].arguments, d->arguments);
}

static void on_generated(void *user, const Shoal__V1__GenerateEvent *ev)
{
    stage_run *s = user;
    if (ev->delta) {
        if (ev->delta->text) buf_puts(&s->text, ev->delta->text);
        for (size_t i = 0; i < ev->delta->n_tool_calls; i++) on_tool_delta(s, ev->delta->tool_calls[i]);
    }
    if (!ev->done) return;
    s->n_prompt = ev->done->n_prompt;
    s->n_generated = ev->done->n_generated;
    fact_of(s)->mean_prob = ev->done->mean_prob;
    strncpy(s->finish, ev->done->finish, sizeof s->finish - 1);
}

static void on_generate_end(void *user, const backend_result *r)
{
    stage_run *s = user;
    while (s->text.len && isspace((unsigned char)s->text.data[s->text.len - 1]))
        s->text.data[--s->text.len] = 0;
    settle(s, r);
}

static int put_message(const stage_run *s, const char *role, const char *template, buf *out)
{
    process_run *r = s->run;
    pipeline_facts facts = facts_of(r);
    config_device near[PIPELINE_NEAR_DEVICES];
    if (process_near(s, near, &facts.n_devices)) facts.devices = near;
    buf text = {0};
    int rc = pipeline_expand(r->in->pipeline, template, &facts, &text);
    if (!rc) {
        out->failed |= text.failed;
        buf_printf(out, "%s{\"role\":\"%s\",\"content\":", out->len > 1 ? "," : "", role);
        json_put_string(out, text_of(&text), text.len);
        buf_putc(out, '}');
    }
    buf_done(&text);
    return rc;
}

static int start_generate(stage_run *s, const backend_context *ctx)
{
    const config_stage *st = s->stage;
    process_run *r = s->run;
    buf messages = {0};
    buf_putc(&messages, '[');
    int rc = st->system ? put_message(s, "system", st->system, &messages) : 0;
    if (!rc) rc = put_message(s, "user", st->prompt ? st->prompt : "{input}", &messages);
    buf_putc(&messages, ']');
    size_t n_choices = 0;
    char **choices = NULL;
    if (!rc) rc = process_choices(s, &choices, &n_choices);
    if (!rc && !messages.failed) {
        Shoal__V1__Sampling sampling = SHOAL__V1__SAMPLING__INIT;
        sampling.temperature = (float)st->temperature;
        sampling.top_p = st->top_p > 0 ? (float)st->top_p : 1;
        sampling.repetition_penalty = 1;
        sampling.seed = st->seed;
        Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
        req.messages_json = messages.data;
        req.max_tokens = st->max_tokens ? st->max_tokens : DEFAULT_MAX_TOKENS;
        req.sampling = &sampling;
        req.parse_tool_calls = true;
        if (n_choices) req.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
        req.choices = choices;
        req.n_choices = n_choices;
        backend_generate_events ev = {.user = s, .event = on_generated, .end = on_generate_end};
        s->call = r->calls->generate(r->calls->b, st->model, &req, ctx, &ev);
    }
    buf_done(&messages);
    return s->call ? 0 : SHOAL_ENOMEM;
}

static int start_encoder(stage_run *s, const backend_context *ctx)
{
    const process_calls *c = s->run->calls;
    Shoal__V1__TextInput input = SHOAL__V1__TEXT_INPUT__INIT, *inputs[] = {&input};
    input.text = s->run->in->text;
    if (s->stage->kind == STAGE_CLASSIFY) {
        Shoal__V1__ClassifyRequest req = SHOAL__V1__CLASSIFY_REQUEST__INIT;
        req.n_inputs = 1;
        req.inputs = inputs;
        s->call = c->classify(c->b, s->stage->model, &req, ctx, on_classified, s);
    } else {
        Shoal__V1__TagRequest req = SHOAL__V1__TAG_REQUEST__INIT;
        req.n_inputs = 1;
        req.inputs = inputs;
        s->call = c->tag(c->b, s->stage->model, &req, ctx, on_tagged, s);
    }
    return s->call ? 0 : SHOAL_ENOMEM;
}

/* A rule needs no model: it is done at once. */
static int run_rule(stage_run *s)
{
    int rc = process_rule(s);
    stage_fact *f = fact_of(s);
    f->state = rc ? STAGE_FAILED : STAGE_DONE;
    if (!rc) trace_rule(s);
    return rc;
}

static int start_stage(stage_run *s)
{
    const process_run *r = s->run;
    if (!s->stage->model) return run_rule(s);
    backend_context ctx = {
        .request_id = r->request_id, .deadline_ns = r->deadline_ns, .why = text_of(&s->why)};
    if (s->stage->timeout_ms) {
        uint64_t own = clock_ns() + (uint64_t)s->stage->timeout_ms * 1000000u;
        if (!ctx.deadline_ns || own < ctx.deadline_ns) ctx.deadline_ns = own;
    }
    fact_of(s)->state = STAGE_RUNNING;
    return s->stage->kind == STAGE_GENERATE ? start_generate(s, &ctx) : start_encoder(s, &ctx);
}

/* Starts or skips what may; one pass in declared order is enough, since stages name earlier ones only.
 * With nothing left in flight the run is over. */
static void step(process_run *r)
{
    pipeline_facts facts = facts_of(r);
    bool waiting = false;
    for (size_t i = 0; i < r->n_stages; i++) {
        stage_run *s = &r->stages[i];
        stage_fact *f = &r->facts[i];
        if (f->state == STAGE_PENDING) {
            stage_verdict v = pipeline_judge(r->in->pipeline, i, &facts, &s->why);
            if (v == STAGE_SKIP && !s->why.failed) {
                f->state = STAGE_SKIPPED;
                s->trace = trace_new(s, false);
            } else if (s->why.failed || (v == STAGE_RUN && start_stage(s))) {
                backend_result none = out_of_memory(s->stage);
                finish(r, s->stage, &none);
                return;
            }
        }
        waiting = waiting || f->state == STAGE_RUNNING || f->state == STAGE_PENDING;
    }
    if (!waiting) finish(r, NULL, NULL);
}

int process_run_start(process_run **ret, const process_input *in, const process_calls *calls,
                      const backend_context *ctx, process_done_fn done, void *user, shoal_err *err)
{
    size_t n = in->pipeline->n_stages;
    process_run *r = calloc(1, sizeof *r + n * sizeof *r->stages);
    stage_fact *facts = calloc(n, sizeof *facts);
    arena *memory = arena_new(0);
    if (!r || !facts || !memory) {
        free(r);
        free(facts);
        arena_free(memory);
        return err_nomem(err);
    }
    *r = (process_run){.in = in,
                       .calls = calls,
                       .deadline_ns = ctx->deadline_ns,
                       .done = done,
                       .user = user,
                       .facts = facts,
                       .memory = memory,
                       .n_stages = n};
    strncpy(r->request_id, ctx->request_id ? ctx->request_id : "", sizeof r->request_id - 1);
    for (size_t i = 0; i < n; i++) {
        r->stages[i].run = r;
        r->stages[i].stage = &in->pipeline->stages[i];
        r->facts[i].label = r->facts[i].text = "";
    }
    *ret = r;
    step(r);
    return 0;
}

void process_run_cancel(process_run *r)
{
    if (!r) return;
    cancel_calls(r);
    run_free(r);
}
