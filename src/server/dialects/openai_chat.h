/* openai_chat.h: the parts of a chat request that only chat has: messages, tools, response format. */
#ifndef DIALECTS_OPENAI_CHAT_H
#define DIALECTS_OPENAI_CHAT_H

#include "dialects/openai.h"

/* Each reads its fields of s->root into s; 0 or the HTTP status in *e. */
/* Rewrites the older "functions" form in s->root as tools; before the others. */
int openai_map_functions(gen_spec *s, api_error *e);
/* Of an error about tools: named as the older form has it. */
void openai_name_functions(api_error *e);
int openai_read_messages(gen_spec *s, api_error *e);
int openai_read_tools(gen_spec *s, api_error *e);
int openai_read_template(gen_spec *s, api_error *e); /* chat_template, chat_template_kwargs, ... */
/* response_format and the fields of other servers that say the same; after openai_read_tools, as a forced call
 * takes precedence. */
int openai_read_format(gen_spec *s, api_error *e);
int openai_read_sampling(gen_spec *s, api_error *e); /* after num_beams */
/* Of chat and text completions: what other servers would do and this one does not. */
int openai_refuse_foreign(const gen_spec *s, api_error *e);
int openai_read_modalities(gen_spec *s, api_error *e);
/* v as JSON text that lives as long as s; NULL: no memory. */
const char *openai_to_arena(gen_spec *s, const json_t *v);

#endif
