/* Keys and values kept as what was asked for: names, bytes, refusals, and how far int8 is from floats. */
#include "helper.h"

#include <math.h>

#include "net/attention/kv.h"

static void names_are_read_and_written(void **state)
{
    kv_type t = KV_F32;
    assert_true(kv_type_parse("q8_0", &t) && t == KV_Q8_0);
    assert_false(kv_type_parse("q4_0", &t) || kv_type_parse("Q8_0 ", &t));
    assert_int_equal(t, KV_Q8_0);
    for (int i = 0; i < KV_TYPE_COUNT; i++)
        assert_true(kv_type_parse(kv_type_name((kv_type)i), &t) && (int)t == i);
}

static size_t page_of(kv_type t, size_t head_dim)
{
    size_t bytes = 0;
    kv_shape s = {.n_layer = 3, .n_head_kv = 2, .head_dim = head_dim, .type = DT_F32};
    must(kv_shape_keep_as(&s, t, &err));
    must(kv_page_bytes(&s, &bytes, &err));
    return bytes;
}

static void int8_takes_half_of_f16(void **state)
{
    assert_int_equal(page_of(KV_F32, 64), 2 * page_of(KV_F16, 64));
    assert_int_equal(page_of(KV_Q8_0, 64), 3 * 2 * 2 * 16 * (64 + 4)); /* a scale is four bytes */
    assert_int_equal(page_of(KV_AS_WEIGHTS, 64), page_of(KV_F32, 64));
}

static void shapes_that_cannot_are_refused(void **state)
{
    shoal_err why;
    kv_shape s = {.n_layer = 1, .n_head_kv = 1, .head_dim = 40, .type = DT_F16};
    assert_int_equal(kv_shape_keep_as(&s, KV_Q8_0, &why), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(why.message, "have 40: take f16"));
    assert_int_equal(s.type, DT_F16);
    must(kv_shape_keep_as(&s, KV_F32, &err));
    s.head_dim = KV_HEAD_MAX + 16;
    assert_int_equal(kv_shape_keep_as(&s, KV_Q8_0, &why), SHOAL_EUNSUPPORTED);
}

static void a_model_with_convolutions_is_refused(void **state)
{
    model *m;
    engine *e = NULL;
    shoal_err why;
    must(model_open(&m, DATA "hf/lfm2-conv", NULL, &err));
    assert_int_equal(engine_new(&e, m, &(engine_options){.kv_type = KV_Q8_0}, &why), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(why.message, "convolutions"));
    must(engine_new(&e, m, &(engine_options){.kv_type = KV_F16}, &err));
    engine_free(e);
    model_free(m);
}

static void a_model_that_keeps_none_is_refused(void **state)
{
    static const char *const paths[] = {DATA "hf/bert-intent", DATA "hf/home-wake"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        model *m;
        engine *e = NULL;
        shoal_err why;
        must(model_open(&m, paths[i], NULL, &err));
        assert_int_equal(engine_new(&e, m, &(engine_options){.kv_type = KV_F16}, &why), SHOAL_EUNSUPPORTED);
        assert_non_null(strstr(why.message, "keeps no keys and values from step to step, as f16"));
        must(engine_new(&e, m, &(engine_options){.kv_type = KV_AS_WEIGHTS}, &err));
        engine_free(e);
        model_free(m);
    }
}

/* Logits of all positions of a prompt. */
static float *logits_as(const char *path, kv_type t, size_t n, size_t *ret_n_vocab)
{
    rig r;
    rig_open(&r, path, (engine_options){.kv_type = t});
    *ret_n_vocab = model_get_config(r.m)->n_vocab;
    int32_t *ids = malloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(rng_mix(i) % *ret_n_vocab);
    float *out = malloc(n * *ret_n_vocab * sizeof *out);
    must(engine_logits(r.e, NULL, ids, n, n, out, &err));
    free(ids);
    rig_close(&r);
    return out;
}

/* Root mean square of b - a, over that of a. */
static double distance_of(const float *a, const float *b, size_t n)
{
    double all = 0, apart = 0;
    for (size_t i = 0; i < n; i++) {
        all += (double)a[i] * (double)a[i];
        apart += ((double)b[i] - (double)a[i]) * ((double)b[i] - (double)a[i]);
    }
    return sqrt(apart / all);
}

static void int8_says_nearly_what_floats_say(void **state)
{
    static const char *const paths[] = {DATA "hf/llama-gqa", DATA "hf/mistral-sliding",
                                        DATA "hf/gemma2-softcap", DATA "quant/q-Q8_0.gguf"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        size_t n = 90, n_vocab;
        float *floats = logits_as(paths[i], KV_F32, n, &n_vocab);
        float *half = logits_as(paths[i], KV_F16, n, &n_vocab),
              *int8 = logits_as(paths[i], KV_Q8_0, n, &n_vocab);
        double near = distance_of(floats, half, n * n_vocab), far = distance_of(floats, int8, n * n_vocab);
        if (near > 0.01 || far > 0.03 || far == 0)
            fail_msg("%s: F16 is %.4f and int8 is %.4f away from F32", paths[i], near, far);
        free(floats);
        free(half);
        free(int8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_and_written),
        cmocka_unit_test(int8_takes_half_of_f16),
        cmocka_unit_test(shapes_that_cannot_are_refused),
        cmocka_unit_test(a_model_with_convolutions_is_refused),
        cmocka_unit_test(a_model_that_keeps_none_is_refused),
        cmocka_unit_test(int8_says_nearly_what_floats_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
