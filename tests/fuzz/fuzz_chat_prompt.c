/* A chat template and a conversation of any bytes ("TEMPLATE \0 {"messages", "tools"}"), encoded with the
 * home models' tokenizer: no control token may stand for a byte that the conversation brought. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/file.h"
#include "memory.h"
#include "chat/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const tokenizer *home(void)
{
    static tokenizer *t;
    buf json = {0};
    if (t) return t;
    const char *path = SHOAL_SOURCE_DIR "/tests/data/tokenizers/home-chat-s/tokenizer.json";
    if (file_read(&json, path, 1 << 20, NULL) ||
        tokenizer_from_json(&t, json.data, json.len, NULL, 0, "home", NULL)) {
        fprintf(stderr, "%s cannot be read\n", path);
        holds(false);
    }
    buf_done(&json);
    return t;
}

static void check(const tokenizer *t, const encoding *e, const buf *text, const buf *marks)
{
    if (marks->len != text->len) abort();
    for (size_t i = 0; i < e->n; i++) {
        size_t n;
        const char *s = tokenizer_piece(t, e->ids[i], &n);
        if (!s || n < 3 || s[0] != '<' || s[n - 1] != '>') continue; /* "<|im_end|>", "<tool_call>" */
        token_span at = e->spans[i];
        if (at.end > text->len || memchr(marks->data + at.begin, 1, at.end - at.begin)) abort();
    }
}

static void encode(const chat_template *c, const chat_input *in)
{
    const tokenizer *t = home();
    encoding e = {0};
    buf text = {0}, marks = {0};
    if (!t) return;
    if (chat_prompt_encode(c, t, in, &e, NULL, NULL) == 0 &&
        chat_prompt_render(c, t, in, &text, &marks, NULL) == 0 && !chat_template_reads_clock(c))
        check(t, &e, &text, &marks);
    encoding_done(&e);
    buf_done(&text);
    buf_done(&marks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    chat_template *c = NULL;
    json_t *v = NULL;
    if (!nul) return 0;
    size_t n = (size_t)(nul - data);
    if (json_parse(&v, (const char *)nul + 1, size - n - 1, "conversation", NULL)) return 0;
    if (chat_template_compile(&c, (const char *)data, n, "fuzz", NULL) == 0)
        encode(c, &(chat_input){.messages = json_object_get(v, "messages"),
                                .tools = json_object_get(v, "tools"),
                                .kwargs = json_object_get(v, "kwargs")});
    chat_template_free(c);
    json_decref(v);
    return 0;
}
