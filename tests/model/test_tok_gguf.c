/* Real vocabularies from GGUF against their published vectors, where the machine has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sys.h"
#include "model/gguf.h"
#include "text/tokenizer.h"

#define BORROWED  SHOAL_SOURCE_DIR "/../shared/borrowed/tokenizers-gguf/ggml-vocab-"
#define SEPARATOR "\n__ggml_vocab_test__\n"

static int64_t id_of(const gguf *g, const char *key)
{
    int64_t id = -1;
    assert_int_equal(gguf_get_int(g, key, -1, 4000000, &id, NULL), 0);
    return id;
}

static tokenizer *load(const char *path)
{
    file_map file;
    gguf *g = NULL;
    tokenizer *t = NULL;
    shoal_err err = {0};
    const void *types = NULL, *scores = NULL;
    size_t n;
    tokenizer_gguf m = {.add_bos = -1, .add_eos = -1, .lowercase = -1, .cls = -1, .mask = -1};
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
    if (!path_exists(path)) {
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
        cmocka_unit_test(gpt2_agrees_with_its_vectors), cmocka_unit_test(falcon_agrees_with_its_vectors),
        cmocka_unit_test(mpt_agrees_with_its_vectors),  cmocka_unit_test(bert_agrees_with_its_vectors),
        cmocka_unit_test(phi3_agrees_with_its_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
