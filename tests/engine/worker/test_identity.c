/* What a worker says that decides its bits, and what it says that it can do. */
#include "worker_bench.h"

#include "base/bit_identity.h"

/* Packed anew, since the reply's buffer goes. Closes the bench. */
static Shoal__V1__ModelInfo *describe_open(bench *b)
{
    reply r;
    call(b, "/shoal.v1.Worker/Describe", NULL, &r);
    assert_int_equal(r.status, GRPC_OK);
    Shoal__V1__ModelInfo *m = shoal__v1__model_info__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    assert_non_null(m);
    reply_done(&r);
    bench_close(b);
    return m;
}

static Shoal__V1__ModelInfo *describe(const char *model, const engine_options *eo)
{
    bench b;
    bench_open(&b, model, eo);
    return describe_open(&b);
}

static void expect_precision(Shoal__V1__ModelInfo *m, const char *precision)
{
    char line[BIT_IDENTITY_BYTES];
    bit_identity want = {.digest = m->digest, .engine = "shoal", .precision = precision, .numerics = 1};
    bit_identity_put(line, &want);
    assert_string_equal(m->identity, line);
    assert_true(m->exact_resume);
    shoal__v1__model_info__free_unpacked(m, NULL);
}

static void expect_identity(const char *model, const engine_options *eo, const char *precision)
{
    expect_precision(describe(model, eo), precision);
}

/* This model's weights are floats, beside which keys and values are F32 unless something else is asked for. */
static void how_keys_and_values_are_kept_is_part_of_it(void **state)
{
    expect_identity(DATA "llama-gqa", &(engine_options){.n_threads = 1}, "file");
    expect_identity(DATA "llama-gqa", &(engine_options){.n_threads = 1, .kv_type = KV_F32}, "file");
    expect_identity(DATA "llama-gqa", &(engine_options){.n_threads = 1, .kv_type = KV_F16}, "file,kv=f16");
}

/* A part of a window gives other bits than all of it; a model without time tokens always computes all. */
static void how_much_of_a_window_is_computed_is_part_of_it(void **state)
{
    bench b;
    expect_identity(SHOAL_SOURCE_DIR "/tests/data/ct2/hf", NULL, "file,window=speech");
    expect_identity(SHOAL_SOURCE_DIR "/models/home-ears.gguf", NULL, "file");
    bench_dir(&b);
    worker_options o = options_for(&b, SHOAL_SOURCE_DIR "/tests/data/ct2/hf");
    o.model.full_window = true;
    bench_start(&b, &o);
    expect_precision(describe_open(&b), "file");
}

/* Nothing of these changes a bit. */
static void threads_batches_and_contexts_are_not(void **state)
{
    expect_identity(
        DATA "llama-gqa",
        &(engine_options){.n_threads = 2, .max_batch = 3, .n_ctx = 64, .prefill_chunk = 8, .no_drafts = true},
        "file");
}

static void it_says_what_it_can_do(void **state)
{
    Shoal__V1__ModelInfo *m = describe(DATA "llama-gqa", &(engine_options){.n_threads = 1});
    assert_true(m->capabilities->beams);
    assert_true(m->capabilities->ballots);
    assert_true(m->capabilities->likelihood);
    assert_true(m->capabilities->adapters);
    assert_true(m->capabilities->grammar);
    assert_true(m->capabilities->templates);
    shoal__v1__model_info__free_unpacked(m, NULL);
    m = describe(DATA "llama-gqa", &(engine_options){.n_threads = 1, .max_batch = 1});
    assert_false(m->capabilities->beams); /* there is a place for one of them only */
    shoal__v1__model_info__free_unpacked(m, NULL);
    m = describe(SHOAL_SOURCE_DIR "/tests/data/hf/bert-intent", &(engine_options){.n_threads = 1});
    assert_false(m->capabilities->beams || m->capabilities->ballots || m->capabilities->likelihood ||
                 m->capabilities->grammar);
    assert_true(m->capabilities->adapters);
    shoal__v1__model_info__free_unpacked(m, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_keys_and_values_are_kept_is_part_of_it),
        cmocka_unit_test(how_much_of_a_window_is_computed_is_part_of_it),
        cmocka_unit_test(threads_batches_and_contexts_are_not),
        cmocka_unit_test(it_says_what_it_can_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
