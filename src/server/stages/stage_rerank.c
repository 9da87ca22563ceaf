/* stage_rerank.c: rerank stages: the stage's documents by how well they answer a text. */
#include "stages/stage_write.h"

static bool rerank_is_whole(const stage_run *s, const Shoal__V1__ClassifyReply *r)
{
    if (r->n_results != s->stage->n_documents) return false;
    for (size_t i = 0; i < r->n_results; i++)
        if (r->results[i]->n_labels == 0) return false;
    return true;
}

static const char *take_scores(stage_run *s, const ProtobufCMessage *reply)
{
    const Shoal__V1__ClassifyReply *r = (const Shoal__V1__ClassifyReply *)reply;
    double scores[PIPELINE_DOCUMENTS_MAX];
    if (!rerank_is_whole(s, r)) return "the worker sent other scores than it was asked for";
    for (size_t i = 0; i < r->n_results; i++) {
        scores[i] = (double)r->results[i]->labels[0]->score;
        s->n_prompt += r->results[i]->n_tokens;
    }
    stage_rank(s, s->stage->documents, scores, r->n_results);
    return NULL;
}

static int start_rerank(stage_run *s, const call_context *ctx)
{
    Shoal__V1__TextInput pairs[PIPELINE_DOCUMENTS_MAX];
    buf text = {0};
    int rc = process_read(s, &text);
    for (size_t i = 0; rc == 0 && i < s->stage->n_documents; i++) {
        pairs[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        pairs[i].text = text.data;
        pairs[i].pair = (char *)s->stage->documents[i];
        pairs[i].has_pair = 1;
    }
    if (rc == 0) rc = stage_ask_texts(s, ctx, pairs, s->stage->n_documents);
    buf_done(&text);
    return rc;
}

const stage_runner stage_rerank = {.start = start_rerank, .task = CALL_CLASSIFY, .take = take_scores};
