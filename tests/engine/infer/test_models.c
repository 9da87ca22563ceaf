/* Whole models against the reference implementation's tensors.
 *
 * Weights were rounded to bfloat16 before the reference ran in float32, rotary frequencies were not, so
 * logits agree to a few roundings of float32. */
#include "helper.h"

#define DIFF 1e-5

static void check_rows(const float *out, const float *ref, size_t first, size_t n, size_t n_vocab)
{
    for (size_t i = 0; i < n; i++) {
        double w = worst(out + i * n_vocab, ref + i * n_vocab, n_vocab);
        if (!(w < DIFF)) fail_msg("logits at position %zu differ by %g of the largest", first + i, w);
    }
}

static void check_prompt(engine *e, const fixture *f, const json_t *prompt, size_t n_vocab)
{
    size_t n, n_ref;
    int32_t *ids = int_array(json_object_get(prompt, "ids"), &n);
    float *ref = fixture_tensor(f, json_string_value(json_object_get(prompt, "logits")), &n_ref);
    float *out = malloc(n * n_vocab * sizeof *out);
    assert_int_equal(n_ref, n * n_vocab);
    must(engine_logits(e, NULL, ids, n, n, out, &err));
    check_rows(out, ref, 0, n, n_vocab);
    free(ids);
    free(ref);
    free(out);
}

static void check_greedy(engine *e, const json_t *prompt)
{
    size_t n, n_greedy;
    int32_t *ids = int_array(json_object_get(prompt, "ids"), &n);
    int32_t *greedy = int_array(json_object_get(prompt, "greedy_ids"), &n_greedy);
    reply *r =
        generate(e, &(gen_request){.ids = ids, .n_ids = n, .max_tokens = n_greedy, .ignore_eos = true});
    assert_int_equal(r->status, 0);
    assert_int_equal(r->n, n_greedy);
    assert_memory_equal(r->ids, greedy, n_greedy * sizeof *greedy);
    reply_free(r);
    free(ids);
    free(greedy);
}

static void check_long(engine *e, const fixture *f, size_t n_vocab)
{
    size_t n, n_ref;
    json_t *l = json_object_get(f->expected, "long");
    int32_t *ids = int_array(json_object_get(l, "ids"), &n);
    float *ref = fixture_tensor(f, json_string_value(json_object_get(l, "logits_last4")), &n_ref);
    float *out = malloc(n_ref * sizeof *out);
    must(engine_logits(e, NULL, ids, n, n_ref / n_vocab, out, &err));
    check_rows(out, ref, n - n_ref / n_vocab, n_ref / n_vocab, n_vocab);
    free(ids);
    free(ref);
    free(out);
}

static void check_decoder(const char *fixture_name, const char *path)
{
    fixture f;
    rig r;
    size_t i;
    json_t *prompt;
    fixture_open(&f, fixture_name);
    rig_open(&r, path, (engine_options){0});
    size_t n_vocab = model_get_config(r.m)->n_vocab;
    json_array_foreach(json_object_get(f.expected, "prompts"), i, prompt)
    {
        check_prompt(r.e, &f, prompt, n_vocab);
        check_greedy(r.e, prompt);
    }
    check_long(r.e, &f, n_vocab);
    rig_close(&r);
    fixture_close(&f);
}

static void llama_folder_gives_the_reference_logits(void **state)
{
    check_decoder("llama-gqa", DATA "hf/llama-gqa");
}

static void llama_gguf_gives_the_reference_logits(void **state)
{
    check_decoder("llama-gqa", SHOAL_GGUF_DIR "/llama-gqa.gguf");
}

static void scaled_rope_folder_gives_the_reference_logits(void **state)
{
    check_decoder("llama3-rope-scaled-tied", DATA "hf/llama3-rope-scaled-tied");
}

static void scaled_rope_gguf_gives_the_reference_logits(void **state)
{
    check_decoder("llama3-rope-scaled-tied", SHOAL_GGUF_DIR "/llama3-rope-scaled-tied.gguf");
}

/* ---- encoders ---------------------------------------------------------------------------------------- */

static uint8_t *byte_array(const json_t *a)
{
    size_t n;
    int32_t *v = int_array(a, &n);
    uint8_t *out = malloc(n + 1);
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)v[i];
    free(v);
    return out;
}

static float length_of(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return (float)sqrt(sum);
}

/* key: which of the input's tensors is expected. All inputs are submitted at once and run as one or
 * more ragged batches. The reference's embeddings are not normalised. */
