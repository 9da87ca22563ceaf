/* The voice detector: random weights against the formulas in double, a sound in pieces, files that are none,
 * and Silero's own weights where they are at hand. */
#include "helper.h"

#include "base/clock.h"
#include "signal/vad.h"
#include "speech/vad_model.h"
#include "vad_model_file.h"

#define SILERO SHOAL_SOURCE_DIR "/../shared/borrowed/silero-vad/"

/* ---- the formulas, one after the other ------------------------------------------------------------ */

typedef struct memory {
    double h[128], c[128], context[64];
} memory;

static void conv(const float *w, const float *b, const double *x, size_t n_in, size_t in, size_t out,
                 size_t stride, double *y)
{
    for (size_t o = 0; o < out; o++)
        for (size_t t = 0; t * stride < n_in; t++) {
            double sum = (double)b[o];
            for (size_t i = 0; i < in; i++)
                for (size_t k = 0; k < 3; k++) {
                    size_t at = t * stride + k; /* one too many */
                    if (at >= 1 && at <= n_in) sum += (double)w[(o * in + i) * 3 + k] * x[i * n_in + at - 1];
                }
            y[o * ((n_in - 1) / stride + 1) + t] = sum > 0 ? sum : 0;
        }
}

static double sigma(double x)
{
    return 1 / (1 + exp(-x));
}

static double formula(float *w[N_TENSORS], memory *m, const float *x)
{
    double pad[640], mag[129 * 4], a[128 * 4], b[64 * 2], c[64], d[128];
    for (size_t i = 0; i < 64; i++) pad[i] = m->context[i];
    for (size_t i = 0; i < 512; i++) pad[64 + i] = (double)x[i];
    for (size_t i = 0; i < 64; i++) pad[576 + i] = pad[574 - i];
    for (size_t i = 0; i < 64; i++) m->context[i] = pad[512 + i];
    for (size_t i = 0; i < 129; i++)
        for (size_t t = 0; t < 4; t++) {
            double re = 0, im = 0;
            for (size_t k = 0; k < 256; k++) {
                re += (double)w[0][i * 256 + k] * pad[t * 128 + k];
                im += (double)w[0][(129 + i) * 256 + k] * pad[t * 128 + k];
            }
            mag[i * 4 + t] = sqrt(re * re + im * im);
        }
    conv(w[1], w[2], mag, 4, 129, 128, 1, a);
    conv(w[3], w[4], a, 4, 128, 64, 2, b);
    conv(w[5], w[6], b, 2, 64, 64, 2, c);
    conv(w[7], w[8], c, 1, 64, 128, 1, d);
    double g[512], sum = (double)w[14][0];
    for (size_t i = 0; i < 512; i++) {
        g[i] = (double)w[11][i] + (double)w[12][i];
        for (size_t k = 0; k < 128; k++)
            g[i] += (double)w[9][i * 128 + k] * d[k] + (double)w[10][i * 128 + k] * m->h[k];
    }
    for (size_t i = 0; i < 128; i++) {
        m->c[i] = sigma(g[128 + i]) * m->c[i] + sigma(g[i]) * tanh(g[256 + i]);
        m->h[i] = sigma(g[384 + i]) * tanh(m->c[i]);
        if (m->h[i] > 0) sum += (double)w[13][i] * m->h[i];
    }
    return sigma(sum);
}

static float *make_sound(size_t n)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = 4 * number(77 + i) * (float)(1 + i / 700 % 3);
    return x;
}

static void random_weights_follow_the_formulas(void **state)
{
    enum { N = 12 * VAD_MODEL_WINDOW };
    buf file = {0};
    float *w[N_TENSORS], *x = make_sound(N);
    vad_model *v;
    vad_model_state s = {0};
    memory m = {0};
    double spread = 0, first = -1;
    make_file(&file, SIZE_MAX, NULL, w);
    must(vad_model_parse(&v, file.data, file.len, "made", &err));
    for (size_t i = 0; i < 12; i++) {
        double p = (double)vad_model_push(v, &s, x + i * VAD_MODEL_WINDOW),
               ref = formula(w, &m, x + i * VAD_MODEL_WINDOW);
        if (!(fabs(p - ref) < 1e-5)) fail_msg("window %zu: %.8f, not %.8f", i, p, ref);
        if (first < 0) first = p;
        if (fabs(p - first) > spread) spread = fabs(p - first);
    }
    assert_true(spread > 1e-4); /* else the test sees nothing */
    for (size_t i = 0; i < N_TENSORS; i++) free(w[i]);
    vad_model_free(v);
    free(x);
    buf_done(&file);
}

static void a_whole_sound_is_its_windows(void **state)
{
    enum { N = 5 * VAD_MODEL_WINDOW + 100 };
    buf file = {0};
    float *x = make_sound(6 * VAD_MODEL_WINDOW), *p;
    vad_model *v;
    vad_model_state s = {0};
    size_t n;
    make_file(&file, SIZE_MAX, NULL, NULL);
    must(vad_model_parse(&v, file.data, file.len, "made", &err));
    sound *whole = copy_of(x, N);
    must(vad_model_all(v, whole, &p, &n, &err));
    sound_free(whole);
    assert_int_equal(n, 6);
    memset(x + N, 0, (6 * VAD_MODEL_WINDOW - N) * sizeof *x); /* silence behind it */
    for (size_t i = 0; i < n; i++) {
        float q = vad_model_push(v, &s, x + i * VAD_MODEL_WINDOW);
        assert_memory_equal(&q, &p[i], sizeof q);
    }
    free(p);
    sound *nothing = copy_of(x, 0);
    must(vad_model_all(v, nothing, &p, &n, &err));
    sound_free(nothing);
    assert_int_equal(n, 0);
    free(p);
    vad_model_free(v);
    free(x);
    buf_done(&file);
}

