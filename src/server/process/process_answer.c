/* process_answer.c: what a run found, as JSON: the trace of each stage, and the answer. Both are written into run->out,
 * one after the other. */
#include <math.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "process/process_each.h"

/* ---- the trace: entries are written as stages end --------------------------------------------- */

static void put_ms(buf *out, const char *key, double ms)
{
    json_put_real(out, key, round(ms * 1e3) / 1e3, PROCESS_DIGITS);
}

/* When it began, from the run's beginning, and where its time went. */
static void put_times(const stage_run *s, buf *out)
{
    if (s->start_ns) put_ms(out, "at_ms", (double)(s->start_ns - s->run->start_ns) / 1e6);
    if (!s->times.known) return;
    put_ms(out, "queue_ms", s->times.queue_ms);
    put_ms(out, "prefill_ms", s->times.prefill_ms);
    if (s->stage->kind->gives & GIVES_PROB) put_ms(out, "decode_ms", s->times.decode_ms);
    if (s->times.cpu_ms > 0) put_ms(out, "cpu_ms", s->times.cpu_ms);
}

static buf *trace_begin(const stage_run *s, bool ran)
{
    buf *out = &s->run->out;
    buf_clear(out);
    json_put_open(out, NULL, '{');
    json_put_text(out, "stage", s->stage->name);
    json_put_text(out, "kind", s->stage->kind->name);
    if (s->stage->model) json_put_text(out, "model", s->stage->model);
    if (s->stage->adapter) json_put_text(out, "adapter", s->stage->adapter);
    json_put_bool(out, "ran", ran);
    json_put_text(out, "why", buf_text(&s->why));
    return out;
}

static void trace_end(stage_run *s)
{
    process_run *r = s->run;
    buf_putc(&r->out, '}');
    s->trace = r->out.failed ? NULL : arena_strndup(r->memory, r->out.data, r->out.len);
    r->lacks_memory |= !s->trace;
}

void process_trace_skipped(stage_run *s)
{
    trace_begin(s, false);
    trace_end(s);
}

/* The members of the stage's details. */
static void put_members(buf *out, const json_t *details)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)details, key, v) json_put_json(out, key, v, PROCESS_DIGITS);
}

static void trace_facts(stage_run *s, buf *out)
{
    unsigned gives = s->stage->kind->gives;
    const stage_fact *f = process_fact(s);
    if (gives & GIVES_SCORE) {
        json_put_text(out, "label", f->label);
        process_put_rounded(out, "score", f->score);
    }
    if (gives & GIVES_PROB) {
        json_put_integer(out, "completion_tokens", s->n_generated);
        process_put_rounded(out, "mean_prob", f->mean_prob);
    }
    if (s->stage->n_tools) {
        json_t *calls = process_calls(s->run, s);
        json_put_json(out, "calls", calls, PROCESS_DIGITS);
        json_decref(calls);
    }
    if (*s->finish) json_put_text(out, "finish_reason", s->finish);
    put_members(out, s->details);
    if (s->results) json_put_json(out, "results", s->results, PROCESS_DIGITS);
}

static void put_degraded(buf *out, const call_result *r)
{
    json_put_open(out, "degraded", '{');
    json_put_text(out, "wanted", r->wanted);
    json_put_text(out, "answered_by", r->model);
    json_put_text(out, "why", r->why);
    buf_putc(out, '}');
}

void process_trace_call(stage_run *s, const call_result *r)
{
    buf *out = trace_begin(s, true);
    if (s->each) {
        process_each_trace(s, out);
    } else {
        put_ms(out, "ms", r->ms);
        json_put_text(out, "replica", r->replica_id);
        json_put_text(out, "version", r->version);
        json_put_text(out, "quantisation", r->quantisation);
    }
    put_times(s, out);
    if (s->stage->model && *r->model && strcmp(r->model, s->stage->model) != 0) /* it names a route */
        json_put_text(out, "answered_by", r->model);
    if (r->trace) json_put_text(out, "ensemble", r->trace);
    if (r->wanted) put_degraded(out, r);
    bool failed = process_fact(s)->state == STAGE_FAILED;
    if (failed) json_put_text(out, "error", r->message);
    if (!failed && s->n_prompt) json_put_integer(out, "prompt_tokens", s->n_prompt);
    if (!failed && !s->each) trace_facts(s, out);
    trace_end(s);
}

void process_trace_rule(stage_run *s)
{
    buf *out = trace_begin(s, true);
    if (s->each)
        process_each_trace(s, out);
    else
        json_put_text(out, "verdict", process_fact(s)->label);
    put_times(s, out);
    if (s->details) json_put_json(out, "result", s->details, PROCESS_DIGITS);
    trace_end(s);
}

/* ---- the answer ------------------------------------------------------------------------------- */

/* The first stage of this kind that is done. */
static stage_run *result_of(process_run *r, stage_id kind)
{
    for (size_t i = 0; i < r->n_stages; i++)
        if (r->stages[i].stage->kind->id == kind && !pipeline_each(r->stages[i].stage) &&
            r->facts[i].state == STAGE_DONE)
            return &r->stages[i];
    return NULL;
}

stage_run *process_speaker(process_run *r)
{
    for (size_t i = 0; i < r->n_stages; i++)
        if (process_is_held_back(&r->stages[i])) return &r->stages[i];
    for (size_t i = r->n_stages; i-- > 0;)
        if (r->facts[i].state == STAGE_DONE && process_speaks(r, i)) return &r->stages[i];
    return NULL;
}