static void check_encoder(const char *name, const char *path, const char *key, bool normalise)
{
    fixture f;
    rig r;
    fixture_open(&f, name);
    rig_open(&r, path, (engine_options){0});
    json_t *inputs = json_object_get(f.expected, "inputs");
    size_t n_inputs = json_array_size(inputs), n;
    vectors *v = calloc(n_inputs, sizeof *v);
    for (size_t i = 0; i < n_inputs; i++) {
        json_t *in = json_array_get(inputs, i);
        int32_t *ids = int_array(json_object_get(in, "ids"), &n);
        uint8_t *types = byte_array(json_object_get(in, "type_ids"));
        vectors_init(&v[i]);
        must(engine_encode(r.e, &(enc_request){.ids = ids, .type_ids = types, .n_ids = n}, on_vectors, &v[i],
                           NULL, &err));
        free(ids);
        free(types);
    }
    for (size_t i = 0; i < n_inputs; i++) {
        vectors_wait(&v[i]);
        assert_int_equal(v[i].status, 0);
        float *ref =
            fixture_tensor(&f, json_string_value(json_object_get(json_array_get(inputs, i), key)), &n);
        assert_int_equal(v[i].rows * v[i].cols, n);
        float length = normalise ? length_of(ref, n) : 1;
        for (size_t k = 0; k < n; k++) ref[k] /= length;
        double w = worst(v[i].values, ref, n);
        if (!(w < DIFF)) fail_msg("%s, input %zu: values differ by %g of the largest", name, i, w);
        vectors_done(&v[i]);
        free(ref);
    }
    free(v);
    rig_close(&r);
    fixture_close(&f);
}

static void classifier_gives_the_reference_logits(void **state)
{
    check_encoder("bert-intent", DATA "hf/bert-intent", "out", false);
}

static void classifier_gguf_gives_the_reference_logits(void **state)
{
    check_encoder("bert-intent", SHOAL_GGUF_DIR "/bert-intent.gguf", "out", false);
}

static void tagger_gives_the_reference_logits(void **state)
{
    check_encoder("bert-ner", DATA "hf/bert-ner", "out", false);
}

static void reranker_gives_the_reference_logits(void **state)
{
    check_encoder("cross-encoder-rerank", DATA "hf/cross-encoder-rerank", "out", false);
}

static void embedder_gives_the_reference_vectors(void **state)
{
    check_encoder("minilm-embed", DATA "hf/minilm-embed", "mean", true);
}

static void embedder_gguf_gives_the_reference_vectors(void **state)
{
    fixture f;
    rig r;
    fixture_open(&f, "minilm-embed");
    rig_open(&r, SHOAL_GGUF_DIR "/minilm-embed.gguf", (engine_options){0});
    pooling pool = model_get_config(r.m)->head.pool;
    rig_close(&r);
    fixture_close(&f);
    check_encoder("minilm-embed", SHOAL_GGUF_DIR "/minilm-embed.gguf", pool == POOL_CLS ? "cls" : "mean",
                  true);
}

/* ---- quantised weights against float64 ------------------------------------------------------- */

static double cosine(const float *a, const json_t *ref, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (double)a[i], y = json_number_value(json_array_get(ref, i));
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    return ab / sqrt(aa * bb);
}

static bool floats(const model *m)
{
    dtype t;
    assert_true(dtype_parse(model_quantisation(m), &t));
    return dtype_is_float(t);
}

static void quantised_weights_follow_the_float64_logits(void **state)
{
    static const char *const files[] = {"base-f32", "q-F16",    "q-BF16",   "q-Q8_0",     "q-Q4_0", "q-Q4_1",
                                        "q-Q5_0",   "q-Q5_1",   "q-Q2_K",   "q-Q3_K",     "q-Q4_K", "q-Q5_K",
                                        "q-Q6_K",   "q-IQ4_NL", "q-IQ4_XS", "q-MXFP4_MOE"};
    json_t *expected;
    size_t n;
    must(json_parse_file(&expected, DATA "quant/expected.json", 64 << 20, &err));
    int32_t *ids = int_array(json_object_get(expected, "ids"), &n);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512], name[64];
        rig r;
        snprintf(path, sizeof path, DATA "quant/%s.gguf", files[i]);
        snprintf(name, sizeof name, "%s.gguf", files[i]);
        rig_open(&r, path, (engine_options){0});
        size_t n_vocab = model_get_config(r.m)->n_vocab;
        float *out = malloc(n_vocab * sizeof *out);
        must(engine_logits(r.e, NULL, ids, n, 1, out, &err));
        json_t *ref =
            json_object_get(json_object_get(json_object_get(expected, "files"), name), "last_logits");
        assert_int_equal(json_array_size(ref), n_vocab);
        double c = cosine(out, ref, n_vocab), least = floats(r.m) ? 0.999999 : 0.999;
        if (!(c > least)) fail_msg("%s: cosine %.6f with the float64 logits", files[i], c);
        free(out);
        rig_close(&r);
    }
    free(ids);
    json_decref(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_folder_gives_the_reference_logits),
        cmocka_unit_test(llama_gguf_gives_the_reference_logits),
        cmocka_unit_test(scaled_rope_folder_gives_the_reference_logits),
        cmocka_unit_test(scaled_rope_gguf_gives_the_reference_logits),
        cmocka_unit_test(classifier_gives_the_reference_logits),
        cmocka_unit_test(classifier_gguf_gives_the_reference_logits),
        cmocka_unit_test(tagger_gives_the_reference_logits),
        cmocka_unit_test(reranker_gives_the_reference_logits),
        cmocka_unit_test(embedder_gives_the_reference_vectors),
        cmocka_unit_test(embedder_gguf_gives_the_reference_vectors),
        cmocka_unit_test(quantised_weights_follow_the_float64_logits),
    };
    return cmocka_run_group_tests_name("infer_models", tests, NULL, NULL);
}
