/* process_generate.c: generate stages: a chat model's reply and its calls of tools. */
#include <ctype.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "process/process_run.h"

#define DEFAULT_MAX_TOKENS 128

static const char *text_of(const buf *b)
{
    return b->data && b->len ? b->data : "";
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
        utf8_put_c(&s->text, (const char *)ev->delta->text.data, ev->delta->text.len);
        for (size_t i = 0; i < ev->delta->n_tool_calls; i++) on_tool_delta(s, ev->delta->tool_calls[i]);
        process_tell_text(s);
    }
    if (!ev->done) return;
    s->times = (stage_times){true, ev->done->queue_ms, ev->done->prefill_ms, ev->done->decode_ms};
    s->n_prompt = ev->done->n_prompt;
    s->n_generated = ev->done->n_generated;
    process_fact(s)->mean_prob = ev->done->mean_prob;
    strncpy(s->finish, ev->done->finish, sizeof s->finish - 1);
}

static void on_generate_end(void *user, const call_result *r)
{
    stage_run *s = user;
    while (s->text.len && isspace((unsigned char)s->text.data[s->text.len - 1]))
        s->text.data[--s->text.len] = 0;
    if (r->status == 0 && !process_calls_are_whole(s))
        process_settle_broken(s, r, "the reply ended within a call: give it more max_tokens");
    else
        process_settle(s, r);
}

calls_generate_events process_writing(stage_run *s)
{
    return (calls_generate_events){.user = s, .event = on_generated, .end = on_generate_end};
}

Shoal__V1__Sampling process_sampling(const config_stage *st)
{
    Shoal__V1__Sampling sampling = SHOAL__V1__SAMPLING__INIT;
    sampling.temperature = (float)st->temperature;
    sampling.top_p = st->top_p > 0 ? (float)st->top_p : 1;
    sampling.repetition_penalty = 1;
    sampling.seed = st->seed;
    return sampling;
}

unsigned process_max_tokens(const config_stage *st)
{
    return st->max_tokens ? st->max_tokens : DEFAULT_MAX_TOKENS;
}

static int put_message(const stage_run *s, const char *role, const char *template, buf *out)
{
    pipeline_facts facts = process_facts(s);
    config_device near[PIPELINE_NEAR_DEVICES];
    if (process_near(s, near, &facts.n_devices)) facts.devices = near;
    buf text = {0};
    int rc = process_fill(s, template, &facts, &text);
    if (!rc) {
        out->failed |= text.failed;
        buf_printf(out, "%s{\"role\":\"%s\",\"content\":", out->len > 1 ? "," : "", role);
        json_put_string(out, text_of(&text), text.len);
        buf_putc(out, '}');
    }
    buf_done(&text);
    return rc;
}

int process_generate(stage_run *s, const call_context *ctx)
{
    const config_stage *st = s->stage;
    process_run *r = s->run;
    buf messages = {0};
    buf_putc(&messages, '[');
    int rc = st->system ? put_message(s, "system", st->system, &messages) : 0;
    if (!rc) rc = put_message(s, "user", st->prompt, &messages);
    buf_putc(&messages, ']');
    size_t n_choices = 0;
    char **choices = NULL;
    if (!rc) rc = process_choices(s, &choices, &n_choices);
    if (!rc && !messages.failed) {
        Shoal__V1__Sampling sampling = process_sampling(st);
        Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
        req.messages_json = messages.data;
        req.max_tokens = process_max_tokens(st);
        req.sampling = &sampling;
        req.adapter = process_adapter(s);
        req.parse_tool_calls = true;
        if (n_choices) req.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
        if (st->schema) req.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_SCHEMA;
        if (st->schema) req.schema = (char *)st->schema;
        req.choices = choices;
        req.n_choices = n_choices;
        calls_generate_events ev = process_writing(s);
        rc = process_offer(s, &req);
        if (!rc) s->call = calls_generate(r->calls, st->model, &req, ctx, &ev);
    }
    buf_done(&messages);
    return s->call ? 0 : rc ? rc : SHOAL_ENOMEM;
}
