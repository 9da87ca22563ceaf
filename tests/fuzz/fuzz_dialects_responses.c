/* Bodies of the Responses API: a refusal is a 4xx with a sentence; what is taken is a chat request that chat
 * takes or refuses, and its answer is an object and events that are JSON, in which every item that begins
 * also ends. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/responses.h"
#include "json/json.h"
#include "../server/messages/sse.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refused(const api_error *e, int rc)
{
    if (rc != e->status || rc < 400 || !e->message[0]) abort();
    holds(rc <= 499);
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
    for (const char *at = out->data; at && (at = strstr(at, "\ndata: "));) {
        at += strlen("\ndata: ");
        json_t *o = json_loadb(at, strcspn(at, "\n"), 0, NULL);
        holds(o);
        json_decref(o);
    }
    if (count(out, "event: response.output_item.added") != count(out, "event: response.output_item.done"))
        abort();
}

/* An answer with all that an answer can have, some of it the request's own bytes. */
static void answer(const response_spec *s, const gen_spec *g, const uint8_t *data, size_t size)
{
    gen_answer a;
    answer_form f;
    response_form r;
    buf out = {0};
    if (answer_init(&a, 1) != 0) return;
    gen_choice *c = &a.choices[0];
    answer_form_init(&f, g, "digest", 1);
    response_form_init(&r, s);
    f.response = &r;
    if (size % 2) buf_append(&c->text, data, size);
    if (size % 3) buf_puts(&c->reasoning, "hm");
    for (c->n_calls = 0; c->n_calls < size % 4; c->n_calls++)
        buf_append(&c->calls[c->n_calls].name, data, size % 9);
    snprintf(c->finish, sizeof c->finish, "%s", size % 5 ? "stop" : "length");
    answer_put_replay(&out, &f, &a, 0);
    answer_put_finish(&out, &f, &a, 0);
    answer_put_end(&out, &f, &a);
    if (!out.failed) check_events(&out);
    buf_clear(&out);
    answer_put(&out, &f, &a);
    json_t *o = out.failed ? NULL : json_loadb(out.data, out.len, 0, NULL);
    holds(o);
    json_decref(o);
    buf_done(&out);
    answer_done(&a);
}

/* Each reference finds a message of its name. */
static int resolve(response_spec *s, api_error *e)
{
    char name[RESPONSE_ID_BYTES];
    int rc = 0;
    size_t i;
    json_t *item, *input = json_object_get(s->root, "input");
    if (!response_spec_reference(s, name)) return 0;
    json_t *output = json_array(), *response = json_pack("{s:o}", "output", output);
    json_array_foreach(input, i, item)
    {
        json_t *id = json_object_get(item, "id");
        json_t *found = id ? json_pack("{s:s, s:s, s:s, s:O}", "type", "message", "role", "assistant",
                                       "content", "a", "id", id)
                           : NULL;
        if (found) json_array_append_new(output, found);
    }
    while (rc == 0 && response && response_spec_reference(s, name))
        rc = response_spec_resolve(s, name, response, e);
    json_decref(response);
    return rc ? rc : response_spec_read_input(s, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    response_spec *s = NULL;
    gen_spec *g = NULL;
    api_error e = {0};
    buf body = {0};
    int rc = response_spec_parse(&s, (const char *)data, size, &e);
    if (rc) {
        refused(&e, rc);
        return 0;
    }
    rc = resolve(s, &e);
    if (rc) {
        refused(&e, rc);
        response_spec_free(s);
        return 0;
    }
    if (json_object_set(s->chat, "messages", s->added) == 0) json_put(&body, s->chat);
    json_object_del(s->chat, "messages");
    rc = body.data && !body.failed ? openai_spec_parse_chat(&g, body.data, body.len, &e) : -1;
    if (rc > 0) refused(&e, rc);
    if (rc == 0) answer(s, g, data, size);
    openai_spec_free(g);
    buf_done(&body);
    response_spec_free(s);
    return 0;
}
