/* Folders without tokenizer.json: SentencePiece models against its own program (sentencepiece 0.1.97), the
 * older files against the tokenizer.json that they were taken from, and llama2.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "json/json.h"
#include "tokenizer/tokenizer.h"

#define DATA     SHOAL_SOURCE_DIR "/tests/data/tokenizers/"
#define BORROWED SHOAL_SOURCE_DIR "/../shared/borrowed/"

static char dir[64];

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/shoal-tok-folder-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"vocab.txt",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "tokenizer.model",
                                        "source.spm",
                                        "tokenizer.json",
                                        "config.json"};
    char path[160];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    return rmdir(dir);
}

static void put(const char *name, const char *data, size_t len)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static void put_json(const char *name, const json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
    assert_non_null(text);
    put_text(name, text);
    free(text);
}

static void copy(const char *from, const char *name)
{
    buf data = {0};
    shoal_err err = {0};
    if (file_read(&data, from, 1 << 24, &err)) fail_msg("%s", err.message);
    put(name, data.data, data.len);
    buf_done(&data);
}

static json_t *read_json(const char *path)
{
    json_t *o = NULL;
    shoal_err err = {0};
    if (json_parse_file(&o, path, 1 << 24, &err)) fail_msg("%s", err.message);
    return o;
}

static tokenizer *load(void)
{
    tokenizer *t = NULL;
    shoal_err err = {0};
    if (tokenizer_from_folder(&t, dir, &err)) fail_msg("%s", err.message);
    return t;
}

static void check_text(const tokenizer *t, const char *text, size_t len, const char *pair, const json_t *want)
{
    encoding e = {0};
    shoal_err err = {0};
    if (tokenizer_encode(t, text, len, pair, pair ? strlen(pair) : 0, TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, 0,
                         &e, &err))
        fail_msg("%s", err.message);
    bool bad = e.n != json_array_size(want);
    for (size_t i = 0; !bad && i < e.n; i++) bad = e.ids[i] != json_integer_value(json_array_get(want, i));
    if (bad) {
        fprintf(stderr, "\"%s\" gives", text);
        for (size_t i = 0; i < e.n; i++) fprintf(stderr, " %d", e.ids[i]);
        fail_msg("another encoding");
    }
    encoding_done(&e);
}

static void check_ids(const tokenizer *t, const char *text, const char *pair, const json_t *want)
{
    check_text(t, text, strlen(text), pair, want);
}

static void check_list(const tokenizer *t, const char *text, const char *pair, size_t n, const int32_t *want)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer(want[i]));
    check_ids(t, text, pair, list);
    json_decref(list);
}

static void refused(int code, const char *why)
{
    tokenizer *t = NULL;
    shoal_err err = {0};
    assert_int_equal(tokenizer_from_folder(&t, dir, &err), code);
    assert_null(t);
    if (!strstr(err.message, why)) fail_msg("%s", err.message);
}

/* ---- the older files ---- */

/* What expected.json says of a tokenizer.json holds for the folder, too. */
static void check_fixture(const char *name)
{
    char path[512];
    json_t *c;
    size_t i;
    snprintf(path, sizeof path, DATA "%s/expected.json", name);
    json_t *expected = read_json(path);
    tokenizer *t = load();
    json_array_foreach(json_object_get(expected, "single"), i, c)
        check_text(t, json_string_value(json_object_get(c, "text")),
                   json_string_length(json_object_get(c, "text")), NULL, json_object_get(c, "ids"));
    assert_true(i > 20);
    json_array_foreach(json_object_get(expected, "pair"), i, c)
        check_ids(t, json_string_value(json_object_get(c, "a")), json_string_value(json_object_get(c, "b")),
                  json_object_get(c, "ids"));
    tokenizer_free(t);
    json_decref(expected);
}

static json_t *fixture(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, DATA "%s/tokenizer.json", name);
    return read_json(path);
}

static void put_vocab_txt(const json_t *vocab)
{
    const char **by_id = calloc(json_object_size(vocab), sizeof *by_id), *key;
    buf text = {0};
    json_t *v, *pieces = (json_t *)vocab;
    assert_non_null(by_id);
    json_object_foreach(pieces, key, v) by_id[json_integer_value(v)] = key;
    for (size_t i = 0; i < json_object_size(vocab); i++) buf_printf(&text, "%s\n", by_id[i]);
    put("vocab.txt", text.data, text.len);
    buf_done(&text);
    free(by_id);
}

