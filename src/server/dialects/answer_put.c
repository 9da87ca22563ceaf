/* answer_put.c: a reply as OpenAI's object and as its stream of chunks (forms: the OpenAI API reference); see
 * answer.h. Written straight into a buf. The id of a tool call follows from salt, choice and index: nothing
 * is kept for it. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "messages/event.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/number.h"
#include "dialects/answer_impl.h"
#include "dialects/anthropic.h"
#include "dialects/llama.h"
#include "dialects/logprobs.h"
#include "dialects/responses.h"

enum { HEAD_USUAL = 400 }; /* bytes of an object around a piece of text */

void answer_form_init(answer_form *f, const gen_spec *s, const char *digest, int64_t created)
{
    uint8_t nonce[STREAM_NONCE_BYTES];
    rng_draw(nonce, sizeof nonce);
    *f = (answer_form){.chat = s->chat,
                       .functions = s->functions,
                       .texts = s->texts,
                       .include_usage = s->include_usage,
                       .n_each = s->n,
                       .model = s->model,
                       .sampling = &s->sampling,
                       .llama = s->llama,
                       .anthropic = s->anthropic};
    answer_form_name(f, nonce, created);
    answer_form_digest(f, digest);
}

void answer_form_digest(answer_form *f, const char *digest)
{
    if (!digest || !*digest) /* a pipeline answered, which has no file */
        snprintf(f->fingerprint, sizeof f->fingerprint, "null");
    else
        snprintf(f->fingerprint, sizeof f->fingerprint, "\"fp_%.12s\"", digest);
}

void answer_form_name(answer_form *f, const uint8_t nonce[STREAM_NONCE_BYTES], int64_t created)
{
    uint64_t r;
    memcpy(&r, nonce, sizeof r);
    int n = snprintf(f->id, sizeof f->id, "%s-", f->chat ? "chatcmpl" : "cmpl");
    for (int i = 0; i < STREAM_NONCE_BYTES; i++, n += 2)
        snprintf(f->id + n, sizeof f->id - (size_t)n, "%02x", nonce[i]);
    f->salt = rng_mix(r);
    f->created = created;
}

/* {"id":...,"system_fingerprint":...,"choices":[ */
static void put_head(buf *out, const answer_form *f, const char *object)
{
    buf_reserve(out, HEAD_USUAL);
    buf_puts(out, "{\"id\":\"");
    buf_puts(out, f->id);
    buf_puts(out, "\",\"object\":\"");
    buf_puts(out, object);
    buf_puts(out, "\",\"created\":");
    number_put_i64(out, f->created);
    json_put_text(out, "model", f->model);
    buf_puts(out, ",\"system_fingerprint\":");
    buf_puts(out, f->fingerprint);
    buf_puts(out, ",\"choices\":[");
}

static void put_details(buf *out, const gen_answer *a)
{
    buf_puts(out, ",\"completion_tokens_details\":{");
    if (a->n_reasoning > 0)
        buf_printf(out, "\"reasoning_tokens\":%llu%s", (unsigned long long)a->n_reasoning,
                   a->n_drafted > 0 ? "," : "");
    if (a->n_drafted > 0)
        buf_printf(out, "\"accepted_prediction_tokens\":%llu,\"rejected_prediction_tokens\":%llu",
                   (unsigned long long)a->n_accepted, (unsigned long long)(a->n_drafted - a->n_accepted));
    buf_putc(out, '}');
}

uint64_t answer_cache_writes(const gen_answer *a)
{
    return a->n_cached < a->n_prompt ? a->n_prompt - a->n_cached : 0;
}

static void put_usage(buf *out, const gen_answer *a)
{
    buf_printf(out,
               "\"usage\":{\"prompt_tokens\":%llu,\"completion_tokens\":%llu,\"total_tokens\":%llu,"
               "\"prompt_tokens_details\":{\"cached_tokens\":%llu,\"cache_write_tokens\":%llu}",
               (unsigned long long)a->n_prompt, (unsigned long long)a->n_generated,
               (unsigned long long)(a->n_prompt + a->n_generated), (unsigned long long)a->n_cached,
               (unsigned long long)answer_cache_writes(a));
    if (a->n_reasoning + a->n_drafted > 0) put_details(out, a);
    buf_putc(out, '}');
}

void answer_call_id(char ret[ANSWER_CALL_ID_BYTES], const answer_form *f, size_t k, size_t index)
{
    uint64_t x = rng_mix(f->salt + (uint64_t)k * ANSWER_CALLS_MAX + index);
    snprintf(ret, ANSWER_CALL_ID_BYTES, "%s_%016llx%08x", f->anthropic ? "toolu" : "call",
             (unsigned long long)x, (unsigned)rng_mix(x));
}

