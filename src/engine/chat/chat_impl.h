/* chat_impl.h: what the parts of chat templates share. */
#ifndef CHAT_CHAT_IMPL_H
#define CHAT_CHAT_IMPL_H

#include "chat/chat.h"
#include "jinja/jinja.h"

/* Of a short conversation that is rendered to see what a template does: twenty of them take no longer than one prompt
 * may, as requests bring templates, too. */
enum { CHAT_PROBE_STEPS = 50000 };

/* *ret is the syntax of calls that t's models were shown. 0 or SHOAL_ENOMEM. */
int chat_calls_find(const chat_template *t, const toolcall_syntax **ret, calls_source *ret_source);

/* chat_template_render with the texts of t's tokens that begin and end a text. */
int chat_render(const chat_template *c, const tokenizer *t, const chat_input *in, bool add_generation_prompt,
                buf *text, buf *marks, shoal_err *err);

/* In which form a template takes the ids of calls. */
typedef enum {
    IDS_AS_THEY_ARE,
    IDS_OF_NINE,      /* nine letters and digits: Mistral */
    IDS_OF_FUNCTIONS, /* "functions.NAME:NUMBER": Kimi-K2 */
} id_form;
id_form chat_ids_form(const char *source, const toolcall_syntax *calls);
/* Give the calls among the messages, and their results, ids of this form. Errors as those of a run, in r. */
void chat_ids_map(jrun *r, jvalue messages, id_form form);

#endif