static void vocab_txt_is_berts(void **state)
{
    static const char *const cases[] = {"bert_uncased", "bert_cased"};
    for (size_t i = 0; i < 2; i++) {
        json_t *o = fixture(cases[i]);
        put_vocab_txt(json_object_get(json_object_get(o, "model"), "vocab"));
        put_text("tokenizer_config.json",
                 i ? "{\"tokenizer_class\":\"BertTokenizer\",\"do_lower_case\":false}"
                   : "{\"tokenizer_class\":\"DistilBertTokenizerFast\"}");
        check_fixture(cases[i]);
        json_decref(o);
    }
}

static void put_bpe(const json_t *o)
{
    const json_t *model = json_object_get(o, "model"), *m;
    buf text = {0};
    size_t i;
    put_json("vocab.json", json_object_get(model, "vocab"));
    buf_puts(&text, "#version: 0.2\n");
    json_array_foreach(json_object_get(model, "merges"), i, m)
    {
        if (json_is_array(m))
            buf_printf(&text, "%s %s\n", json_string_value(json_array_get(m, 0)),
                       json_string_value(json_array_get(m, 1)));
        else
            buf_printf(&text, "%s\n", json_string_value(m));
    }
    put("merges.txt", text.data, text.len);
    buf_done(&text);
}

static void vocab_json_and_merges_are_gpt2s(void **state)
{
    json_t *o = fixture("gpt2");
    put_bpe(o);
    check_fixture("gpt2"); /* nothing says whose they are */
    put_text("config.json", "{\"model_type\":\"gpt2\"}");
    check_fixture("gpt2");
    json_decref(o);
}

static void vocab_json_and_merges_may_be_qwens(void **state)
{
    json_t *o = fixture("qwen2"), *added = json_object(), *v;
    size_t i;
    put_bpe(o);
    json_array_foreach(json_object_get(o, "added_tokens"), i, v)
    {
        char id[16];
        snprintf(id, sizeof id, "%d", (int)json_integer_value(json_object_get(v, "id")));
        json_object_set(added, id, v);
    }
    json_t *config = json_pack("{sssO}", "tokenizer_class", "Qwen2Tokenizer", "added_tokens_decoder", added);
    put_json("tokenizer_config.json", config);
    check_fixture("qwen2");
    json_decref(config);
    json_decref(added);
    json_decref(o);
}

static void roberta_wraps_and_its_mask_takes_the_space(void **state)
{
    json_t *o = fixture("roberta");
    encoding e = {0};
    put_bpe(o);
    put_text("tokenizer_config.json", "{\"tokenizer_class\":\"RobertaTokenizer\"}");
    tokenizer *t = load();
    assert_int_equal(
        tokenizer_encode(t, "a <mask>", 8, "b", 1, TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, 0, &e, NULL), 0);
    int32_t mask = tokenizer_find(t, "<mask>", 6);
    assert_int_equal(e.n, 7); /* <s> a <mask> </s> </s> b </s> */
    assert_int_equal(e.ids[2], mask);
    assert_int_equal(e.ids[3], e.ids[4]);
    encoding_done(&e);
    tokenizer_free(t);
    json_decref(o);
}

static void whisper_puts_its_task_in_front(void **state)
{
    put_text("vocab.json", "{\"a\":0,\"b\":1,\"\xC4\xA0\":2,\"<|endoftext|>\":3}");
    put_text("merges.txt", "#version: 0.2\n");
    put_text("added_tokens.json",
             "{\"<|startoftranscript|>\":4,\"<|en|>\":5,\"<|notimestamps|>\":6,\"<|0.00|>\":7}");
    put_text("tokenizer_config.json", "{\"tokenizer_class\":\"WhisperTokenizer\"}");
    tokenizer *t = load();
    buf out = {0};
    check_list(t, "ab", NULL, 5, (int32_t[]){4, 6, 0, 1, 3});
    assert_int_equal(tokenizer_find(t, "<|en|>", 6), 5);
    assert_int_equal(tokenizer_decode(t, (int32_t[]){4, 5, 7, 0, 2, 1, 3}, 7, false, &out), 0);
    assert_string_equal(out.data, "a b");
    buf_done(&out);
    tokenizer_free(t);
}

