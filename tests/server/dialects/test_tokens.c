/* What is asked at /tokenize, in llama-server's words and in vLLM's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dialects/tokens.h"
#include "json/json.h"

static json_t *body_of(const char *text)
{
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    return root;
}

static void tokens_have_the_defaults_of_whose_words_they_are(void **state)
{
    static const struct {
        const char *body, *text;
        bool vllm, special, plain, pieces;
    } CASES[] = {
        {"{\"content\":\"a\"}", "a", false, false, false, false},
        {"{\"content\":\"a\",\"add_special\":true,\"parse_special\":false,\"with_pieces\":true}", "a", false,
         true, true, true},
        {"{\"content\":\"a\",\"prompt\":\"b\"}", "a", false, false, false, false},
        {"{\"prompt\":\"b\"}", "b", true, true, false, false},
        {"{\"prompt\":\"\",\"add_special_tokens\":false}", "", true, false, false, false},
        {"{\"messages\":[]}", NULL, true, false, false, false},
        {"{\"messages\":[],\"add_special_tokens\":true,\"return_token_strs\":true}", NULL, true, true, false,
         true},
        {"{\"prompt\":\"b\",\"return_token_strs\":null,\"add_special_tokens\":null}", "b", true, true, false,
         false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        json_t *root = body_of(CASES[i].body);
        tokens_ask a;
        api_error e = {0};
        assert_int_equal(tokens_read(&a, root, &e), 0);
        assert_true((a.text != NULL) == (CASES[i].text != NULL));
        if (a.text) assert_string_equal(a.text, CASES[i].text);
        assert_true(a.vllm == CASES[i].vllm && a.special == CASES[i].special);
        assert_true(a.plain == CASES[i].plain && a.pieces == CASES[i].pieces);
        json_decref(root);
    }
}

static void tokens_name_the_field_they_refuse(void **state)
{
    static const char *const CASES[][2] = {
        {"{}", "content"},
        {"{\"content\":1}", "content"},
        {"{\"prompt\":[1,2]}", "prompt"},
        {"{\"prompt\":\"a\",\"add_special_tokens\":1}", "add_special_tokens"},
        {"{\"messages\":[],\"return_token_strs\":\"\"}", "return_token_strs"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        json_t *root = body_of(CASES[i][0]);
        tokens_ask a;
        api_error e = {0};
        assert_int_equal(tokens_read(&a, root, &e), 400);
        assert_string_equal(e.param, CASES[i][1]);
        json_decref(root);
    }
}

static void tokens_are_answered_in_both_forms(void **state)
{
    Shoal__V1__TokenizeReply r = SHOAL__V1__TOKENIZE_REPLY__INIT;
    ProtobufCBinaryData pieces[] = {{.data = (uint8_t *)(uintptr_t) "a", .len = 1},
                                    {.data = (uint8_t *)(uintptr_t) "\"b", .len = 2}};
    buf out = {0};
    r.ids = (int32_t[]){7, 9};
    r.n_ids = 2;
    tokens_put(&out, &(tokens_ask){.vllm = true}, &r, 128);
    assert_string_equal(buf_text(&out), "{\"tokens\":[7,9],\"count\":2,\"max_model_len\":128}");
    r.pieces = pieces;
    r.n_pieces = 2;
    buf_clear(&out);
    tokens_put(&out, &(tokens_ask){.vllm = true, .pieces = true}, &r, 128);
    assert_string_equal(
        buf_text(&out),
        "{\"tokens\":[7,9],\"count\":2,\"max_model_len\":128,\"token_strs\":[\"a\",\"\\\"b\"]}");
    buf_clear(&out);
    tokens_put(&out, &(tokens_ask){.pieces = true}, &r, 128);
    assert_string_equal(buf_text(&out),
                        "{\"tokens\":[{\"id\":7,\"piece\":\"a\"},{\"id\":9,\"piece\":\"\\\"b\"}],"
                        "\"count\":2,\"max_model_len\":128}");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_the_defaults_of_whose_words_they_are),
        cmocka_unit_test(tokens_name_the_field_they_refuse),
        cmocka_unit_test(tokens_are_answered_in_both_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
