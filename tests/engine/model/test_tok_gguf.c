/* Vocabularies from GGUF: small ones of every kind against what the reference library gave for the same
 * tokenizer, and real ones against their published vectors where the machine has them.
 *
 * tests/data/tokenizers/NAME/vocab.gguf holds the tokenizer keys that the field's converter wrote for
 * NAME/tokenizer.json, without tensors; but what it takes from a model's own files or knows by the digest of
 * a real vocabulary is set as it is there: tokenizer.ggml.pre of llama3 and qwen2, and llama2's scores, which
 * are the order of its merges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"
#include "base/file.h"
#include "model/files/gguf.h"
#include "tokenizer/tokenizer.h"

#define BORROWED  SHOAL_SOURCE_DIR "/../shared/borrowed/tokenizers-gguf/ggml-vocab-"
#define DATA      SHOAL_SOURCE_DIR "/tests/data/tokenizers/"
#define SEPARATOR "\n__ggml_vocab_test__\n"

static int64_t id_of(const gguf *g, const char *key)
{
    int64_t id = -1;
    assert_int_equal(gguf_get_int(g, key, -1, 4000000, &id, NULL), 0);
    return id;
}

static int flag_of(const gguf *g, const char *key)
{
    bool v = false;
    assert_int_equal(gguf_get_bool(g, key, &v, NULL), 0);
    return gguf_find(g, key) ? v : -1;
}

static tokenizer *load(const char *path)
{
    file_map file;
    gguf *g = NULL;
    tokenizer *t = NULL;
    shoal_err err = {0};
    const void *types = NULL, *scores = NULL;
    size_t n;
    tokenizer_gguf m = {.cls = -1, .mask = -1};
    assert_int_equal(file_map_open(&file, path, &err), 0);
    if (gguf_parse(&g, file.data, file.len, path, &err)) fail_msg("%s", err.message);
    gguf_get_str(g, "tokenizer.ggml.model", &m.model, &err);
    gguf_get_str(g, "tokenizer.ggml.pre", &m.pre, &err);
    gguf_get_strings(g, "tokenizer.ggml.tokens", &m.n_tokens, &m.tokens, &m.token_lens, &err);
    gguf_get_strings(g, "tokenizer.ggml.merges", &m.n_merges, &m.merges, &m.merge_lens, &err);
    gguf_get_array(g, "tokenizer.ggml.token_type", GGUF_I32, &n, &types, &err);
    gguf_get_array(g, "tokenizer.ggml.scores", GGUF_F32, &n, &scores, &err);
    m.token_types = types;
    m.scores = scores;
    m.bos = id_of(g, "tokenizer.ggml.bos_token_id");
    m.eos = id_of(g, "tokenizer.ggml.eos_token_id");
    m.unk = id_of(g, "tokenizer.ggml.unknown_token_id");
    m.sep = id_of(g, "tokenizer.ggml.seperator_token_id");
    m.pad = id_of(g, "tokenizer.ggml.padding_token_id");
    m.add_bos = flag_of(g, "tokenizer.ggml.add_bos_token");
    m.add_eos = flag_of(g, "tokenizer.ggml.add_eos_token");
    m.lowercase = flag_of(g, "tokenizer.ggml.normalizer.lowercase");
    if (tokenizer_from_gguf(&t, &m, path, &err)) fail_msg("%s", err.message);
    gguf_free(g);
    file_map_close(&file);
    return t;
}

static int check_line(const tokenizer *t, const char *name, const char *text, size_t len, const char *ids)
{
    encoding e = {0};
    shoal_err err = {0};
    char *end;
    size_t i = 0;
    int bad = 0;
    if (tokenizer_encode(t, text, len, NULL, 0, 0, 0, &e, &err)) fail_msg("%s", err.message);
    for (; *ids && *ids != '\n'; i++, ids = end + strspn(end, " \r")) {
        long want = strtol(ids, &end, 10);
        if (end == ids) break;
        if (!bad && (i >= e.n || e.ids[i] != want)) {
            fprintf(stderr, "%s: token %zu of \"%.*s\" is %d, want %ld\n", name, i, (int)len, text,
                    i < e.n ? e.ids[i] : -1, want);
            bad = 1;
        }
    }
    bad |= i != e.n;
    encoding_done(&e);
    return bad;
}

static void check_vectors(const char *name)
{
    char path[512];
    buf in = {0}, out = {0};
    shoal_err err;
    int bad = 0, n = 0;
    snprintf(path, sizeof path, BORROWED "%s.gguf", name);
    if (!file_exists(path)) {
        fprintf(stderr, "SKIP %s: the borrowed vocabulary is not here\n", name);
        skip();
    }
    tokenizer *t = load(path);
    snprintf(path, sizeof path, BORROWED "%s.gguf.inp", name);
    assert_int_equal(file_read(&in, path, 1 << 20, &err), 0);
    snprintf(path, sizeof path, BORROWED "%s.gguf.out", name);
    assert_int_equal(file_read(&out, path, 1 << 20, &err), 0);
    const char *line = out.data;
    for (const char *text = in.data, *end; line && (end = strstr(text, SEPARATOR));
         text = end + strlen(SEPARATOR), n++) {
        line += strspn(line, " ");
        bad += check_line(t, name, text, (size_t)(end - text), line);
        line = strchr(line, '\n');
        if (line) line++;
    }
    tokenizer_free(t);
    buf_done(&in);
    buf_done(&out);
    assert_int_equal(bad, 0);
    assert_true(n > 40);
}

/* ---- small vocabularies --------------------------------------------------------------------------- */

