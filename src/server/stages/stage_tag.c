/* stage_tag.c: tag stages: the entities of a text. */
#include "stages/stages.h"

static json_t *span_json(process_run *r, const Shoal__V1__Span *sp)
{
    json_t *o = json_object();
    process_put(r, o, "start", json_integer(sp->start));
    process_put(r, o, "end", json_integer(sp->end));
    process_put(r, o, "label", json_string(sp->label));
    process_put(r, o, "text", json_string(sp->text));
    process_put(r, o, "score", process_rounded(sp->score));
    return o;
}

static void on_tagged(void *user, const call_result *r, const Shoal__V1__TagReply *reply)
{
    stage_run *s = user;
    if (reply) process_note_timing(s, reply->timing);
    if (r->status) {
        process_settle(s, r);
        return;
    }
    s->slots = json_array();
    if (!reply || reply->n_results != 1 || !s->slots) {
        process_settle_broken(s, r, "the worker sent no spans");
        return;
    }
    const Shoal__V1__Tagging *t = reply->results[0];
    for (size_t i = 0; i < t->n_spans; i++) process_add(s->run, s->slots, span_json(s->run, t->spans[i]));
    s->n_prompt = t->n_tokens;
    process_settle(s, r);
}

static int start_tag(stage_run *s, const call_context *ctx)
{
    Shoal__V1__TextInput input = SHOAL__V1__TEXT_INPUT__INIT, *inputs[] = {&input};
    Shoal__V1__TagRequest req = SHOAL__V1__TAG_REQUEST__INIT;
    buf text = {0};
    req.adapter = process_adapter(s);
    req.n_inputs = 1;
    req.inputs = inputs;
    if (process_read(s, &text) == 0) {
        input.text = text.data;
        s->call = calls_tag(s->run->calls, s->stage->model, &req, ctx, on_tagged, s);
    }
    buf_done(&text);
    return s->call ? 0 : SHOAL_ENOMEM;
}

const stage_runner stage_tag = {.start = start_tag};