static void other_files_are_refused(void **state)
{
    static const char *const shapes[] = {"258,256", "256,1,258", "66048", "1,258,256", "129,2,256"};
    vad_model *v = NULL;
    shoal_err err = {0};
    for (size_t i = 0; i < N_TENSORS; i++) {
        buf file = {0};
        make_file(&file, i, NULL, NULL);
        assert_int_equal(vad_model_parse(&v, file.data, file.len, "made", &err), SHOAL_EUNSUPPORTED);
        assert_non_null(strstr(err.message, TENSORS[i].name));
        buf_done(&file);
    }
    for (size_t i = 1; i < sizeof shapes / sizeof *shapes; i++) {
        buf file = {0};
        make_file(&file, SIZE_MAX, shapes[i], NULL);
        if (vad_model_parse(&v, file.data, file.len, "made", &err) != SHOAL_EUNSUPPORTED)
            fail_msg("%s", shapes[i]);
        buf_done(&file);
    }
    buf file = {0};
    make_file(&file, SIZE_MAX, NULL, NULL);
    float nan = NAN;
    memcpy(file.data + file.len - 4, &nan, 4);
    assert_int_equal(vad_model_parse(&v, file.data, file.len, "made", &err), SHOAL_EFORMAT);
    assert_int_equal(vad_model_parse(&v, file.data, file.len - 1, "made", &err), SHOAL_EFORMAT);
    buf_done(&file);
    assert_int_not_equal(vad_model_open(&v, DATA "speech", &err), 0);
    assert_int_equal(vad_model_open(&v, DATA "hf/whisper", &err), SHOAL_EUNSUPPORTED);
}

static void onnx_holds_the_same_weights(void **state)
{
    enum { N = 4 };
    buf file = {0}, graph = {0};
    float *x = make_sound(N * VAD_MODEL_WINDOW);
    vad_model *a, *b, *none = NULL;
    vad_model_state s = {0}, t = {0};
    shoal_err why;
    make_file(&file, SIZE_MAX, NULL, NULL);
    make_onnx(&graph, SIZE_MAX);
    must(vad_model_parse(&a, file.data, file.len, "made", &err));
    must(vad_model_parse(&b, graph.data, graph.len, "made", &err));
    for (size_t i = 0; i < N; i++) {
        float p = vad_model_push(a, &s, x + i * VAD_MODEL_WINDOW),
              q = vad_model_push(b, &t, x + i * VAD_MODEL_WINDOW);
        assert_memory_equal(&p, &q, sizeof p);
    }
    assert_int_equal(vad_model_parse(&none, graph.data, graph.len - 1, "made", &why), SHOAL_EFORMAT);
    for (size_t i = 0; i < N_TENSORS; i++) {
        graph.len = 0;
        make_onnx(&graph, i);
        assert_int_equal(vad_model_parse(&none, graph.data, graph.len, "made", &why), SHOAL_EUNSUPPORTED);
        assert_non_null(strstr(why.message, TENSORS[i].name));
        assert_non_null(strstr(why.message, "silero_vad_16k_op15.onnx"));
    }
    vad_model_free(a);
    vad_model_free(b);
    free(x);
    buf_done(&file);
    buf_done(&graph);
}

static void silero_hears_a_president(void **state)
{
    static const float first[] = {0.018007f, 0.065776f, 0.238974f, 0.069827f,
                                  0.049358f, 0.021967f, 0.026098f, 0.028267f};
    static const double stretches[][2] = {{0.29, 2.302}, {3.266, 4.446}, {5.378, 7.71}, {8.162, 10.622}};
    if (!file_exists(SILERO "jfk.wav")) skip();
    vad_model *v;
    float *p, top = 0;
    size_t n, n_samples, n_seg;
    vad_segment seg[16];
    float *x = read_sound(SILERO "jfk.wav", &n_samples);
    must(vad_model_open(&v, SILERO "silero_vad_16k.safetensors", &err));
    sound *jfk = sound_of(x, n_samples);
    must(vad_model_all(v, jfk, &p, &n, &err));
    sound_free(jfk);
    assert_int_equal(n, 344);
    for (size_t i = 0; i < n; i++) top = p[i] > top ? p[i] : top;
    for (size_t i = 0; i < 8; i++)
        if (!(fabsf(p[i] - first[i]) < 2e-6f)) fail_msg("window %zu: %.7f", i, (double)p[i]);
    assert_true(fabsf(top - 0.999960f) < 2e-6f);
    must(vad_segments(p, n, n_samples, NULL, seg, 16, &n_seg, &err));
    assert_int_equal(n_seg, 4);
    for (size_t i = 0; i < n_seg; i++) {
        assert_true(fabs((double)seg[i].start / 16000 - stretches[i][0]) < 1e-3);
        assert_true(fabs((double)seg[i].end / 16000 - stretches[i][1]) < 1e-3);
    }
    free(p);
    vad_model_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_weights_follow_the_formulas),
        cmocka_unit_test(a_whole_sound_is_its_windows),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(onnx_holds_the_same_weights),
        cmocka_unit_test(silero_hears_a_president),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
