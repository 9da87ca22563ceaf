/* sessions.c: the beginning of requests with a conversation; see sessions.h. */
#define _GNU_SOURCE
#include "inference/sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/anthropic.h"
#include "messages/fields.h"
#include "json/json.h"
#include "base/utf8.h"
#include "request/gateway_state.h"
#include "inference/generate.h"

#define NAME_MAX_BYTES 256

static void sessions_fail(conversation *k, const api_error *e)
{
    gateway_request *rq = k->rq;
    conversation_free(k);
    request_on_deadline(rq, NULL);
    request_watch(rq, NULL, NULL);
    request_error(rq, e);
}

static void sessions_on_gone(void *work)
{
    conversation_free(work);
}

static void on_loaded(conversation *k, const api_error *e)
{
    if (e) {
        sessions_fail(k, e);
        return;
    }
    request_on_deadline(k->rq, NULL);
    request_watch(k->rq, NULL, NULL);
    generate_conversation(k);
}

static void on_late(void *work)
{
    conversation *k = work;
    api_error e;
    api_error_set(&e, 504, "timeout_error", "deadline_exceeded", NULL,
                  "the deadline passed while the conversation was read");
    sessions_fail(k, &e);
}

static void sessions_begin(conversation *k)
{
    k->loaded = on_loaded;
    request_on_deadline(k->rq, on_late);
    request_watch(k->rq, sessions_on_gone, k);
    if (k->added)
        conversation_load(k);
    else
        conversation_load_items(k);
}

/* ---- chat ---------------------------------------------------------------------------------------- */

/* NULL: the request has no session, and no error in what it says about one. */
static int find_name(const gateway_request *rq, json_t *root, const char **ret, api_error *e)
{
    const char *header = request_header(rq, "x-shoal-session");
    *ret = NULL;
    int rc = fields_str(root, "session", ret, e);
    if (rc != 0) return rc;
    if (*ret && header && *header && strcmp(*ret, header) != 0)
        return api_error_bad(e, "session",
                             "\"session\" and the header x-shoal-session name different sessions");
    if (!*ret && header && *header) *ret = header;
    if (!*ret) return 0;
    size_t n = strlen(*ret);
    if (n == 0 || n > NAME_MAX_BYTES)
        return api_error_bad(e, "session", "\"session\" must have 1 to %d bytes", NAME_MAX_BYTES);
    if (!utf8_valid(*ret, n,
                    NULL)) /* a header may hold anything; such a name could not be asked for by path */
        return api_error_bad(e, "session", "the header x-shoal-session must be UTF-8");
    return conversation_is_on(rq, e);
}

/* A stream that is gone on with may have been kept just before its client lost it. */
static void note_resumed(conversation *k)
{
    const char *given = request_header(k->rq, "last-event-id");
    stream_id id;
    shoal_err err;
    if (!given || !*given || stream_id_parse(&id, given, strlen(given), &err) != 0) return;
    int n = snprintf(k->resumed, sizeof k->resumed, "chatcmpl-");
    for (int i = 0; i < STREAM_NONCE_BYTES; i++, n += 2)
        snprintf(k->resumed + n, sizeof k->resumed - (size_t)n, "%02x", id.nonce[i]);
}

/* Takes root, a chat request whose text `parse` reads. */
static void chat(gateway_request *rq, json_t *root, const char *name, generate_parse parse)
{
    api_error e;
    conversation *k = calloc(1, sizeof *k);
    if (!k) {
        json_drop(root);
        api_error_nomem(&e);
        request_error(rq, &e);
        return;
    }
    *k = (conversation){
        .rq = rq, .chat = root, .parse = parse, .loads = true, .keeps = true, .shortens = true};
    k->id = conversation_id(rq, "session", name);
    const json_t *n = fields_get(root, "n");
    int status = conversation_split(k, fields_get(root, "messages"), &e);
    if (status == 0 && n && json_integer_value(n) != 1)
        status = api_error_bad(&e, "n", "a session goes on with one answer: \"n\" must be 1");
    if (status != 0) {
        sessions_fail(k, &e);
        return;
    }
    json_object_del(root, "messages");
    note_resumed(k);
    sessions_begin(k);
}

/* Whether a body could name a session, without parsing it. */
static bool may_name_one(const gateway_request *rq, const char *body, size_t len)
{
    const char *header = request_header(rq, "x-shoal-session");
    return (header && *header) || memmem(body, len, "\"session\"", strlen("\"session\"")) ||
           memmem(body, len, "\\u", 2);
}

