/* stage_ask.c: kinds that ask a model once: the call, and its end. */
#include "stages/stage_write.h"
#include "tasks/task.h"

enum {
    TEXTS_MAX = (PIPELINE_CANDIDATES_MAX > PIPELINE_DOCUMENTS_MAX ? PIPELINE_CANDIDATES_MAX
                                                                  : PIPELINE_DOCUMENTS_MAX) +
                1
};

static void stage_ask_on_reply(void *user, const call_result *r, const ProtobufCMessage *reply)
{
    stage_run *s = user;
    const char *wrong = r->status == 0 ? "the worker sent no result" : NULL;
    if (reply) {
        process_note_timing(s, task_reply_timing(reply));
        wrong = process_runner(s)->take(s, reply);
    }
    if (wrong)
        process_settle_broken(s, r, wrong);
    else
        process_settle(s, r);
}

int stage_ask(stage_run *s, const call_context *ctx, const task_request *req)
{
    call_task task = process_runner(s)->task;
    s->call = calls_unary(s->run->calls, task, s->stage->model, &req->base, ctx, stage_ask_on_reply, s);
    return s->call ? 0 : SHOAL_ENOMEM;
}

int stage_ask_texts(stage_run *s, const call_context *ctx, Shoal__V1__TextInput *texts, size_t n)
{
    Shoal__V1__TextInput *list[TEXTS_MAX];
    task_request req;
    for (size_t i = 0; i < n; i++) list[i] = &texts[i];
    task_request_texts(&req, process_runner(s)->task, list, n, process_adapter(s));
    if (process_runner(s)->n_best) req.classify.top_k = process_runner(s)->n_best;
    return stage_ask(s, ctx, &req);
}

int stage_ask_text(stage_run *s, const call_context *ctx)
{
    Shoal__V1__TextInput input = SHOAL__V1__TEXT_INPUT__INIT;
    buf text = {0};
    int rc = process_read(s, &text);
    input.text = text.data;
    if (rc == 0) rc = stage_ask_texts(s, ctx, &input, 1);
    buf_done(&text);
    return rc;
}

int stage_ask_file(stage_run *s, const call_context *ctx)
{
    task_request req;
    task_request_file(&req, process_runner(s)->task, process_file_of(s));
    return stage_ask(s, ctx, &req);
}
