/* Series, tables and pictures through the library: against the references, in order, and the same however
 * they come. */
#include "../infer/helper.h"

#include <png.h>
#include <unistd.h>

#include "infer/preprocessor.h"
#include "shoal.h"

#define LSTM  DATA "sensors/lstm"
#define TREES DATA "sensors/trees"
#define DEMO  DATA "sensors/demo.csv.gz"

/* ---- series: sensor-lstm's 50 windows --------------------------------------------------------------- */

static void take_result(void *user, const enc_result *r)
{
    reply *to = user;
    pthread_mutex_lock(&to->lock);
    to->status = r->status;
    to->n = r->rows * r->cols;
    if (r->status == 0 && to->n <= 16) memcpy(to->logprobs, r->values, to->n * sizeof(float));
    to->done = true;
    pthread_cond_signal(&to->wake);
    pthread_mutex_unlock(&to->lock);
}

static void encode_window(engine *e, const float *x, size_t rows, size_t width, float *ret, size_t n)
{
    static reply r;
    uint64_t id;
    memset(&r, 0, sizeof r);
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.wake, NULL);
    must(engine_encode(e, &(enc_request){.features = x, .n_features = rows, .width = width}, take_result, &r,
                       &id, &err));
    pthread_mutex_lock(&r.lock);
    while (!r.done) pthread_cond_wait(&r.wake, &r.lock);
    pthread_mutex_unlock(&r.lock);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.n, n);
    memcpy(ret, r.logprobs, n * sizeof *ret);
}

static void open_sensors(fixture *f)
{
    fixture_open(f, "../sensors/lstm");
}

static void lstm_agrees_with_its_expected_windows(void **state)
{
    (void)state;
    fixture f;
    rig r;
    size_t n, n_ref, wrong = 0;
    open_sensors(&f);
    rig_open(&r, LSTM, (engine_options){0});
    float *x = fixture_tensor(&f, "x", &n), *ref = fixture_tensor(&f, "logits", &n_ref);
    assert_int_equal(n, 50 * 64 * 4);
    assert_int_equal(n_ref, 50 * 3);
    for (size_t i = 0; i < 50; i++) {
        float logits[3];
        encode_window(r.e, x + i * 256, 64, 4, logits, 3);
        for (size_t k = 0; k < 3; k++) wrong += !(fabsf(logits[k] - ref[i * 3 + k]) <= 1e-5f);
    }
    assert_int_equal(wrong, 0);
    free(x);
    free(ref);
    rig_close(&r);
    fixture_close(&f);
}

/* ---- the demo's windows, many at a time, against one at a time -------------------------------------- */

typedef struct against {
    feed *d;
    csv *c;
    engine *e;
    size_t n, at_most;
} against;

static int compare_row(void *user, const shoal_score *s)
{
    against *a = user;
    feed_item it;
    float logits[3];
    shoal_err err;
    assert_int_equal(feed_next(a->d, &it, &err), 1);
    assert_string_equal(s->sensor, it.sensor);
    assert_string_equal(s->time, it.time);
    assert_int_equal(s->line, it.line);
    assert_int_equal(s->row, it.row);
    assert_int_equal(s->n_raw, 3);
    encode_window(a->e, it.z, 64, 4, logits, 3);
    double sum = 0;
    for (size_t k = 0; k < 3; k++) {
        assert_true(s->raw[k] == (double)logits[k]);
        assert_true(s->scores[k] <= s->probability);
        sum += s->scores[k];
    }
    assert_true(fabs(sum - 1) < 1e-6);
    return ++a->n == a->at_most;
}

static void windows_come_in_order_with_the_bits_of_single_ones(void **state)
{
    (void)state;
    shoal_model *m = NULL;
    rig r;
    against a = {.at_most = 500};
    series_spec *spec = NULL;
    shoal_err why = {0};
    shoal_score_totals t = {7, 7, 7};
    must(shoal_model_open(&m, LSTM, &(shoal_options){.n_threads = 2}, &err));
    rig_open(&r, LSTM, (engine_options){.n_threads = 1});
    a.e = r.e;
    must(series_spec_read(&spec, LSTM, &err));
    must(csv_open(&a.c, DEMO, &err));
    must(feed_open(&a.d, spec, a.c, &err));
    assert_int_equal(shoal_score_csv(m, DEMO, compare_row, &a, &t, &why), SHOAL_ECANCELLED);
    assert_int_equal(a.n, 500);
    assert_true(t.n_rows == 7 && strstr(why.message, "stopped at line"));
    feed_close(a.d);
    csv_close(a.c);
    series_spec_free(spec);
    rig_close(&r);
    shoal_model_close(m);
}