static void put_call_id(buf *out, const answer_form *f, size_t k, size_t index)
{
    char id[ANSWER_CALL_ID_BYTES];
    answer_call_id(id, f, k, index);
    buf_printf(out, "\"id\":\"%s\",\"type\":\"function\"", id);
}

/* ---- whole --------------------------------------------------------------------------------------- */

/* The older form of a call; it allows one, and no id. */
static void put_function_call(buf *out, const gen_call *call)
{
    buf_puts(out, ",\"function_call\":{\"name\":");
    json_put_buf(out, NULL, &call->name);
    json_put_buf(out, "arguments", &call->arguments);
    buf_putc(out, '}');
}

static void put_calls(buf *out, const answer_form *f, const gen_choice *c, size_t k)
{
    if (c->n_calls == 0) return;
    buf_puts(out, ",\"tool_calls\":[");
    for (size_t i = 0; i < c->n_calls; i++) {
        buf_puts(out, i ? ",{" : "{");
        put_call_id(out, f, k, i);
        buf_puts(out, ",\"function\":{\"name\":");
        json_put_buf(out, NULL, &c->calls[i].name);
        json_put_buf(out, "arguments", &c->calls[i].arguments);
        buf_puts(out, "}}");
    }
    buf_putc(out, ']');
}

void answer_put_kept(buf *out, const answer_form *f, const gen_choice *c, size_t k)
{
    buf_puts(out, "{\"role\":\"assistant\",\"content\":");
    json_put_buf(out, NULL, &c->text);
    put_calls(out, f, c, k);
    buf_putc(out, '}');
}

static const char *finish_of(const answer_form *f, const gen_choice *c)
{
    return f->functions && strcmp(c->finish, "tool_calls") == 0 ? "function_call" : c->finish;
}

static void put_choice(buf *out, const answer_form *f, const gen_choice *c, size_t k)
{
    buf_printf(out, "%s{\"index\":%zu,", k ? "," : "", k);
    if (!f->chat) {
        json_put_buf(out, "text", &c->text);
    } else {
        buf_puts(out, "\"message\":{\"role\":\"assistant\",\"content\":");
        if (c->text.len == 0 && !c->text.failed && c->n_calls > 0)
            buf_puts(out, "null");
        else
            json_put_buf(out, NULL, &c->text);
        if (c->reasoning.len > 0 || c->reasoning.failed)
            json_put_buf(out, "reasoning_content", &c->reasoning);
        if (f->functions && c->n_calls > 0)
            put_function_call(out, &c->calls[0]);
        else
            put_calls(out, f, c, k);
        buf_puts(out, ",\"refusal\":null}");
    }
    buf_puts(out, ",\"logprobs\":");
    logprobs_put(out, f->chat, c->logprobs);
    buf_printf(out, ",\"finish_reason\":\"%s\"", finish_of(f, c));
    answer_put_verdict(out, c);
    buf_putc(out, '}');
}

/* A list of texts, one for each that came in. */
static void put_texts(buf *out, const answer_form *f, const gen_answer *a)
{
    buf_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", f->id, f->texts,
               (long long)f->created);
    json_put_string(out, f->model, strlen(f->model));
    buf_puts(out, ",\"data\":[");
    for (size_t k = 0; k < a->n; k++) {
        buf_printf(out, "%s{\"index\":%zu,\"text\":", k ? "," : "", k);
        json_put_buf(out, NULL, &a->choices[k].text);
        buf_printf(out, ",\"finish_reason\":\"%s\"}", a->choices[k].finish);
    }
    buf_puts(out, "],");
    put_usage(out, a);
    buf_putc(out, '}');
}

void answer_put(buf *out, const answer_form *f, const gen_answer *a)
{
    if (f->texts) {
        put_texts(out, f, a);
        return;
    }
    if (f->llama) {
        llama_put(out, f, a);
        return;
    }
    if (f->response) {
        response_put(out, f, a);
        return;
    }
    if (f->anthropic) {
        anthropic_put(out, f, a);
        return;
    }
    put_head(out, f, f->chat ? "chat.completion" : "text_completion");
    for (size_t k = 0; k < a->n; k++) put_choice(out, f, &a->choices[k], k);
    buf_puts(out, "],");
    put_usage(out, a);
    buf_putc(out, '}');
}

/* ---- streamed ------------------------------------------------------------------------------------ */

/* The id says what has been sent once this event is. */
static void chunk_event(buf *out, const answer_form *f)
{
    if (f->events && !f->events->untold) stream_id_put(out, f->events);
    event_begin(out, EVENT_DATA, NULL);
}

