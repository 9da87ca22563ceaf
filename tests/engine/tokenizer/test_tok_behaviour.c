/* What no fixture holds: streaming, bounds, truncation, GGUF vocabularies, malformed files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "json/json.h"
#include "base/file.h"
#include "base/utf8.h"
#include "tokenizer/tok_text.h"
#include "tokenizer/tokenizer.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/tokenizers/"

static tokenizer *load(const char *name)
{
    char path[512];
    buf json = {0};
    shoal_err err = {0};
    tokenizer *t = NULL;
    snprintf(path, sizeof path, DATA "%s/tokenizer.json", name);
    if (file_read(&json, path, 64 << 20, &err)) fail_msg("%s", err.message);
    if (tokenizer_from_json(&t, json.data, json.len, NULL, 0, name, &err)) fail_msg("%s", err.message);
    buf_done(&json);
    return t;
}

static void streamed_text_is_whole_characters_and_equals_the_decoding(void **state)
{
    static const char *const names[] = {"gpt2", "llama2", "bert_uncased", "qwen2", "t5"};
    for (size_t k = 0; k < 5; k++) {
        tokenizer *t = load(names[k]);
        for (uint64_t seed = 0; seed < 200; seed++) {
            int32_t ids[40];
            buf whole = {0}, streamed = {0};
            detok d;
            detok_init(&d, t, seed & 1);
            for (size_t i = 0; i < 40; i++) {
                ids[i] = (int32_t)(rng_mix(seed * 64 + i) % (tokenizer_vocab_size(t) + 2)) - 1;
                assert_int_equal(detok_push(&d, ids[i], &streamed), 0);
                if (!utf8_valid(streamed.data, streamed.len, NULL))
                    fail_msg("%s seed %d: half a character", names[k], (int)seed);
            }
            assert_int_equal(detok_end(&d, &streamed), 0);
            assert_int_equal(tokenizer_decode(t, ids, 40, seed & 1, &whole), 0);
            assert_int_equal(whole.len, streamed.len);
            assert_memory_equal(whole.data, streamed.data, whole.len);
            buf_done(&whole);
            buf_done(&streamed);
        }
        tokenizer_free(t);
    }
}

static void a_megabyte_of_one_letter_is_encoded(void **state)
{
    static const char *const names[] = {"gpt2", "llama2", "bert_uncased", "t5", "home-chat-s"};
    size_t n = 1 << 20;
    char *text = malloc(n);
    for (size_t k = 0; k < 10; k++) {
        encoding e = {0};
        shoal_err err;
        tokenizer *t = load(names[k % 5]);
        memset(text, k < 5 ? 'a' : ' ', n);
        if (tokenizer_encode(t, text, n, NULL, 0, 0, 0, &e, &err))
            fail_msg("%s: %s", names[k % 5], err.message);
        if (e.n) assert_int_equal(e.spans[e.n - 1].end, n);
        encoding_done(&e);
        tokenizer_free(t);
    }
    free(text);
}

static void invalid_text_and_limits_are_refused(void **state)
{
    tokenizer *t = load("bert_uncased");
    encoding e = {0};
    shoal_err err;
    assert_int_equal(tokenizer_encode(t, "ab\xFF", 3, NULL, 0, 0, 0, &e, &err), SHOAL_EINVALID);
    assert_string_equal(err.message, "the text is not UTF-8 at byte 2");
    assert_int_equal(tokenizer_encode(t, "a b c d", 7, NULL, 0, 0, 3, &e, &err), SHOAL_ELIMIT);
    assert_int_equal(e.n, 0);
    tokenizer_free(t);
}

static void truncation_keeps_special_tokens_and_takes_from_the_longer(void **state)
{
    tokenizer *t = load("bert_uncased");
    encoding e = {0};
    shoal_err err;
    assert_int_equal(tokenizer_encode(t, "a a a a a a", 11, "a a", 3, TOK_ADD_SPECIAL, 0, &e, &err), 0);
    assert_int_equal(e.n, 11);
    assert_true(encoding_truncate(&e, 7));
    assert_int_equal(e.n, 7);
    static const uint8_t special[] = {1, 0, 0, 1, 0, 0, 1};
    assert_memory_equal(e.special, special, 7);
    assert_false(encoding_truncate(&e, 7));
    encoding_done(&e);
    tokenizer_free(t);
}

static void special_text_is_parsed_only_when_asked(void **state)
{
    tokenizer *t = load("home-chat-s");
    encoding e = {0};
    shoal_err err;
    assert_int_equal(tokenizer_encode(t, "<|im_start|>", 12, NULL, 0, TOK_PARSE_SPECIAL, 0, &e, &err), 0);
    assert_int_equal(e.n, 1);
    assert_int_equal(e.ids[0], 1);
    assert_int_equal(tokenizer_encode(t, "<|im_start|>", 12, NULL, 0, 0, 0, &e, &err), 0);
    assert_true(e.n > 1);
    encoding_done(&e);
    tokenizer_free(t);
}

static void gguf_wordpiece_spells_continuations_bare(void **state)
{
    static const char *const tokens[] = {"[PAD]", "[UNK]",        "[CLS]", "[SEP]", "\xE2\x96\x81play",
                                         "ing",   "\xE2\x96\x81!"};
    static const int32_t types[] = {3, 3, 3, 3, 1, 1, 1};
    static const int32_t want[] = {2, 4, 5, 6, 3};
    size_t lens[7];
    for (size_t i = 0; i < 7; i++) lens[i] = strlen(tokens[i]);
    tokenizer_gguf m = {.model = "bert",
                        .n_tokens = 7,
                        .tokens = tokens,
                        .token_lens = lens,
                        .token_types = types,
                        .bos = 2,
                        .eos = -1,
                        .unk = 1,
                        .sep = 3,
                        .pad = 0,
                        .cls = -1,
                        .mask = -1,
                        .add_bos = -1,
                        .add_eos = -1,
                        .lowercase = -1};
    tokenizer *t = NULL;
    encoding e = {0};
    buf out = {0};
    shoal_err err;
    assert_int_equal(tokenizer_from_gguf(&t, &m, "m.gguf", &err), 0);
    assert_int_equal(tokenizer_encode(t, "Playing!", 8, NULL, 0, TOK_ADD_SPECIAL, 0, &e, &err), 0);
    assert_int_equal(e.n, 5);
    assert_memory_equal(e.ids, want, sizeof want);
    assert_int_equal(tokenizer_decode(t, e.ids, e.n, false, &out), 0);
    assert_string_equal(out.data, "playing!");
    buf_done(&out);
    encoding_done(&e);
    tokenizer_free(t);
    m.model = "plamo2";
    assert_int_equal(tokenizer_from_gguf(&t, &m, "m.gguf", &err), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "\"plamo2\""));
    m.model = "gpt2";
    m.pre = "nobody";
    assert_int_equal(tokenizer_from_gguf(&t, &m, "m.gguf", &err), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "\"nobody\""));
}

static void malformed_files_name_the_place(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "t: model: must be an object"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}",
         "t: model.vocab[\"a\"]: id -1 is out of range"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}",
         "t: model.merges[0]: a piece"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"unk_token\":\"x\"}}",
         "t: model.unk_token"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}},\"normalizer\":{\"type\":\"Sequence\","
         "\"normalizers\":[{\"type\":\"X\"}]}}",
         "t: normalizer.normalizers[0]: normalizer \"X\" is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tokenizer *t = NULL;
        shoal_err err = {0};
        assert_true(tokenizer_from_json(&t, cases[i][0], strlen(cases[i][0]), NULL, 0, "t", &err) < 0);
        assert_null(t);
        if (strncmp(err.message, cases[i][1], strlen(cases[i][1]))) fail_msg("%s", err.message);
    }
}

/* Callers copy and step until the old text is used up: it must be, memory or not. */
static void a_writer_without_memory_still_reaches_the_end(void **state)
{
    tok_text t = {.s = "one two", .len = 7};
    text_writer w = tok_text_rewrite(&t, 0);
    w.failed = true;
    tok_text_copy(&w, 3);
    assert_int_equal(w.at, 3);
    tok_text_put(&w, '_', 0);
    assert_int_equal(w.at, 4);
    tok_text_copy(&w, 7);
    assert_int_equal(w.at, 7);
    assert_int_equal(tok_text_finish(&w, &t), SHOAL_ENOMEM);
    assert_string_equal(t.s, "one two");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streamed_text_is_whole_characters_and_equals_the_decoding),
        cmocka_unit_test(a_megabyte_of_one_letter_is_encoded),
        cmocka_unit_test(invalid_text_and_limits_are_refused),
        cmocka_unit_test(truncation_keeps_special_tokens_and_takes_from_the_longer),
        cmocka_unit_test(special_text_is_parsed_only_when_asked),
        cmocka_unit_test(gguf_wordpiece_spells_continuations_bare),
        cmocka_unit_test(malformed_files_name_the_place),
        cmocka_unit_test(a_writer_without_memory_still_reaches_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
