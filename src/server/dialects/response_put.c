/* response_put.c: an answer as the Responses API's object and events (forms: the OpenAI API reference); see
 * responses.h. Every item stays open until the answer ends, so that pieces of several may come in any order.
 */
#include <stdio.h>
#include <string.h>

#include "dialects/answer_impl.h"
#include "messages/event.h"
#include "messages/fields.h"
#include "dialects/responses.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/number.h"

#define HEX(f) (strchr((f)->id, '-') + 1) /* the nonce of "chatcmpl-..." names all ids */

void response_form_init(response_form *r, const response_spec *spec)
{
    *r = (response_form){.spec = spec, .reasoning = -1, .message = -1};
    for (int i = 0; i < ANSWER_CALLS_MAX; i++) r->calls[i] = -1;
}

void response_id(const answer_form *f, char ret[RESPONSE_ID_BYTES])
{
    snprintf(ret, RESPONSE_ID_BYTES, "resp_%s", HEX(f));
}

/* ---- items --------------------------------------------------------------------------------------- */

/* Comma separated entries in the form that chat has them, too. */
static void put_logprobs(buf *out, const buf *entries)
{
    out->failed |= entries->failed;
    buf_puts(out, "\"logprobs\":[");
    buf_append(out, entries->data ? entries->data : "", entries->len);
    buf_putc(out, ']');
}

/* logprobs: of an output_text, else NULL. */
static void put_part(buf *out, const char *type, const buf *text, const buf *logprobs)
{
    buf_printf(out, "{\"type\":\"%s\",\"text\":", type);
    json_put_buf(out, NULL, text);
    if (logprobs) {
        buf_puts(out, ",\"annotations\":[],");
        put_logprobs(out, logprobs);
    }
    buf_putc(out, '}');
}

/* c NULL: it begins, and is empty. */
static void put_reasoning(buf *out, const answer_form *f, const gen_choice *c)
{
    buf_printf(out, "{\"type\":\"reasoning\",\"id\":\"rs_%s\",\"summary\":[],\"content\":[", HEX(f));
    if (c) put_part(out, "reasoning_text", &c->reasoning, NULL);
    buf_printf(out, "],\"status\":\"%s\"}", c ? "completed" : "in_progress");
}

static void put_message(buf *out, const answer_form *f, const gen_choice *c)
{
    const char *status = !c ? "in_progress" : strcmp(c->finish, "length") == 0 ? "incomplete" : "completed";
    buf_printf(
        out, "{\"type\":\"message\",\"id\":\"msg_%s\",\"status\":\"%s\",\"role\":\"assistant\",\"content\":[",
        HEX(f), status);
    if (c) put_part(out, "output_text", &c->text, &c->logprobs[0]);
    buf_puts(out, "]}");
}

static void put_call(buf *out, const answer_form *f, size_t i, const char *name, const gen_choice *c)
{
    char id[ANSWER_CALL_ID_BYTES];
    answer_call_id(id, f, 0, i);
    buf_printf(
        out,
        "{\"type\":\"function_call\",\"id\":\"fc_%s_%zu\",\"call_id\":\"%s\",\"status\":\"%s\",\"name\":",
        HEX(f), i, id, c ? "completed" : "in_progress");
    if (c)
        json_put_buf(out, NULL, &c->calls[i].name);
    else
        json_put_string(out, name, strlen(name));
    buf_puts(out, ",\"arguments\":");
    if (c)
        json_put_buf(out, NULL, &c->calls[i].arguments);
    else
        buf_puts(out, "\"\"");
    buf_putc(out, '}');
}

/* The places that a whole answer's items have, where no event has given them one. */
static void place_items(response_form *r, const gen_choice *c)
{
    if (r->reasoning < 0 && c->reasoning.len > 0) r->reasoning = (int)r->n_items++;
    if (r->message < 0 && (c->text.len > 0 || c->n_calls == 0)) r->message = (int)r->n_items++;
    for (size_t i = 0; i < c->n_calls; i++)
        if (r->calls[i] < 0) r->calls[i] = (int)r->n_items++;
}

static void put_item(buf *out, const answer_form *f, const gen_choice *c, int place)
{
    const response_form *r = f->response;
    if (place == r->reasoning) put_reasoning(out, f, c);
    if (place == r->message) put_message(out, f, c);
    for (size_t i = 0; i < c->n_calls; i++)
        if (place == r->calls[i]) put_call(out, f, i, NULL, c);
}

static void put_items(buf *out, const answer_form *f, const gen_choice *c)
{
    for (unsigned at = 0; at < f->response->n_items; at++) {
        if (at) buf_putc(out, ',');
        put_item(out, f, c, (int)at);
    }
}

/* ---- the object ---------------------------------------------------------------------------------- */

