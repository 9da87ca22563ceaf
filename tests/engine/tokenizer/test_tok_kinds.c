/* GGUF's kinds of vocabulary: Unigram and joined by score from the same models that test_tok_folder.c reads
 * as files, RWKV's, and every name of a pre-tokenizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "json/json.h"
#include "base/utf8.h"
#include "tokenizer/tok_letter.h"
#include "tokenizer/tok_spm.h"
#include "tokenizer/tokenizer.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/tokenizers/"

typedef struct arrays {
    const char *tokens[1024];
    size_t lens[1024];
    int32_t types[1024];
    float scores[1024];
} arrays;

static tokenizer_gguf meta(const arrays *a, const char *model, size_t n)
{
    return (tokenizer_gguf){.model = model,
                            .n_tokens = n,
                            .tokens = a->tokens,
                            .token_lens = a->lens,
                            .token_types = a->types,
                            .scores = a->scores,
                            .bos = -1,
                            .eos = -1,
                            .unk = -1,
                            .sep = -1,
                            .pad = -1,
                            .cls = -1,
                            .mask = -1,
                            .add_bos = 0,
                            .add_eos = 0,
                            .lowercase = -1};
}

static void check_spm(const char *name, const json_t *cases, bool remove_extra, int prefix)
{
    char path[512];
    buf data = {0};
    arrays a;
    arena *mem = arena_new(0);
    spm_vocab v;
    shoal_err err = {0};
    tokenizer *t = NULL;
    json_t *c;
    size_t i;
    snprintf(path, sizeof path, DATA "spm/%s.model", name);
    assert_int_equal(file_read(&data, path, 1 << 20, &err), 0);
    assert_int_equal(tok_spm_parse(&v, mem, data.data, data.len, 0, name, &err), 0);
    assert_true(v.n < 1024);
    for (i = 0; i < v.n; i++) {
        a.tokens[i] = v.pieces[i].text;
        a.lens[i] = v.pieces[i].len;
        a.types[i] = (int32_t)v.pieces[i].type;
        a.scores[i] = v.pieces[i].score;
    }
    tokenizer_gguf m = meta(&a, v.bpe ? "llama" : "t5", v.n);
    m.unk = v.unk;
    m.charsmap = v.charsmap;
    m.charsmap_len = v.charsmap_len;
    m.remove_extra_spaces = remove_extra;
    m.space_prefix = prefix;
    if (tokenizer_from_gguf(&t, &m, name, &err)) fail_msg("%s", err.message);
    json_array_foreach(cases, i, c)
    {
        const json_t *text = json_object_get(c, "text"), *ids = json_object_get(c, "ids");
        encoding e = {0};
        assert_int_equal(tokenizer_encode(t, json_string_value(text), json_string_length(text), NULL, 0,
                                          TOK_PARSE_SPECIAL, 0, &e, &err),
                         0);
        bool bad = e.n != json_array_size(ids);
        for (size_t k = 0; !bad && k < e.n; k++) bad = e.ids[k] != json_integer_value(json_array_get(ids, k));
        if (bad) fail_msg("%s: \"%s\" differs", name, json_string_value(text));
        encoding_done(&e);
    }
    assert_true(i > 12);
    tokenizer_free(t);
    arena_free(mem);
    buf_done(&data);
}

static void sentencepiece_in_gguf_is_sentencepiece(void **state)
{
    json_t *all = NULL;
    assert_int_equal(json_parse_file(&all, DATA "spm/expected.json", 1 << 20, NULL), 0);
    check_spm("unigram", json_object_get(all, "unigram"), true, 1);
    check_spm("plain", json_object_get(all, "plain"), false, -1);
    check_spm("bpe", json_object_get(all, "bpe"), false, 0); /* "llama" has a space in front unless told */
    json_decref(all);
}

/* DeepSeek's vocabularies spell some letters as tokens of their own, which look like letters of bytes. */
static void tokens_of_users_are_texts_in_byte_level_vocabularies(void **state)
{
    static const char *const added[] = {"\u00fc", "\u00f8x", "<|\u00fc|>"};
    arrays a = {0};
    char letters[256][5];
    for (size_t i = 0; i < 256; i++) {
        a.lens[i] = utf8_encode(tok_byte_letter((uint8_t)i), letters[i]);
        a.tokens[i] = letters[i];
        a.types[i] = 1;
    }
    size_t n = 256;
    for (; n < 259; n++) {
        a.tokens[n] = added[n - 256];
        a.lens[n] = strlen(added[n - 256]);
        a.types[n] = n < 258 ? 4 : 3;
    }
    tokenizer_gguf m = meta(&a, "gpt2", n);
    tokenizer *t = NULL;
    shoal_err err = {0};
    encoding e = {0};
    buf out = {0};
    if (tokenizer_from_gguf(&t, &m, "test", &err)) fail_msg("%s", err.message);
    static const char text[] = "\u00fcber \u00f8x \u00f6";
    assert_int_equal(tokenizer_encode(t, text, sizeof text - 1, NULL, 0, TOK_PARSE_SPECIAL, 0, &e, &err), 0);
    assert_int_equal(e.ids[0], 256);
    assert_int_equal(tokenizer_decode(t, e.ids, e.n, false, &out), 0);
    assert_string_equal(out.data, text);
    for (size_t id = 256; id < n; id++) {
        size_t len;
        bool special;
        const char *s = tokenizer_bytes(t, (int32_t)id, &len, &special);
        assert_int_equal(len, a.lens[id]);
        assert_memory_equal(s, a.tokens[id], len);
    }
    buf_done(&out);
    encoding_done(&e);
    tokenizer_free(t);
}

