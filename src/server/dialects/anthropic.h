/* anthropic.h: Anthropic's Messages API on top of chat: its request as a chat request, an answer as its object and
 * as its events, its errors and its list of models. Fields and events are those of Anthropic's API reference
 * ("Messages", "Streaming Messages", "Errors", "Models").
 *
 *     {"model":"m","max_tokens":9,"system":"be brief","messages":[{"role":"user","content":"hello"}]}
 *     -> {"model":"m","max_tokens":9,"messages":[{"role":"system",...},{"role":"user",...}]}
 *
 *     json_t *chat;
 *     anthropic_read(&chat, ANTHROPIC_MESSAGE, body, len, &e)        then the text of chat:
 *     anthropic_spec_parse(&spec, text, n, &e)                       spec->anthropic is set: answer.h's writers obey
 *
 * What would make the answer wrong is refused by its name: server tools, images, a prefilled answer. What only
 * concerns Anthropic's service is accepted and changes nothing: cache_control, service_tier, metadata, anthropic-beta.
 * Pure: no I/O. */
#ifndef DIALECTS_ANTHROPIC_H
#define DIALECTS_ANTHROPIC_H

#include <jansson.h>
#include <stdbool.h>

#include "dialects/answer.h"
#include "messages/api_error.h"

typedef enum anthropic_kind {
    ANTHROPIC_MESSAGE, /* POST /v1/messages */
    ANTHROPIC_COUNT    /* POST /v1/messages/count_tokens: no max_tokens */
} anthropic_kind;

/* The chat request that body[len] comes to; the caller owns *ret_chat. 0, or an HTTP status with *e filled. */
int anthropic_read(json_t **ret_chat, anthropic_kind kind, const char *body, size_t len, api_error *e);
/* The "messages" of chat that "system" and "messages" come to: appended to `to` (anthropic_messages.c). */
int anthropic_read_messages(json_t *to, const json_t *root, api_error *e);
/* As openai_spec_parse_chat, of a text that anthropic_read's object gave: it is answered as Anthropic does. */
int anthropic_spec_parse(gen_spec **ret, const char *chat, size_t len, api_error *e);

typedef enum anthropic_block {
    ANTHROPIC_NONE,
    ANTHROPIC_TEXT,
    ANTHROPIC_THINKING,
    ANTHROPIC_TOOL
} anthropic_block;

/* How an answer_form answers in this form (answer_form.anthropic): the writers of answer.h turn here. A stream has one
 * block open at a time. */
typedef struct anthropic_form {
    char **stop; /* the spec's stop strings, borrowed */
    size_t n_stop;
    bool shows_thinking; /* the request asks for thinking blocks */
    anthropic_block open;
    size_t open_call;  /* of ANTHROPIC_TOOL: which call it is */
    unsigned n_blocks; /* that have begun */
} anthropic_form;

/* The whole object. */
void anthropic_put(buf *out, const answer_form *f, const gen_answer *a);
/* Events: message_start and ping; pieces, each with the block that it begins; the end. */
void anthropic_put_start(buf *out, const answer_form *f, const gen_answer *a);
void anthropic_put_text(buf *out, const answer_form *f, const char *text, size_t n);
void anthropic_put_thinking(buf *out, const answer_form *f, const char *text, size_t n);
/* name NULL: a further piece of the arguments. */
void anthropic_put_call(buf *out, const answer_form *f, size_t index, const char *name, const char *arguments,
                        size_t n);
void anthropic_put_end(buf *out, const answer_form *f, const gen_answer *a);

/* {"type":"error","error":{"type","message"},"request_id"}; the type follows from the status. request_id NULL or "":
 * not known. Fields of chat that the message names get Anthropic's names. */
void anthropic_put_error(buf *out, const api_error *e, const char *request_id);

/* A page of the models: which of them, as the query says it. NULL: not said. */
typedef struct anthropic_page {
    const char *after_id, *before_id;
    size_t limit;
} anthropic_page;
/* From the list of GET /v1/models. 0, SHOAL_ENOMEM or SHOAL_EPROTOCOL (no such list). */
int anthropic_put_models(buf *out, const json_t *ours, const anthropic_page *page);
/* From one entry of it. */
void anthropic_put_model(buf *out, const json_t *ours);

#endif
