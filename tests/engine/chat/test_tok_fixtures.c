/* Every tokenizer of tests/data/tokenizers against what the reference library gave for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"
#include "base/file.h"
#include "chat/chat.h"
#include "tokenizer/tokenizer.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/tokenizers/"

typedef struct fixture {
    char name[64];
    tokenizer *t;
    json_t *expected;
} fixture;

static fixture open_fixture(const char *name)
{
    fixture f = {0};
    char path[512];
    buf text = {0};
    shoal_err err = {0};
    snprintf(f.name, sizeof f.name, "%s", name);
    snprintf(path, sizeof path, DATA "%s/tokenizer.json", name);
    if (file_read(&text, path, 64 << 20, &err)) fail_msg("%s", err.message);
    if (tokenizer_from_json(&f.t, text.data, text.len, NULL, 0, path, &err)) fail_msg("%s", err.message);
    snprintf(path, sizeof path, DATA "%s/expected.json", name);
    if (json_parse_file(&f.expected, path, 64 << 20, &err)) fail_msg("%s", err.message);
    buf_done(&text);
    return f;
}

static void close_fixture(fixture *f)
{
    tokenizer_free(f->t);
    json_decref(f->expected);
}

static void explain(const char *name, const char *what, const char *text, const encoding *e)
{
    fprintf(stderr, "%s: %s differ for \"%s\"\n  got", name, what, text);
    for (size_t i = 0; i < e->n; i++)
        fprintf(stderr, " %d[%u,%u]", e->ids[i], e->spans[i].cp_begin, e->spans[i].cp_end);
    fprintf(stderr, "\n");
}

static int check_ids(const fixture *f, const json_t *want, const encoding *e, const char *what,
                     const char *text)
{
    int bad = json_array_size(want) != e->n;
    for (size_t i = 0; !bad && i < e->n; i++) bad = json_integer_value(json_array_get(want, i)) != e->ids[i];
    if (bad) explain(f->name, what, text, e);
    return bad;
}

static int check_offsets(const fixture *f, const json_t *want, const encoding *e, const char *text)
{
    int bad = want && json_array_size(want) != e->n;
    for (size_t i = 0; want && !bad && i < e->n; i++) {
        const json_t *o = json_array_get(want, i);
        bad = json_integer_value(json_array_get(o, 0)) != e->spans[i].cp_begin ||
              json_integer_value(json_array_get(o, 1)) != e->spans[i].cp_end;
        if (bad) fprintf(stderr, "token %zu\n", i);
    }
    if (bad) explain(f->name, "offsets", text, e);
    return bad;
}

static int check_decoding(const fixture *f, const json_t *want, const encoding *e, bool with_special)
{
    buf out = {0}, streamed = {0};
    detok d;
    assert_int_equal(tokenizer_decode(f->t, e->ids, e->n, with_special, &out), 0);
    detok_init(&d, f->t, with_special);
    for (size_t i = 0; i < e->n; i++) assert_int_equal(detok_push(&d, e->ids[i], &streamed), 0);
    assert_int_equal(detok_end(&d, &streamed), 0);
    int bad = json_string_length(want) != out.len ||
              (out.len && memcmp(json_string_value(want), out.data, out.len));
    if (bad)
        fprintf(stderr, "%s: decoded \"%s\", want \"%s\"\n", f->name, out.data ? out.data : "",
                json_string_value(want));
    assert_int_equal(out.len, streamed.len);
    if (out.len) assert_memory_equal(out.data, streamed.data, out.len);
    buf_done(&out);
    buf_done(&streamed);
    return bad;
}

static int check_single(const fixture *f, const json_t *c)
{
    const json_t *text = json_object_get(c, "text");
    const char *s = json_string_value(text);
    size_t n = json_string_length(text);
    encoding e = {0};
    shoal_err err;
    int bad = 0;
    if (tokenizer_encode(f->t, s, n, NULL, 0, TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, 0, &e, &err))
        fail_msg("%s", err.message);
    bad += check_ids(f, json_object_get(c, "ids"), &e, "ids", s);
    bad += check_offsets(f, json_object_get(c, "offsets"), &e, s);
    bad += check_decoding(f, json_object_get(c, "decoded"), &e, false);
    bad += check_decoding(f, json_object_get(c, "decoded_keep_special"), &e, true);
    if (tokenizer_encode(f->t, s, n, NULL, 0, TOK_PARSE_SPECIAL, 0, &e, &err)) fail_msg("%s", err.message);
    bad += check_ids(f, json_object_get(c, "ids_no_special"), &e, "ids without special tokens", s);
    encoding_done(&e);
    return bad;
}

static int check_pair(const fixture *f, const json_t *c)
{
    const json_t *a = json_object_get(c, "a"), *b = json_object_get(c, "b");
    encoding e = {0};
    shoal_err err;
    if (tokenizer_encode(f->t, json_string_value(a), json_string_length(a), json_string_value(b),
                         json_string_length(b), TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, 0, &e, &err))
        fail_msg("%s", err.message);
    int bad = check_ids(f, json_object_get(c, "ids"), &e, "pair ids", json_string_value(a));
    for (size_t i = 0; !bad && i < e.n; i++)
        if (json_integer_value(json_array_get(json_object_get(c, "type_ids"), i)) != e.type_ids[i]) {
            explain(f->name, "type ids", json_string_value(a), &e);
            bad = 1;
        }
    encoding_done(&e);
    return bad;
}

static void check_all(const char *name)
{
    fixture f = open_fixture(name);
    const json_t *c;
    size_t i;
    int bad = 0;
    json_array_foreach(json_object_get(f.expected, "single"), i, c) bad += check_single(&f, c);
    json_array_foreach(json_object_get(f.expected, "pair"), i, c) bad += check_pair(&f, c);
    close_fixture(&f);
    assert_int_equal(bad, 0);
}

/* The prompts of the home model: template and tokenizer together, and its replies decoded. */
static void home_prompts_agree_with_the_reference(void **state)
{
    shoal_err err = {0};
    buf json = {0}, prompt = {0}, reply = {0};
    json_t *config = NULL, *expected = NULL, *c, *v;
    tokenizer *t = NULL;
    chat_template *chat = NULL;
    encoding e = {0};
    size_t i, k;
    assert_int_equal(file_read(&json, DATA "home-chat-s/tokenizer.json", 1 << 20, &err), 0);
    assert_int_equal(tokenizer_from_json(&t, json.data, json.len, NULL, 0, "home-chat-s", &err), 0);
    assert_int_equal(json_parse_file(&config, DATA "home-chat-s/tokenizer_config.json", 1 << 20, &err), 0);
    assert_int_equal(json_parse_file(&expected, DATA "home-chat-s/prompts.json", 1 << 20, &err), 0);
    const char *source = json_string_value(json_object_get(config, "chat_template"));
    assert_int_equal(chat_template_compile(&chat, source, strlen(source), "home-chat-s", &err), 0);
    json_array_foreach(json_object_get(expected, "cases"), i, c)
    {
        json_t *m = json_pack("[{sssO}{sssO}]", "role", "system", "content", json_object_get(c, "system"),
                              "role", "user", "content", json_object_get(c, "user"));
        buf_clear(&prompt);
        buf_clear(&reply);
        assert_int_equal(chat_template_render(chat, &(chat_input){.messages = m}, true, NULL, "<|im_end|>",
                                              &prompt, NULL, &err),
                         0);
        assert_int_equal(tokenizer_encode(t, prompt.data, prompt.len, NULL, 0,
                                          TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, 0, &e, &err),
                         0);
        fixture f = {.name = "home-chat-s", .t = t};
        assert_int_equal(check_ids(&f, json_object_get(c, "prompt_ids"), &e, "prompt ids", prompt.data), 0);
        json_array_foreach(json_object_get(c, "greedy_ids"), k, v) e.ids[k] = (int32_t)json_integer_value(v);
        assert_int_equal(tokenizer_decode(t, e.ids, k, false, &reply), 0);
        assert_string_equal(reply.data, json_string_value(json_object_get(c, "text")));
        json_decref(m);
    }
    encoding_done(&e);
    tokenizer_free(t);
    chat_template_free(chat);
    json_decref(config);
    json_decref(expected);
    buf_done(&json);
    buf_done(&prompt);
    buf_done(&reply);
}

