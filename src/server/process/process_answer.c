/* process_answer.c: what a run found, as JSON: the trace of each stage, and the answer. */
#include <math.h>
#include <string.h>

#include "json/json.h"
#include "process/process_each.h"

static void put_ms(stage_run *s, json_t *t, const char *key, double ms)
{
    process_put(s->run, t, key, isfinite(ms) ? json_real(round(ms * 1e3) / 1e3) : json_null());
}

/* When it began, from the run's beginning, and where its time went. */
static void put_times(stage_run *s, json_t *t)
{
    if (s->start_ns) put_ms(s, t, "at_ms", (double)(s->start_ns - s->run->start_ns) / 1e6);
    if (!s->times.known) return;
    put_ms(s, t, "queue_ms", s->times.queue_ms);
    put_ms(s, t, "prefill_ms", s->times.prefill_ms);
    if (s->stage->kind->gives & GIVES_PROB) put_ms(s, t, "decode_ms", s->times.decode_ms);
}

static json_t *trace_new(const stage_run *s, bool ran)
{
    json_t *t = json_object();
    process_put(s->run, t, "stage", json_string(s->stage->name));
    process_put(s->run, t, "kind", json_string(s->stage->kind->name));
    if (s->stage->model) process_put(s->run, t, "model", json_string(s->stage->model));
    if (s->stage->adapter) process_put(s->run, t, "adapter", json_string(s->stage->adapter));
    process_put(s->run, t, "ran", json_boolean(ran));
    process_put(s->run, t, "why", json_string(buf_text(&s->why)));
    return t;
}

void process_trace_skipped(stage_run *s)
{
    s->trace = trace_new(s, false);
}

static void trace_facts(stage_run *s, json_t *t)
{
    unsigned gives = s->stage->kind->gives;
    const stage_fact *f = process_fact(s);
    if (gives & GIVES_SCORE) {
        process_put(s->run, t, "label", json_string(f->label));
        process_put(s->run, t, "score", process_rounded(f->score));
    }
    if (gives & GIVES_PROB) {
        process_put(s->run, t, "completion_tokens", json_integer(s->n_generated));
        process_put(s->run, t, "mean_prob", process_rounded(f->mean_prob));
    }
    if (s->stage->n_tools) process_put(s->run, t, "calls", process_calls(s->run, s));
    if (*s->finish) process_put(s->run, t, "finish_reason", json_string(s->finish));
    if (s->details && json_object_update(t, s->details) != 0) s->run->lacks_memory = true;
    if (s->results) process_put(s->run, t, "results", json_incref(s->results));
}

void process_trace_call(stage_run *s, const call_result *r)
{
    json_t *t = s->trace = trace_new(s, true);
    if (s->each) {
        process_each_trace(s, t);
    } else {
        put_ms(s, t, "ms", r->ms);
        process_put(s->run, t, "replica", json_string(r->replica_id));
        process_put(s->run, t, "version", json_string(r->version));
        process_put(s->run, t, "quantisation", json_string(r->quantisation));
    }
    put_times(s, t);
    if (s->stage->model && *r->model && strcmp(r->model, s->stage->model) != 0) /* it names a route */
        process_put(s->run, t, "answered_by", json_string(r->model));
    if (r->trace) process_put(s->run, t, "ensemble", json_string(r->trace));
    if (r->wanted)
        process_put(s->run, t, "degraded",
                    json_pack("{s:s,s:s,s:s}", "wanted", r->wanted, "answered_by", r->model, "why", r->why));
    if (process_fact(s)->state == STAGE_FAILED) {
        process_put(s->run, t, "error", json_string(r->message));
        return;
    }
    if (s->n_prompt) process_put(s->run, t, "prompt_tokens", json_integer(s->n_prompt));
    if (!s->each) trace_facts(s, t);
}

void process_trace_rule(stage_run *s)
{
    s->trace = trace_new(s, true);
    if (s->each)
        process_each_trace(s, s->trace);
    else
        process_put(s->run, s->trace, "verdict", json_string(process_fact(s)->label));
    put_times(s, s->trace);
    if (s->details) process_put(s->run, s->trace, "result", json_incref(s->details));
}

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

static json_t *usage_json(process_run *r, process_outcome *o)
{
    for (size_t i = 0; i < r->n_stages; i++) {
        o->n_prompt_tokens += r->stages[i].n_prompt;
        o->n_generated_tokens += r->stages[i].n_generated;
    }
    json_t *u = json_object();
    process_put(r, u, "prompt_tokens", json_integer((json_int_t)o->n_prompt_tokens));
    process_put(r, u, "completion_tokens", json_integer((json_int_t)o->n_generated_tokens));
    process_put(r, u, "total_tokens", json_integer((json_int_t)(o->n_prompt_tokens + o->n_generated_tokens)));
    return u;
}

