/* Which token ends an assistant's turn, as templates show it (chat_turn_end). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "chat/chat.h"

#define DIR SHOAL_SOURCE_DIR "/tests/data/templates/"

static const char *const CONTROL[] = {"<s>",
                                      "</s>",
                                      "<unk>",
                                      "<|eot_id|>",
                                      "<|start_header_id|>",
                                      "<|end_header_id|>",
                                      "<|im_start|>",
                                      "<|im_end|>",
                                      "<start_of_turn>",
                                      "<end_of_turn>",
                                      "<|end|>",
                                      "<|user|>",
                                      "<|assistant|>",
                                      "<|endoftext|>",
                                      "<|end_of_text|>",
                                      "<|start_of_role|>",
                                      "<|end_of_role|>",
                                      "<\xEF\xBD\x9C"
                                      "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
                                      "[INST]",
                                      "[/INST]",
                                      "<|start|>",
                                      "<|channel|>",
                                      "<|message|>",
                                      "<|return|>",
                                      "<|START_RESPONSE|>",
                                      "<|END_RESPONSE|>",
                                      "<|END_OF_TURN_TOKEN|>",
                                      "<|CHATBOT_TOKEN|>"};
enum { N_CONTROL = sizeof CONTROL / sizeof *CONTROL };

/* "<|plain|>" is a piece of the vocabulary and no added token; "<|user_defined|>" is added, but not special.
 */
static tokenizer *make_tokenizer(void)
{
    buf json = {0};
    tokenizer *t = NULL;
    shoal_err err = {0};
    buf_puts(&json, "{\"added_tokens\":[");
    for (int i = 0; i < N_CONTROL; i++)
        buf_printf(&json, "{\"id\":%d,\"content\":\"%s\",\"special\":true},", 10 + i, CONTROL[i]);
    buf_puts(&json, "{\"id\":2,\"content\":\"<|user_defined|>\",\"special\":false}],"
                    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"<|plain|>\":1,\"<|user_defined|>\":2");
    for (int i = 0; i < N_CONTROL; i++) buf_printf(&json, ",\"%s\":%d", CONTROL[i], 10 + i);
    buf_puts(&json, "},\"merges\":[]}}");
    static const char config[] = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}";
    if (tokenizer_from_json(&t, json.data, json.len, config, sizeof config - 1, "t", &err))
        fail_msg("%s", err.message);
    buf_done(&json);
    return t;
}

static void expect(const tokenizer *t, const char *source, size_t len, const char *what, const char *want)
{
    chat_template *c = NULL;
    shoal_err err = {0};
    int32_t id = -2;
    size_t n = 0;
    if (chat_template_compile(&c, source, len, what, &err)) fail_msg("%s: %s", what, err.message);
    assert_int_equal(chat_turn_end(c, t, &id, &err), 0);
    const char *got = id >= 0 ? tokenizer_piece(t, id, &n) : "";
    if (n != strlen(want) || memcmp(got, want, n) != 0)
        fail_msg("%s: the turn ends at \"%.*s\", not \"%s\"", what, (int)n, got, want);
    chat_template_free(c);
}

static void families_end_their_turns(void **state)
{
    (void)state;
    static const struct {
        const char *template, *end;
    } families[] = {
        {"deepseek-r1", "<\xEF\xBD\x9C"
                        "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"},
        {"function-gemma", "<end_of_turn>"},
        {"gemma-tool-code", "<end_of_turn>"},
        {"gemma", "<end_of_turn>"},
        {"granite3", "<|end_of_text|>"},
        {"hermes", "<|im_end|>"},
        {"lfm2", "<|im_end|>"},
        {"llama3", "<|eot_id|>"},
        {"llama32-pythonic", "<|eot_id|>"},
        {"mistral-v13", "</s>"},
        {"mistral-v3", "</s>"},
        {"phi3", "<|end|>"},
        {"phi4-mini", "<|end|>"},
        {"qwen25", "<|im_end|>"},
        {"qwen3", "<|im_end|>"},
        {"smollm2", "<|im_end|>"},
        {"smollm3", "<|im_end|>"},
    };
    tokenizer *t = make_tokenizer();
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char path[512];
        buf source = {0};
        shoal_err err = {0};
        snprintf(path, sizeof path, DIR "%s.jinja", families[i].template);
        if (file_read(&source, path, 1 << 20, &err)) fail_msg("%s", err.message);
        expect(t, source.data, source.len, families[i].template, families[i].end);
        buf_done(&source);
    }
    tokenizer_free(t);
}

#define EACH(user, assistant) \
    "{% for m in messages %}{% if m.role == 'user' %}" user "{% else %}" assistant "{% endif %}{% endfor %}"

static void a_rendered_turn_tells_its_end(void **state)
{
    (void)state;
    static const struct {
        const char *what, *source, *end;
    } cases[] = {
        {"space before it", EACH("[INST] {{ m.content }} [/INST]", " {{ m.content }} {{ eos_token }}"),
         "</s>"},
        {"text after it",
         EACH("U", "{{ m.content }}<|end|>") "{% if not add_generation_prompt %}{{ eos_token }}{% endif %}",
         "<|end|>"},
        {"the next turn's marker", "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{% endfor %}",
         "<|user|>"},
        {"a text between turns", "{% for m in messages %}### {{ m.role }}\n{{ m.content }}\n\n{% endfor %}",
         ""},
        {"a text before the next turn's marker",
         EACH("Human: <|im_start|>{{ m.content }}", "AI: {{ m.content }}\n"), ""},
        {"a frame",
         EACH("U", "{# <|START_THINKING|> #}<|START_RESPONSE|>{{ m.content "
                   "}}<|END_RESPONSE|><|END_OF_TURN_TOKEN|>"),
         "<|END_OF_TURN_TOKEN|>"},
        {"a frame that is the end", EACH("U", "<|CHATBOT_TOKEN|>{{ m.content }}<|END_OF_TURN_TOKEN|>"),
         "<|END_OF_TURN_TOKEN|>"},
        {"gpt-oss",
         EACH("<|start|>user<|message|>{{ m.content }}<|end|>",
              "{# <|channel|>analysis #}<|start|>assistant<|channel|>final<|message|>{{ m.content }}"
              "{{ '<|return|>' if loop.last else '<|end|>' }}"),
         "<|return|>"},
        {"gpt-oss, without its last turn's end",
         EACH("<|start|>user<|message|>{{ m.content }}<|end|>",
              "{# <|channel|>analysis #}<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>"),
         ""},
        {"no control token", EACH("U", "{{ m.content }}<|user_defined|>\n"), "<|user_defined|>"},
        {"a piece of the vocabulary", EACH("U", "{{ m.content }}\n<|plain|>\n"), "<|plain|>"},
        {"a spelling without a token", EACH("U", "{{ m.content }}<|unheard_of|>\n"), ""},
        {"a begin-of-text token", EACH("<s>U", "{{ m.content }}"), ""},
        {"an answer that is not shown", EACH("U", "A<|im_end|>"), ""},
        {"a template that refuses", "{{ raise_exception('no') }}", ""},
    };
    tokenizer *t = make_tokenizer();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(t, cases[i].source, strlen(cases[i].source), cases[i].what, cases[i].end);
    tokenizer_free(t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_end_their_turns),
        cmocka_unit_test(a_rendered_turn_tells_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
