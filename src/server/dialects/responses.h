/* responses.h: OpenAI's Responses API on top of chat: its request as a chat request, an answer as its object
 * and as its events.
 *
 *     {"model":"m","input":"hello","instructions":"be brief","store":true}
 *     -> {"model":"m","messages":[{"role":"system",...},{"role":"user",...}]}
 *
 * What a chat request and this one call alike (temperature, top_p, seed, stop, ...) is handed on as it is and
 * checked there. Pure: no I/O. */
#ifndef DIALECTS_RESPONSES_H
#define DIALECTS_RESPONSES_H

#include <jansson.h>
#include <stdbool.h>

#include "dialects/answer.h"
#include "messages/api_error.h"

#define RESPONSE_ID_BYTES 48

typedef struct response_spec {
    json_t *root;             /* the request; owned */
    json_t *chat;             /* the chat request it comes to, without "messages"; owned */
    json_t *added;            /* the messages that "input" is; owned */
    const char *previous;     /* previous_response_id, NULL: none; this and the next are root's */
    const char *instructions; /* NULL, "": none */
    bool store, stream;
    bool shortens; /* "truncation": "auto": the oldest of the conversation may go where all is too long */
} response_spec;

/* 0 and *ret, to be freed by response_spec_free; or an HTTP status with *e filled. Where items of "input" are
 * references, `added` is NULL until all of them are resolved:
 *
 *     while (response_spec_reference(s, name)) {
 *         ... load the response `name` ...
 *         response_spec_resolve(s, name, response, &e);
 *     }
 *     response_spec_read_input(s, &e); */
int response_spec_parse(response_spec **ret, const char *body, size_t len, api_error *e);
void response_spec_free(response_spec *s);
/* The name of the response that the first reference ({"type":"item_reference","id":"msg_..."}) leads to;
 * false: there is none (any more). */
bool response_spec_reference(const response_spec *s, char ret[RESPONSE_ID_BYTES]);
/* Puts the items of that response in the place of the references to them; `response` is its object, NULL: it
 * is not kept. 404 for an item that it does not have. */
int response_spec_resolve(response_spec *s, const char *name, const json_t *response, api_error *e);
int response_spec_read_input(response_spec *s, api_error *e);

/* api_error_put, with the names that the Responses API has for the fields of chat: a response_format of chat
 * is a text.format there. Only errors about such fields change. */
void response_put_error(buf *out, const api_error *e);

/* How an answer_form answers in this form (answer_form.response): the writers of answer.h turn here. */
typedef struct response_form {
    const response_spec *spec; /* borrowed */
    unsigned sequence;         /* of the next event */
    unsigned n_items;
    int reasoning, message,
        calls[ANSWER_CALLS_MAX]; /* place in "output", the order of appearance; -1: none */
} response_form;

void response_form_init(response_form *r, const response_spec *spec);
void response_id(const answer_form *f, char ret[RESPONSE_ID_BYTES]); /* "resp_..." */

/* The whole object, for the client and to be kept. */
void response_put(buf *out, const answer_form *f, const gen_answer *a);
/* Events: created and in_progress; pieces, with the item that they begin; each item's end; the response's. */
void response_put_created(buf *out, const answer_form *f);
void response_put_text(buf *out, const answer_form *f, const char *text, size_t n);
void response_put_reasoning(buf *out, const answer_form *f, const char *text, size_t n);
void response_put_call(buf *out, const answer_form *f, size_t index, const char *name, const char *arguments,
                       size_t n);
void response_put_done(buf *out, const answer_form *f, const gen_answer *a);
void response_put_end(buf *out, const answer_form *f, const gen_answer *a);

#endif
