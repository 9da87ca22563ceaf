#include "helper.h"
#include "signal/fft.h"
#include "signal/mel.h"

static const double PI = 3.14159265358979323846;

/* ---- the transform ---------------------------------------------------------------------------------- */

static double noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / (1 << 23) - 1;
}

/* Against the sum of the definition; every lane has its own samples. */
static void check_transform(size_t n)
{
    fft *f = NULL;
    assert_int_equal(fft_new(&f, n, NULL), 0);
    double *x = mem_calloc64(n * FFT_LANES, sizeof *x), *kept = calloc(n * FFT_LANES, sizeof *kept);
    double *power = mem_calloc64((n / 2 + 1) * FFT_LANES, sizeof *power), worst = 0;
    uint32_t seed = (uint32_t)n;
    for (size_t i = 0; i < n * FFT_LANES; i++) kept[i] = x[i] = noise(&seed);
    fft_power(f, x, power);
    for (size_t k = 0; k <= n / 2; k++)
        for (size_t l = 0; l < FFT_LANES; l++) {
            double re = 0, im = 0;
            for (size_t i = 0; i < n; i++) {
                re += kept[i * FFT_LANES + l] * cos(2 * PI * (double)(i * k % n) / (double)n);
                im -= kept[i * FFT_LANES + l] * sin(2 * PI * (double)(i * k % n) / (double)n);
            }
            double d = fabs(power[k * FFT_LANES + l] - (re * re + im * im)) / (double)n;
            if (d > worst) worst = d;
        }
    if (worst > 1e-12) fail_msg("%zu points: off by %g of the mean power", n, worst);
    free(x);
    free(kept);
    free(power);
    fft_free(f);
}

static void the_transform_is_its_definition(void **state)
{
    static const size_t sizes[] = {4,  6,  8,  10, 12,  16,  18,  20,  24,  30,
                                   32, 50, 60, 90, 200, 240, 250, 400, 512, 960};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) check_transform(sizes[i]);
}

static void other_sizes_are_refused(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 5, 14, 22, 401, 2 * 49, 16386, SIZE_MAX - 1};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        fft *f = NULL;
        shoal_err err = {0};
        assert_int_equal(fft_new(&f, sizes[i], &err), SHOAL_EUNSUPPORTED);
        assert_null(f);
        assert_non_null(strstr(err.message, "FFT"));
    }
}

/* ---- features against the references ---------------------------------------------------------------- */

/* The references are kept as F16: what ours differ beyond that rounding is at most `allowed` of their norm,
 * and 1e-4 anywhere (bins far below the loudest, where float32 references are noise). */
static void check_whisper(const char *path, const char *wav, const char *features, size_t n_chunk,
                          double allowed)
{
    mel *m = NULL;
    size_t n, n_want;
    float *x = load_tensor(path, wav, &n), *want = load_tensor(path, features, &n_want);
    size_t frames = n_chunk / 160, stored = n_want / 80;
    float *out = calloc(80 * frames, sizeof *out);
    assert_int_equal(mel_new(&m, NULL, NULL), 0);
    assert_int_equal(mel_whisper(m, x, n, n_chunk, out, NULL), 0);
    double d = 0, r = 0;
    for (size_t i = 0; i < 80; i++)
        for (size_t k = 0; k < frames; k++) {
            float have = out[i * frames + k], ref = want[i * stored + (k < stored ? k : stored - 1)];
            float half_step = (f16_to_f32((uint16_t)(f32_to_f16(fabsf(ref)) + 1)) - fabsf(ref)) / 2;
            double excess = fabs((double)have - ref) - half_step;
            if (excess < 0) excess = 0;
            if (excess > 1e-4)
                fail_msg("%s mel %zu frame %zu: %g, not %g", path, i, k, (double)have, (double)ref);
            d += excess * excess;
            r += (double)ref * ref;
        }
    if (sqrt(d / r) > allowed) fail_msg("%s: relative error %g", path, sqrt(d / r));
    mel_free(m);
    free(x);
    free(want);
    free(out);
}