/* Of the classifier; where a rule answers and knows better, of that: a guess beside it would say something else. */
static json_t *intent_json(process_run *r, stage_run *s, const stage_run *reply)
{
    if (!s) return json_null();
    const stage_runner *by = reply ? process_runner(reply) : NULL;
    const char *label = by && by->intent ? by->intent(reply) : NULL;
    json_t *o = json_object();
    process_put(r, o, "label", json_string(label ? label : process_fact(s)->label));
    process_put(r, o, "score", label ? json_real(1) : process_rounded(process_fact(s)->score));
    process_put(r, o, "by", json_string(label ? reply->stage->name : s->stage->name));
    return o;
}

/* What was heard, null when nothing was; absent where nobody listens. */
static void put_heard(process_run *r, json_t *a)
{
    bool listens = false;
    for (size_t i = 0; i < r->n_stages; i++) listens |= r->stages[i].stage->kind->id == STAGE_TRANSCRIBE;
    if (!listens) return;
    pipeline_facts facts = {.input = "", .stages = r->facts};
    const char *heard = pipeline_input(r->in->pipeline, r->n_stages, &facts);
    process_put(r, a, "heard", *heard ? json_string(heard) : json_null());
}

/* What stages came to that make lists, or JSON of their own: in full, by their names; absent without such. */
static void put_results(process_run *r, json_t *a)
{
    json_t *results = json_object();
    for (size_t i = 0; i < r->n_stages; i++) {
        const config_stage *st = r->stages[i].stage;
        if (!process_is_result(st) || r->facts[i].state != STAGE_DONE) continue;
        process_put(r, results, st->name, json_incref(r->stages[i].value));
    }
    if (json_object_size(results)) process_put(r, a, "results", json_incref(results));
    json_decref(results);
}

/* The results of the last stage of this kind, as its trace has them; nothing where there is none. */
static void put_details(process_run *r, json_t *a, const stage_kind *kind)
{
    for (size_t i = r->n_stages; i-- > 0;) {
        if (r->stages[i].stage->kind != kind || !r->stages[i].details) continue;
        process_put(r, a, kind->answer, json_incref(r->stages[i].details));
        return;
    }
}

/* Of each kind that has them. Where the request is held back, those of guards alone: who does not look at the
 * guard has nothing to act on. */
static void put_all_details(process_run *r, json_t *a, bool held)
{
    const stage_registry *kinds = r->in->pipeline->kinds;
    for (size_t i = 0; kinds && i < kinds->n_stages; i++) {
        const stage_kind *k = kinds->stages[i].kind;
        if (k->gives & GIVES_DETAILS && (!held || k->passes)) put_details(r, a, k);
    }
}

static bool offers_tools(const config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++)
        if (p->stages[i].n_tools) return true;
    return false;
}

json_t *process_answer(process_run *r, process_outcome *o)
{
    stage_run *intent = result_of(r, STAGE_CLASSIFY), *slots = result_of(r, STAGE_TAG);
    stage_run *reply = process_speaker(r);
    json_t *a = json_object(), *trace = json_array(), *calls = process_calls(r, reply);
    process_put(r, a, "object", json_string("shoal.process"));
    process_put(r, a, "pipeline", json_string(r->in->pipeline->name));
    process_put(r, a, "text", reply ? json_string(process_text(reply)) : json_null());
    put_heard(r, a);
    process_put(r, a, "intent", intent_json(r, intent, reply));
    process_put(r, a, "slots", slots ? json_incref(slots->slots) : json_array());
    process_put(r, a, "tool_call",
                json_array_size(calls) ? json_incref(json_array_get(calls, 0)) : json_null());
    if (json_array_size(calls) > 1) process_put(r, a, "tool_calls", json_incref(calls));
    if (offers_tools(r->in->pipeline)) process_put(r, a, "calls", json_incref(calls));
    json_decref(calls);
    bool held = reply && process_is_held_back(reply);
    if (!held) put_results(r, a);
    put_all_details(r, a, held);
    for (size_t i = 0; i < r->n_stages; i++) process_add(r, trace, json_incref(r->stages[i].trace));
    process_put(r, a, "trace", trace);
    process_put(r, a, "usage", usage_json(r, o));
    return a;
}
