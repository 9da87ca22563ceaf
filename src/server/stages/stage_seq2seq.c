/* stage_seq2seq.c: seq2seq stages: a text turned into another, such as a translation. */
#include "stages/stage_write.h"

static int start_seq2seq(stage_run *s, const call_context *ctx)
{
    const config_stage *st = s->stage;
    Shoal__V1__Sampling sampling = stage_sampling(st);
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    calls_generate_events ev = stage_writing(s);
    buf text = {0};
    if (process_read(s, &text) == 0) {
        req.text = text.data;
        req.max_tokens = stage_max_tokens(st);
        req.sampling = &sampling;
        req.adapter = process_adapter(s);
        req.n_beams = st->n_beams;
        req.length_penalty = 1;
        s->call = calls_generate(s->run->calls, st->model, &req, ctx, &ev);
    }
    buf_done(&text);
    return s->call ? 0 : SHOAL_ENOMEM;
}

const stage_runner stage_seq2seq = {.start = start_seq2seq};
