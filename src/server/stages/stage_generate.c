/* stage_generate.c: generate stages: a chat model's reply and its calls of tools. */
#include <ctype.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "stages/stage_write.h"

#define DEFAULT_MAX_TOKENS 128

static void on_tool_delta(stage_run *s, const Shoal__V1__ToolCallDelta *d)
{
    if (d->index >= TOOL_CALLS_MAX) return;
    if (!s->tools) s->tools = arena_alloc(s->memory, TOOL_CALLS_MAX * sizeof *s->tools);
    if (!s->tools) {
        s->text.failed = true;
        return;
    }
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
        if (!s->stage->n_mcp) process_tell_text(s); /* what stands before a call is not the answer */
    }
    if (!ev->done) return;
    s->times =
        (stage_times){true, ev->done->queue_ms, ev->done->prefill_ms, ev->done->decode_ms, ev->done->cpu_ms};
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
    if (r->status == 0 && !stage_calls_are_whole(s))
        process_settle_broken(s, r, "the reply ended within a call: give it more max_tokens");
    else
        process_settle(s, r);
}

calls_generate_events stage_writing(stage_run *s)
{
    return (calls_generate_events){.user = s, .event = on_generated, .end = on_generate_end};
}

Shoal__V1__Sampling stage_sampling(const config_stage *st)
{
    Shoal__V1__Sampling sampling = SHOAL__V1__SAMPLING__INIT;
    sampling.temperature = (float)st->temperature;
    sampling.top_p = st->top_p > 0 ? (float)st->top_p : 1;
    sampling.repetition_penalty = 1;
    sampling.seed = st->seed;
    return sampling;
}

unsigned stage_max_tokens(const config_stage *st)
{
    return st->max_tokens ? st->max_tokens : DEFAULT_MAX_TOKENS;
}

/* The stage of these options, once it has any. */
static const stage_run *options_stage(const stage_run *s)
{
    const char *name = s->stage->choices ? s->stage->choices : s->stage->near_stage;
    const stage_run *of = name ? process_stage(s, name) : NULL;
    return of && of->own ? of : NULL;
}

/* Append the devices that are named, or those that are not, up to `max`. */
static size_t put_near(const process_input *in, const device_set *named, bool wanted, config_device *out,
                       size_t n, size_t max)
{
    for (size_t i = 0; i < in->n_devices && i < DEVICES_MAX && n < max; i++)
        if (device_set_has(named, i) == wanted) out[n++] = in->devices[i];
    return n;
}

/* The devices for the prompt of a stage that names another with options: those that the request names, then
 * others, PIPELINE_NEAR_DEVICES at most. The others stand first: their states change less often than those of
 * devices that people ask for, so that the beginning of the prompt is found in the KV cache again. False: the
 * stage names none. */
static bool near_devices(const stage_run *s, config_device ret[PIPELINE_NEAR_DEVICES], size_t *ret_n)
{
    const stage_run *of = options_stage(s);
    if (!of) return false;
    const process_input *in = s->run->in;
    const device_set *named = process_runner(of)->options(of).named;
    size_t n_named = device_set_count(named);
    if (n_named > PIPELINE_NEAR_DEVICES) n_named = PIPELINE_NEAR_DEVICES;
    size_t n = put_near(in, named, false, ret, 0, PIPELINE_NEAR_DEVICES - n_named);
    *ret_n = put_near(in, named, true, ret, n, PIPELINE_NEAR_DEVICES);
    return true;
}

/* The texts of which the reply is one, each a reply with its calls; none without `choices`. */
static int option_texts(const stage_run *s, char ***ret, size_t *ret_n)
{
    const stage_run *of = s->stage->choices ? options_stage(s) : NULL;
    stage_options o = {0};
    *ret_n = 0;
    *ret = NULL;
    if (of) o = process_runner(of)->options(of);
    if (!o.n) return 0;
    char **texts = arena_alloc(s->memory, o.n * sizeof *texts);
    if (!texts) return SHOAL_ENOMEM;
    for (size_t i = 0; i < o.n; i++)
        if (!(texts[i] = device_option_text(&o.at[i], s->memory))) return SHOAL_ENOMEM;
    *ret = texts;
    *ret_n = o.n;
    return 0;
}
static int put_message(const stage_run *s, const char *role, const char *template, buf *out)
{
    pipeline_facts facts = process_facts(s);
    config_device near[PIPELINE_NEAR_DEVICES];
    if (near_devices(s, near, &facts.n_devices)) facts.devices = near;
    buf text = {0};
    int rc = process_fill(s, template, &facts, &text);
    if (!rc) {
        out->failed |= text.failed;
        buf_printf(out, "%s{\"role\":\"%s\",\"content\":", out->len > 1 ? "," : "", role);
        json_put_string(out, buf_text(&text), text.len);
        buf_putc(out, '}');
    }
    buf_done(&text);
    return rc;
}

static int start_generate(stage_run *s, const call_context *ctx)
{
    const config_stage *st = s->stage;
    process_run *r = s->run;
    buf messages = {0};
    buf_putc(&messages, '[');
    int rc = st->system ? put_message(s, "system", st->system, &messages) : 0;
    if (!rc) rc = put_message(s, "user", st->prompt, &messages);
    if (!rc && st->n_mcp) {
        rc = messages.failed ? SHOAL_ENOMEM : stage_mcp_start(s, ctx, &messages);
        buf_done(&messages);
        return rc;
    }
    buf_putc(&messages, ']');
    size_t n_choices = 0;
    char **choices = NULL;
    if (!rc) rc = option_texts(s, &choices, &n_choices);
    if (!rc && !messages.failed) {
        Shoal__V1__Sampling sampling = stage_sampling(st);
        Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
        req.messages_json = messages.data;
        req.max_tokens = stage_max_tokens(st);
        req.sampling = &sampling;
        req.adapter = process_adapter(s);
        req.parse_tool_calls = true;
        if (n_choices) req.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
        if (st->schema) req.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_SCHEMA;
        if (st->schema) req.schema = (char *)st->schema;
        req.choices = choices;
        req.n_choices = n_choices;
        calls_generate_events ev = stage_writing(s);
        rc = stage_offer_tools(s, &req);
        if (!rc) s->call = calls_generate(r->calls, st->model, &req, ctx, &ev);
    }
    buf_done(&messages);
    return s->call ? 0 : rc ? rc : SHOAL_ENOMEM;
}

const stage_runner stage_generate = {.start = start_generate, .done = stage_mcp_done};