static void rwkv_takes_the_longest_of_bytes(void **state)
{
    static const char *const tokens[] = {"<s>", "a", "ab", "\\n", "\\xe6", "\\x97\\xa5", "\\\\", "abcd", " "};
    arrays a = {0};
    for (size_t i = 0; i < 9; i++) {
        a.tokens[i] = tokens[i];
        a.lens[i] = strlen(tokens[i]);
        a.types[i] = i ? 1 : 3;
    }
    tokenizer_gguf m = meta(&a, "rwkv", 9);
    tokenizer *t = NULL;
    encoding e = {0};
    buf out = {0};
    shoal_err err = {0};
    static const char text[] = "abc\n\xE6\x97\xA5\\a abcd";
    static const int32_t want[] = {2, 3, 4, 5, 6, 1, 8, 7};
    if (tokenizer_from_gguf(&t, &m, "m.gguf", &err)) fail_msg("%s", err.message);
    assert_int_equal(tokenizer_encode(t, text, sizeof text - 1, NULL, 0, TOK_ADD_SPECIAL, 0, &e, &err), 0);
    assert_int_equal(e.n, 8); /* 'c' is no token and is left out */
    assert_memory_equal(e.ids, want, sizeof want);
    assert_int_equal(tokenizer_decode(t, e.ids, e.n, false, &out), 0);
    assert_string_equal(out.data, "ab\n\xE6\x97\xA5\\a abcd");
    buf_done(&out);
    encoding_done(&e);
    tokenizer_free(t);
}

/* A vocabulary of single bytes: whatever the words, the text comes back, and words end where the name says.
 */
static size_t words_of(const char *pre, const char *text, size_t ends[], size_t max)
{
    static char letters[256][8];
    arrays a = {0};
    for (unsigned b = 0; b < 256; b++) {
        a.tokens[b] = letters[b];
        a.lens[b] = utf8_encode(tok_byte_letter((uint8_t)b), letters[b]);
        a.types[b] = 1;
    }
    tokenizer_gguf m = meta(&a, "gpt2", 256);
    tokenizer *t = NULL;
    encoding e = {0};
    buf out = {0};
    shoal_err err = {0};
    size_t n = 0;
    m.pre = pre;
    if (tokenizer_from_gguf(&t, &m, "m.gguf", &err)) fail_msg("%s", err.message);
    if (tokenizer_encode(t, text, strlen(text), NULL, 0, 0, 0, &e, &err))
        fail_msg("%s: %s", pre, err.message);
    assert_int_equal(e.n, strlen(text));
    for (size_t i = 0; i < e.n; i++)
        if (i + 1 == e.n || e.word[i] != e.word[i + 1]) {
            if (n < max) ends[n] = i + 1;
            n++;
        }
    assert_int_equal(tokenizer_decode(t, e.ids, e.n, false, &out), 0);
    if (strcmp(out.data, text)) fail_msg("%s gives back \"%s\"", pre, out.data);
    buf_done(&out);
    encoding_done(&e);
    tokenizer_free(t);
    return n;
}

