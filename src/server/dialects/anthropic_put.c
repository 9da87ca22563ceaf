/* anthropic_put.c: an answer as Anthropic's object and events, and what else is said in that form; see anthropic.h. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "dialects/anthropic.h"
#include "dialects/answer_impl.h"
#include "json/json.h"
#include "json/json_put.h"
#include "messages/event.h"

#define HEX(f) (strchr((f)->id, '-') + 1) /* the nonce of "chatcmpl-..." names the message, too */

enum { PAGE_USUAL = 20 };

/* ---- the object ---------------------------------------------------------------------------------- */

static const char *stop_reason(const answer_form *f, const gen_choice *c)
{
    if (strcmp(c->finish, "length") == 0) return "max_tokens";
    if (strcmp(c->finish, "tool_calls") == 0) return "tool_use";
    return c->figures.n_stop > 0 && c->figures.n_stop <= f->anthropic->n_stop ? "stop_sequence" : "end_turn";
}

/* c NULL: it has not ended. */
static void put_stop(buf *out, const answer_form *f, const gen_choice *c)
{
    const anthropic_form *a = f->anthropic;
    const char *reason = c ? stop_reason(f, c) : NULL;
    buf_puts(out, "\"stop_reason\":");
    if (!reason) {
        buf_puts(out, "null,\"stop_sequence\":null");
        return;
    }
    buf_printf(out, "\"%s\",\"stop_sequence\":", reason);
    if (strcmp(reason, "stop_sequence") == 0)
        json_put_text(out, NULL, a->stop[c->figures.n_stop - 1]);
    else
        buf_puts(out, "null");
}

/* Of Anthropic's three numbers the sum is the prompt. What is read anew is counted as such: nobody asked to keep it. */
static void put_usage(buf *out, uint64_t n_prompt, uint64_t n_cached, const gen_answer *a)
{
    buf_printf(
        out,
        "\"usage\":{\"input_tokens\":%llu,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":%llu,"
        "\"output_tokens\":%llu",
        (unsigned long long)(n_prompt > n_cached ? n_prompt - n_cached : 0), (unsigned long long)n_cached,
        (unsigned long long)(a ? a->n_generated : 0));
    if (a && a->n_reasoning > 0)
        buf_printf(out, ",\"output_tokens_details\":{\"thinking_tokens\":%llu}",
                   (unsigned long long)a->n_reasoning);
    buf_putc(out, '}');
}

static void put_head(buf *out, const answer_form *f)
{
    buf_printf(out, "{\"id\":\"msg_%s\",\"type\":\"message\",\"role\":\"assistant\"", HEX(f));
    json_put_text(out, "model", f->model);
}

/* Arguments that were cut are no object. */
static void put_input(buf *out, const buf *arguments)
{
    json_t *v = NULL;
    int rc =
        arguments->failed ? SHOAL_ENOMEM : json_parse(&v, buf_text(arguments), arguments->len, "input", NULL);
    out->failed |= rc == SHOAL_ENOMEM;
    if (json_is_object(v))
        buf_append(out, arguments->data, arguments->len);
    else
        buf_puts(out, "{}");
    json_decref(v);
}

static void put_text_block(buf *out, const char *type, const char *key, const buf *text)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "type", type);
    json_put_buf(out, key, text);
    if (strcmp(type, "thinking") == 0) json_put_text(out, "signature", "");
    buf_putc(out, '}');
}