/* ---- tables ----------------------------------------------------------------------------------------- */

typedef struct table {
    const json_t *rows;
    size_t n;
    double far;
} table;

static int check_table(void *user, const shoal_score *s)
{
    table *t = user;
    const json_t *p = json_object_get(json_array_get(t->rows, t->n++), "prob");
    for (size_t k = 0; k < 3; k++) {
        double d = fabs(s->scores[k] - json_number_value(json_array_get(p, k)));
        if (!(d <= t->far)) t->far = d;
    }
    assert_int_equal(s->n_scores, 3);
    assert_string_equal(s->sensor, "");
    assert_int_equal(s->line, t->n + 1);
    return 0;
}

static void rows_in_memory_score_as_the_reference_says(void **state)
{
    (void)state;
    static double rows[50 * 20];
    const char *names[20];
    json_t *j = NULL;
    shoal_model *m = NULL;
    shoal_model_info info;
    shoal_score_totals t;
    must(json_parse_file(&j, TREES "/expected.json", 1 << 20, &err));
    table want = {.rows = json_object_get(j, "rows")};
    for (size_t i = 0; i < 20; i++)
        names[i] = json_string_value(json_array_get(json_object_get(j, "features"), i));
    for (size_t i = 0; i < 1000; i++)
        rows[i] = json_number_value(
            json_array_get(json_object_get(json_array_get(want.rows, i / 20), "x"), i % 20));
    must(shoal_model_open(&m, TREES, NULL, &err));
    must(shoal_model_describe(m, &info, &err));
    assert_string_equal(info.task, "score");
    assert_string_equal(info.architecture, "lightgbm");
    assert_int_equal(info.n_labels, 3);
    assert_string_equal(info.labels[2], "fault");
    assert_int_equal(strlen(info.digest), 64);
    must(shoal_score_rows(m, names, 20, rows, 50, check_table, &want, &t, &err));
    assert_true(want.n == 50 && want.far <= 1e-12);
    assert_true(t.n_rows == 50 && t.n_scores == 50 && t.n_sensors == 0);
    shoal_model_close(m);
    json_decref(j);
}

static void trees_refuse_what_they_cannot_do(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"a \"strange\", name\n", "b"};
    static const double ROWS[] = {1, 2, 3, 4}, INFINITE[] = {1, INFINITY};
    shoal_model *m = NULL;
    table want = {0};
    shoal_score_totals t;
    shoal_err why = {0};
    must(shoal_model_open(&m, TREES, NULL, &err));
    assert_int_equal(shoal_score_rows(m, NAMES, 2, ROWS, 2, check_table, &want, &t, &why), SHOAL_EINVALID);
    assert_non_null(strstr(why.message, "\"vibration\" is missing"));
    assert_int_equal(shoal_score_rows(m, NAMES, 2, INFINITE, 1, check_table, &want, &t, &why),
                     SHOAL_EINVALID);
    assert_non_null(strstr(why.message, "infinite"));
    assert_int_equal(shoal_score_csv(m, TREES "/absent.csv", check_table, &want, &t, &why), SHOAL_ENOTFOUND);
    shoal_classification c;
    shoal_embedding e;
    assert_int_equal(shoal_classify(m, "a", NULL, &c, &why), SHOAL_EUNSUPPORTED);
    assert_int_equal(shoal_embed(m, "a", &e, &why), SHOAL_EUNSUPPORTED);
    assert_int_equal(shoal_generate(m, "a", NULL, NULL, NULL, NULL, &why), SHOAL_EUNSUPPORTED);
    assert_int_equal(shoal_chat(m, NULL, 0, NULL, NULL, NULL, NULL, &why), SHOAL_EUNSUPPORTED);
    assert_int_equal(shoal_rerank(m, "a", NAMES, 1, &(float){0}, &why), SHOAL_EUNSUPPORTED);
    assert_int_equal(shoal_tag(m, "a", &(shoal_tagging){0}, &why), SHOAL_EUNSUPPORTED);
    assert_int_equal(shoal_classify_image(m, "a", 1, &c, &why), SHOAL_EUNSUPPORTED);
    shoal_model_close(m);
}

static void a_pinned_digest_is_held_against_trees(void **state)
{
    (void)state;
    shoal_model *m = NULL;
    shoal_model_info info;
    shoal_err why = {0};
    char zeros[65];
    memset(zeros, '0', 64);
    zeros[64] = '\0';
    for (int folder = 0; folder < 2; folder++) {
        const char *path = folder ? TREES : TREES "/model.txt.gz";
        assert_int_equal(shoal_model_open(&m, path, &(shoal_options){.sha256 = zeros}, &why), SHOAL_EDIGEST);
        must(shoal_model_open(&m, path, NULL, &err));
        must(shoal_model_describe(m, &info, &err));
        char digest[65];
        memcpy(digest, info.digest, sizeof digest);
        shoal_model_close(m);
        must(shoal_model_open(&m, path, &(shoal_options){.sha256 = digest}, &err));
        shoal_model_close(m);
    }
}