static void whisper_features_are_the_references(void **state)
{
    check_whisper(DATA("whisper.safetensors"), "wav", "mel", 480000, 1e-5);
    check_whisper(DATA("ears.safetensors"), "wav.0", "mel.0", 128000, 1e-5);
    check_whisper(DATA("ears.safetensors"), "wav.2", "mel.2", 128000, 1e-5);
}

static void streamed_features_are_the_references(void **state)
{
    for (int i = 0; i < 3; i++) {
        char wav[32], features[32];
        snprintf(wav, sizeof wav, "wav.%d", i);
        snprintf(features, sizeof features, "features.%d", i);
        size_t n, n_want;
        float *x = load_tensor(DATA("wake.safetensors"), wav, &n);
        float *want = load_tensor(DATA("wake.safetensors"), features, &n_want);
        mel *m = NULL;
        assert_int_equal(mel_new(&m, NULL, NULL), 0);
        assert_int_equal(mel_frames(m, n) * 80, n_want);
        float *out = calloc(n_want, sizeof *out);
        mel_rows(m, x, n, out);
        double e = relative(out, want, n_want);
        if (e > 1e-5) fail_msg("%s: relative error %g", features, e);
        mel_free(m);
        free(x);
        free(want);
        free(out);
    }
}

/* ---- streams ---------------------------------------------------------------------------------------- */

static void any_cut_of_a_stream_gives_the_same_bits(void **state)
{
    size_t n;
    float *x = load_tensor(DATA("wake.safetensors"), "wav.2", &n);
    static const mel_options kinds[] = {
        {0}, {.n_fft = 480, .hop = 480}, {.n_fft = 64, .hop = 50, .n_mels = 10}};
    static const size_t blocks[] = {1, 7, 160, 161, 399, 400, 401, 800, 5000, 1 << 20};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        mel *m = NULL;
        assert_int_equal(mel_new(&m, &kinds[k], NULL), 0);
        size_t width = mel_settings(m)->n_mels, rows = mel_frames(m, n);
        float *whole = calloc(rows * width, sizeof *whole), *out = calloc(rows * width, sizeof *out);
        mel_rows(m, x, n, whole);
        for (size_t b = 0; b < COUNT_OF(blocks); b++) {
            mel_stream *s = NULL;
            assert_int_equal(mel_stream_new(&s, m, NULL), 0);
            size_t got = 0;
            for (size_t at = 0; at < n; at += blocks[b]) {
                size_t block = n - at < blocks[b] ? n - at : blocks[b], room = mel_stream_room(s, block);
                assert_true(got + room <= rows);
                assert_int_equal(mel_stream_push(s, x + at, block, out + got * width), room);
                got += room;
            }
            assert_int_equal(got, rows);
            assert_memory_equal(out, whole, rows * width * sizeof *out);
            mel_stream_free(s);
        }
        mel_free(m);
        free(whole);
        free(out);
    }
    free(x);
}

/* FNV-1a over the bits: what any machine must give. */
static uint64_t digest(const float *x, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof u);
        h = (h ^ u) * 1099511628211u;
    }
    return h;
}

static void bits_are_the_same_on_every_machine(void **state)
{
    size_t n;
    float *x = load_tensor(DATA("whisper.safetensors"), "wav", &n), *out = calloc(128 * 300, sizeof *out);
    mel *m = NULL;
    assert_int_equal(mel_new(&m, &(mel_options){.n_mels = 128}, NULL), 0);
    assert_int_equal(mel_whisper(m, x, n, 48000, out, NULL), 0);
    assert_true(digest(out, 128 * 300) == 0xfce3db132d4c9e66);
    mel_free(m);
    free(x);
    free(out);
}