static void opt_begins_with_its_end(void **state)
{
    put_text("vocab.json", "{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":3}");
    put_text("merges.txt", "");
    put_text("config.json", "{\"model_type\":\"opt\"}");
    tokenizer *t = load();
    check_list(t, "aa", NULL, 3, (int32_t[]){2, 3, 3});
    tokenizer_free(t);
}

static void mpnet_has_its_own_ends(void **state)
{
    put_text("vocab.txt", "<s>\n<pad>\n</s>\n[UNK]\na\nb\n<mask>\n");
    put_text("config.json", "{\"model_type\":\"mpnet\"}");
    tokenizer *t = load();
    check_list(t, "A b q", "b", 8, (int32_t[]){0, 4, 5, 3, 2, 2, 5, 2});
    tokenizer_free(t);
}

/* ---- SentencePiece ---- */

static void models_agree_with_sentencepiece(void **state)
{
    static const char *const names[] = {"unigram", "bpe", "plain", "suffix"};
    json_t *all = read_json(DATA "spm/expected.json"), *c;
    for (size_t k = 0; k < 4; k++) {
        char path[512];
        size_t i;
        snprintf(path, sizeof path, DATA "spm/%s.model", names[k]);
        copy(path, "tokenizer.model");
        tokenizer *t = load();
        json_array_foreach(json_object_get(all, names[k]), i, c)
            check_ids(t, json_string_value(json_object_get(c, "text")), NULL, json_object_get(c, "ids"));
        assert_true(i > 12);
        tokenizer_free(t);
    }
    json_decref(all);
}

/* Ids of "turn on the light" in unigram.model, as sentencepiece gives them. */
static size_t plain_ids(int32_t ids[16])
{
    json_t *all = read_json(DATA "spm/expected.json");
    const json_t *list = json_object_get(json_array_get(json_object_get(all, "unigram"), 0), "ids"), *v;
    size_t i;
    json_array_foreach(list, i, v) ids[i] = (int32_t)json_integer_value(v);
    json_decref(all);
    return i;
}

static void classes_add_their_tokens_and_order(void **state)
{
    int32_t ids[16], want[24];
    size_t n = plain_ids(ids);
    copy(DATA "spm/unigram.model", "tokenizer.model");
    put_text("tokenizer_config.json", "{\"tokenizer_class\":\"T5Tokenizer\"}");
    tokenizer *t = load();
    memcpy(want, ids, sizeof ids);
    want[n] = 2;
    check_list(t, "turn on the light", NULL, n + 1, want);
    size_t n_vocab = tokenizer_vocab_size(t);
    assert_int_equal(tokenizer_find(t, "<extra_id_0>", 12), n_vocab - 1);
    assert_int_equal(tokenizer_find(t, "<extra_id_99>", 13), n_vocab - 100);
    tokenizer_free(t);

    put_text("tokenizer_config.json", "{\"tokenizer_class\":\"XLMRobertaTokenizer\"}");
    t = load();
    want[0] = 0;
    for (size_t i = 0; i < n; i++) want[i + 1] = ids[i] + 1;
    want[n + 1] = 2;
    check_list(t, "turn on the light", NULL, n + 2, want);
    assert_int_equal(tokenizer_find(t, "<mask>", 6), tokenizer_vocab_size(t) - 1);
    assert_int_equal(tokenizer_find(t, "<pad>", 5), 1);
    tokenizer_free(t);

    put_text("tokenizer_config.json",
             "{\"tokenizer_class\":\"LlamaTokenizer\",\"add_eos_token\":true,"
             "\"model_max_length\":1000000000000000019884624838656}"); /* for "no limit" */
    t = load();
    want[0] = 1;
    memcpy(want + 1, ids, n * sizeof *ids);
    want[n + 1] = 2;
    check_list(t, "turn on the light", NULL, n + 2, want);
    assert_int_equal(tokenizer_eos(t), 2);
    tokenizer_free(t);

    put_text("tokenizer_config.json", "{\"tokenizer_class\":\"AlbertTokenizer\"}");
    t = load();
    want[0] = tokenizer_find(t, "[CLS]", 5);
    want[n + 1] = tokenizer_find(t, "[SEP]", 5);
    assert_true(want[0] > 0 && want[n + 1] > want[0]);
    check_list(t, "TURN on the light", NULL, n + 2, want);
    tokenizer_free(t);
}

