/* stage_retrieve.c: retrieve stages: what a collection's documents say about a text. Its text is the
 * passages with their numbers and sources, for prompts; the trace's results say where each stands. */
#include "stages/stages.h"

#include <string.h>

enum { PASSAGES = 4 };

static json_t *passage(const search_hit *h)
{
    const store_piece *p = &h->piece;
    return json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:o}", "source", p->source, "start",
                     (json_int_t)p->start, "end", (json_int_t)p->end, "line", (json_int_t)p->line, "title",
                     p->title, "text", p->text, "score", process_rounded((double)h->found.score));
}

static void take_found(stage_run *s, const find_result *r)
{
    static const char *const names[] = {
#define FOUND_NAME(e, name) [e] = name,
        FOUND_LABELS(FOUND_NAME)
#undef FOUND_NAME
    };
    s->results = json_array();
    buf_puts(&s->label, names[r->n ? FOUND_SOME : FOUND_NONE]);
    if (r->n) process_fact(s)->score = (double)r->v[0].found.score;
    for (size_t i = 0; i < r->n; i++) {
        buf_printf(&s->text, "%s[%zu] %s: %s", i ? "\n" : "", i + 1, r->v[i].piece.source,
                   r->v[i].piece.text);
        process_add(s->run, s->results, passage(&r->v[i]));
    }
    if (r->degraded) s->details = json_pack("{s:s}", "degraded", r->degraded);
}

static void on_found(void *user, const find_result *r)
{
    stage_run *s = user;
    call_result end = r->failed ? *r->failed : process_alone(s->stage, r->status, r->message);
    s->find = NULL;
    if (r->status == 0) take_found(s, r);
    process_settle(s, &end);
}

/* Failures come from the loop, as those of calls do: a search that cannot begin fails the stage all the same.
 */
static int start_retrieve(stage_run *s, const call_context *ctx)
{
    buf text = {0};
    shoal_err err = {0};
    find_ask ask = {.executor = s->run->in->executor,
                    .calls = s->run->calls,
                    .ctx = ctx,
                    .owner = s->run->in->owner,
                    .collection = s->stage->collection,
                    .mode = FIND_HYBRID,
                    .k = s->stage->limit ? s->stage->limit : PASSAGES,
                    .user = s,
                    .done = on_found};
    int rc = process_read(s, &text);
    ask.text = text.data;
    if (rc == 0) rc = find_start(&s->find, &ask, &err);
    buf_done(&text);
    return rc ? SHOAL_ENOMEM : 0;
}

const stage_runner stage_retrieve = {.start = start_retrieve};
