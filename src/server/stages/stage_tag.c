/* stage_tag.c: tag stages: the entities of a text. */
#include "stages/stage_write.h"

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

static const char *take_spans(stage_run *s, const ProtobufCMessage *reply)
{
    const Shoal__V1__TagReply *r = (const Shoal__V1__TagReply *)reply;
    if (r->n_results != 1) return "the worker sent no spans";
    const Shoal__V1__Tagging *t = r->results[0];
    s->slots = json_array();
    for (size_t i = 0; i < t->n_spans; i++) process_add(s->run, s->slots, span_json(s->run, t->spans[i]));
    s->n_prompt = t->n_tokens;
    return NULL;
}

const stage_runner stage_tag = {.start = stage_ask_text, .task = CALL_TAG, .take = take_spans};