static void mark_text(const answer_form *f, size_t k, mark_part part, const char *s, size_t n)
{
    if (f->events) stream_mark_text(&f->events->marks[k], part, s, n);
}

static void chunk_begin(buf *out, const answer_form *f, size_t k)
{
    chunk_event(out, f);
    put_head(out, f, f->chat ? "chat.completion.chunk" : "text_completion");
    buf_puts(out, "{\"index\":");
    number_put_u64(out, k);
    buf_putc(out, ',');
}

/* As vLLM's "continuous_usage_stats" has it; of an answer that came whole, all of it. */
static void put_usage_so_far(buf *out, const answer_form *f)
{
    const gen_answer *a = f->counted;
    uint64_t n_prompt = 0, n = 0;
    for (size_t k = 0; k < a->n; k++) {
        n += a->choices[k].n_so_far;
        if (k % f->n_each == 0) n_prompt += a->choices[k].n_prompt_so_far;
    }
    if (n_prompt == 0) {
        n_prompt = a->n_prompt;
        n = a->n_generated;
    }
    buf_printf(out, ",\"usage\":{\"prompt_tokens\":%llu,\"completion_tokens\":%llu,\"total_tokens\":%llu}",
               (unsigned long long)n_prompt, (unsigned long long)n, (unsigned long long)(n_prompt + n));
}

/* parts NULL: no log-probabilities. ended NULL: the choice goes on. */
static void chunk_end(buf *out, const answer_form *f, const buf *parts, const gen_choice *ended)
{
    static const buf NONE[ANSWER_LOGPROB_PARTS];
    buf_puts(out, ",\"logprobs\":");
    logprobs_put(out, f->chat, parts ? parts : NONE);
    if (ended) {
        buf_printf(out, ",\"finish_reason\":\"%s\"", finish_of(f, ended));
        answer_put_verdict(out, ended);
        buf_puts(out, "}]");
    } else {
        buf_puts(out, ",\"finish_reason\":null}]");
    }
    if (f->degraded && *f->degraded->wanted && (ended || !f->degraded->told)) {
        buf_putc(out, ',');
        degraded_put(out, f->degraded);
        f->degraded->told = true;
    }
    if (f->counted)
        put_usage_so_far(out, f);
    else if (f->include_usage)
        buf_puts(out, ",\"usage\":null");
    buf_putc(out, '}');
    event_end(out);
}

void answer_put_role(buf *out, const answer_form *f, gen_answer *a, size_t k)
{
    if (a->choices[k].role_sent) return;
    a->choices[k].role_sent = true;
    if (!f->chat) return;
    if (f->response) {
        response_put_created(out, f);
        return;
    }
    if (f->anthropic) {
        anthropic_put_start(out, f, a);
        return;
    }
    if (f->events) f->events->marks[k].begun = true;
    chunk_begin(out, f, k);
    buf_puts(out, "\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}");
    chunk_end(out, f, NULL, NULL);
}

void answer_put_text_chunk(buf *out, const answer_form *f, size_t k, const char *text, size_t n,
                           const buf *parts, size_t n_logprobs)
{
    if (f->response) {
        response_put_text(out, f, text, n);
        return;
    }
    if (f->anthropic) {
        anthropic_put_text(out, f, text, n);
        return;
    }
    mark_text(f, k, MARK_TEXT, text, n);
    if (f->events) f->events->marks[k].n_logprobs += (uint32_t)n_logprobs;
    chunk_begin(out, f, k);
    buf_puts(out, f->chat ? "\"delta\":{\"content\":" : "\"text\":");
    json_put_string(out, text, n);
    if (f->chat) buf_putc(out, '}');
    chunk_end(out, f, parts, NULL);
}

void answer_put_reasoning_chunk(buf *out, const answer_form *f, size_t k, const char *text, size_t n)
{
    if (n == 0 || !f->chat) return;
    if (f->response) {
        response_put_reasoning(out, f, text, n);
        return;
    }
    if (f->anthropic) {
        anthropic_put_thinking(out, f, text, n);
        return;
    }
    mark_text(f, k, MARK_REASONING, text, n);
    chunk_begin(out, f, k);
    buf_puts(out, "\"delta\":{\"reasoning_content\":");
    json_put_string(out, text, n);
    buf_putc(out, '}');
    chunk_end(out, f, NULL, NULL);
}

static void put_function_chunk(buf *out, const answer_form *f, size_t k, const char *name,
                               const char *arguments, size_t n)
{
    chunk_begin(out, f, k);
    buf_puts(out, "\"delta\":{\"function_call\":{");
    if (name) {
        json_put_text(out, "name", name);
        buf_putc(out, ',');
    }
    json_put_text_n(out, "arguments", arguments, n);
    buf_puts(out, "}}");
    chunk_end(out, f, NULL, NULL);
}

