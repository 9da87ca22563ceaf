/* process.c: a run of a pipeline: starts each stage when it may, and notes how it ended. */
#include "process/process_each.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/observer.h"
#include "pipeline/pipeline_template.h"

void process_stage_done(stage_run *s)
{
    process_each_free(s->each);
    buf_done(&s->why);
    buf_done(&s->label);
    buf_done(&s->text);
    for (size_t i = 0; i < s->n_tools; i++) {
        buf_done(&s->tools[i].name);
        buf_done(&s->tools[i].arguments);
    }
    json_decref(s->slots);
    json_decref(s->results);
    json_decref(s->details);
    json_decref(s->value);
}

static void run_free(process_run *r)
{
    for (size_t i = 0; i < r->n_stages; i++) process_stage_done(&r->stages[i]);
    buf_done(&r->out);
    arena_free(r->memory);
    free(r->facts);
    free(r);
}

static void cancel_calls(process_run *r)
{
    for (size_t i = 0; i < r->n_stages; i++) {
        calls_cancel(r->stages[i].call);
        find_cancel(r->stages[i].find);
        hosts_cancel(r->stages[i].http);
        mcp_cancel(r->stages[i].mcp);
        r->stages[i].call = NULL;
        r->stages[i].find = NULL;
        r->stages[i].http = NULL;
        r->stages[i].mcp = NULL;
        if (r->stages[i].tools_of)
            process_runner(&r->stages[i])->done(&r->stages[i]); /* while the pipeline is there */
        process_each_cancel(r->stages[i].each);
        process_tell_span(&r->stages[i], NULL);
    }
}

stage_fact *process_fact(stage_run *s)
{
    return s->fact;
}

/* The input is the request's own. */
static pipeline_facts facts_of(const process_run *r)
{
    pipeline_facts f = {.input = r->in->text,
                        .devices = r->in->devices,
                        .n_devices = r->in->n_devices,
                        .context = r->in->context,
                        .stages = r->facts};
    f.brings = *f.input ? 1u << MEDIUM_TEXT : 0;
    for (int m = 0; m < N_MEDIA; m++)
        if (r->in->files[m].data) f.brings |= 1u << m;
    return f;
}

pipeline_facts process_facts(const stage_run *s)
{
    pipeline_facts f = facts_of(s->run);
    f.input = pipeline_input(s->run->in->pipeline, s->index, &f);
    if (s->whole) {
        f.as = pipeline_each(s->stage)->as;
        f.item = s->item;
        f.i_item = s->i_item;
    }
    return f;
}

ProtobufCBinaryData process_file_of(const stage_run *s)
{
    const process_file *f = &s->run->in->files[stage_kind_medium(s->stage->kind)];
    return (ProtobufCBinaryData){.data = (uint8_t *)f->data, .len = f->len};
}

char *process_adapter(const stage_run *s)
{
    return s->stage->adapter ? (char *)s->stage->adapter : "";
}

int process_fill(const stage_run *s, const char *template, const pipeline_facts *facts, buf *ret)
{
    pipeline_facts own = *facts;
    if (s->whole && !template) own.as = "item";
    if (!template) template = s->whole ? "{item}" : "{input}";
    int rc = pipeline_expand(s->run->in->pipeline, template, &own, ret);
    return rc || buf_reserve(ret, 0) ? SHOAL_ENOMEM : 0; /* an empty one is a text, too */
}

int process_read(const stage_run *s, buf *ret)
{
    pipeline_facts facts = process_facts(s);
    return process_fill(s, s->stage->input, &facts, ret);
}

call_result process_alone(const config_stage *s, int status, const char *message)
{
    return (call_result){.status = status,
                         .message = message,
                         .model = s->model ? s->model : "",
                         .replica_id = "",
                         .version = "",
                         .quantisation = "",
                         .digest = "",
                         .identity = ""};
}

const char *process_read_kept(const stage_run *s)
{
    buf b = {0};
    const char *text = process_read(s, &b) ? NULL : arena_strndup(s->run->memory, b.data, b.len);
    buf_done(&b);
    return text;
}

