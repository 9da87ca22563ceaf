/* Encoder-decoders against the reference: encoder rows, logits, greedy replies; and the same bits whatever
 * the company, the cut of the prompt, the instruction set and the number of threads. */
#include "helper.h"

/* The frames beside it were rounded to float16 after it ran. */
#define FAR_MEL 1e-3
/* Of the reference row's norm: the weights were rounded to bfloat16 before it ran in float32. */
#define FAR 1e-5

static const char *const texts[] = {"t5-small-relu", "flan-t5-gated", "bart", "marian-translate"};
#define N_TEXTS (sizeof texts / sizeof *texts)

static double far_from(const float *a, const float *ref, size_t n)
{
    double off = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        off += ((double)a[i] - (double)ref[i]) * ((double)a[i] - (double)ref[i]);
        all += (double)ref[i] * (double)ref[i];
    }
    return sqrt(off / (all > 0 ? all : 1));
}

static void check_rows(const char *what, const float *a, const float *ref, size_t rows, size_t cols,
                       double far)
{
    for (size_t i = 0; i < rows; i++) {
        double d = far_from(a + i * cols, ref + i * cols, cols);
        if (!(d <= far)) fail_msg("%s: row %zu is %.2g of its norm away from the reference", what, i, d);
    }
}

static void open_family(rig *r, const char *name, engine_options o)
{
    char path[256];
    snprintf(path, sizeof path, DATA "hf/%s", name);
    rig_open(r, path, o);
}

static void check_encoder(rig *r, const enc_request *source, const float *ref, size_t n_ref, const char *name,
                          double far)
{
    vectors v;
    vectors_init(&v);
    must(engine_encode(r->e, source, on_vectors, &v, NULL, &err));
    vectors_wait(&v);
    assert_int_equal(v.status, 0);
    assert_true(v.rows * v.cols >= n_ref);
    check_rows(name, v.values, ref, n_ref / v.cols, v.cols, far);
    vectors_done(&v);
}

static void texts_give_the_reference_rows_and_logits(void **state)
{
    for (size_t f = 0; f < N_TEXTS; f++) {
        fixture x;
        rig r;
        size_t i;
        json_t *p;
        fixture_open(&x, texts[f]);
        open_family(&r, texts[f], (engine_options){0});
        size_t n_vocab = model_get_config(r.m)->n_vocab;
        json_array_foreach(json_object_get(x.expected, "prompts"), i, p)
        {
            size_t n, n_dec, n_enc, n_ref;
            int32_t *ids = int_array(json_object_get(p, "ids"), &n);
            int32_t *dec = int_array(json_object_get(p, "decoder_ids"), &n_dec);
            float *enc = fixture_tensor(&x, json_string_value(json_object_get(p, "encoder")), &n_enc);
            float *ref = fixture_tensor(&x, json_string_value(json_object_get(p, "logits")), &n_ref);
            float *out = malloc(n_ref * sizeof *out);
            enc_request source = {.ids = ids, .n_ids = n};
            check_encoder(&r, &source, enc, n_enc, texts[f], FAR);
            assert_int_equal(n_ref, n_dec * n_vocab);
            must(engine_logits(r.e, &source, dec, n_dec, n_dec, out, &err));
            check_rows(texts[f], out, ref, n_dec, n_vocab, FAR);
            free(out);
            free(ref);
            free(enc);
            free(dec);
            free(ids);
        }
        rig_close(&r);
        fixture_close(&x);
    }
}

static void speech_gives_the_reference_rows_and_logits(void **state)
{
    fixture x;
    rig r;
    size_t n_mel, n_enc, n_ref, n_ids;
    fixture_open(&x, "whisper");
    open_family(&r, "whisper", (engine_options){0});
    const model_config *c = model_get_config(r.m);
    uint16_t *mel = (uint16_t *)fixture_tensor(&x, "mel", &n_mel); /* F16 */
    n_mel *= 2;
    float *enc = fixture_tensor(&x, "encoder_first64", &n_enc);
    float *ref = fixture_tensor(&x, "logits", &n_ref), *frames = malloc(n_mel * sizeof *frames);
    size_t bands = c->source.n_mel, n = n_mel / bands, rows = n_ref / c->n_vocab;
    for (size_t i = 0; i < n_mel; i++)
        frames[i % n * bands + i / n] = f16_to_f32(mel[i]); /* [bands][n] there */
    int32_t *ids = int_array(json_object_get(x.expected, "decoder_ids"), &n_ids);
    enc_request source = {.features = frames, .n_features = n, .width = bands};
    check_encoder(&r, &source, enc, n_enc, "whisper", FAR_MEL);
    float *out = malloc(n_ref * sizeof *out);
    assert_true(rows <= n_ids);
    must(engine_logits(r.e, &source, ids, rows, rows, out, &err));
    check_rows("whisper", out, ref, rows, c->n_vocab, FAR_MEL);
    float *most = malloc((2 * c->source.n_ctx + 1) * bands * sizeof *most);
    memset(most, 0, (2 * c->source.n_ctx + 1) * bands * sizeof *most);
    source = (enc_request){.features = most, .n_features = 2 * c->source.n_ctx + 1, .width = bands};
    shoal_err err = {0};
    assert_int_equal(engine_logits(r.e, &source, ids, rows, rows, out, &err), SHOAL_ELIMIT);
    source.n_features = 4;
    source.width = bands - 1;
    assert_int_equal(engine_logits(r.e, &source, ids, rows, rows, out, &err), SHOAL_EINVALID);
    free(most);
    free(out);
    free(ids);
    free(frames);
    free(ref);
    free(enc);
    free(mel);
    rig_close(&r);
    fixture_close(&x);
}

/* ---- the same bits ------------------------------------------------------------------------------------ */