static void chunks_are_cut_padded_and_bounded(void **state)
{
    mel *m = NULL;
    assert_int_equal(mel_new(&m, NULL, NULL), 0);
    static float out[80 * 10], again[80 * 10], x[4800];
    for (size_t i = 0; i < 4800; i++) x[i] = (float)sin(0.05 * (double)i) * (i < 1600 ? 1.0f : 0.5f);
    assert_int_equal(mel_whisper(m, NULL, 0, 1600, out, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(out); i++) assert_true(out[i] == -1.5f);
    assert_int_equal(mel_whisper(m, x, 4800, 1600, out, NULL), 0); /* what is beyond the chunk is not heard */
    assert_int_equal(mel_whisper(m, x, 1600, 1600, again, NULL), 0);
    assert_memory_equal(out, again, sizeof out);
    /* Sound that ends shortly before the chunk's end is mirrored there: as with explicit silence behind it.
     */
    for (size_t i = 1500; i < 1600; i++) x[i] = 0;
    assert_int_equal(mel_whisper(m, x, 1500, 1600, out, NULL), 0);
    assert_int_equal(mel_whisper(m, x, 1600, 1600, again, NULL), 0);
    assert_memory_equal(out, again, sizeof out);
    shoal_err err = {0};
    assert_int_equal(mel_whisper(m, x, 100, 1601, out, &err), SHOAL_EINVALID);
    assert_int_equal(mel_whisper(m, x, 100, 160, out, &err), SHOAL_EINVALID);
    mel_free(m);
}

/* ---- configurations --------------------------------------------------------------------------------- */

static int read_config(const char *text, mel_options *o, size_t *chunk, shoal_err *err)
{
    json_t *j = NULL;
    assert_int_equal(json_parse(&j, text, strlen(text), "test", err), 0);
    int rc = mel_read_config(o, chunk, j, err);
    json_decref(j);
    return rc;
}

static void configurations_of_both_kinds_are_read(void **state)
{
    mel_options o = {0};
    size_t chunk = 0;
    shoal_err err = {0};
    assert_int_equal(
        read_config("{\"feature_extractor_type\": \"WhisperFeatureExtractor\", \"chunk_length\": 8,"
                    "\"feature_size\": 128, \"hop_length\": 160, \"n_fft\": 400, \"dither\": 0.0}",
                    &o, &chunk, &err),
        0);
    assert_int_equal(o.n_mels, 128);
    assert_int_equal(chunk, 128000);
    assert_int_equal(
        read_config("{\"sampling_rate\": 8000, \"n_fft\": 200, \"hop_length\": 80, \"num_mel_bins\": 40,"
                    "\"window\": \"hann, periodic\", \"max_frequency\": 3800.0}",
                    &o, &chunk, &err),
        0);
    assert_int_equal(o.rate, 8000);
    assert_int_equal(o.n_mels, 40);
    assert_true(o.f_max == 3800);
    assert_int_equal(chunk, 0);
}

static void what_would_give_other_features_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
        int rc;
    } bad[] = {
        {"[]", "object", SHOAL_EINVALID},
        {"{\"feature_extractor_type\": \"ASTFeatureExtractor\"}", "ASTFeatureExtractor", SHOAL_EUNSUPPORTED},
        {"{\"mel_scale\": \"htk\"}", "htk", SHOAL_EUNSUPPORTED},
        {"{\"power\": 1.0}", "power 1", SHOAL_EUNSUPPORTED},
        {"{\"dither\": 0.5}", "dither", SHOAL_EUNSUPPORTED},
        {"{\"n_fft\": \"big\"}", "n_fft", SHOAL_EINVALID},
        {"{\"hop_length\": 0}", "hop_length", SHOAL_EINVALID},
        {"{\"hop_length\": 500}", "hop", SHOAL_EINVALID},
        {"{\"max_frequency\": 9000}", "do not fit", SHOAL_EINVALID},
        {"{\"feature_size\": 1000}", "filters", SHOAL_EINVALID},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        mel_options o = {.rate = 77};
        shoal_err err = {0};
        assert_int_equal(read_config(bad[i].text, &o, NULL, &err), bad[i].rc);
        if (!strstr(err.message, bad[i].says)) fail_msg("%s: %s", bad[i].text, err.message);
        assert_int_equal(o.rate, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_transform_is_its_definition),
        cmocka_unit_test(other_sizes_are_refused),
        cmocka_unit_test(whisper_features_are_the_references),
        cmocka_unit_test(streamed_features_are_the_references),
        cmocka_unit_test(any_cut_of_a_stream_gives_the_same_bits),
        cmocka_unit_test(bits_are_the_same_on_every_machine),
        cmocka_unit_test(chunks_are_cut_padded_and_bounded),
        cmocka_unit_test(configurations_of_both_kinds_are_read),
        cmocka_unit_test(what_would_give_other_features_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