/* What the request said, or what it is when it said nothing. */
static void put_said(buf *out, const json_t *root, const char *key, const char *otherwise)
{
    const json_t *v = fields_get(root, key);
    bool own =
        json_is_string(v) && strcmp(json_string_value(v), "own") == 0; /* no word of OpenAI's objects */
    buf_printf(out, ",\"%s\":", key);
    if (v && !(own && strcmp(key, "tool_choice") == 0))
        json_put(out, v);
    else
        buf_puts(out, otherwise);
}

/* The number that the reply was drawn with. */
static void put_drawn(buf *out, const json_t *root, const char *key, float v)
{
    char number[NUMBER_SIZE];
    number_write(number, (double)v, 6);
    put_said(out, root, key, number);
}

static void put_usage(buf *out, const gen_answer *a)
{
    buf_printf(out,
               ",\"usage\":{\"input_tokens\":%llu,\"input_tokens_details\":{\"cached_tokens\":%llu,"
               "\"cache_write_tokens\":%llu},\"output_tokens\":%llu,\"output_tokens_details\":{\"reasoning_"
               "tokens\":%llu},\"total_tokens\":%llu}",
               (unsigned long long)a->n_prompt, (unsigned long long)a->n_cached,
               (unsigned long long)answer_cache_writes(a), (unsigned long long)a->n_generated,
               (unsigned long long)a->n_reasoning, (unsigned long long)(a->n_prompt + a->n_generated));
}

/* a NULL: it is in progress. */
static void put_object(buf *out, const answer_form *f, const gen_answer *a)
{
    static const struct {
        const char *key, *otherwise;
    } SAID[] = {{"instructions", "null"},
                {"max_output_tokens", "null"},
                {"metadata", "{}"},
                {"parallel_tool_calls", "true"},
                {"text", "{\"format\":{\"type\":\"text\"}}"},
                {"tools", "[]"},
                {"tool_choice", "\"auto\""},
                {"truncation", "\"disabled\""},
                {"user", "null"},
                {"previous_response_id", "null"}};
    const response_spec *s = f->response->spec;
    char id[RESPONSE_ID_BYTES];
    bool cut = a && strcmp(a->choices[0].finish, "length") == 0;
    response_id(f, id);
    buf_printf(out,
               "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,\"status\":\"%s\",\"error\":null",
               id, (long long)f->created,
               !a    ? "in_progress"
               : cut ? "incomplete"
                     : "completed");
    buf_printf(out, ",\"incomplete_details\":%s", cut ? "{\"reason\":\"max_output_tokens\"}" : "null");
    json_put_text(out, "model", f->model);
    buf_puts(out, ",\"output\":[");
    if (a) put_items(out, f, &a->choices[0]);
    buf_putc(out, ']');
    for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++)
        put_said(out, s->root, SAID[i].key, SAID[i].otherwise);
    put_drawn(out, s->root, "temperature", f->sampling->temperature);
    put_drawn(out, s->root, "top_p", f->sampling->top_p);
    buf_puts(out, ",\"background\":false,\"reasoning\":{\"effort\":");
    const json_t *effort = fields_get(fields_get(s->root, "reasoning"), "effort");
    if (effort)
        json_put(out, effort);
    else
        buf_puts(out, "null");
    buf_printf(out, ",\"summary\":null},\"store\":%s", s->store ? "true" : "false");
    if (a)
        put_usage(out, a);
    else
        buf_puts(out, ",\"usage\":null");
    if (a) answer_put_verdict(out, &a->choices[0]);
    if (a && f->degraded && *f->degraded->wanted) {
        buf_putc(out, ',');
        degraded_put(out, f->degraded);
        f->degraded->told = true;
    }
    buf_putc(out, '}');
}

void response_put(buf *out, const answer_form *f, const gen_answer *a)
{
    place_items(f->response, &a->choices[0]);
    put_object(out, f, a);
}

/* ---- events -------------------------------------------------------------------------------------- */

static void typed_event(buf *out, const answer_form *f, const char *type)
{
    event_begin(out, EVENT_DATA, type);
    buf_printf(out, "{\"type\":\"%s\",\"sequence_number\":%u", type, f->response->sequence++);
}

static void typed_end(buf *out)
{
    buf_putc(out, '}');
    event_end(out);
}

static void put_state(buf *out, const answer_form *f, const char *type, const gen_answer *a)
{
    typed_event(out, f, type);
    buf_puts(out, ",\"response\":");
    put_object(out, f, a);
    typed_end(out);
}

void response_put_created(buf *out, const answer_form *f)
{
    put_state(out, f, "response.created", NULL);
    put_state(out, f, "response.in_progress", NULL);
}

/* An event about an item: "type", its id and place, and for parts of it the part's number. */
static void item_event(buf *out, const answer_form *f, const char *type, const char *prefix, int place)
{
    typed_event(out, f, type);
    buf_printf(out, ",\"item_id\":\"%s_%s\",\"output_index\":%d", prefix, HEX(f), place);
}

