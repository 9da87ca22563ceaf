/* chat.h: messages -> prompt text, and reply text -> tool calls. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "text/tokenizer.h"

/* A chat template: a small Jinja interpreter (expressions, for, if, set, filters), compiled once,
 * immutable afterwards. */
typedef struct chat_template chat_template;

/* The source is copied; `what` names it in errors, which give the line. */
int chat_template_compile(chat_template **ret, const char *source, size_t len, const char *what,
                          shoal_err *err);
void chat_template_free(chat_template *t);
/* The source it was compiled from; borrowed. */
const char *chat_template_source(const chat_template *t);
/* Does it look at `tools` at all? Does it look at the clock, so that equal messages give other prompts
 * tomorrow? Both may say yes of a template that only mentions them. */
bool chat_template_reads_tools(const chat_template *t);
bool chat_template_reads_clock(const chat_template *t);

/* Append the prompt. `messages` is a JSON array of {"role", "content", ...}; `tools` the OpenAI tools
 * array or NULL; bos and eos token texts may be NULL. A template's raise_exception() and unknown
 * constructs are SHOAL_EINVALID / SHOAL_EUNSUPPORTED with the line. Bounded: at most 1 M steps and
 * 4 MiB of output. marks (may be NULL) gets one byte a byte of out: 1 where it came from messages or tools,
 * 0 where the template wrote it; a copy, a slice or an escaped form of a message's text is the message's. */
int chat_template_render(const chat_template *t, const json_t *messages, const json_t *tools,
                         bool add_generation_prompt, const char *bos_token, const char *eos_token, buf *out,
                         buf *marks, shoal_err *err);

/* Messages and tools (NULL: none) to the ids of the prompt for the next reply. Control tokens are the
 * template's alone: "<|im_end|>" in a message is characters. A template that does not read `tools` gets
 * them in the system message. */
int chat_prompt_encode(const chat_template *c, const tokenizer *t, const json_t *messages,
                       const json_t *tools, encoding *ret, shoal_err *err);
/* Its text and marks, before it is encoded. */
int chat_prompt_render(const chat_template *c, const tokenizer *t, const json_t *messages,
                       const json_t *tools, buf *text, buf *marks, shoal_err *err);

/* Splits a streamed reply into plain text and tool calls. Knows
 *     <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>
 * Text that might still become a marker is held back; arguments stream as they arrive. Whitespace
 * between the text and the first marker is dropped. A call whose JSON is broken comes out as text. */
typedef struct toolcall_parser toolcall_parser;
typedef struct toolcall_sink {
    void *user;
    void (*text)(void *user, const char *s, size_t n);
    /* index counts calls from 0; called once a call, before its arguments */
    void (*begin)(void *user, int index, const char *name);
    /* a piece of the arguments' JSON text, exactly as the model wrote it */
    void (*arguments)(void *user, int index, const char *json, size_t n);
    void (*end)(void *user, int index);
} toolcall_sink;
toolcall_parser *toolcall_new(const toolcall_sink *sink); /* NULL when out of memory */
bool toolcall_is_open(const toolcall_parser *p);          /* within a call: its end is still to come */
int toolcall_push(toolcall_parser *p, const char *s, size_t n);
int toolcall_end(toolcall_parser *p); /* flushes what is held back */
int toolcall_count(const toolcall_parser *p);
void toolcall_free(toolcall_parser *p);

#endif