static void marian_takes_pieces_from_one_file_and_ids_from_another(void **state)
{
    int32_t ids[16];
    size_t n = plain_ids(ids);
    copy(DATA "spm/unigram.model", "tokenizer.model");
    tokenizer *plain = load();
    json_t *vocab = json_object(), *want = json_array();
    for (size_t i = 0; i < tokenizer_vocab_size(plain); i++) {
        size_t len;
        const char *s = tokenizer_piece(plain, (int32_t)i, &len);
        json_object_setn_new(vocab, s, len, json_integer((json_int_t)(1000 - i)));
    }
    json_object_set_new(vocab, ">>fr<<", json_integer(0));
    copy(DATA "spm/unigram.model", "source.spm");
    put_json("vocab.json", vocab);
    put_text("config.json", "{\"model_type\":\"marian\"}");
    json_array_append_new(want, json_integer(0));
    for (size_t i = 0; i < n; i++) json_array_append_new(want, json_integer(1000 - ids[i]));
    json_array_append_new(want, json_integer(1000 - 2));
    tokenizer *t = load();
    check_ids(t, ">>fr<< turn on the light", NULL, want);
    tokenizer_free(t);
    tokenizer_free(plain);
    json_decref(vocab);
    json_decref(want);
}

/* ---- what is wrong ---- */

static void folders_that_say_nothing_are_refused(void **state)
{
    refused(SHOAL_ENOTFOUND, "there is no tokenizer.json, nor vocab.txt");
    put_text("vocab.txt", "a\nb\n");
    put_text("tokenizer_config.json", "{\"tokenizer_class\":\"JumanppTokenizer\"}");
    refused(SHOAL_EUNSUPPORTED, "\"JumanppTokenizer\"");
    put_text("tokenizer_config.json", "[]");
    refused(SHOAL_EFORMAT, "tokenizer_config.json: must be an object");
    put_text("tokenizer_config.json", "{}");
    refused(SHOAL_EFORMAT, "\"[UNK]\" is not in the vocabulary");
    put("vocab.txt", "a\n\xFF\n", 4);
    refused(SHOAL_EFORMAT, "vocab.txt: line 2 ");
    copy(DATA "spm/char.model", "tokenizer.model");
    refused(SHOAL_EUNSUPPORTED, "a SentencePiece model of characters");
}

static void a_model_cut_anywhere_is_refused_or_loads(void **state)
{
    buf data = {0};
    shoal_err err = {0};
    assert_int_equal(file_read(&data, DATA "spm/unigram.model", 1 << 20, &err), 0);
    for (size_t n = 0; n < data.len; n += 7) {
        tokenizer *t = NULL;
        put("tokenizer.model", data.data, n);
        int rc = tokenizer_from_folder(&t, dir, &err);
        if (rc && rc != SHOAL_EFORMAT) fail_msg("at %zu: %s", n, err.message);
        tokenizer_free(t);
    }
    buf_done(&data);
}

/* ---- llama2.c ---- */

static void put_piece(buf *out, float score, const char *s)
{
    uint32_t n = (uint32_t)strlen(s);
    buf_append(out, &score, 4);
    buf_append(out, &n, 4);
    buf_append(out, s, n);
}

static void llama2c_joins_by_score(void **state)
{
    static const char *const pieces[] = {"<unk>", "\n<s>\n", "\n</s>\n", "<0x41>", " ",
                                         "a",     "b",       "ab",       " ab"};
    static const float scores[] = {0, 0, 0, 0, -4, -3, -2, -1, -0.5f};
    buf data = {0}, out = {0};
    shoal_err err = {0};
    tokenizer *t = NULL;
    uint32_t longest = 6;
    buf_append(&data, &longest, 4);
    for (size_t i = 0; i < 9; i++) put_piece(&data, scores[i], pieces[i]);
    if (tokenizer_from_llama2c(&t, data.data, data.len, 9, "t.bin", &err)) fail_msg("%s", err.message);
    check_list(t, "ab aA", NULL, 5, (int32_t[]){1, 8, 4, 5, 3});
    assert_int_equal(tokenizer_decode(t, (int32_t[]){1, 8, 4, 5, 3}, 5, false, &out), 0);
    assert_string_equal(out.data, "ab aA");
    tokenizer_free(t);
    t = NULL;
    assert_int_equal(tokenizer_from_llama2c(&t, data.data, data.len, 10, "t.bin", &err), SHOAL_EFORMAT);
    assert_int_equal(tokenizer_from_llama2c(&t, data.data, data.len - 1, 9, "t.bin", &err), SHOAL_EFORMAT);
    assert_int_equal(tokenizer_from_llama2c(&t, data.data, data.len, 8, "t.bin", &err), SHOAL_EFORMAT);
    buf_done(&data);
    buf_done(&out);
}