static void put_blocks(buf *out, const answer_form *f, const gen_choice *c)
{
    char id[ANSWER_CALL_ID_BYTES];
    bool thinks = f->anthropic->shows_thinking && (c->reasoning.len > 0 || c->reasoning.failed);
    json_put_open(out, "content", '[');
    if (thinks) put_text_block(out, "thinking", "thinking", &c->reasoning);
    if (c->text.len > 0 || c->text.failed || (c->n_calls == 0 && !thinks))
        put_text_block(out, "text", "text", &c->text);
    for (size_t i = 0; i < c->n_calls; i++) {
        answer_call_id(id, f, 0, i);
        json_put_open(out, NULL, '{');
        json_put_text(out, "type", "tool_use");
        json_put_text(out, "id", id);
        json_put_buf(out, "name", &c->calls[i].name);
        json_put_key(out, "input");
        put_input(out, &c->calls[i].arguments);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

static void put_news(buf *out, const answer_form *f)
{
    if (!f->degraded || !*f->degraded->wanted) return;
    buf_putc(out, ',');
    degraded_put(out, f->degraded);
    f->degraded->told = true;
}

void anthropic_put(buf *out, const answer_form *f, const gen_answer *a)
{
    const gen_choice *c = &a->choices[0];
    put_head(out, f);
    put_blocks(out, f, c);
    buf_putc(out, ',');
    put_stop(out, f, c);
    buf_putc(out, ',');
    put_usage(out, a->n_prompt, a->n_cached, a);
    answer_put_verdict(out, c);
    put_news(out, f);
    buf_putc(out, '}');
}

/* ---- events -------------------------------------------------------------------------------------- */

static void typed_event(buf *out, const char *type)
{
    event_begin(out, EVENT_DATA, type);
    buf_printf(out, "{\"type\":\"%s\"", type);
}

static void typed_end(buf *out)
{
    buf_putc(out, '}');
    event_end(out);
}

void anthropic_put_start(buf *out, const answer_form *f, const gen_answer *a)
{
    uint64_t n = a->n_prompt ? a->n_prompt : a->choices[0].figures.n_prompt;
    typed_event(out, "message_start");
    json_put_key(out, "message");
    put_head(out, f);
    buf_puts(out, ",\"content\":[],");
    put_stop(out, f, NULL);
    buf_putc(out, ',');
    put_usage(out, n, 0, NULL);
    buf_putc(out, '}');
    put_news(out, f);
    typed_end(out);
    typed_event(out, "ping");
    typed_end(out);
}

static void indexed_event(buf *out, const char *type, unsigned index)
{
    typed_event(out, type);
    buf_printf(out, ",\"index\":%u", index);
}

static void end_block(buf *out, anthropic_form *a)
{
    if (a->open == ANTHROPIC_NONE) return;
    indexed_event(out, "content_block_stop", a->n_blocks - 1);
    typed_end(out);
    a->open = ANTHROPIC_NONE;
}

/* The caller puts the block itself, and typed_end. */
static void begin_block(buf *out, anthropic_form *a, anthropic_block what)
{
    end_block(out, a);
    a->open = what;
    indexed_event(out, "content_block_start", a->n_blocks++);
    json_put_key(out, "content_block");
}

static void put_piece(buf *out, const anthropic_form *a, const char *type, const char *key, const char *s,
                      size_t n)
{
    indexed_event(out, "content_block_delta", a->n_blocks - 1);
    buf_printf(out, ",\"delta\":{\"type\":\"%s\"", type);
    json_put_text_n(out, key, s, n);
    buf_putc(out, '}');
    typed_end(out);
}

void anthropic_put_text(buf *out, const answer_form *f, const char *text, size_t n)
{
    anthropic_form *a = f->anthropic;
    if (n == 0) return;
    if (a->open != ANTHROPIC_TEXT) {
        begin_block(out, a, ANTHROPIC_TEXT);
        buf_puts(out, "{\"type\":\"text\",\"text\":\"\"}");
        typed_end(out);
    }
    put_piece(out, a, "text_delta", "text", text, n);
}

void anthropic_put_thinking(buf *out, const answer_form *f, const char *text, size_t n)
{
    anthropic_form *a = f->anthropic;
    if (n == 0 || !a->shows_thinking) return;
    if (a->open != ANTHROPIC_THINKING) {
        begin_block(out, a, ANTHROPIC_THINKING);
        buf_puts(out, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
        typed_end(out);
    }
    put_piece(out, a, "thinking_delta", "thinking", text, n);
}

void anthropic_put_call(buf *out, const answer_form *f, size_t index, const char *name, const char *arguments,
                        size_t n)
{
    anthropic_form *a = f->anthropic;
    char id[ANSWER_CALL_ID_BYTES];
    if (index >= ANSWER_CALLS_MAX) return;
    if (a->open != ANTHROPIC_TOOL || a->open_call != index) {
        answer_call_id(id, f, 0, index);
        begin_block(out, a, ANTHROPIC_TOOL);
        a->open_call = index;
        buf_printf(out, "{\"type\":\"tool_use\",\"id\":\"%s\"", id);
        json_put_text(out, "name", name ? name : "");
        buf_puts(out, ",\"input\":{}}");
        typed_end(out);
    }
    if (n > 0) put_piece(out, a, "input_json_delta", "partial_json", arguments, n);
}

void anthropic_put_end(buf *out, const answer_form *f, const gen_answer *a)
{
    anthropic_form *form = f->anthropic;
    if (form->n_blocks == 0) { /* an answer without a word has a block, too */
        begin_block(out, form, ANTHROPIC_TEXT);
        buf_puts(out, "{\"type\":\"text\",\"text\":\"\"}");
        typed_end(out);
    }
    end_block(out, form);
    typed_event(out, "message_delta");
    buf_puts(out, ",\"delta\":{");
    put_stop(out, f, &a->choices[0]);
    buf_puts(out, "},");
    put_usage(out, a->n_prompt, a->n_cached, a);
    answer_put_verdict(out, &a->choices[0]);
    put_news(out, f);
    typed_end(out);
    typed_event(out, "message_stop");
    typed_end(out);
}

/* ---- errors -------------------------------------------------------------------------------------- */

static const char *error_type(int status)
{
    static const struct {
        int status;
        const char *type;
    } ROWS[] = {{401, "authentication_error"}, {403, "permission_error"},  {404, "not_found_error"},
                {409, "conflict_error"},       {413, "request_too_large"}, {429, "rate_limit_error"},
                {503, "overloaded_error"},     {504, "timeout_error"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (ROWS[i].status == status) return ROWS[i].type;
    return status >= 500 ? "api_error" : "invalid_request_error";
}

void anthropic_put_error(buf *out, const api_error *e, const char *request_id)
{
    static const api_error_name ROWS[] = {
        {"stop", "\"stop\"", "\"stop_sequences\""},
        {"response_format", "response_format.json_schema", "output_config.format"},
        {"response_format", "response_format", "output_config.format"},
        {"tools", ".function.parameters", ".input_schema"},
        {"tools", "/function/parameters", "/input_schema"},
        {"tools", ".function.", "."},
        {"tool_choice", "\"function\":{\"name\"}", "\"name\""},
    };
    api_error named = *e;
    api_error_rename(&named, ROWS, sizeof ROWS / sizeof *ROWS);
    buf_puts(out, "{\"type\":\"error\",\"error\":{");
    json_put_text(out, "type", error_type(e->status));
    json_put_text(out, "message", named.message);
    if (e->code) {
        json_put_open(out, "details", '{');
        json_put_text(out, "error_code", e->code);
        buf_putc(out, '}');
    }
    buf_puts(out, "},\"request_id\":");
    if (request_id && *request_id)
        json_put_text(out, NULL, request_id);
    else
        buf_puts(out, "null");
    buf_putc(out, '}');
}

/* ---- models -------------------------------------------------------------------------------------- */

/* RFC 3339, as Anthropic writes it. */
static void put_time(buf *out, const char *key, int64_t unix_s)
{
    char text[32] = "1970-01-01T00:00:00Z";
    time_t t = (time_t)unix_s;
    struct tm tm;
    if (unix_s > 0 && gmtime_r(&t, &tm)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_put_text(out, key, text);
}

void anthropic_put_model(buf *out, const json_t *ours)
{
    const char *id = json_text_of(ours, "id");
    int64_t context = json_integer_of(ours, "context_length");
    json_put_open(out, NULL, '{');
    json_put_text(out, "type", "model");
    json_put_text(out, "id", id);
    json_put_text(out, "display_name", id);
    put_time(out, "created_at", json_integer_of(ours, "created"));
    json_put_text(out, "lifecycle", "active");
    if (context > 0)
        buf_printf(out, ",\"max_input_tokens\":%lld,\"max_tokens\":%lld", (long long)context,
                   (long long)context);
    buf_putc(out, '}');
}

/* Where the entry of this id is; n: nowhere. */
static size_t find_model(const json_t *data, const char *id)
{
    size_t n = json_array_size(data), i = 0;
    while (i < n && strcmp(json_text_of(json_array_get(data, i), "id"), id) != 0) i++;
    return i;
}

int anthropic_put_models(buf *out, const json_t *ours, const anthropic_page *page)
{
    const json_t *data = json_object_get(ours, "data");
    size_t n = json_array_size(data), limit = page->limit ? page->limit : PAGE_USUAL, from = 0, to = n;
    if (!json_is_array(data)) return SHOAL_EPROTOCOL;
    if (page->after_id) from = find_model(data, page->after_id) + 1;
    if (page->before_id) to = find_model(data, page->before_id);
    if (from > to) from = to;
    bool more = to - from > limit;
    if (more && page->before_id && !page->after_id)
        from = to - limit;
    else if (more)
        to = from + limit;
    buf_puts(out, "{\"data\":[");
    for (size_t i = from; i < to; i++) anthropic_put_model(out, json_array_get(data, i));
    buf_printf(out, "],\"has_more\":%s,\"first_id\":", more ? "true" : "false");
    for (size_t k = 0; k < 2; k++) {
        if (k) buf_puts(out, ",\"last_id\":");
        if (from < to)
            json_put_text(out, NULL, json_text_of(json_array_get(data, k ? to - 1 : from), "id"));
        else
            buf_puts(out, "null");
    }
    buf_putc(out, '}');
    return out->failed ? SHOAL_ENOMEM : 0;
}
