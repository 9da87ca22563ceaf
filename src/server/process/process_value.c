/* process_value.c: what a stage came to, as typed JSON: what {json.STAGE} shows.
 *
 *     classify, image, vad            {"label": "iot_hue_lightoff", "score": 0.99}
 *     embed, rerank, fill-mask        the same, with "results": all of them, best first
 *     tag                             [{"start": 13, "end": 20, "label": "room", "text": "kitchen", ...}]
 *     retrieve                        [{"source": ..., "text": ...}, ...]
 *     score                           [{"line": 7, "label": ..., ...}, ...]
 *     generate, seq2seq, transcribe   the JSON that the text is, or else the text
 *     generate that calls tools       {"text": "Turning it on.", "calls": [{"name": ..., "arguments": ...}]}
 *     ground, line, check             {"verdict": "act", "text": "Turning on ...", "calls": [...]}
 *     match                           {"label": "one", "devices": [{"id": ..., ...}], "unknown": [], ...}
 *     guard                           {"verdict": "deny", "rule": "negation", "why": ..., ...} */
#include <string.h>

#include "json/json.h"
#include "process/stage_run.h"

static json_t *label_value(stage_run *s)
{
    json_t *o = json_object();
    process_put(s->run, o, "label", json_string(process_fact(s)->label));
    process_put(s->run, o, "score", process_rounded(process_fact(s)->score));
    if (s->results) process_put(s->run, o, "results", json_incref(s->results));
    return o;
}

/* Models write JSON where a schema or the prompt asks for it; other texts are texts. */
static json_t *process_value_text_value(const char *text)
{
    json_t *v = NULL;
    size_t at = strspn(text, " \t\r\n");
    if (text[at] == '{' || text[at] == '[') {
        int rc = json_parse(&v, text, strlen(text), "reply", NULL);
        if (rc == 0) return v;
        if (rc == SHOAL_ENOMEM) return NULL;
    }
    return json_string(text);
}

/* Of rules with their verdict. */
static json_t *calls_value(stage_run *s, bool is_rule)
{
    json_t *o = json_object();
    if (is_rule) process_put(s->run, o, "verdict", json_string(process_fact(s)->label));
    process_put(s->run, o, "text", json_string(process_fact(s)->text));
    process_put(s->run, o, "calls", process_calls(s->run, s));
    return o;
}

bool process_is_result(const config_stage *st)
{
    return pipeline_each(st) || st->schema || st->kind->id == STAGE_HTTP;
}

json_t *process_value(stage_run *s)
{
    const stage_kind *k = s->stage->kind;
    if (k->id == STAGE_TAG || k->id == STAGE_HTTP) return json_incref(s->slots);
    if (k->id == STAGE_RETRIEVE || k->id == STAGE_SCORE)
        return s->results ? json_incref(s->results) : json_array();
    if (k->gives & GIVES_DETAILS) return s->details ? json_incref(s->details) : json_object();
    if (!k->task || s->n_tools) return calls_value(s, !k->task);
    return k->gives & GIVES_PROB ? process_value_text_value(process_fact(s)->text) : label_value(s);
}
