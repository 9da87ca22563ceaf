/* Long texts of one kind: telling where each token lies takes work that is linear in the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tokenizer/tokenizer.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/tokenizers/"

static const char *const UNITS[] = {
    "a",
    "<",
    "\xCC\x81",
    "a,b\n",
    "# a\n",
    " ",
    "\n",
    "a\xD0\xB6\xE6\xBC\xA2\xF0\x9F\x92\xA1",
    "<p>t</p>",
    "word ",
    "\xEE\x80\x80",
    ". ",
    "\xE3\x80\x82",
    "</s>",
    "\xF0\x9F\x92\xA1",
    " \n",
};
enum { N_UNITS = sizeof UNITS / sizeof *UNITS };

static uint64_t steps_of(const tokenizer *t, const char *unit, size_t n_bytes)
{
    buf text = {0};
    encoding e = {0};
    shoal_err err = {0};
    while (text.len < n_bytes) buf_puts(&text, unit);
    if (tokenizer_encode_prompt(t, text.data, text.len, NULL, &e, &err)) fail_msg("%s", err.message);
    uint64_t n = e.n_steps;
    encoding_done(&e);
    buf_done(&text);
    return n;
}

static void check_growth(const tokenizer *t, const char *name)
{
    for (size_t i = 0; i < N_UNITS; i++) {
        uint64_t once = steps_of(t, UNITS[i], 5000), twice = steps_of(t, UNITS[i], 10000);
        if (twice > 3 * once)
            fail_msg("%s: %llu steps for \"%s\", %llu for twice as many", name, (unsigned long long)once,
                     UNITS[i], (unsigned long long)twice);
    }
}

static void work_is_linear_with_every_tokenizer(void **state)
{
    static const char *const NAMES[] = {"bert_cased", "bert_uncased", "gpt2",   "home-chat-s",
                                        "home-embed", "llama2",       "llama3", "qwen2",
                                        "roberta",    "t5",           "xlmr"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char path[512];
        tokenizer *t = NULL;
        shoal_err err = {0};
        snprintf(path, sizeof path, DATA "%s", NAMES[i]);
        if (tokenizer_from_folder(&t, path, &err)) fail_msg("%s", err.message);
        check_growth(t, NAMES[i]);
        tokenizer_free(t);
    }
}

/* Each byte of an unknown stretch is a token, and each stands for the whole stretch. */
static void work_is_linear_where_all_is_unknown(void **state)
{
    buf json = {0};
    tokenizer *t = NULL;
    shoal_err err = {0};
    buf_puts(&json, "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,"
                    "\"vocab\":[[\"<unk>\",0],[\"a\",-1]");
    for (unsigned i = 0; i < 256; i++) buf_printf(&json, ",[\"<0x%02X>\",-5]", i);
    buf_puts(&json, "]}}");
    if (tokenizer_from_json(&t, json.data, json.len, NULL, 0, "test", &err)) fail_msg("%s", err.message);
    check_growth(t, "unknown bytes");
    tokenizer_free(t);
    buf_done(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_linear_with_every_tokenizer),
        cmocka_unit_test(work_is_linear_where_all_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
