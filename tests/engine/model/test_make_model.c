/* Models of random weights: the same bytes each time, files that open, and nothing left of one that was
 * stopped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/files/gguf_writer.h"
#include "model/make_model.h"

static char path[] = "/tmp/shoal-make-XXXXXX", file[64];

static int make(const char *shape, dtype t, uint64_t seed, make_report *r)
{
    shoal_err err = {0};
    int rc = make_model(shape, file, &(make_options){.type = t, .seed = seed}, r, &err);
    if (rc != 0) print_message("%s: %s\n", shape, err.message);
    return rc;
}

static bool is_same(const sha256_digest *a, const sha256_digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void the_same_wish_gives_the_same_bytes(void **state)
{
    make_report first, again, other;
    (void)state;
    assert_int_equal(make("llama-24m", DT_Q4_0, 1, &first), 0);
    assert_int_equal(make("llama-24m", DT_Q4_0, 1, &again), 0);
    assert_int_equal(make("llama-24m", DT_Q4_0, 2, &other), 0);
    assert_true(is_same(&first.digest, &again.digest));
    assert_false(is_same(&first.digest, &other.digest));
    assert_int_equal(first.n_weights, other.n_weights);
}

/* The digest is the file's; the text comes back from its tokens. */
static void a_made_file_opens(void **state)
{
    static const struct {
        const char *shape;
        dtype type;
        size_t n_layer;
    } cases[] = {
        {"llama-24m", DT_Q6_K, 6}, {"llama-24m", DT_BF16, 6}, {"minilm", DT_Q8_0, 6}, {"minilm", DT_F32, 6}};
    static const char text[] = "turn on the lights";
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_report r;
        model *m = NULL;
        shoal_err err = {0};
        sha256_digest d;
        assert_int_equal(make(cases[i].shape, cases[i].type, 7, &r), 0);
        assert_int_equal(model_open(&m, file, NULL, &err), 0);
        assert_int_equal(model_digest(m, &d, &err), 0);
        assert_true(is_same(&d, &r.digest));
        assert_int_equal(model_get_config(m)->n_layer, cases[i].n_layer);
        assert_int_equal(model_tensor_count(m), r.n_tensors);
        const tokenizer *t = model_tokenizer(m);
        assert_non_null(t);
        encoding ids = {0};
        assert_int_equal(tokenizer_encode(t, text, strlen(text), NULL, 0, 0, 0, &ids, &err), 0);
        assert_in_range(ids.n, 4, 12); /* not letter by letter */
        encoding_done(&ids);
        model_free(m);
    }
}

/* No two neighbouring rows are the same, and values are spread as they should be. */
static void weights_are_no_pattern(void **state)
{
    (void)state;
    make_report r;
    model *m = NULL;
    shoal_err err = {0};
    assert_int_equal(make("llama-24m", DT_F32, 1, &r), 0);
    assert_int_equal(model_open(&m, file, NULL, &err), 0);
    const tensor *t = model_tensor(m, "blk.3.ffn_up.weight");
    const float *v = t->data;
    double sum = 0, squares = 0;
    size_t n = t->dims[0] * t->dims[1];
    for (size_t i = 0; i < n; i++) {
        sum += (double)v[i];
        squares += (double)v[i] * (double)v[i];
    }
    assert_true(sum / (double)n < 0.001 && sum / (double)n > -0.001);
    assert_true(squares / (double)n > 0.019 * 0.019 && squares / (double)n < 0.021 * 0.021);
    for (size_t row = 1; row < t->dims[1]; row++)
        assert_memory_not_equal(v + row * t->dims[0], v + (row - 1) * t->dims[0], t->dims[0] * sizeof *v);
    model_free(m);
}

static int stop_at_once(void *user, size_t done, size_t total, const char *tensor)
{
    (void)done, (void)tensor;
    *(size_t *)user = total;
    return 1;
}

/* Every shape is a network its family takes: all is planned and the head written before the first tensor. */
static void every_shape_is_a_network(void **state)
{
    const make_shape *s;
    (void)state;
    unlink(file);
    for (size_t i = 0; (s = make_shape_at(i)); i++) {
        shoal_err err = {0};
        make_report r;
        size_t n = 0;
        make_options o = {.type = DT_Q8_0, .progress = stop_at_once, .user = &n};
        assert_int_equal(make_model(s->name, file, &o, &r, &err), SHOAL_ECANCELLED);
        assert_true(n > 7 * s->n_layer);
        assert_int_not_equal(access(file, F_OK), 0);
    }
}

static void what_cannot_be_made_is_said(void **state)
{
    shoal_err err = {0};
    make_report r;
    gguf_out o = {0};
    (void)state;
    assert_int_equal(make_model("llama-9t", file, &(make_options){0}, &r, &err), SHOAL_ENOTFOUND);
    assert_int_equal(make_model("minilm", "/nowhere/x.gguf", &(make_options){.type = DT_Q8_0}, &r, &err),
                     SHOAL_ENOTFOUND);
    assert_int_equal(make_tokenizer(&o, 399, false, &err), SHOAL_EINVALID);
    gguf_out_done(&o);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(path)) return -1;
    snprintf(file, sizeof file, "%s/x.gguf", path);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_wish_gives_the_same_bytes),
        cmocka_unit_test(a_made_file_opens),
        cmocka_unit_test(weights_are_no_pattern),
        cmocka_unit_test(every_shape_is_a_network),
        cmocka_unit_test(what_cannot_be_made_is_said),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