static int check_ids(const tokenizer *t, const char *name, const json_t *c, const char *key, unsigned flags)
{
    const json_t *text = json_object_get(c, "text"), *want = json_object_get(c, key);
    encoding e = {0};
    shoal_err err;
    if (tokenizer_encode(t, json_string_value(text), json_string_length(text), NULL, 0, flags, 0, &e, &err))
        fail_msg("%s", err.message);
    int bad = json_array_size(want) != e.n;
    for (size_t i = 0; !bad && i < e.n; i++) bad = json_integer_value(json_array_get(want, i)) != e.ids[i];
    if (bad) {
        fprintf(stderr, "%s: %s of \"%s\" are", name, key, json_string_value(text));
        for (size_t i = 0; i < e.n; i++) fprintf(stderr, " %d", e.ids[i]);
        fprintf(stderr, "\n");
    }
    encoding_done(&e);
    return bad;
}

/* Qwen2 composes characters (NFC) first, of which GGUF has no key and its readers do nothing. */
static bool is_beyond_gguf(const char *name, const json_t *c)
{
    return !strcmp(name, "qwen2") && strstr(json_string_value(json_object_get(c, "text")), "combining");
}

static void check_small(const char *name)
{
    char path[512];
    shoal_err err;
    json_t *expected, *c;
    size_t i;
    int bad = 0;
    snprintf(path, sizeof path, DATA "%s/vocab.gguf", name);
    tokenizer *t = load(path);
    snprintf(path, sizeof path, DATA "%s/expected.json", name);
    if (json_parse_file(&expected, path, 1 << 20, &err)) fail_msg("%s", err.message);
    json_array_foreach(json_object_get(expected, "single"), i, c)
    {
        if (is_beyond_gguf(name, c)) continue;
        bad += check_ids(t, name, c, "ids", TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL);
        bad += check_ids(t, name, c, "ids_no_special", TOK_PARSE_SPECIAL);
    }
    assert_true(i > 20);
    json_decref(expected);
    tokenizer_free(t);
    assert_int_equal(bad, 0);
}

static void wordpiece_agrees_with_the_reference(void **state)
{
    check_small("bert_uncased");
}
static void sentencepiece_agrees_with_the_reference(void **state)
{
    check_small("llama2");
}
static void gpt2_agrees_with_the_reference(void **state)
{
    check_small("gpt2");
}
static void roberta_agrees_with_the_reference(void **state)
{
    check_small("roberta");
}
static void qwen2_agrees_with_the_reference(void **state)
{
    check_small("qwen2");
}
static void llama3_agrees_with_the_reference(void **state)
{
    check_small("llama3");
}

/* ---- real vocabularies ---------------------------------------------------------------------------- */

static void gpt2_agrees_with_its_vectors(void **state)
{
    check_vectors("gpt-2");
}
static void falcon_agrees_with_its_vectors(void **state)
{
    check_vectors("falcon");
}
static void mpt_agrees_with_its_vectors(void **state)
{
    check_vectors("mpt");
}
static void bert_agrees_with_its_vectors(void **state)
{
    check_vectors("bert-bge");
}
static void phi3_agrees_with_its_vectors(void **state)
{
    check_vectors("phi-3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wordpiece_agrees_with_the_reference),
        cmocka_unit_test(sentencepiece_agrees_with_the_reference),
        cmocka_unit_test(gpt2_agrees_with_the_reference),
        cmocka_unit_test(roberta_agrees_with_the_reference),
        cmocka_unit_test(qwen2_agrees_with_the_reference),
        cmocka_unit_test(llama3_agrees_with_the_reference),
        cmocka_unit_test(gpt2_agrees_with_its_vectors),
        cmocka_unit_test(falcon_agrees_with_its_vectors),
        cmocka_unit_test(mpt_agrees_with_its_vectors),
        cmocka_unit_test(bert_agrees_with_its_vectors),
        cmocka_unit_test(phi3_agrees_with_its_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
