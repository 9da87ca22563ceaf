/* stage_classify.c: classify and image stages: the label that fits a text or the request's picture best. */
#include "stages/stage_write.h"

#define LABELS_IN_TRACE 5

static const char *take_label(stage_run *s, const ProtobufCMessage *reply)
{
    const Shoal__V1__ClassifyReply *r = (const Shoal__V1__ClassifyReply *)reply;
    if (r->n_results != 1 || r->results[0]->n_labels == 0) return "the worker sent no label";
    const Shoal__V1__LabelScore *best = r->results[0]->labels[0];
    buf_puts(&s->label, best->label);
    process_fact(s)->score = (double)best->score;
    s->n_prompt = r->results[0]->n_tokens;
    return NULL;
}

static const char *take_labels(stage_run *s, const ProtobufCMessage *reply)
{
    const char *wrong = take_label(s, reply);
    if (wrong) return wrong;
    const Shoal__V1__Classification *c = ((const Shoal__V1__ClassifyReply *)reply)->results[0];
    s->results = json_array();
    for (size_t i = 0; i < c->n_labels && i < LABELS_IN_TRACE; i++) {
        json_t *o = json_object();
        process_put(s->run, o, "label", json_string(c->labels[i]->label));
        process_put(s->run, o, "score", process_rounded((double)c->labels[i]->score));
        process_add(s->run, s->results, o);
    }
    return NULL;
}

const stage_runner stage_classify = {
    .start = stage_ask_text, .task = CALL_CLASSIFY, .take = take_label, .n_best = 1};
const stage_runner stage_image = {.start = stage_ask_file, .task = CALL_CLASSIFY_IMAGE, .take = take_labels};
