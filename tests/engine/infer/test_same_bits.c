/* The numerics contract over whole models: instruction set, threads, batch, chunking and preemption
 * change no bit. */
#include "helper.h"

#include <unistd.h>

#include "infer/decoding/sampler.h"

#define GQA DATA "hf/llama-gqa"
#define Q8  DATA "quant/q-Q8_0.gguf"
#define Q4  DATA "quant/q-Q4_1.gguf"

static int32_t *make_ids(size_t n, size_t n_vocab, uint64_t seed)
{
    int32_t *ids = malloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(rng_mix(seed * 1000 + i) % n_vocab);
    return ids;
}

/* All logits of a prompt of n tokens; malloc'd. */
static float *logits_of(const char *path, engine_options o, size_t n, size_t *ret_n)
{
    rig r;
    rig_open(&r, path, o);
    size_t n_vocab = model_get_config(r.m)->n_vocab;
    int32_t *ids = make_ids(n, n_vocab, 7);
    float *out = malloc(n * n_vocab * sizeof *out);
    must(engine_logits(r.e, NULL, ids, n, n, out, &err));
    free(ids);
    rig_close(&r);
    *ret_n = n * n_vocab;
    return out;
}

static void same(const float *a, const float *b, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], 4) != 0)
            fail_msg("%s: value %zu is %.9g instead of %.9g", what, i, (double)b[i], (double)a[i]);
    }
}

/* Every instruction set that is tested, against the one that others are compared with. */
static void same_on_every_isa(const char *path)
{
    size_t n;
    setenv("SHOAL_ISA", isa_name(isa_compared()), 1);
    float *ref = logits_of(path, (engine_options){0}, 40, &n);
    for (int i = 1; i < ISA_COUNT; i++) {
        if (!isa_built((isa)i)) continue;
        if (!isa_usable((isa)i)) {
            fprintf(stderr, "SKIP same_logits_on_%s: this machine has no usable %s\n", isa_name((isa)i),
                    isa_name((isa)i));
            continue;
        }
        if (!isa_tested((isa)i)) continue;
        setenv("SHOAL_ISA", isa_name((isa)i), 1);
        float *out = logits_of(path, (engine_options){0}, 40, &n);
        same(ref, out, n, isa_name((isa)i));
        free(out);
    }
    free(ref);
    unsetenv("SHOAL_ISA");
}

static void instruction_sets_give_the_same_logits(void **state)
{
    static const char *const paths[] = {GQA,
                                        Q8,
                                        DATA "quant/q-Q4_0.gguf",
                                        Q4,
                                        DATA "quant/q-F16.gguf",
                                        DATA "quant/q-BF16.gguf",
                                        DATA "quant/base-f32.gguf",
                                        DATA "quant/q-Q4_K.gguf",
                                        DATA "quant/q-Q6_K.gguf",
                                        DATA "quant/q-IQ4_XS.gguf",
                                        DATA "quant/q-MXFP4_MOE.gguf"};
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) same_on_every_isa(paths[p]);
}

/* Types of our own, whose activations are quantised in wider groups. */
static void instruction_sets_give_the_same_logits_in_own_types(void **state)
{
    static const dtype types[] = {DT_S8_256, DT_S8_96, DT_S4_128};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char path[] = "/tmp/shoal-own-XXXXXX";
        quantize_report report;
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        must(quantize_model(DATA "quant/base-f32.gguf", path, &(quantize_options){.type = types[i]}, &report,
                            &err));
        same_on_every_isa(path);
        unlink(path);
    }
}

/* Shared key heads, windows, a cap on scores. */
static void instruction_sets_give_the_same_logits_over_int8(void **state)
{
    static const char *const paths[] = {Q8, Q4, GQA, DATA "hf/mistral-sliding", DATA "hf/gemma2-softcap"};
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) same_on_every_isa(paths[p]);
}

static void thread_counts_give_the_same_logits(void **state)
{
    static const char *const paths[] = {GQA, Q8};
    for (size_t p = 0; p < 2; p++) {
        size_t n;
        float *ref = logits_of(paths[p], (engine_options){.n_threads = 1}, 70, &n);
        for (int t = 2; t <= 4; t++) {
            float *out = logits_of(paths[p], (engine_options){.n_threads = t}, 70, &n);
            same(ref, out, n, "threads");
            free(out);
        }
        free(ref);
    }
}

