/* stage_fill_mask.c: fill-mask stages: the word that stands in the gap of a text.
 *
 * The gap is the template's own ("{input} It was [MASK]."): those that the request brings come before or
 * after it and are not looked at. A template without one reads the first of the request. */
#include <string.h>

#include "stages/stage_write.h"

/* Where the first gap of text begins, as people write them (infer/decoding/mask_slots.h); NULL: none. *ret_n: its bytes. */
static const char *find_gap(const char *text, size_t *ret_n)
{
    const char *a = strstr(text, "[MASK]"), *b = strstr(text, "<mask>");
    *ret_n = 6;
    return !a || (b && b < a) ? b : a;
}

/* How many gaps the request brings before the template's own. SHOAL_ENOMEM, or 0. */
static int gaps_before(const stage_run *s, size_t *ret)
{
    size_t n;
    *ret = 0;
    const char *at = s->stage->input ? find_gap(s->stage->input, &n) : NULL;
    if (!at) return 0;
    pipeline_facts facts = process_facts(s);
    char *part = arena_strndup(s->run->memory, s->stage->input, (size_t)(at - s->stage->input));
    buf text = {0};
    int rc = part ? pipeline_expand(s->run->in->pipeline, part, &facts, &text) : SHOAL_ENOMEM;
    for (const char *p = rc == 0 && text.len ? text.data : ""; (p = find_gap(p, &n)); p += n) ++*ret;
    buf_done(&text);
    return rc;
}

static void put_guesses(stage_run *s, const Shoal__V1__Gap *gap)
{
    s->results = json_array();
    if (!s->results) s->run->lacks_memory = true;
    for (size_t i = 0; s->results && i < gap->n_guesses; i++) {
        json_t *o = json_object();
        process_put(s->run, o, "label", json_string(gap->guesses[i]->token));
        process_put(s->run, o, "score", process_rounded((double)gap->guesses[i]->score));
        process_add(s->run, s->results, o);
    }
}

static const char *take_guesses(stage_run *s, const ProtobufCMessage *reply)
{
    const Shoal__V1__FillMaskReply *r = (const Shoal__V1__FillMaskReply *)reply;
    size_t which = 0;
    if (gaps_before(s, &which)) {
        s->label.failed = true;
        return NULL;
    }
    if (r->n_results != 1 || r->results[0]->n_gaps <= which || r->results[0]->gaps[which]->n_guesses == 0)
        return "the worker sent no word for the gap";
    const Shoal__V1__Gap *gap = r->results[0]->gaps[which];
    buf_puts(&s->label, gap->guesses[0]->token);
    buf_puts(&s->text, gap->guesses[0]->sequence);
    process_fact(s)->score = (double)gap->guesses[0]->score;
    s->n_prompt = r->results[0]->n_tokens;
    put_guesses(s, gap);
    return NULL;
}

const stage_runner stage_fill_mask = {.start = stage_ask_text, .task = CALL_FILL_MASK, .take = take_guesses};