static void process_finish(process_run *r, const config_stage *failed, const call_result *failure)
{
    process_outcome o = {.failed = failed, .failure = failure};
    if (*r->degraded.wanted) o.degraded = &r->degraded;
    cancel_calls(r);
    for (size_t i = 0; i < r->n_stages; i++) r->partial |= r->facts[i].state == STAGE_FAILED;
    o.partial = r->partial;
    o.asks = r->asks;
    if (!failed) process_tell_rest(r);
    if (!failed) process_answer(r, &o);
    call_result none = process_alone(r->stages[0].stage, SHOAL_ENOMEM, "out of memory");
    if (!failed && r->lacks_memory) {
        o.failed = r->stages[0].stage;
        o.failure = &none;
    }
    r->done(r->user, &o);
    run_free(r);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static void process_step(process_run *r);

static bool result_is_cut(const stage_run *s)
{
    bool cut = s->label.failed || s->text.failed;
    for (size_t i = 0; i < s->n_tools; i++) cut |= s->tools[i].name.failed || s->tools[i].arguments.failed;
    return cut;
}

/* The stage is done: what it came to is there for those that read it as JSON. */
static void take_value(stage_run *s)
{
    if (!s->stage->is_typed && !process_is_result(s->stage)) return;
    if (!s->each) s->value = process_value(s);
    process_fact(s)->value = s->value;
    if (!s->value) s->run->lacks_memory = true;
}

static void process_go_on(stage_run *s)
{
    process_tell_stage(s);
    process_step(s->run);
}

void process_settle(stage_run *s, const call_result *r)
{
    process_run *run = s->run;
    stage_fact *f = process_fact(s);
    call_result cut = *r;
    if (r->status == 0 && result_is_cut(s)) {
        cut.status = SHOAL_ENOMEM;
        cut.message = "out of memory";
        r = &cut;
    }
    s->call = NULL;
    s->find = NULL;
    s->http = NULL;
    s->mcp = NULL;
    f->state = r->status ? STAGE_FAILED : STAGE_DONE;
    if (f->state == STAGE_DONE) {
        f->label = buf_text(&s->label);
        f->text = buf_text(&s->text);
    }
    run->partial |= r->cut; /* by the time that it took, which is another one next time */
    if (r->wanted && r->status == 0 && !*run->degraded.wanted)
        degraded_set(&run->degraded, r->wanted, r->model, r->why);
    if (s->whole) {
        process_each_settle(s, r);
        return;
    }
    if (f->state == STAGE_DONE) take_value(s);
    process_trace_call(s, r);
    process_tell_span(s, r);
    /* Optional is what a model cannot do, not what this process lacks the memory for. */
    if (r->status && (!s->stage->optional || r->status == SHOAL_ENOMEM))
        process_finish(run, s->stage, r);
    else
        process_go_on(s);
}

void process_settle_broken(stage_run *s, const call_result *r, const char *message)
{
    call_result broken = *r;
    broken.status = SHOAL_EPROTOCOL;
    broken.message = message;
    process_settle(s, &broken);
}

void process_note_timing(stage_run *s, const Shoal__V1__Timing *t)
{
    if (!t) return;
    s->times = (stage_times){
        .known = true, .queue_ms = t->queue_ms, .prefill_ms = t->compute_ms, .cpu_ms = t->cpu_ms};
}

static bool fail_without_memory(stage_run *s)
{
    call_result none = process_alone(s->stage, SHOAL_ENOMEM, "out of memory");
    process_finish(s->run, s->stage, &none);
    return false;
}

const stage_runner *process_runner(const stage_run *s)
{
    const stage_row *row = stage_registry_row(s->run->in->pipeline->kinds, s->stage->kind);
    assert(row && row->runner);
    return row->runner;
}

int process_start_kind(stage_run *s, const call_context *ctx)
{
    process_fact(s)->state = STAGE_RUNNING;
    return process_runner(s)->start(s, ctx);
}

stage_run *process_stage(const stage_run *s, const char *name)
{
    return &s->run->stages[pipeline_stage_index(s->run->in->pipeline, name, strlen(name))];
}

bool process_is_held_back(const stage_run *s)
{
    return pipeline_holds_back(s->stage, s->fact);
}

const char *process_text(const stage_run *s)
{
    const stage_runner *r = process_runner(s);
    return r->text ? r->text(s) : s->fact->text;
}

bool process_is_asking(const stage_run *s)
{
    return s->call || s->find || s->http || s->mcp;
}

/* The stage could not even begin. False: the run is over. */
static bool fail_start(stage_run *s, int status, const char *message)
{
    call_result r = process_alone(s->stage, status, message);
    if (status == SHOAL_ENOMEM) return fail_without_memory(s);
    process_fact(s)->state = STAGE_FAILED;
    process_trace_call(s, &r);
    process_tell_span(s, &r);
    if (s->stage->optional) {
        process_tell_stage(s);
        return true;
    }
    process_finish(s->run, s->stage, &r);
    return false;
}

/* False: the run is over. */
static bool start_stage(stage_run *s)
{
    call_context ctx = s->run->ctx;
    ctx.why = buf_text(&s->why);
    if (s->stage->timeout_ms) {
        uint64_t own = env_now_ns(s->run->in->time) + (uint64_t)s->stage->timeout_ms * 1000000u;
        if (!ctx.deadline_ns || own < ctx.deadline_ns) ctx.deadline_ns = own;
    }
    process_fact(s)->state = STAGE_RUNNING;
    s->start_ns = env_now_ns(s->run->in->time);
    s->span = call_spans_begin(&ctx.spans, &s->run->ctx.spans);
    bool each = pipeline_each(s->stage);
    int rc = each ? process_each_start(s, &ctx, &s->err) : process_start_kind(s, &ctx);
    if (rc) return fail_start(s, rc, s->err.message);
    if (process_is_asking(s) || (each && !process_each_is_over(s))) return true;
    process_fact(s)->state = STAGE_DONE;
    if (each) process_fact(s)->text = buf_text(&s->text);
    take_value(s);
    process_trace_rule(s);
    call_result well = process_alone(s->stage, 0, "");
    process_tell_span(s, &well);
    process_tell_stage(s);
    return true;
}

/* The request does not bring what a stage reads that has to run now. False: the run is over. */
static bool fail_without(stage_run *s, medium m)
{
    char message[160];
    snprintf(message, sizeof message, "the request brings no %s for it: %s", medium_noun(m), medium_how(m));
    return fail_start(s, SHOAL_EINVALID, message);
}

/* A run that only asks a question once more acts nowhere. */
static bool is_left_out(stage_run *s)
{
    size_t first = s->run->in->first_stages;
    bool out = first && (s->index >= first || pipeline_stage_acts(s->stage));
    if (out) buf_puts(&s->why, "a question is asked once more");
    return out;
}

/* Starts or skips a stage that waited, if it may. False: the run is over. */
static bool try_stage(stage_run *s)
{
    process_run *r = s->run;
    size_t i = (size_t)(s - r->stages);
    pipeline_facts facts = facts_of(r);
    stage_verdict v = is_left_out(s) ? STAGE_SKIP : pipeline_judge(r->in->pipeline, i, &facts, &s->why);
    if (s->why.failed) return fail_without_memory(s);
    if (v == STAGE_SKIP) {
        r->facts[i].state = STAGE_SKIPPED;
        process_trace_skipped(s);
        process_tell_stage(s);
    }
    if (v != STAGE_RUN) return true;
    medium lacking = pipeline_lacks(r->in->pipeline, i, &facts);
    if (lacking != N_MEDIA) return fail_without(s, lacking);
    return start_stage(s);
}

/* Starts or skips what may; one pass in declared order is enough, since stages name earlier ones only.
 * With nothing left in flight the run is over. */
static void process_step(process_run *r)
{
    bool waiting = false;
    for (size_t i = 0; i < r->n_stages; i++) {
        if (r->facts[i].state == STAGE_PENDING && !try_stage(&r->stages[i])) return;
        waiting = waiting || r->facts[i].state == STAGE_RUNNING || r->facts[i].state == STAGE_PENDING;
    }
    for (size_t i = 0; waiting && i < r->n_stages; i++)
        if (r->facts[i].state == STAGE_RUNNING) process_tell_text(&r->stages[i]);
    if (!waiting) process_finish(r, NULL, NULL);
}

int process_run_start(process_run **ret, const process_input *in, calls *c, const call_context *ctx,
                      process_done_fn done, void *user, shoal_err *err)
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
                       .calls = c,
                       .start_ns = env_now_ns(in->time),
                       .done = done,
                       .user = user,
                       .facts = facts,
                       .memory = memory,
                       .n_stages = n};
    /* The request may end before the run, which others wait for. Stand-ins are not taken: they are those of a
     * route, and each stage names its own model. */
    if (!call_context_keep(&r->ctx, ctx, NULL, r->memory)) {
        run_free(r);
        return err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        r->stages[i].run = r;
        r->stages[i].stage = &in->pipeline->stages[i];
        r->stages[i].index = i;
        r->stages[i].fact = &facts[i];
        r->stages[i].memory = memory;
        facts[i].label = facts[i].text = "";
    }
    *ret = r;
    process_step(r);
    return 0;
}

void process_run_pause(process_run *r, bool paused)
{
    for (size_t i = 0; r && i < r->n_stages; i++) {
        calls_pause(r->stages[i].call, paused);
        process_each_pause(&r->stages[i], paused);
    }
}

void process_run_spent(const process_run *r, uint64_t *ret_prompt, uint64_t *ret_generated)
{
    *ret_prompt = *ret_generated = 0;
    for (size_t i = 0; r && i < r->n_stages; i++) {
        *ret_prompt += r->stages[i].n_prompt;
        *ret_generated += r->stages[i].n_generated;
    }
}

void process_run_cancel(process_run *r)
{
    if (!r) return;
    cancel_calls(r);
    run_free(r);
}