/* ---- pictures --------------------------------------------------------------------------------------- */

static void on_write(png_structp png, png_bytep bytes, png_size_t n)
{
    buf_append(png_get_io_ptr(png), bytes, n);
}

static void on_flush(png_structp png)
{
    (void)png;
}

static void write_png(buf *out, uint8_t *rgb, uint32_t side)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_bytep rows[64];
    for (uint32_t y = 0; y < side; y++) rows[y] = rgb + (size_t)y * side * 3;
    png_set_write_fn(png, out, on_write, on_flush);
    png_set_IHDR(png, info, side, side, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    png_set_rows(png, info, rows);
    png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    png_destroy_write_struct(&png, &info);
}

static void vit_agrees_with_its_expected_pixels(void **state)
{
    (void)state;
    fixture f;
    shoal_model *m = NULL;
    size_t n, n_ref;
    fixture_open(&f, "vit-tiny");
    must(shoal_model_open(&m, DATA "hf/vit-tiny", NULL, &err));
    float *px = fixture_tensor(&f, "px", &n), *ref = fixture_tensor(&f, "logits", &n_ref);
    assert_true(n == 2 * 3 * 32 * 32 && n_ref == 2 * 4);
    shoal_model_info info;
    must(shoal_model_describe(m, &info, &err));
    assert_non_null(strstr(info.notice, "preprocessor_config.json"));
    for (size_t i = 0; i < 2; i++) {
        shoal_classification c = {0};
        must(shoal_classify_pixels(m, px + i * 3072, &c, &err));
        assert_int_equal(c.n_labels, 4);
        assert_true(worst(c.logits, ref + i * 4, 4) <= 1e-4);
        assert_true(c.labels[0].score >= c.labels[3].score);
        shoal_classification_done(&c);
    }
    free(px);
    free(ref);
    shoal_model_close(m);
    fixture_close(&f);
}

/* A picture of the network's own size is only scaled: (v / 255 - 0.5) / 0.5. */
static void a_png_gives_what_its_pixels_give(void **state)
{
    (void)state;
    static uint8_t rgb[32 * 32 * 3];
    static float px[3 * 32 * 32];
    shoal_model *m = NULL;
    buf png = {0};
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    for (size_t i = 0; i < sizeof rgb; i++)
        px[i % 3 * 1024 + i / 3] = (float)(((double)rgb[i] / 255 - 0.5) / 0.5);
    write_png(&png, rgb, 32);
    must(shoal_model_open(&m, DATA "hf/vit-tiny", NULL, &err));
    shoal_classification a = {0}, b = {0};
    must(shoal_classify_image(m, png.data, png.len, &a, &err));
    must(shoal_classify_pixels(m, px, &b, &err));
    assert_true(worst(a.logits, b.logits, 4) <= 1e-5);
    assert_string_equal(a.labels[0].name, b.labels[0].name);
    shoal_classification_done(&a);
    shoal_classification_done(&b);

    shoal_err why = {0};
    for (size_t cut = 0; cut < png.len; cut += 97) {
        int rc = shoal_classify_image(m, png.data, cut, &a, &why);
        assert_true(rc == SHOAL_EFORMAT || rc == SHOAL_EUNSUPPORTED);
        assert_true(why.message[0] && !a.labels);
    }
    px[17] = NAN;
    assert_int_equal(shoal_classify_pixels(m, px, &a, &why), SHOAL_EINVALID);
    assert_int_equal(shoal_score_csv(m, DEMO, compare_row, NULL, NULL, &why), SHOAL_EUNSUPPORTED);
    buf_done(&png);
    shoal_model_close(m);
}

/* Resized to 32 x 32 by the folder's word, with its own mean and deviation; steps that give the network
 * another size are refused when the model is opened. */
