/* stage_transcribe.c: transcribe stages: what is said in the sound of a request. Later stages read it as
 * the input (pipeline_input); silence comes to an empty text, after which none of them runs. */
#include <math.h>
#include <stdio.h>

#include "stages/stages.h"

#define PROMPT_MAX_BYTES 8192 /* what a worker takes (worker/service_transcribe.c) */

static void add_segment(stage_run *s, const Shoal__V1__TranscriptSegment *g)
{
    buf_puts(&s->text, g->text);
    s->sum_logprob += g->avg_logprob * (double)g->n_ids;
    s->n_heard_tokens += (double)g->n_ids;
}

static void note_done(stage_run *s, const Shoal__V1__TranscribeDone *d)
{
    s->n_generated = d->n_generated;
    s->times = (stage_times){true, d->queue_ms, d->encode_ms, d->decode_ms, d->cpu_ms};
    buf_puts(&s->label, d->language);
    s->details = json_object();
    if (!s->details) s->text.failed = true;
    if (*d->language) process_put(s->run, s->details, "language", json_string(d->language));
    process_put(s->run, s->details, "duration", process_rounded((double)d->duration_ms / 1000));
}

static void transcribe_on_event(void *user, const Shoal__V1__TranscribeEvent *ev)
{
    stage_run *s = user;
    if (ev->segment) add_segment(s, ev->segment);
    if (ev->done && !s->details) note_done(s, ev->done);
}

static bool transcribe_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Segments begin with a blank, as the model writes them. */
static void trim(buf *b)
{
    size_t front = 0;
    while (b->len && transcribe_is_blank(b->data[b->len - 1])) b->data[--b->len] = '\0';
    while (front < b->len && transcribe_is_blank(b->data[front])) front++;
    if (front) buf_consume(b, front);
}

/* Later stages are made for what people type. */
static void settle_too_long(stage_run *s, const call_result *r)
{
    call_result failed = *r;
    char message[128];
    snprintf(message, sizeof message,
             "%zu bytes of text were heard, a pipeline takes at most %d: send less sound", s->text.len,
             PIPELINE_INPUT_MAX_BYTES);
    failed.status = SHOAL_EINVALID;
    failed.message = message;
    process_settle(s, &failed);
}

static void transcribe_on_end(void *user, const call_result *r)
{
    stage_run *s = user;
    trim(&s->text);
    if (s->n_heard_tokens > 0) process_fact(s)->mean_prob = exp(s->sum_logprob / s->n_heard_tokens);
    if (r->status == 0 && !s->details && !s->text.failed)
        process_settle_broken(s, r, "the worker ended without a result");
    else if (r->status == 0 && s->text.len > PIPELINE_INPUT_MAX_BYTES)
        settle_too_long(s, r);
    else
        process_settle(s, r);
}

/* Hints of spelling: what a worker does not take is left out, at the end of a whole letter. */
static void cut_hints(buf *b)
{
    if (b->len <= PROMPT_MAX_BYTES) return;
    b->len = PROMPT_MAX_BYTES;
    while (b->len && ((unsigned char)b->data[b->len] & 0xC0) == 0x80) b->len--;
    b->data[b->len] = '\0';
}

static int start_transcribe(stage_run *s, const call_context *ctx)
{
    Shoal__V1__TranscribeRequest req = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    calls_transcribe_events ev = {.user = s, .event = transcribe_on_event, .end = transcribe_on_end};
    pipeline_facts facts = process_facts(s);
    buf prompt = {0};
    const char *template = s->stage->prompt ? s->stage->prompt : "";
    int rc = pipeline_expand(s->run->in->pipeline, template, &facts, &prompt);
    req.audio = process_file_of(s);
    req.translate = s->stage->translate;
    if (s->stage->language) req.language = (char *)s->stage->language;
    cut_hints(&prompt);
    if (prompt.len) req.prompt = prompt.data;
    if (rc == 0) s->call = calls_transcribe(s->run->calls, s->stage->model, &req, ctx, &ev);
    buf_done(&prompt);
    return s->call ? 0 : SHOAL_ENOMEM;
}

const stage_runner stage_transcribe = {.start = start_transcribe};
