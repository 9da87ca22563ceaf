/* The keys that other engines read: what a written file says of its tokenizer must be enough without the
 * tokenizer.json that it carries for us. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "json/json.h"
#include "model/files/gguf.h"
#include "model/files/gguf_writer.h"
#include "model/model.h"
#include "model/quantize/quantize_meta.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

static char folder[200], out[256];

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/shoal_keys_XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(out, sizeof out, "%s/out.gguf", folder);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    unlink(out);
    return rmdir(folder);
}

static void quantise(const char *name, dtype type)
{
    char in[256];
    quantize_report r;
    shoal_err err = {0};
    snprintf(in, sizeof in, DATA "hf/%s", name);
    if (quantize_model(in, out, &(quantize_options){.type = type}, &r, &err) != 0)
        fail_msg("%s: %s", name, err.message);
}

/* The name of the key that carries tokenizer.json becomes one that nobody reads. */
static void hide_tokenizer_json(void)
{
    static const char key[] = "tokenizer.huggingface.json";
    buf b = {0};
    assert_int_equal(file_read(&b, out, 64 << 20, NULL), 0);
    size_t at = 0;
    while (at + sizeof key < b.len && memcmp(b.data + at, key, sizeof key - 1) != 0) at++;
    assert_true(at + sizeof key < b.len);
    memcpy(b.data + at, "tokenizer.huggingface.none", sizeof key - 1);
    FILE *f = fopen(out, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
    assert_int_equal(fclose(f), 0);
    buf_done(&b);
}

static void check_text(const tokenizer *t, const char *name, const json_t *o)
{
    const char *text = json_string_value(json_object_get(o, "text"));
    const char *pair = json_string_value(json_object_get(o, "b"));
    const json_t *ids = json_object_get(o, "ids");
    encoding e = {0};
    shoal_err err = {0};
    if (!text) text = json_string_value(json_object_get(o, "a"));
    assert_non_null(text);
    assert_int_equal(
        tokenizer_encode(t, text, strlen(text), pair, pair ? strlen(pair) : 0, TOK_ADD_SPECIAL, 0, &e, &err),
        0);
    if (e.n != json_array_size(ids)) fail_msg("%s: \"%s\" has %zu tokens", name, text, e.n);
    for (size_t i = 0; i < e.n; i++)
        if (e.ids[i] != json_integer_value(json_array_get(ids, i)))
            fail_msg("%s: token %zu of \"%s\" is %d", name, i, text, e.ids[i]);
    encoding_done(&e);
}

static void check_texts(const tokenizer *t, const char *name)
{
    char path[256];
    json_t *root = NULL;
    snprintf(path, sizeof path, DATA "hf/%s/expected.json", name);
    assert_int_equal(json_parse_file(&root, path, 64 << 20, NULL), 0);
    const json_t *list = json_object_get(root, "prompts");
    if (!list) list = json_object_get(root, "inputs");
    assert_true(json_array_size(list) > 0);
    for (size_t i = 0; i < json_array_size(list); i++) check_text(t, name, json_array_get(list, i));
    json_decref(root);
}

/* One of every kind: joins by score, byte-level with and without a bos, WordPiece, RoBERTa's, Unigram with
 * and without a bos. */
static void the_keys_alone_tokenize_alike(void **state)
{
    (void)state;
    static const char *const names[] = {
        "llama-gqa",   "llama3-rope-scaled-tied", "qwen2-bias", "gpt2",
        "bert-intent", "roberta-intent",          "xlmr-ner",   "t5-small-relu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        model *m = NULL;
        shoal_err err = {0};
        quantise(names[i], DT_Q8_0);
        hide_tokenizer_json();
        if (model_open(&m, out, NULL, &err) != 0) fail_msg("%s: %s", names[i], err.message);
        if (!model_tokenizer(m)) fail_msg("%s: %s", names[i], model_tokenizer_error(m));
        check_texts(model_tokenizer(m), names[i]);
        model_free(m);
    }
}

/* ---- single keys ------------------------------------------------------------------------------------ */

typedef struct written {
    file_map map;
    gguf *g;
} written;

static written open_written(void)
{
    written w = {0};
    assert_int_equal(file_map_open(&w.map, out, NULL), 0);
    assert_int_equal(gguf_parse(&w.g, w.map.data, w.map.len, "written", NULL), 0);
    return w;
}

static void close_written(written *w)
{
    gguf_free(w->g);
    file_map_close(&w->map);
}

static int flag_of(const gguf *g, const char *key)
{
    bool v = false;
    assert_int_equal(gguf_get_bool(g, key, &v, NULL), 0);
    return gguf_find(g, key) ? v : -1;
}

static void added_tokens_follow_the_post_processor(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int bos, eos, sep;
    } want[] = {
        {"llama-gqa", 1, 0, 0},   {"llama3-rope-scaled-tied", 1, 0, 0}, {"gpt2", 0, 0, 0},
        {"bert-intent", 1, 1, 0}, {"roberta-intent", 1, 1, 1},          {"t5-small-relu", 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        quantise(want[i].name, DT_F16);
        written w = open_written();
        if (flag_of(w.g, "tokenizer.ggml.add_bos_token") != want[i].bos ||
            flag_of(w.g, "tokenizer.ggml.add_eos_token") != want[i].eos ||
            flag_of(w.g, "tokenizer.ggml.add_sep_token") != want[i].sep)
            fail_msg("%s: bos, eos or sep is wrong", want[i].name);
        close_written(&w);
    }
}

static void unigram_has_scores_and_spaces(void **state)
{
    (void)state;
    quantise("t5-small-relu", DT_F16);
    written w = open_written();
    const char *kind = NULL;
    const void *scores = NULL, *types = NULL;
    size_t n = 0, n_types = 0;
    assert_int_equal(gguf_get_str(w.g, "tokenizer.ggml.model", &kind, NULL), 0);
    assert_string_equal(kind, "t5");
    assert_int_equal(gguf_get_array(w.g, "tokenizer.ggml.scores", GGUF_F32, &n, &scores, NULL), 0);
    assert_int_equal(gguf_get_array(w.g, "tokenizer.ggml.token_type", GGUF_I32, &n_types, &types, NULL), 0);
    assert_true(n > 4 && n == n_types);
    assert_true(((const float *)scores)[3] == (float)-2.9190489829931643);
    assert_int_equal(((const int32_t *)types)[2], 2); /* unknown */
    assert_int_equal(flag_of(w.g, "tokenizer.ggml.add_space_prefix"), 1);
    assert_int_equal(flag_of(w.g, "tokenizer.ggml.remove_extra_whitespaces"), 1);
    close_written(&w);
}

/* Other engines hold tokens and rows of the embedding to be the same number; Qwen's has more rows. */
static void rows_without_a_token_get_one(void **state)
{
    (void)state;
    static const char json[] = "{\"added_tokens\":[{\"id\":2,\"content\":\"<end>\",\"special\":true}],"
                               "\"pre_tokenizer\":{\"type\":\"ByteLevel\"},"
                               "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}";
    gguf_out o = {0};
    model_config c = {.n_vocab = 5};
    const char *const *tokens = NULL;
    const size_t *lens = NULL;
    const void *types = NULL;
    sha256_digest digest;
    size_t n = 0;
    uint64_t bytes = 0;
    static const int32_t kinds[] = {1, 1, 3, 5, 5};
    assert_int_equal(quantize_put_tokenizer(&o, json, sizeof json - 1, NULL, &c, "json", NULL), 0);
    assert_int_equal(gguf_out_open(&o, out, NULL), 0);
    assert_int_equal(gguf_out_close(&o, &digest, &bytes, NULL), 0);
    gguf_out_done(&o);
    written w = open_written();
    assert_int_equal(gguf_get_strings(w.g, "tokenizer.ggml.tokens", &n, &tokens, &lens, NULL), 0);
    assert_int_equal(n, 5);
    assert_memory_equal(tokens[4], "[PAD4]", 6);
    assert_int_equal(gguf_get_array(w.g, "tokenizer.ggml.token_type", GGUF_I32, &n, &types, NULL), 0);
    assert_int_equal(n, 5);
    assert_memory_equal(types, kinds, sizeof kinds);
    close_written(&w);
}

static int put_with_charsmap(const char *base64)
{
    char json[512];
    gguf_out o = {0};
    model_config c = {.n_vocab = 2};
    sha256_digest digest;
    uint64_t bytes = 0;
    shoal_err err = {0};
    int n = snprintf(json, sizeof json,
                     "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Precompiled\","
                     "\"precompiled_charsmap\":\"%s\"}]},"
                     "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"u\",0],[\"a\",-1]]}}",
                     base64);
    int rc = quantize_put_tokenizer(&o, json, (size_t)n, NULL, &c, "json", &err);
    if (rc == 0) rc = gguf_out_open(&o, out, &err);
    if (rc == 0) rc = gguf_out_close(&o, &digest, &bytes, &err);
    gguf_out_done(&o);
    return rc;
}

static void a_map_of_characters_is_written_as_bytes(void **state)
{
    (void)state;
    const void *map = NULL;
    size_t n = 0;
    assert_int_equal(put_with_charsmap("AQID"), 0);
    written w = open_written();
    assert_int_equal(gguf_get_array(w.g, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, &n, &map, NULL), 0);
    assert_int_equal(n, 3);
    assert_memory_equal(map, "\1\2\3", 3);
    close_written(&w);
    assert_int_equal(put_with_charsmap("no base64!"), SHOAL_EFORMAT);
}

static const tensor *tensor_of(const gguf *g, const char *name)
{
    for (size_t i = 0; i < g->n_tensors; i++)
        if (strcmp(g->tensors[i].name, name) == 0) return &g->tensors[i];
    fail_msg("%s is missing", name);
    return NULL;
}

static void token_types_stay_floats(void **state)
{
    (void)state;
    quantise("minilm-embed", DT_Q8_0);
    written w = open_written();
    assert_int_equal(tensor_of(w.g, "token_types.weight")->type, DT_F32);
    assert_int_equal(tensor_of(w.g, "position_embd.weight")->type, DT_F16);
    close_written(&w);
}

static void a_missing_window_is_said(void **state)
{
    (void)state;
    quantise("phi3", DT_F16);
    written w = open_written();
    int64_t window = -1;
    assert_int_equal(gguf_get_int(w.g, "phi3.attention.sliding_window", 0, 1 << 20, &window, NULL), 0);
    assert_int_equal(window, 0);
    close_written(&w);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_keys_alone_tokenize_alike),
        T(added_tokens_follow_the_post_processor),
        T(unigram_has_scores_and_spaces),
        T(token_types_stay_floats),
        T(a_missing_window_is_said),
        T(rows_without_a_token_get_one),
        T(a_map_of_characters_is_written_as_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
