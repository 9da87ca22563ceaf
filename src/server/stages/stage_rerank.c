/* stage_rerank.c: rerank stages: the stage's documents by how well they answer a text. */
#include "stages/stage_write.h"

static bool rerank_is_whole(const stage_run *s, const Shoal__V1__ClassifyReply *reply)
{
    if (!reply || reply->n_results != s->stage->n_documents) return false;
    for (size_t i = 0; i < reply->n_results; i++)
        if (reply->results[i]->n_labels == 0) return false;
    return true;
}

static void on_ranked(void *user, const call_result *r, const Shoal__V1__ClassifyReply *reply)
{
    stage_run *s = user;
    if (reply) process_note_timing(s, reply->timing);
    double scores[PIPELINE_DOCUMENTS_MAX];
    if (r->status) {
        process_settle(s, r);
        return;
    }
    if (!rerank_is_whole(s, reply)) {
        process_settle_broken(s, r, "the worker sent other scores than it was asked for");
        return;
    }
    for (size_t i = 0; i < reply->n_results; i++) {
        scores[i] = (double)reply->results[i]->labels[0]->score;
        s->n_prompt += reply->results[i]->n_tokens;
    }
    stage_rank(s, s->stage->documents, scores, reply->n_results);
    process_settle(s, r);
}

static int start_rerank(stage_run *s, const call_context *ctx)
{
    Shoal__V1__TextInput pairs[PIPELINE_DOCUMENTS_MAX], *list[PIPELINE_DOCUMENTS_MAX];
    Shoal__V1__ClassifyRequest req = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    buf text = {0};
    req.adapter = process_adapter(s);
    req.inputs = list;
    req.n_inputs = s->stage->n_documents;
    int rc = process_read(s, &text);
    for (size_t i = 0; rc == 0 && i < req.n_inputs; i++) {
        pairs[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        pairs[i].text = text.data;
        pairs[i].pair = (char *)s->stage->documents[i];
        pairs[i].has_pair = 1;
        list[i] = &pairs[i];
    }
    if (rc == 0) s->call = calls_classify(s->run->calls, s->stage->model, &req, ctx, on_ranked, s);
    buf_done(&text);
    return s->call ? 0 : SHOAL_ENOMEM;
}

const stage_runner stage_rerank = {.start = start_rerank};