static void the_folder_s_steps_are_taken(void **state)
{
    (void)state;
    static uint8_t grey[48 * 48 * 3];
    static float px[3 * 32 * 32];
    static const char *const STEPS[] = {
        "{\"do_resize\":true,\"size\":{\"height\":32,\"width\":32},\"do_normalize\":true,"
        "\"image_mean\":[0.25,0.5,0.75],\"image_std\":[0.5,0.25,0.125]}",
        "{\"do_resize\":true,\"size\":{\"height\":64,\"width\":64}}"};
    char dir[] = "/tmp/shoal-test-XXXXXX", path[128], target[512];
    shoal_model *m = NULL;
    shoal_model_info info;
    shoal_classification a = {0}, b = {0};
    shoal_err why = {0};
    buf png = {0};
    memset(grey, 51, sizeof grey); /* 0.2 */
    for (size_t i = 0; i < 3072; i++)
        px[i] = (float)((0.2 - (double)(i / 1024 + 1) * 0.25) / (0.5 / (double)(1 << i / 1024)));
    write_png(&png, grey, 48);
    assert_non_null(mkdtemp(dir));
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/%s", dir, k ? "model.safetensors" : "config.json");
        snprintf(target, sizeof target, DATA "hf/vit-tiny/%s", k ? "model.safetensors" : "config.json");
        assert_int_equal(symlink(target, path), 0);
    }
    snprintf(path, sizeof path, "%s/preprocessor_config.json", dir);
    for (int k = 0; k < 2; k++) {
        FILE *f = fopen(path, "w");
        fputs(STEPS[k], f);
        fclose(f);
        if (k == 1) {
            assert_int_equal(shoal_model_open(&m, dir, NULL, &why), SHOAL_EUNSUPPORTED);
            assert_non_null(strstr(why.message, "64 x 64"));
            break;
        }
        must(shoal_model_open(&m, dir, NULL, &err));
        must(shoal_model_describe(m, &info, &err));
        assert_null(info.notice);
        must(shoal_classify_image(m, png.data, png.len, &a, &err));
        must(shoal_classify_pixels(m, px, &b, &err));
        assert_true(worst(a.logits, b.logits, 4) <= 1e-5);
        shoal_classification_done(&a);
        shoal_classification_done(&b);
        shoal_model_close(m);
    }
    unlink(path);
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/%s", dir, k ? "model.safetensors" : "config.json");
        unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
    buf_done(&png);
}

/* ---- threads, and closing --------------------------------------------------------------------------- */

static int sum_raw(void *user, const shoal_score *s)
{
    double *sum = user;
    for (size_t k = 0; k < s->n_raw; k++) *sum += s->raw[k] * (double)(s->line % 97);
    return 0;
}

/* Under a sanitizer a few windows of it are as good as all. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BESIDE DATA "sensors/short.csv"
#else
#define BESIDE DEMO
#endif

typedef struct runner {
    shoal_model *m;
    double sum;
    int rc;
} runner;

static void *score_demo(void *arg)
{
    runner *r = arg;
    r->rc = shoal_score_csv(r->m, BESIDE, sum_raw, &r->sum, NULL, NULL);
    return NULL;
}

static void runs_beside_each_other_do_not_disturb(void **state)
{
    (void)state;
    static const char *const MODELS[] = {LSTM, TREES};
    for (size_t k = 0; k < 2; k++) {
        shoal_model *m = NULL;
        pthread_t t[3];
        runner r[3] = {0};
        must(shoal_model_open(&m, MODELS[k], NULL, &err));
        for (size_t i = 0; i < 3; i++) r[i].m = m;
        for (size_t i = 0; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, score_demo, &r[i]), 0);
        for (size_t i = 0; i < 3; i++) pthread_join(t[i], NULL);
        for (size_t i = 0; i < 3; i++) assert_true(r[i].rc == 0 && r[i].sum == r[0].sum && r[i].sum != 0);
        shoal_model_close(m);
    }
}

/* ---- folders that do not fit ------------------------------------------------------------------------ */

static void models_without_a_word_on_windows_open_and_say_so(void **state)
{
    (void)state;
    shoal_model *m = NULL;
    shoal_err why = {0};
    double sum = 0;
    must(shoal_model_open(&m, DATA "hf/lstm-anomaly", NULL, &err));
    assert_int_equal(shoal_score_csv(m, DEMO, sum_raw, &sum, NULL, &why), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(why.message, "\"channels\" and \"normalization\""));
    shoal_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm_agrees_with_its_expected_windows),
        cmocka_unit_test(windows_come_in_order_with_the_bits_of_single_ones),
        cmocka_unit_test(rows_in_memory_score_as_the_reference_says),
        cmocka_unit_test(trees_refuse_what_they_cannot_do),
        cmocka_unit_test(a_pinned_digest_is_held_against_trees),
        cmocka_unit_test(vit_agrees_with_its_expected_pixels),
        cmocka_unit_test(a_png_gives_what_its_pixels_give),
        cmocka_unit_test(the_folder_s_steps_are_taken),
        cmocka_unit_test(runs_beside_each_other_do_not_disturb),
        cmocka_unit_test(models_without_a_word_on_windows_open_and_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
