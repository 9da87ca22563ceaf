/* about.c: texts, lengths and options of requests; see about.h. */
#include "inference/about.h"

#include <string.h>

static unsigned wants_of(const gen_spec *s)
{
    unsigned wants = 0;
    if (s->stream) wants |= WANTS_STREAM;
    if (s->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_OBJECT) wants |= WANTS_JSON;
    if (s->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_SCHEMA)
        wants |= WANTS_JSON | WANTS_SCHEMA;
    if (s->tools_json) wants |= WANTS_TOOLS;
    if (s->logprobs) wants |= WANTS_LOGPROBS;
    return wants;
}

static void take_messages(routed_about *a, const json_t *messages)
{
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *m = json_array_get(messages, i), *content = json_object_get(m, "content");
        const char *role = json_string_value(json_object_get(m, "role"));
        if (!json_is_string(content)) continue;
        a->n_bytes += json_string_length(content);
        if (!role || strcmp(role, "user") != 0) continue;
        a->text = json_string_value(content);
        a->n_text = json_string_length(content);
    }
}

static void take_prompts(routed_about *a, const gen_spec *s)
{
    for (size_t i = 0; i < s->n_prompts; i++) {
        const gen_prompt *p = &s->prompts[i];
        size_t n = p->text ? strlen(p->text) : 0;
        a->n_bytes += p->text ? n : p->n_ids * 4;
        if (i > 0 || !p->text) continue;
        a->text = p->text;
        a->n_text = n;
    }
}

static const char *about_text_of(const json_t *root, const char *key)
{
    const char *s = json_string_value(json_object_get(root, key));
    return s && *s ? s : NULL;
}

void about_generation(routed_about *ret, const gen_spec *s, const char *task)
{
    *ret = (routed_about){.text = "",
                          .wants = wants_of(s),
                          .session = about_text_of(s->root, "session"),
                          .user = about_text_of(s->root, "user"),
                          .does = task,
                          .task = CALL_GENERATE,
                          .streams = s->stream,
                          .n_reply = s->max_tokens * openai_spec_choices(s)};
    if (s->messages)
        take_messages(ret, s->messages);
    else
        take_prompts(ret, s);
    ret->prefix = s->messages_json;
    ret->n_prefix = s->messages_json ? strlen(s->messages_json) : 0;
}

void about_encoding(routed_about *ret, const encode_spec *s)
{
    const task_endpoint *at = &TASK_ENDPOINTS[s->kind];
    *ret = (routed_about){.text = "",
                          .user = about_text_of(s->root, "user"),
                          .session = about_text_of(s->root, "session"),
                          .does = at->does,
                          .task = at->call,
                          .n_bytes = s->bytes.len};
    for (size_t i = 0; i < s->n_inputs && s->inputs; i++)
        if (s->inputs[i].text) ret->n_bytes += strlen(s->inputs[i].text);
    if (s->n_inputs == 0 || !s->inputs || !s->inputs[0].text) return;
    ret->text = s->inputs[0].text;
    ret->n_text = strlen(ret->text);
}