static void call_event(buf *out, const answer_form *f, const char *type, size_t i)
{
    typed_event(out, f, type);
    buf_printf(out, ",\"item_id\":\"fc_%s_%zu\",\"output_index\":%d", HEX(f), i, f->response->calls[i]);
}

static void part_event(buf *out, const answer_form *f, const char *type, const char *prefix, int place)
{
    item_event(out, f, type, prefix, place);
    buf_puts(out, ",\"content_index\":0");
}

/* Begins an item; the caller puts it. */
static void begin_item(buf *out, const answer_form *f, int *place)
{
    *place = (int)f->response->n_items++;
    typed_event(out, f, "response.output_item.added");
    buf_printf(out, ",\"output_index\":%d,\"item\":", *place);
}

static void begin_part(buf *out, const answer_form *f, const char *prefix, int place, const char *part)
{
    static const buf NONE;
    typed_end(out);
    part_event(out, f, "response.content_part.added", prefix, place);
    buf_puts(out, ",\"part\":");
    put_part(out, part, &NONE, strcmp(part, "output_text") == 0 ? &NONE : NULL);
    typed_end(out);
}

static void begin_message(buf *out, const answer_form *f)
{
    if (f->response->message >= 0) return;
    begin_item(out, f, &f->response->message);
    put_message(out, f, NULL);
    begin_part(out, f, "msg", f->response->message, "output_text");
}

void response_put_text(buf *out, const answer_form *f, const char *text, size_t n)
{
    if (n == 0) return;
    begin_message(out, f);
    part_event(out, f, "response.output_text.delta", "msg", f->response->message);
    buf_puts(out, ",\"logprobs\":[],\"delta\":");
    json_put_string(out, text, n);
    typed_end(out);
}

void response_put_reasoning(buf *out, const answer_form *f, const char *text, size_t n)
{
    response_form *r = f->response;
    if (n == 0) return;
    if (r->reasoning < 0) {
        begin_item(out, f, &r->reasoning);
        put_reasoning(out, f, NULL);
        begin_part(out, f, "rs", r->reasoning, "reasoning_text");
    }
    part_event(out, f, "response.reasoning_text.delta", "rs", r->reasoning);
    json_put_text_n(out, "delta", text, n);
    typed_end(out);
}

void response_put_call(buf *out, const answer_form *f, size_t index, const char *name, const char *arguments,
                       size_t n)
{
    response_form *r = f->response;
    if (index >= ANSWER_CALLS_MAX) return;
    if (r->calls[index] < 0) {
        begin_item(out, f, &r->calls[index]);
        put_call(out, f, index, name ? name : "", NULL);
        typed_end(out);
    }
    if (n == 0) return;
    call_event(out, f, "response.function_call_arguments.delta", index);
    json_put_text_n(out, "delta", arguments, n);
    typed_end(out);
}

static void part_done(buf *out, const answer_form *f, const char *type, const char *prefix, int place,
                      const char *part, const buf *text, const buf *logprobs)
{
    part_event(out, f, type, prefix, place);
    if (logprobs) {
        buf_putc(out, ',');
        put_logprobs(out, logprobs);
    }
    json_put_buf(out, "text", text);
    typed_end(out);
    part_event(out, f, "response.content_part.done", prefix, place);
    buf_puts(out, ",\"part\":");
    put_part(out, part, text, logprobs);
    typed_end(out);
}

void response_put_done(buf *out, const answer_form *f, const gen_answer *a)
{
    const gen_choice *c = &a->choices[0];
    response_form *r = f->response;
    if (c->n_calls == 0) begin_message(out, f); /* an answer without a word has an item, too */
    if (r->reasoning >= 0)
        part_done(out, f, "response.reasoning_text.done", "rs", r->reasoning, "reasoning_text", &c->reasoning,
                  NULL);
    if (r->message >= 0)
        part_done(out, f, "response.output_text.done", "msg", r->message, "output_text", &c->text,
                  &c->logprobs[0]);
    for (size_t i = 0; i < c->n_calls; i++) {
        call_event(out, f, "response.function_call_arguments.done", i);
        json_put_buf(out, "name", &c->calls[i].name);
        json_put_buf(out, "arguments", &c->calls[i].arguments);
        typed_end(out);
    }
    for (unsigned at = 0; at < r->n_items; at++) {
        typed_event(out, f, "response.output_item.done");
        buf_printf(out, ",\"output_index\":%u,\"item\":", at);
        put_item(out, f, c, (int)at);
        typed_end(out);
    }
}

void response_put_end(buf *out, const answer_form *f, const gen_answer *a)
{
    bool cut = strcmp(a->choices[0].finish, "length") == 0;
    put_state(out, f, cut ? "response.incomplete" : "response.completed", a);
}
