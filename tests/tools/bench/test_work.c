/* What a model must read and multiply: sums that a person can do beside the ones bench_work.c does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/bench_work.h"

/* Two layers' worth of it, one number a matrix. */
static const bench_work small = {
    .layer_bytes = 1000, .layer_adds = 800, .head_bytes = 50, .head_adds = 40, .kv_bytes = 8, .kv_adds = 4};

static void a_prompt_reads_the_weights_once(void **state)
{
    (void)state;
    bench_cost c = bench_work_prompt(&small, 0, 3);
    assert_true(c.bytes == 1050);
    assert_true(c.multiply_adds == 3 * 800 + 40 + 4 * (1 + 2 + 3));
    c = bench_work_prompt(&small, 10, 3); /* the keys in front are read, and scored by each */
    assert_true(c.bytes == 1050 + 8 * 10);
    assert_true(c.multiply_adds == 3 * 800 + 40 + 4 * (11 + 12 + 13));
}

static void a_reply_reads_them_once_a_step(void **state)
{
    (void)state;
    bench_cost c = bench_work_decode(&small, 10, 2, 1);
    assert_true(c.bytes == 2 * 1050 + 8 * (11 + 12));
    assert_true(c.multiply_adds == 2 * 840 + 4 * (11 + 12));
    bench_cost many = bench_work_decode(&small, 10, 2, 5); /* of five streams too, whose keys are their own */
    assert_true(many.bytes == 2 * 1050 + 5 * 8 * (11 + 12));
    assert_true(many.multiply_adds == 5 * c.multiply_adds);
}

static void a_window_ends_what_is_seen(void **state)
{
    (void)state;
    const bench_work w = {.local_kv_bytes = 1, .local_kv_adds = 1, .window = 4};
    double seen[] = {1, 2, 3, 4, 4, 4}; /* positions that each of six tokens sees */
    double sum = 0;
    for (size_t n = 1; n <= 6; n++) {
        sum += seen[n - 1];
        assert_true(bench_work_prompt(&w, 0, n).multiply_adds == sum);
        assert_true(bench_work_decode(&w, 0, n, 1).bytes == sum);
    }
    assert_true(bench_work_prompt(&w, 3, 2).multiply_adds == 8);
    assert_true(bench_work_prompt(&w, 100, 2).multiply_adds == 8);
    assert_true(bench_work_prompt(&w, 100, 2).bytes == 4);
    assert_true(bench_work_encode(&w, 1, 6).multiply_adds == 24);
}

static void texts_see_their_own_tokens(void **state)
{
    (void)state;
    bench_cost c = bench_work_encode(&small, 3, 5);
    assert_true(c.bytes == 1050);
    assert_true(c.multiply_adds == 3 * (5 * 800 + 40 + 4 * 5 * 5));
    bench_work tagger = small;
    tagger.head_each = true;
    assert_true(bench_work_encode(&tagger, 3, 5).multiply_adds == 3 * (5 * 840 + 4 * 5 * 5));
}

/* The matrices of home-chat-s by its shapes; the sums are those of its configuration. */
static void a_model_is_counted_by_its_shapes(void **state)
{
    (void)state;
    model *m = NULL;
    shoal_err err = {0};
    if (model_open(&m, SHOAL_SOURCE_DIR "/models/home-chat-s.gguf", NULL, &err) != 0) {
        print_message("SKIP a_model_is_counted_by_its_shapes: %s\n", err.message);
        skip();
    }
    const model_config *c = model_get_config(m);
    double e = (double)c->n_embd, q = (double)(c->attn.n_head * c->attn.head_dim);
    double kv = (double)(c->attn.n_head_kv * c->attn.head_dim), ff = (double)c->ffn.n_ff;
    double layers = (double)c->n_layer * (2 * e * q + 2 * e * kv + 3 * e * ff), v = (double)c->n_vocab;
    bench_work w = bench_work_of(m, KV_AS_WEIGHTS);
    assert_true(w.layer_adds == layers);
    assert_true(w.layer_bytes == layers / 32 * 34);
    assert_true(w.head_adds == e * v);
    assert_true(w.kv_adds == 2 * (double)c->n_layer * q);
    assert_true(w.kv_bytes == 2 * 2 * (double)c->n_layer * kv);
    assert_false(w.is_float);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_reads_the_weights_once),  cmocka_unit_test(a_reply_reads_them_once_a_step),
        cmocka_unit_test(a_window_ends_what_is_seen),       cmocka_unit_test(texts_see_their_own_tokens),
        cmocka_unit_test(a_model_is_counted_by_its_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
