/* openai_near.c: see openai_near.h. The rest is the key of the same request without its last words. */
#include "dialects/openai_near.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"

/* The last message's text, when it is a user's and has nothing else. */
static const char *last_words(const json_t *messages)
{
    const json_t *m = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(m, "role"));
    const json_t *content = json_object_get(m, "content");
    bool plain = role && strcmp(role, "user") == 0 && json_object_size(m) == 2 && json_is_string(content);
    return plain && strlen(json_string_value(content)) == json_string_length(content)
               ? json_string_value(content)
               : NULL;
}

static bool chat_partition(openai_near *ret, const gen_spec *s, const Shoal__V1__ModelInfo *model,
                           const char *adapter_digest)
{
    gen_spec rest = *s;
    buf before = {0};
    size_t n = json_array_size(s->messages);
    buf_printf(&before, "%zu ", n);
    for (size_t i = 0; i + 1 < n; i++) json_put(&before, json_array_get(s->messages, i));
    rest.messages_json = before.data;
    bool ok = !before.failed && openai_spec_key(&rest, model, adapter_digest, &ret->partition);
    buf_done(&before);
    return ok;
}

static bool prompt_partition(openai_near *ret, const gen_spec *s, const Shoal__V1__ModelInfo *model,
                             const char *adapter_digest)
{
    gen_spec rest = *s;
    gen_prompt none = {.text = ""};
    rest.prompts = &none;
    return openai_spec_key(&rest, model, adapter_digest, &ret->partition);
}

bool openai_near_of(openai_near *ret, const gen_spec *s, const Shoal__V1__ModelInfo *model,
                    const char *adapter_digest, bool sampled)
{
    bool drawn = s->sampling.temperature > 0;
    if ((drawn && !sampled) || openai_spec_choices(s) != 1 || s->tools_json || s->logprobs || s->echo)
        return false;
    if (s->chat) {
        ret->text = s->messages ? last_words(s->messages) : NULL;
        return ret->text && chat_partition(ret, s, model, adapter_digest);
    }
    ret->text = s->prompts && s->n_prompts == 1 ? s->prompts[0].text : NULL;
    return ret->text && prompt_partition(ret, s, model, adapter_digest);
}