static void put_usage(process_run *r, process_outcome *o)
{
    for (size_t i = 0; i < r->n_stages; i++) {
        o->n_prompt_tokens += r->stages[i].n_prompt;
        o->n_generated_tokens += r->stages[i].n_generated;
    }
    json_put_open(&r->out, "usage", '{');
    json_put_integer(&r->out, "prompt_tokens", (int64_t)o->n_prompt_tokens);
    json_put_integer(&r->out, "completion_tokens", (int64_t)o->n_generated_tokens);
    json_put_integer(&r->out, "total_tokens", (int64_t)(o->n_prompt_tokens + o->n_generated_tokens));
    buf_putc(&r->out, '}');
}

static void put_null(buf *out, const char *key)
{
    json_put_key(out, key);
    buf_puts(out, "null");
}

static void put_text_or_null(buf *out, const char *key, const char *s)
{
    if (s)
        json_put_text(out, key, s);
    else
        put_null(out, key);
}

/* Of the classifier; where a rule answers and knows better, of that: a guess beside it would say something else. */
static void put_intent(buf *out, stage_run *s, const stage_run *reply)
{
    const stage_runner *by = s && reply ? process_runner(reply) : NULL;
    const char *label = by && by->intent ? by->intent(reply) : NULL;
    if (!s) {
        put_null(out, "intent");
        return;
    }
    json_put_open(out, "intent", '{');
    json_put_text(out, "label", label ? label : process_fact(s)->label);
    process_put_rounded(out, "score", label ? 1 : process_fact(s)->score);
    json_put_text(out, "by", label ? reply->stage->name : s->stage->name);
    buf_putc(out, '}');
}

/* What was heard, null when nothing was; absent where nobody listens. */
static void put_heard(process_run *r)
{
    bool listens = false;
    for (size_t i = 0; i < r->n_stages; i++) listens |= r->stages[i].stage->kind->id == STAGE_TRANSCRIBE;
    if (!listens) return;
    pipeline_facts facts = {.input = "", .stages = r->facts};
    const char *heard = pipeline_input(r->in->pipeline, r->n_stages, &facts);
    put_text_or_null(&r->out, "heard", *heard ? heard : NULL);
}

/* What stages came to that make lists, or JSON of their own: in full, by their names; absent without such. */
static void put_results(process_run *r)
{
    bool any = false;
    for (size_t i = 0; i < r->n_stages; i++) {
        const config_stage *st = r->stages[i].stage;
        if (!process_is_result(st) || r->facts[i].state != STAGE_DONE) continue;
        if (!any) json_put_open(&r->out, "results", '{');
        json_put_json(&r->out, st->name, r->stages[i].value, PROCESS_DIGITS);
        any = true;
    }
    if (any) buf_putc(&r->out, '}');
}

/* The results of the last stage of this kind, as its trace has them; nothing where there is none. */
static void put_details(process_run *r, const stage_kind *kind)
{
    for (size_t i = r->n_stages; i-- > 0;) {
        if (r->stages[i].stage->kind != kind || !r->stages[i].details) continue;
        json_put_json(&r->out, kind->answer, r->stages[i].details, PROCESS_DIGITS);
        return;
    }
}

/* Of each kind that has them. Where the request is held back, those of guards alone: who does not look at the
 * guard has nothing to act on. */
static void put_all_details(process_run *r, bool held)
{
    const stage_registry *kinds = r->in->pipeline->kinds;
    for (size_t i = 0; kinds && i < kinds->n_stages; i++) {
        const stage_kind *k = kinds->stages[i].kind;
        if (k->gives & GIVES_DETAILS && (!held || k->passes)) put_details(r, k);
    }
}

static bool offers_tools(const config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++)
        if (p->stages[i].n_tools) return true;
    return false;
}

/* What it calls; all of it where that is more than one call, or where tools were offered. */
static void put_calls(process_run *r, const stage_run *reply)
{
    json_t *calls = process_calls(r, reply);
    const json_t *first = json_array_get(calls, 0);
    if (first)
        json_put_json(&r->out, "tool_call", first, PROCESS_DIGITS);
    else
        put_null(&r->out, "tool_call");
    if (json_array_size(calls) > 1) json_put_json(&r->out, "tool_calls", calls, PROCESS_DIGITS);
    if (offers_tools(r->in->pipeline)) json_put_json(&r->out, "calls", calls, PROCESS_DIGITS);
    r->lacks_memory |= !calls;
    json_decref(calls);
}

void process_answer(process_run *r, process_outcome *o)
{
    stage_run *intent = result_of(r, STAGE_CLASSIFY), *slots = result_of(r, STAGE_TAG);
    stage_run *reply = process_speaker(r);
    const char *text = reply ? process_text(reply) : NULL;
    buf *out = &r->out;
    buf_clear(out);
    json_put_open(out, NULL, '{');
    json_put_text(out, "object", "shoal.process");
    json_put_text(out, "pipeline", r->in->pipeline->name);
    put_text_or_null(out, "text", text);
    put_heard(r);
    put_intent(out, intent, reply);
    if (slots)
        json_put_json(out, "slots", slots->slots, PROCESS_DIGITS);
    else
        json_put_texts(out, "slots", NULL, 0);
    put_calls(r, reply);
    bool held = reply && process_is_held_back(reply);
    if (!held) put_results(r);
    put_all_details(r, held);
    json_put_open(out, "trace", '[');
    for (size_t i = 0; i < r->n_stages; i++) {
        json_put_key(out, NULL);
        buf_puts(out, r->stages[i].trace ? r->stages[i].trace : "null");
    }
    buf_putc(out, ']');
    put_usage(r, o);
    buf_putc(out, '}');
    o->answer = out;
    r->lacks_memory |= out->failed || (reply && !text);
}

json_t *process_outcome_json(const process_outcome *o)
{
    json_t *v = NULL;
    if (o->answer) json_parse_own(&v, o->answer->data, o->answer->len, "an answer", NULL);
    return v;
}