/* A position's logits when the whole prompt ran at once, and when the engine stood at that position
 * through single steps: the greedy reply's tokens, probed again as a prompt. */
static void prefill_gives_the_bits_of_single_steps(void **state)
{
    rig r;
    rig_open(&r, Q8, (engine_options){0});
    size_t n_vocab = model_get_config(r.m)->n_vocab, n = 5, n_new = 50;
    int32_t *ids = make_ids(n + n_new, n_vocab, 3);
    reply *one = generate(r.e, &(gen_request){.ids = ids,
                                              .n_ids = n,
                                              .max_tokens = n_new,
                                              .ignore_eos = true,
                                              .logprobs = true,
                                              .sampling = {.temperature = 1, .seed = 5}});
    assert_int_equal(one->n, n_new);
    rig_close(&r);
    rig_open(&r, Q8, (engine_options){0}); /* an empty cache */
    memcpy(ids + n, one->ids, n_new * sizeof *ids);
    float *out = malloc((n_new + 1) * n_vocab * sizeof *out);
    must(engine_logits(r.e, NULL, ids, n + n_new, n_new + 1, out, &err));
    sampler choose;
    sampler_space space;
    must(sampler_init(&choose, &(sampling){.temperature = 1, .seed = 5}, 0, n_vocab, NULL, 0, &err));
    assert_int_equal(sampler_space_init(&space, n_vocab), 0);
    for (size_t i = 0; i < n_new; i++) {
        sample want;
        sampler_choose(&choose, vec_kernels_for(ISA_SCALAR), &space, out + i * n_vocab, i, NULL, NULL, 0,
                       &want);
        assert_int_equal(one->ids[i], want.id);
        same(&one->logprobs[i], &want.logprob, 1, "log-probability");
    }
    sampler_space_done(&space);
    sampler_done(&choose);
    free(out);
    free(ids);
    reply_free(one);
    rig_close(&r);
}

#define N_STREAMS 7

/* Replies of N_STREAMS requests with prompts and replies of several lengths, all at once or one by one. */
static void run_streams(engine_options o, bool together, reply *out[N_STREAMS])
{
    rig r;
    rig_open(&r, Q8, o);
    size_t n_vocab = model_get_config(r.m)->n_vocab;
    for (size_t i = 0; i < N_STREAMS; i++) {
        size_t n = 1 + i * 13;
        int32_t *ids = make_ids(n, n_vocab, i / 2); /* pairs share a prefix */
        out[i] = reply_new();
        gen_request q = {.ids = ids,
                         .n_ids = n,
                         .max_tokens = 20 + i * 7,
                         .ignore_eos = true,
                         .sampling = {.temperature = 0.9f, .top_p = 0.95f, .seed = i}};
        must(reply_start(out[i], r.e, &q, &err));
        if (!together) reply_wait(out[i]);
        free(ids);
    }
    for (size_t i = 0; i < N_STREAMS; i++) reply_wait(out[i]);
    rig_close(&r);
}

static void check_streams(engine_options o)
{
    reply *alone[N_STREAMS], *together[N_STREAMS];
    run_streams((engine_options){.n_threads = 1}, false, alone);
    run_streams(o, true, together);
    for (size_t i = 0; i < N_STREAMS; i++) {
        assert_int_equal(together[i]->status, 0);
        assert_int_equal(together[i]->n, 20 + i * 7);
        assert_int_equal(alone[i]->n, together[i]->n);
        assert_memory_equal(alone[i]->ids, together[i]->ids, alone[i]->n * sizeof(int32_t));
        same(alone[i]->logprobs, together[i]->logprobs, alone[i]->n, "log-probability");
        reply_free(alone[i]);
        reply_free(together[i]);
    }
}

static void a_batch_gives_each_stream_the_bits_it_has_alone(void **state)
{
    check_streams((engine_options){0});
}

static void chunked_prefill_gives_the_same_bits(void **state)
{
    check_streams((engine_options){.prefill_chunk = 3});
    check_streams((engine_options){.prefill_chunk = 1, .max_batch = 2});
}