static void every_name_of_a_pre_tokenizer_loads(void **state)
{
    static const char *const names[] = {"default",
                                        "gpt-2",
                                        "phi-2",
                                        "mpt",
                                        "olmo",
                                        "jais",
                                        "jina-es",
                                        "jina-de",
                                        "jina-v2-es",
                                        "jina-v2-de",
                                        "gigachat",
                                        "a.x-4.0",
                                        "mellum",
                                        "modern-bert",
                                        "exaone4",
                                        "trillion",
                                        "granite-docling",
                                        "roberta-bpe",
                                        "jina-v1-en",
                                        "jina-v2-code",
                                        "llama-bpe",
                                        "llama3",
                                        "llama-v3",
                                        "falcon3",
                                        "falcon-h1",
                                        "pixtral",
                                        "midm-2.0",
                                        "lfm2",
                                        "jina-v5-nano",
                                        "dbrx",
                                        "smaug-bpe",
                                        "chatglm-bpe",
                                        "glm4",
                                        "minicpm5",
                                        "qwen2",
                                        "deepseek-r1-qwen",
                                        "kormo",
                                        "f2llmv2",
                                        "stablelm2",
                                        "hunyuan",
                                        "solar-open",
                                        "megrez",
                                        "grok-2",
                                        "qwen35",
                                        "laguna",
                                        "ufakzeka",
                                        "smollm",
                                        "starcoder",
                                        "refact",
                                        "command-r",
                                        "codeshell",
                                        "exaone",
                                        "minerva-7b",
                                        "mellum2",
                                        "falcon",
                                        "deepseek-llm",
                                        "deepseek-coder",
                                        "deepseek-v3",
                                        "hunyuan-dense",
                                        "joyai-llm",
                                        "hy_v4",
                                        "youtu",
                                        "poro-chat",
                                        "bloom",
                                        "gpt3-finnish",
                                        "viking",
                                        "tekken",
                                        "gpt-4o",
                                        "llama4",
                                        "kanana2",
                                        "talkie",
                                        "minimax-m2",
                                        "granite-embed-multi-97m",
                                        "tiny_aya",
                                        "cohere2moe",
                                        "kimi-k2",
                                        "superbpe",
                                        "bailingmoe",
                                        "bailingmoe2",
                                        "llada-moe",
                                        "seed-coder",
                                        "exaone-moe",
                                        "chameleon"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        words_of(names[i],
                 "Hello na\xC3\xAFve  World's 12345 \xE6\x97\xA5\xE6\x9C\xAC, it's\n\n a \xF0\x9F\x98\x80!  ",
                 NULL, 0);
}

static void names_split_as_their_models_do(void **state)
{
    static const struct {
        const char *name, *text;
        size_t n, ends[6];
    } cases[] = {
        {"gpt-2", "it's 1234", 3, {2, 4, 9}},     {"llama-bpe", "it'S 1234", 5, {2, 4, 5, 8, 9}},
        {"qwen2", "a 12", 4, {1, 2, 3, 4}},       {"starcoder", "a 12", 4, {1, 2, 3, 4}},
        {"gpt-4o", "getUserName", 3, {3, 7, 11}}, {"kimi-k2", "a\xE6\x97\xA5z", 3, {1, 4, 5}},
        {"superbpe", "1234567", 3, {1, 4, 7}},    {"deepseek-v3", "12345", 2, {3, 5}},
        {"bloom", " a.b", 3, {2, 3, 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t ends[6] = {0}, n = words_of(cases[i].name, cases[i].text, ends, 6);
        if (n != cases[i].n || memcmp(ends, cases[i].ends, n * sizeof *ends))
            fail_msg("%s splits \"%s\" into %zu words, the first ends at %zu", cases[i].name, cases[i].text,
                     n, ends[0]);
    }
}

static void an_unknown_name_is_refused(void **state)
{
    arrays a = {.tokens = {"a"}, .lens = {1}, .types = {1}};
    tokenizer_gguf m = meta(&a, "gpt2", 1);
    tokenizer *t = NULL;
    shoal_err err = {0};
    m.pre = "llama-bpe2";
    assert_int_equal(tokenizer_from_gguf(&t, &m, "m.gguf", &err), SHOAL_EUNSUPPORTED);
    assert_string_equal(err.message, "m.gguf: tokenizer.ggml.pre: \"llama-bpe2\" is not supported");
}

/* Gemma 4: characters with "▁" for spaces, and bytes for what is no piece. */
static void gemma_joins_characters(void **state)
{
    static const char *const tokens[] = {"<bos>", "a", "b", "\xE2\x96\x81", "ab", "<0xC3>", "<0xA9>", "\n"},
                             *const merges[] = {"a b"};
    static const size_t merge_lens[] = {3};
    static const int32_t want[] = {0, 4, 3, 4, 5, 6, 7};
    arrays a = {0};
    for (size_t i = 0; i < 8; i++) {
        a.tokens[i] = tokens[i];
        a.lens[i] = strlen(tokens[i]);
        a.types[i] = i == 0 ? 3 : 1;
    }
    tokenizer_gguf m = meta(&a, "gemma4", 8);
    tokenizer *t = NULL;
    encoding e = {0};
    buf out = {0};
    shoal_err err = {0};
    m.merges = merges;
    m.merge_lens = merge_lens;
    m.n_merges = 1;
    m.bos = 0;
    m.add_bos = -1;
    if (tokenizer_from_gguf(&t, &m, "m.gguf", &err)) fail_msg("%s", err.message);
    assert_int_equal(tokenizer_encode(t, "ab ab\xC3\xA9\n", 8, NULL, 0, TOK_ADD_SPECIAL, 0, &e, &err), 0);
    assert_int_equal(e.n, 7);
    assert_memory_equal(e.ids, want, sizeof want);
    assert_int_equal(tokenizer_decode(t, e.ids, e.n, false, &out), 0);
    assert_string_equal(out.data, "ab ab\xC3\xA9\n");
    buf_done(&out);
    encoding_done(&e);
    tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentencepiece_in_gguf_is_sentencepiece),
        cmocka_unit_test(tokens_of_users_are_texts_in_byte_level_vocabularies),
        cmocka_unit_test(rwkv_takes_the_longest_of_bytes),
        cmocka_unit_test(every_name_of_a_pre_tokenizer_loads),
        cmocka_unit_test(names_split_as_their_models_do),
        cmocka_unit_test(an_unknown_name_is_refused),
        cmocka_unit_test(gemma_joins_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
