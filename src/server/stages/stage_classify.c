/* stage_classify.c: classify stages: the label that fits a text best. */
#include "stages/stages.h"

static void on_classified(void *user, const call_result *r, const Shoal__V1__ClassifyReply *reply)
{
    stage_run *s = user;
    if (reply) process_note_timing(s, reply->timing);
    if (r->status) {
        process_settle(s, r);
        return;
    }
    if (!reply || reply->n_results != 1 || reply->results[0]->n_labels == 0) {
        process_settle_broken(s, r, "the worker sent no label");
        return;
    }
    const Shoal__V1__LabelScore *best = reply->results[0]->labels[0];
    buf_puts(&s->label, best->label);
    process_fact(s)->score = best->score;
    s->n_prompt = reply->results[0]->n_tokens;
    process_settle(s, r);
}

static int start_classify(stage_run *s, const call_context *ctx)
{
    Shoal__V1__TextInput input = SHOAL__V1__TEXT_INPUT__INIT, *inputs[] = {&input};
    Shoal__V1__ClassifyRequest req = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    buf text = {0};
    req.adapter = process_adapter(s);
    req.n_inputs = 1;
    req.inputs = inputs;
    if (process_read(s, &text) == 0) {
        input.text = text.data;
        s->call = calls_classify(s->run->calls, s->stage->model, &req, ctx, on_classified, s);
    }
    buf_done(&text);
    return s->call ? 0 : SHOAL_ENOMEM;
}

const stage_runner stage_classify = {.start = start_classify};
