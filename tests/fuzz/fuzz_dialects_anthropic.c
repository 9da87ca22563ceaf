/* Bodies of Anthropic's Messages API: a refusal is a 4xx with a sentence; what is taken is a chat request that chat
 * takes or refuses, and its answer is an object and events that are JSON, in which every block that begins also ends.
 * And bytes as our own list of models: what is put of them is JSON. The first byte chooses the endpoint. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/anthropic.h"
#include "json/json.h"
#include "../server/messages/sse.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was put is JSON. */
static void check_json(const char *text, size_t n)
{
    json_t *o = NULL;
    holds(json_parse(&o, text, n, "what was put", NULL) == 0);
    json_decref(o);
}

static void refused(const api_error *e, int rc)
{
    buf out = {0};
    if (rc != e->status || rc < 400 || !e->message[0]) abort();
    holds(rc <= 499);
    anthropic_put_error(&out, e, "r");
    if (holds(!out.failed)) check_json(out.data, out.len);
    buf_done(&out);
}

static size_t count(const buf *b, const char *what)
{
    size_t n = 0;
    for (const char *at = b->data; at && (at = strstr(at, what)); at++) n++;
    return n;
}

static void check_events(buf *out)
{
    sse_of(out);
    buf_putc(out, '\0');
    if (out->failed) return;
    for (const char *at = out->data; at && (at = strstr(at, "\ndata: "));) {
        at += strlen("\ndata: ");
        check_json(at, strcspn(at, "\n"));
    }
    size_t begun = count(out, "event: content_block_start");
    if (begun == 0 || begun != count(out, "event: content_block_stop")) abort();
}

/* An answer with all that an answer can have, some of it the request's own bytes. */
static void answer(const gen_spec *g, const uint8_t *data, size_t size)
{
    gen_answer a;
    answer_form f;
    buf out = {0};
    if (answer_init(&a, 1) != 0) return;
    gen_choice *c = &a.choices[0];
    answer_form_init(&f, g, "digest", 1);
    if (size % 2) buf_append(&c->text, data, size);
    if (size % 3) buf_puts(&c->reasoning, "hm");
    for (c->n_calls = 0; c->n_calls < size % 4; c->n_calls++) {
        buf_append(&c->calls[c->n_calls].name, data, size % 9);
        buf_append(&c->calls[c->n_calls].arguments, data, size);
    }
    c->figures.n_stop = (uint32_t)(size % 3);
    snprintf(c->finish, sizeof c->finish, "%s", size % 5 ? "stop" : "length");
    answer_put_replay(&out, &f, &a, 0);
    answer_put_finish(&out, &f, &a, 0);
    answer_put_end(&out, &f, &a);
    if (!out.failed) check_events(&out);
    buf_clear(&out);
    answer_put(&out, &f, &a);
    if (holds(!out.failed)) check_json(out.data, out.len);
    buf_done(&out);
    answer_done(&a);
}

static void list_models(const char *bytes, size_t n)
{
    const anthropic_page page = {
        .limit = n % 5, .after_id = n % 2 ? "a" : NULL, .before_id = n % 3 ? NULL : "b"};
    json_t *ours = NULL;
    buf out = {0};
    if (json_parse(&ours, bytes, n, "bytes", NULL) == 0 && anthropic_put_models(&out, ours, &page) == 0)
        check_json(out.data, out.len);
    json_decref(ours);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const char *bytes = (const char *)data + 1;
    json_t *chat = NULL;
    gen_spec *g = NULL;
    api_error e = {0};
    buf body = {0};
    list_models(bytes, size - 1);
    int rc = anthropic_read(&chat, data[0] % 2 ? ANTHROPIC_MESSAGE : ANTHROPIC_COUNT, bytes, size - 1, &e);
    if (rc) {
        if (chat) abort();
        refused(&e, rc);
        return 0;
    }
    json_put(&body, chat);
    rc = body.data && !body.failed ? anthropic_spec_parse(&g, body.data, body.len, &e) : -1;
    if (rc > 0) refused(&e, rc);
    if (rc == 0) answer(g, data, size);
    openai_spec_free(g);
    buf_done(&body);
    json_decref(chat);
    return 0;
}
