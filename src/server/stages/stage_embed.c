/* stage_embed.c: embed stages: which of the candidates a text is nearest to, by cosine. The text and all
 * candidates go as one call, so that they are of one replica and one version of the model. */
#include <math.h>

#include "stages/stage_write.h"

static double cosine(const Shoal__V1__Embedding *a, const Shoal__V1__Embedding *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a->n_values; i++) {
        ab += (double)a->values[i] * (double)b->values[i];
        aa += (double)a->values[i] * (double)a->values[i];
        bb += (double)b->values[i] * (double)b->values[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

static bool embed_is_whole(const stage_run *s, const Shoal__V1__EmbedReply *reply)
{
    if (!reply || reply->n_results != s->stage->n_candidates + 1) return false;
    for (size_t i = 0; i < reply->n_results; i++)
        if (reply->results[i]->n_values == 0 || reply->results[i]->n_values != reply->results[0]->n_values)
            return false;
    return true;
}

static void on_embedded(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    stage_run *s = user;
    if (reply) process_note_timing(s, reply->timing);
    double scores[PIPELINE_CANDIDATES_MAX];
    if (r->status) {
        process_settle(s, r);
        return;
    }
    if (!embed_is_whole(s, reply)) {
        process_settle_broken(s, r, "the worker sent other vectors than it was asked for");
        return;
    }
    for (size_t i = 0; i < s->stage->n_candidates; i++)
        scores[i] = cosine(reply->results[0], reply->results[i + 1]);
    for (size_t i = 0; i < reply->n_results; i++) s->n_prompt += reply->results[i]->n_tokens;
    stage_rank(s, s->stage->candidates, scores, s->stage->n_candidates);
    process_settle(s, r);
}

static int start_embed(stage_run *s, const call_context *ctx)
{
    Shoal__V1__TextInput all[PIPELINE_CANDIDATES_MAX + 1], *list[PIPELINE_CANDIDATES_MAX + 1];
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    buf text = {0};
    req.adapter = process_adapter(s);
    req.inputs = list;
    req.n_inputs = s->stage->n_candidates + 1;
    int rc = process_read(s, &text);
    for (size_t i = 0; rc == 0 && i < req.n_inputs; i++) {
        all[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        all[i].text = i == 0 ? text.data : (char *)s->stage->candidates[i - 1];
        list[i] = &all[i];
    }
    if (rc == 0) s->call = calls_embed(s->run->calls, s->stage->model, &req, ctx, on_embedded, s);
    buf_done(&text);
    return s->call ? 0 : SHOAL_ENOMEM;
}

const stage_runner stage_embed = {.start = start_embed};