/* Takes root, which body was parsed into and is not parsed into again. */
static void chat_alone(gateway_request *rq, const char *body, size_t len, json_t *root)
{
    json_ahead parsed = {.text = body, .len = len, .value = root};
    json_ahead_offer(&parsed);
    generate_chat(rq);
    json_ahead_offer(NULL);
    json_ahead_done(&parsed);
}

void sessions_chat(gateway_request *rq)
{
    size_t len;
    const char *body = request_body(rq, &len), *name;
    json_t *root = NULL;
    api_error e;
    if (!may_name_one(rq, body, len)) {
        generate_chat(rq);
    } else if (fields_parse(&root, body, len, &e) != 0) {
        request_error(rq, &e);
    } else if (find_name(rq, root, &name, &e) != 0) {
        json_drop(root);
        request_error(rq, &e);
    } else if (name && json_is_array(fields_get(root, "messages"))) {
        chat(rq, root, name, openai_spec_parse_chat);
    } else {
        chat_alone(rq, body, len, root);
    }
}

/* ---- Anthropic's messages ------------------------------------------------------------------------ */

/* Takes root. Its text is read as a client's chat request is. */
static void messages_alone(gateway_request *rq, json_t *root)
{
    buf text = {0};
    json_ahead parsed = {0};
    api_error e;
    if (json_put(&text, root) != 0) {
        api_error_nomem(&e);
        request_error(rq, &e);
    } else {
        json_ahead_from(&parsed, &text, root);
        json_ahead_offer(&parsed);
        generate_body(rq, anthropic_spec_parse, text.data, text.len);
        json_ahead_offer(NULL);
        json_ahead_done(&parsed);
    }
    json_drop(root);
    buf_done(&text);
}

void sessions_messages(gateway_request *rq)
{
    size_t len;
    const char *body = request_body(rq, &len), *name = NULL;
    json_t *root = NULL;
    api_error e = {0};
    int rc = anthropic_read(&root, ANTHROPIC_MESSAGE, body, len, &e);
    if (rc == 0) rc = find_name(rq, root, &name, &e);
    if (rc != 0) {
        json_drop(root);
        request_error(rq, &e);
    } else if (name) {
        chat(rq, root, name, anthropic_spec_parse);
    } else {
        messages_alone(rq, root);
    }
}

/* ---- responses ----------------------------------------------------------------------------------- */

/* "store" is true where nothing is said: then it is enough that nothing can be kept. */
static int settle_store(const gateway_request *rq, response_spec *s, api_error *e)
{
    bool on = rq->gateway->session_thread != NULL, reads = s->previous || !s->added;
    if (on || (!reads && !json_is_true(json_object_get(s->root, "store")))) {
        s->store = s->store && on;
        return 0;
    }
    return conversation_is_on(rq, e);
}

static int check_length(const gateway_request *rq, const response_spec *s, size_t len, api_error *e)
{
    if (!s->store || len < rq->config->sessions.bytes / 2) return 0;
    return api_error_bad(e, "store",
                         "this request has %zu bytes, too many to be kept: send \"store\": false, or raise "
                         "sessions.max_kb",
                         len);
}

static void respond(gateway_request *rq, response_spec *s)
{
    api_error e;
    conversation *k = calloc(1, sizeof *k);
    if (!k) {
        response_spec_free(s);
        api_error_nomem(&e);
        request_error(rq, &e);
        return;
    }
    *k = (conversation){
        .rq = rq, .response = s, .loads = s->previous, .keeps = s->store, .shortens = s->shortens};
    k->chat = json_incref(s->chat);
    k->added = json_incref(s->added);
    k->head = s->instructions && *s->instructions
                  ? json_pack("[{s:s, s:s}]", "role", "system", "content", s->instructions)
                  : json_array();
    if (!k->head) {
        api_error_nomem(&e);
        sessions_fail(k, &e);
        return;
    }
    if (s->previous) k->id = conversation_id(rq, "response", s->previous);
    response_form_init(&k->form, s);
    sessions_begin(k);
}

void sessions_respond(gateway_request *rq)
{
    size_t len;
    const char *body = request_body(rq, &len);
    response_spec *s = NULL;
    api_error e;
    int status = response_spec_parse(&s, body, len, &e);
    if (status == 0) status = settle_store(rq, s, &e);
    if (status == 0) status = check_length(rq, s, len, &e);
    if (status == 0) {
        respond(rq, s);
        return;
    }
    response_spec_free(s);
    request_error(rq, &e);
}