static void llama2cs_own_file_loads(void **state)
{
    static const char text[] = "Once upon a time";
    buf data = {0}, out = {0};
    shoal_err err = {0};
    tokenizer *t = NULL;
    if (!file_exists(BORROWED "stories260K/tok512.bin")) {
        fprintf(stderr, "SKIP tok512.bin: the borrowed vocabulary is not here\n");
        skip();
    }
    assert_int_equal(file_read(&data, BORROWED "stories260K/tok512.bin", 1 << 20, &err), 0);
    if (tokenizer_from_llama2c(&t, data.data, data.len, 512, "tok512.bin", &err)) fail_msg("%s", err.message);
    check_list(t, text, NULL, 5, (int32_t[]){1, 403, 407, 261, 378});
    assert_int_equal(tokenizer_decode(t, (int32_t[]){1, 403, 407, 261, 378}, 5, false, &out), 0);
    assert_string_equal(out.data, text);
    tokenizer_free(t);
    buf_done(&data);
    buf_done(&out);
}

/* ---- real vocabularies, where the machine has them ---- */

/* The ids of a text, and what they give back; for BERT the vector's has been tidied as a whole, which the
 * tokenizer's own decoder does a token at a time. */
static void check_real(const char *file, const char *name, const char *vectors, bool ends, bool decodes)
{
    char path[512];
    snprintf(path, sizeof path, BORROWED "tokenizers-hf/%s", file);
    if (!file_exists(path)) {
        fprintf(stderr, "SKIP %s: the borrowed vocabulary is not here\n", file);
        skip();
    }
    copy(path, name);
    snprintf(path, sizeof path, BORROWED "tokenizers-hf/%s", vectors);
    json_t *v = read_json(path);
    const json_t *ids = json_object_get(v, "token_ids"), *id;
    tokenizer *t = load();
    buf out = {0};
    int32_t *list = calloc(json_array_size(ids) + 1, sizeof *list);
    size_t i;
    assert_non_null(list);
    json_array_foreach(ids, i, id) list[i] = (int32_t)json_integer_value(id);
    json_t *want = json_deep_copy(ids);
    if (ends && list[i - 1] != 1) json_array_append_new(want, json_integer(1)); /* T5's </s> */
    check_ids(t, json_string_value(json_object_get(v, "text")), NULL, want);
    assert_int_equal(tokenizer_decode(t, list, i, true, &out), 0);
    if (decodes) assert_string_equal(out.data, json_string_value(json_object_get(v, "decoded_text")));
    free(list);
    buf_done(&out);
    json_decref(want);
    json_decref(v);
    tokenizer_free(t);
}

static void berts_vocabulary_agrees_with_its_vector(void **state)
{
    check_real("bert-vocab.txt", "vocab.txt", "bert_uncased_encoded.json", false, false);
}

static void t5s_vocabulary_agrees_with_its_vector(void **state)
{
    check_real("t5-small.tokenizer.json", "tokenizer.json", "t5_base_encoded.json", true, true);
}

int main(void)
{
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(vocab_txt_is_berts),
        IN_FOLDER(vocab_json_and_merges_are_gpt2s),
        IN_FOLDER(vocab_json_and_merges_may_be_qwens),
        IN_FOLDER(roberta_wraps_and_its_mask_takes_the_space),
        IN_FOLDER(whisper_puts_its_task_in_front),
        IN_FOLDER(opt_begins_with_its_end),
        IN_FOLDER(mpnet_has_its_own_ends),
        IN_FOLDER(models_agree_with_sentencepiece),
        IN_FOLDER(classes_add_their_tokens_and_order),
        IN_FOLDER(marian_takes_pieces_from_one_file_and_ids_from_another),
        IN_FOLDER(folders_that_say_nothing_are_refused),
        IN_FOLDER(a_model_cut_anywhere_is_refused_or_loads),
        cmocka_unit_test(llama2c_joins_by_score),
        cmocka_unit_test(llama2cs_own_file_loads),
        IN_FOLDER(berts_vocabulary_agrees_with_its_vector),
        IN_FOLDER(t5s_vocabulary_agrees_with_its_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
