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

static bool embed_is_whole(const stage_run *s, const Shoal__V1__EmbedReply *r)
{
    if (r->n_results != s->stage->n_candidates + 1) return false;
    for (size_t i = 0; i < r->n_results; i++)
        if (r->results[i]->n_values == 0 || r->results[i]->n_values != r->results[0]->n_values) return false;
    return true;
}

static const char *take_vectors(stage_run *s, const ProtobufCMessage *reply)
{
    const Shoal__V1__EmbedReply *r = (const Shoal__V1__EmbedReply *)reply;
    double scores[PIPELINE_CANDIDATES_MAX];
    if (!embed_is_whole(s, r)) return "the worker sent other vectors than it was asked for";
    for (size_t i = 0; i < s->stage->n_candidates; i++) scores[i] = cosine(r->results[0], r->results[i + 1]);
    for (size_t i = 0; i < r->n_results; i++) s->n_prompt += r->results[i]->n_tokens;
    stage_rank(s, s->stage->candidates, scores, s->stage->n_candidates);
    return NULL;
}

static int start_embed(stage_run *s, const call_context *ctx)
{
    Shoal__V1__TextInput all[PIPELINE_CANDIDATES_MAX + 1];
    size_t n = s->stage->n_candidates + 1;
    buf text = {0};
    int rc = process_read(s, &text);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        all[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        all[i].text = i == 0 ? text.data : (char *)s->stage->candidates[i - 1];
    }
    if (rc == 0) rc = stage_ask_texts(s, ctx, all, n);
    buf_done(&text);
    return rc;
}

const stage_runner stage_embed = {.start = start_embed, .task = CALL_EMBED, .take = take_vectors};