void answer_put_call_chunk(buf *out, const answer_form *f, size_t k, size_t index, const char *name,
                           const char *arguments, size_t n)
{
    if (f->response) {
        response_put_call(out, f, index, name, arguments, n);
        return;
    }
    if (f->anthropic) {
        anthropic_put_call(out, f, index, name, arguments, n);
        return;
    }
    if (name) mark_text(f, k, MARK_CALLS, name, strlen(name));
    mark_text(f, k, MARK_CALLS, arguments, n);
    if (f->functions) {
        if (index == 0) put_function_chunk(out, f, k, name, arguments, n);
        return;
    }
    chunk_begin(out, f, k);
    buf_printf(out, "\"delta\":{\"tool_calls\":[{\"index\":%zu,", index);
    if (name) {
        put_call_id(out, f, k, index);
        buf_puts(out, ",\"function\":{\"name\":");
        json_put_string(out, name, strlen(name));
        buf_puts(out, ",\"arguments\":");
    } else {
        buf_puts(out, "\"function\":{\"arguments\":");
    }
    json_put_string(out, arguments, n);
    buf_puts(out, "}}]}");
    chunk_end(out, f, NULL, NULL);
}

void answer_put_delta(buf *out, const answer_form *f, gen_answer *a, const gen_spec *s, size_t k,
                      const Shoal__V1__Delta *d)
{
    if (f->llama) {
        llama_put_delta(out, f, a, k, d);
        return;
    }
    answer_put_role(out, f, a, k);
    if (d->reasoning.len > 0)
        answer_put_reasoning_chunk(out, f, k, (const char *)d->reasoning.data, d->reasoning.len);
    if (d->text.len > 0 || d->n_logprobs) {
        buf parts[ANSWER_LOGPROB_PARTS] = {{0}};
        if (d->n_logprobs) logprobs_add(parts, s, d, a->choices[k].offset - logprobs_chars(d));
        answer_put_text_chunk(out, f, k, (const char *)d->text.data, d->text.len, parts, d->n_logprobs);
        for (int i = 0; i < ANSWER_LOGPROB_PARTS; i++) buf_done(&parts[i]);
    }
    for (size_t i = 0; i < d->n_tool_calls; i++) {
        const Shoal__V1__ToolCallDelta *t = d->tool_calls[i];
        const char *args = t->arguments ? t->arguments : "";
        answer_put_call_chunk(out, f, k, t->index, t->name && *t->name ? t->name : NULL, args, strlen(args));
    }
}

void answer_put_finish(buf *out, const answer_form *f, gen_answer *a, size_t k)
{
    if (f->llama) {
        llama_put_finish(out, f, a, k);
        return;
    }
    if (f->response) {
        response_put_done(out, f, a);
        return;
    }
    if (f->anthropic) return; /* its end says it */
    if (f->events) f->events->marks[k].finished = true;
    chunk_begin(out, f, k);
    buf_puts(out, f->chat ? "\"delta\":{}" : "\"text\":\"\"");
    chunk_end(out, f, NULL, &a->choices[k]);
}

void answer_put_refined(buf *out, const answer_form *f, const gen_answer *a, size_t k,
                        const Shoal__V1__Refined *r)
{
    event_begin(out, EVENT_DATA, "refine");
    buf_printf(out, "{\"id\":\"%s\",\"object\":\"%s.refined\",\"created\":%lld,\"model\":", f->id,
               f->chat ? "chat.completion" : "text_completion", (long long)f->created);
    json_put_string(out, r->model, strlen(r->model));
    buf_printf(out, ",\"choices\":[{\"index\":%zu,\"replaces\":{\"start\":0,\"end\":%zu},", k,
               a->choices[k].n_refined);
    buf_puts(out, f->chat ? "\"message\":{\"role\":\"assistant\",\"content\":" : "\"text\":");
    json_put_string(out, r->text, strlen(r->text));
    buf_puts(out, f->chat ? "}}]}" : "}]}");
    event_end(out);
}

void answer_put_end(buf *out, const answer_form *f, const gen_answer *a)
{
    if (f->llama) return; /* a choice's last object is its end */
    if (f->response) {
        response_put_end(out, f, a);
        return;
    }
    if (f->anthropic) {
        anthropic_put_end(out, f, a);
        return;
    }
    if (f->include_usage) {
        if (f->events) f->events->usage_sent = true;
        chunk_event(out, f);
        put_head(out, f, f->chat ? "chat.completion.chunk" : "text_completion");
        buf_puts(out, "],");
        put_usage(out, a);
        buf_putc(out, '}');
        event_end(out);
    }
    event_put_done(out);
}