enum { N_SOURCES = 6, N_NEW = 24 };

static void make_source(int32_t *ids, size_t n, size_t seed, size_t n_vocab)
{
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(rng_mix(seed * 1000 + i) % n_vocab);
}

static gen_request request(const model_config *c, enc_request *source, const int32_t *ids, size_t n)
{
    *source = (enc_request){.ids = ids, .n_ids = n};
    return (gen_request){.ids = &c->start_id,
                         .n_ids = 1,
                         .source = source,
                         .max_tokens = N_NEW,
                         .ignore_eos = true,
                         .logprobs = true};
}

/* Replies with their log-probabilities: all at once in little memory, beside encodes, equal each alone. */
static void company_changes_no_bit(void **state)
{
    for (size_t f = 0; f < N_TEXTS; f++) {
        rig alone, crowd;
        open_family(&alone, texts[f], (engine_options){.n_threads = 1});
        open_family(&crowd, texts[f],
                    (engine_options){.n_threads = 2, .max_batch = 3, .kv_bytes = 128 << 10});
        const model_config *c = model_get_config(alone.m);
        int32_t ids[N_SOURCES][60];
        enc_request source[N_SOURCES];
        reply *want[N_SOURCES], *got[N_SOURCES];
        for (size_t i = 0; i < N_SOURCES; i++) {
            make_source(ids[i], 10 + 8 * i, i, c->n_vocab);
            gen_request q = request(c, &source[i], ids[i], 10 + 8 * i);
            want[i] = generate(alone.e, &q);
        }
        for (size_t i = 0; i < N_SOURCES; i++) {
            gen_request q = request(c, &source[i], ids[i], 10 + 8 * i);
            got[i] = reply_new();
            must(reply_start(got[i], crowd.e, &q, &err));
        }
        for (size_t i = 0; i < N_SOURCES; i++) {
            reply_wait(got[i]);
            assert_int_equal(got[i]->status, 0);
            assert_int_equal(got[i]->n, want[i]->n);
            assert_memory_equal(got[i]->ids, want[i]->ids, want[i]->n * sizeof(int32_t));
            assert_memory_equal(got[i]->logprobs, want[i]->logprobs, want[i]->n * sizeof(float));
            reply_free(got[i]);
            reply_free(want[i]);
        }
        rig_close(&crowd);
        rig_close(&alone);
    }
}

static void instruction_sets_and_cuts_change_no_bit(void **state)
{
    for (size_t f = 0; f < N_TEXTS; f++) {
        int32_t ids[40], dec[40];
        float *want = NULL, *got = NULL;
        size_t n_vocab = 0;
        for (int s = ISA_SCALAR; s < ISA_COUNT; s++) {
            if (!isa_tested((isa)s)) continue;
            rig r;
            setenv("SHOAL_ISA", isa_name((isa)s), 1);
            open_family(&r, texts[f], (engine_options){.n_threads = 1 + s % 2, .prefill_chunk = 5});
            unsetenv("SHOAL_ISA");
            n_vocab = model_get_config(r.m)->n_vocab;
            make_source(ids, 40, 3, n_vocab);
            make_source(dec, 40, 4, n_vocab);
            enc_request source = {.ids = ids, .n_ids = 40};
            float **to = want ? &got : &want;
            free(*to);
            *to = malloc(40 * n_vocab * sizeof **to);
            must(engine_logits(r.e, &source, dec, 40, 40, *to, &err));
            if (got) assert_memory_equal(got, want, 40 * n_vocab * sizeof *want);
            /* again with a cached prefix in front: 32 of 40 positions are in pages */
            float last[8 * 1024];
            assert_true(n_vocab <= 1024);
            must(engine_logits(r.e, &source, dec, 40, 8, last, &err));
            assert_memory_equal(last, want + 32 * n_vocab, 8 * n_vocab * sizeof *last);
            /* and the same reply to another source is another one */
            ids[0] = (ids[0] + 1) % (int32_t)n_vocab;
            must(engine_logits(r.e, &source, dec, 40, 8, last, &err));
            assert_memory_not_equal(last, want + 32 * n_vocab, 8 * n_vocab * sizeof *last);
            rig_close(&r);
        }
        free(want);
        free(got);
    }
}

static void sources_are_asked_for_and_refused(void **state)
{
    rig r;
    shoal_err err = {0};
    float out[1024];
    open_family(&r, "bart", (engine_options){0});
    int32_t ids[300] = {2, 3, 4};
    assert_int_equal(engine_logits(r.e, NULL, ids, 3, 1, out, &err), SHOAL_EINVALID);
    enc_request source = {.ids = ids, .n_ids = 300};
    assert_int_equal(engine_logits(r.e, &source, ids, 3, 1, out, &err), SHOAL_ELIMIT);
    source.n_ids = 0;
    assert_int_equal(engine_logits(r.e, &source, ids, 3, 1, out, &err), SHOAL_EINVALID);
    source = (enc_request){.features = out, .n_features = 4, .width = 4};
    memset(out, 0, sizeof out);
    assert_int_equal(engine_logits(r.e, &source, ids, 3, 1, out, &err), SHOAL_EINVALID);
    rig_close(&r);
    open_family(&r, "llama-gqa", (engine_options){0});
    source = (enc_request){.ids = ids, .n_ids = 3};
    assert_int_equal(engine_logits(r.e, &source, ids, 3, 1, out, &err), SHOAL_EINVALID);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_give_the_reference_rows_and_logits),
        cmocka_unit_test(speech_gives_the_reference_rows_and_logits),
        cmocka_unit_test(company_changes_no_bit),
        cmocka_unit_test(instruction_sets_and_cuts_change_no_bit),
        cmocka_unit_test(sources_are_asked_for_and_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