/* Room for little more than the longest stream: the others wait or are preempted and run again. */
static void a_full_cache_delays_but_changes_nothing(void **state)
{
    rig r;
    rig_open(&r, Q8, (engine_options){.kv_bytes = 64 << 20});
    engine_stats st;
    engine_get_stats(r.e, &st);
    rig_close(&r);
    size_t page = ((size_t)64 << 20) / st.kv_pages_total;
    check_streams((engine_options){.kv_bytes = page * 11});
    check_streams((engine_options){.kv_bytes = page * 16});
}

static void a_cached_prefix_gives_the_same_bits(void **state)
{
    rig r;
    rig_open(&r, Q8, (engine_options){0});
    int32_t *ids = make_ids(100, model_get_config(r.m)->n_vocab, 11);
    gen_request q = {.ids = ids, .n_ids = 100, .max_tokens = 30, .ignore_eos = true};
    reply *cold = generate(r.e, &q), *warm = generate(r.e, &q);
    assert_int_equal(cold->timings.n_cached, 0);
    assert_int_equal(warm->timings.n_cached, 99);
    assert_memory_equal(cold->ids, warm->ids, 30 * sizeof(int32_t));
    same(cold->logprobs, warm->logprobs, 30, "log-probability");
    ids[50]++; /* another prompt from position 50 on */
    reply *other = generate(r.e, &q);
    assert_int_equal(other->timings.n_cached, 50);
    reply_free(cold);
    reply_free(warm);
    reply_free(other);
    free(ids);
    rig_close(&r);
}

static void encoders_give_the_same_bits_in_any_company(void **state)
{
    enum { N = 9 };
    vectors ref[N];
    rig r;
    rig_open(&r, DATA "hf/bert-ner", (engine_options){.n_threads = 1});
    for (int pass = 0; pass < 2; pass++) {
        vectors now[N];
        size_t n_vocab = model_get_config(r.m)->n_vocab;
        for (size_t i = 0; i < N; i++) {
            int32_t *ids = make_ids(1 + i * 9, n_vocab, i);
            vectors_init(&now[i]);
            must(engine_encode(r.e, &(enc_request){.ids = ids, .n_ids = 1 + i * 9}, on_vectors, &now[i], NULL,
                               &err));
            if (pass == 0) vectors_wait(&now[i]);
            free(ids);
        }
        for (size_t i = 0; i < N; i++) {
            vectors_wait(&now[i]);
            vectors v = now[i];
            if (pass == 0) {
                ref[i] = v;
                continue;
            }
            assert_int_equal(v.rows * v.cols, ref[i].rows * ref[i].cols);
            same(ref[i].values, v.values, v.rows * v.cols, "token logits");
            free(v.values);
            free(ref[i].values);
        }
        rig_close(&r);
        if (pass == 0) rig_open(&r, DATA "hf/bert-ner", (engine_options){.n_threads = 3});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instruction_sets_give_the_same_logits),
        cmocka_unit_test(instruction_sets_give_the_same_logits_in_own_types),
        cmocka_unit_test(thread_counts_give_the_same_logits),
        cmocka_unit_test(prefill_gives_the_bits_of_single_steps),
        cmocka_unit_test(a_batch_gives_each_stream_the_bits_it_has_alone),
        cmocka_unit_test(chunked_prefill_gives_the_same_bits),
        cmocka_unit_test(a_full_cache_delays_but_changes_nothing),
        cmocka_unit_test(a_cached_prefix_gives_the_same_bits),
        cmocka_unit_test(encoders_give_the_same_bits_in_any_company),
        WITH_INT8_KV(instruction_sets_give_the_same_logits_over_int8),
        WITH_INT8_KV(thread_counts_give_the_same_logits),
        WITH_INT8_KV(prefill_gives_the_bits_of_single_steps),
        WITH_INT8_KV(a_batch_gives_each_stream_the_bits_it_has_alone),
        WITH_INT8_KV(chunked_prefill_gives_the_same_bits),
        WITH_INT8_KV(a_full_cache_delays_but_changes_nothing),
        WITH_INT8_KV(a_cached_prefix_gives_the_same_bits),
    };
    return cmocka_run_group_tests_name("infer_same_bits", tests, NULL, NULL);
}
