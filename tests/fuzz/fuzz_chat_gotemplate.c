/* A template of Ollama of any bytes: what is translated compiles, and is rendered over a small conversation. */
#include <stddef.h>
#include <stdint.h>

#include "chat/chat.h"
#include "gotemplate/gotemplate.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void render(const chat_template *t)
{
    buf out = {0};
    json_t *messages =
        json_pack("[{ssss}{ssss}{sss[{s{sss{si}}}]}{ssss}]", "role", "system", "content", "a b", "role",
                  "user", "content", "c", "role", "assistant", "tool_calls", "function", "name", "f",
                  "arguments", "n", 1, "role", "tool", "content", "1");
    json_t *tools = json_pack("[{sss{sss{s{s{ss}}}}}]", "type", "function", "function", "name", "f",
                              "parameters", "properties", "n", "type", "integer");
    chat_template_render(t, &(chat_input){.messages = messages, .tools = tools}, true, "", "", &out, NULL,
                         NULL);
    json_decref(messages);
    json_decref(tools);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chat_template *t = NULL;
    buf jinja = {0};
    if (gotemplate_to_jinja(&jinja, (const char *)data, size, NULL, NULL) == 0) {
        if (holds(chat_template_compile(&t, jinja.data, jinja.len, "fuzz", NULL) == 0)) render(t);
    }
    chat_template_free(t);
    buf_done(&jinja);
    return 0;
}