static void check_input(const fixture *f, const json_t *in)
{
    const json_t *a = json_object_get(in, "a"), *b = json_object_get(in, "b");
    encoding e = {0};
    shoal_err err;
    assert_int_equal(tokenizer_encode(f->t, json_string_value(a), json_string_length(a), json_string_value(b),
                                      json_string_length(b), TOK_ADD_SPECIAL, 0, &e, &err),
                     0);
    assert_int_equal(check_ids(f, json_object_get(in, "ids"), &e, "ids", json_string_value(a)), 0);
    assert_int_equal(check_offsets(f, json_object_get(in, "offsets"), &e, json_string_value(a)), 0);
    for (size_t i = 0; i < e.n; i++)
        assert_int_equal(json_integer_value(json_array_get(json_object_get(in, "type_ids"), i)),
                         e.type_ids[i]);
    encoding_done(&e);
}

static void bert_models_inputs_agree_with_the_reference(void **state)
{
    json_t *all = NULL, *model, *in;
    shoal_err err;
    size_t i, k;
    assert_int_equal(json_parse_file(&all, DATA "bert_models.json", 1 << 20, &err), 0);
    json_array_foreach(all, i, model)
    {
        fixture f = open_fixture(json_string_value(json_object_get(model, "tokenizer")));
        json_array_foreach(json_object_get(model, "inputs"), k, in) check_input(&f, in);
        close_fixture(&f);
    }
    json_decref(all);
}

#define FIXTURE(name)                                          \
    static void name##_agrees_with_the_reference(void **state) \
    {                                                          \
        check_all(#name);                                      \
    }
FIXTURE(bert_cased)
FIXTURE(bert_uncased)
FIXTURE(gpt2)
FIXTURE(llama2)
FIXTURE(llama3)
FIXTURE(qwen2)
FIXTURE(roberta)
FIXTURE(t5)
FIXTURE(xlmr)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bert_cased_agrees_with_the_reference),
        cmocka_unit_test(bert_uncased_agrees_with_the_reference),
        cmocka_unit_test(gpt2_agrees_with_the_reference),
        cmocka_unit_test(llama2_agrees_with_the_reference),
        cmocka_unit_test(llama3_agrees_with_the_reference),
        cmocka_unit_test(qwen2_agrees_with_the_reference),
        cmocka_unit_test(roberta_agrees_with_the_reference),
        cmocka_unit_test(t5_agrees_with_the_reference),
        cmocka_unit_test(xlmr_agrees_with_the_reference),
        cmocka_unit_test(home_prompts_agree_with_the_reference),
        cmocka_unit_test(bert_models_inputs_agree_with_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
