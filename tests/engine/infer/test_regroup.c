/* Models whose matrices are brought to types with wider groups when they are loaded: the bits are those of
 * the file that the quantiser would have written. */
#include <unistd.h>

#include "model/packed/regroup.h"
#include "start.h"

static char dir[] = "/tmp/shoal-regroup-XXXXXX";

static start open_as(const char *path, dtype regroup, const packed_store *s, int n_threads)
{
    return open_start(path, &(model_options){.regroup = regroup, .store = s}, n_threads);
}

static void assert_same_logits(start *a, start *b)
{
    size_t n, m;
    float *p = logits(a, &n), *q = logits(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(p, q, n * sizeof *p);
    free(p);
    free(q);
}

static void bits_are_those_of_the_quantised_file(void **state)
{
    static const struct {
        const char *path;
        dtype type;
    } cases[] = {{SHOAL_SOURCE_DIR "/models/home-chat-s.gguf", DT_S8_128},
                 {SHOAL_SOURCE_DIR "/models/home-chat-s.gguf", DT_S4_64},
                 {SHOAL_GGUF_DIR "/llama-gqa.gguf", DT_S8_64},
                 {SHOAL_GGUF_DIR "/qwen3-moe.gguf", DT_S8_256}};
    char written[64];
    snprintf(written, sizeof written, "%s/q.gguf", dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
#ifdef __SANITIZE_THREAD__
        if (i < 2) continue; /* threads pack a small model in the same places */
#endif
        const char *path = cases[i].path;
        quantize_report r;
        quantize_options o = {.type = cases[i].type};
        must(quantize_model(path, written, &o, &r, &err));
        start a = open_as(written, 0, NULL, 1), b = open_as(path, cases[i].type, NULL, 1 + (int)(i % 3));
        assert_same_logits(&a, &b);
        assert_string_equal(model_quantisation(a.m), model_quantisation(b.m));
        close_start(&a);
        close_start(&b);
    }
}

static bool mapped(const char *path, dtype regroup, const packed_store *s, start *plain)
{
    start x = open_as(path, regroup, s, 2);
    assert_same_logits(&x, plain);
    bool is = x.e->mapping.image != NULL;
    close_start(&x);
    return is;
}

/* Both forms of a model, and of each type, are kept side by side. Where few sizes do, two of them. */
static void each_form_has_its_image(void **state)
{
    static const dtype forms[] = {0, DT_S8_64, DT_S8_128, DT_S4_64};
    const packed_store s = {.folder = dir};
    const char *path = SHOAL_SOURCE_DIR "/models/home-chat-s.gguf";
    packed_listed *l;
    size_t n, n_forms = few_sizes() ? 2 : 4;
    start plain[4];
    for (size_t i = 0; i < n_forms; i++) plain[i] = open_as(path, forms[i], NULL, 1);
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < n_forms; i++) assert_int_equal(mapped(path, forms[i], &s, &plain[i]), again);
    for (size_t i = 0; i < n_forms; i++) close_start(&plain[i]);
    must(packed_store_list(&s, &l, &n, &err));
    assert_int_equal(n, n_forms);
    free(l);
}

/* Pins are of files; what tells answers apart is not. */
static void the_digest_is_the_files(void **state)
{
    const char *path = SHOAL_SOURCE_DIR "/models/home-chat-s.gguf";
    sha256_digest file, d, identity[3];
    must(sha256_file(path, &file, &err));
    for (size_t i = 0; i < 3; i++) {
        model *m;
        char hex[65];
        sha256_hex(&file, hex);
        const dtype type = (dtype[]){0, DT_S8_128, DT_S8_64}[i];
        must(model_open(&m, path, &(model_options){.regroup = type, .expect_sha256 = hex}, &err));
        must(model_digest(m, &d, &err));
        assert_memory_equal(&d, &file, sizeof d);
        must(regroup_identity(m, &identity[i], &err));
        for (size_t k = 0; k < i; k++) assert_memory_not_equal(&identity[i], &identity[k], sizeof d);
        model_free(m);
    }
    assert_memory_equal(&identity[0], &file, sizeof file);
}

static void what_has_nothing_to_regroup_is_refused(void **state)
{
    shoal_err why;
    model *m = NULL;
    dtype t;
    const model_options o = {.regroup = DT_S8_128, .no_tokenizer = true};
    const char *tiny = SHOAL_SOURCE_DIR "/tests/fuzz/seeds/fuzz_model_gguf/family-llama2c";
    assert_int_equal(model_open(&m, tiny, &o, &why), SHOAL_EUNSUPPORTED);
    if (!strstr(why.message, "none of its matrices can be regrouped to S8_128")) fail_msg("%s", why.message);
    assert_int_equal(regroup_parse("q8_0", &t, &why), SHOAL_EINVALID);
    must(regroup_parse("S4_128", &t, &err));
    assert_int_equal(t, DT_S4_128);
}

static int make_dir(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char cmd[64];
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    return system(cmd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_the_quantised_file),
        cmocka_unit_test(each_form_has_its_image),
        cmocka_unit_test(the_digest_is_the_files),
        cmocka_unit_test(what_has_nothing_to_regroup_is_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
