/* chat.h: messages -> prompt text, and reply text -> tool calls. */
#ifndef CHAT_CHAT_H
#define CHAT_CHAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "chat/thinking.h"
#include "tokenizer/tokenizer.h"
#include "chat/toolcall.h"

/* A chat template: a small Jinja interpreter (expressions, for, if, set, filters), compiled once,
 * immutable afterwards. */
typedef struct chat_template chat_template;

/* For generators whose files bring none: "System: ...\nUser: ...\nAssistant:". A reply ends where the model begins a
 * turn of the other side, before chat_template_plain_stop, unless its own end of text comes first. */
extern const char chat_template_plain[], chat_template_plain_stop[];

/* The source is copied; `what` names it in errors, which give the line. */
int chat_template_compile(chat_template **ret, const char *source, size_t len, const char *what,
                          shoal_err *err);
/* The same of a template of Ollama, in Go's text/template (gotemplate.h). Its source is what it becomes in Jinja. */
int chat_template_compile_go(chat_template **ret, const char *source, size_t len, const char *what,
                             shoal_err *err);
void chat_template_free(chat_template *t);
/* The source it was compiled from; borrowed. */
const char *chat_template_source(const chat_template *t);
/* Does it look at `tools` at all? Does it look at the clock, so that equal messages give other prompts
 * tomorrow? Both may say yes of a template that only mentions them. */
bool chat_template_reads_tools(const chat_template *t);
bool chat_template_reads_clock(const chat_template *t);

/* How its models write calls of tools (never NULL), for a request with these kwargs (may be NULL), and how
 * they mark what they think (NULL: they do not). Both are seen from the template. */
const toolcall_syntax *chat_template_calls(const chat_template *t, const json_t *kwargs);
typedef enum {
    CALLS_OF_TEMPLATE, /* the template shows the syntax */
    CALLS_ADDED,   /* the template has no tools: the system message teaches the syntax that its calls have, or
                          Hermes' where it writes none */
    CALLS_UNKNOWN, /* the template has tools, in a syntax that is in no row of the table: Hermes' is tried */
} calls_source;
calls_source chat_template_calls_source(const chat_template *t);
/* For people and for the header of replies: "qwen3-coder", "hermes (added)" or "unknown". */
const char *chat_template_calls_label(const chat_template *t, const json_t *kwargs);
const thinking_form *chat_template_thinking(const chat_template *t);
/* Does the template itself show thoughts? Else its models may think all the same, and nothing asks them to.
 */
bool chat_template_shows_thinking(const chat_template *t);

/* What a prompt is rendered from; borrowed. */
typedef struct chat_input {
    const json_t *messages; /* an array of {"role", "content", ...} */
    const json_t *tools;    /* OpenAI's array, or NULL */
    const json_t *kwargs;   /* an object of more variables for the template ("enable_thinking"), or NULL */
    unsigned steps;         /* how many it may take at most; 0: JINJA_MAX_STEPS */
    int64_t clock; /* what strftime_now() shows: seconds since 1970 on a clock on the wall; 0: ours, now */
} chat_input;

/* Append the prompt. bos and eos token texts may be NULL. A template's raise_exception() and unknown
 * constructs are SHOAL_EINVALID / SHOAL_EUNSUPPORTED with the line, and so is a kwarg that would hide what
 * the request says elsewhere. Bounded: at most 1 M steps and 4 MiB of output. marks (may be NULL) gets one
 * byte a byte of out: 1 where it came from the input, 0 where the template wrote it; a copy, a slice or an
 * escaped form of a message's text is the message's. */
int chat_template_render(const chat_template *t, const chat_input *in, bool add_generation_prompt,
                         const char *bos_token, const char *eos_token, buf *out, buf *marks, shoal_err *err);

/* To the ids of the prompt for the next reply. Control tokens are the template's alone: "<|im_end|>" in a
 * message is characters. A template that does not read `tools` gets them in the system message. *ret_thinks
 * (may be NULL): the prompt ends within a thought, which the reply goes on with. */
int chat_prompt_encode(const chat_template *c, const tokenizer *t, const chat_input *in, encoding *ret,
                       bool *ret_thinks, shoal_err *err);
/* Its text and marks, before it is encoded. */
int chat_prompt_render(const chat_template *c, const tokenizer *t, const chat_input *in, buf *text,
                       buf *marks, shoal_err *err);

/* chat_end.c: *ret is the token that ends an assistant's turn as the template writes it: the control token
 * behind the assistant's text. -1: the template shows none. 0 or SHOAL_ENOMEM. */
int chat_turn_end(const chat_template *c, const tokenizer *t, int32_t *ret, shoal_err *err);

#endif
