/* A chat template of any bytes, rendered over a small conversation. */
#include <stddef.h>
#include <stdint.h>

#include "chat/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chat_template *t = NULL;
    buf out = {0};
    if (chat_template_compile(&t, (const char *)data, size, "fuzz", NULL)) return 0;
    json_t *messages =
        json_pack("[{ssss}{ssss}]", "role", "system", "content", "a b", "role", "user", "content", "c");
    json_t *tools = json_pack("[{sss{ss}}]", "type", "function", "function", "name", "f");
    chat_template_render(t, &(chat_input){.messages = messages, .tools = tools}, true, "<s>", "</s>", &out,
                         NULL, NULL);
    json_decref(messages);
    json_decref(tools);
    buf_done(&out);
    chat_template_free(t);
    return 0;
}
