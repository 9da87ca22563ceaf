/* CSV, running medians and features against the reference's windows, and the faults of the demo data found.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "json/json.h"
#include "forest/scorer.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/sensors/"

static json_t *json_file(const char *path)
{
    json_t *v = NULL;
    shoal_err err;
    if (json_parse_file(&v, path, 8 << 20, &err) != 0) fail_msg("%s", err.message);
    return v;
}

static double at(const json_t *a, size_t i)
{
    return json_number_value(json_array_get(a, i));
}

static series_spec *spec_of(const char *path)
{
    buf text = {0};
    shoal_err err;
    series_spec *spec = NULL;
    if (file_read(&text, path, 1 << 20, &err) != 0 ||
        series_spec_parse(&spec, text.data, text.len, path, &err) != 0)
        fail_msg("%s", err.message);
    buf_done(&text);
    return spec;
}

/* ---- CSV ----------------------------------------------------------------------------------------------- */

/* All rows as "a|b\n"; the error's sentence instead when there is one. */
static void csv_says(const char *text, size_t n, const char *want)
{
    csv *c = NULL;
    buf got = {0};
    shoal_err err = {0};
    int rc = csv_over(&c, text, n, "f.csv", &err);
    while (rc >= 0 && (rc = csv_next(c, &err)) == 1)
        for (size_t i = 0; i < csv_columns(c); i++)
            buf_printf(&got, "%s%s", csv_field(c, i), i + 1 < csv_columns(c) ? "|" : "\n");
    if (rc < 0) {
        buf_clear(&got);
        buf_puts(&got, err.message);
    }
    buf_putc(&got, '\0');
    if (strcmp(got.data, want) != 0) fail_msg("\"%s\" gives \"%s\", not \"%s\"", text, got.data, want);
    buf_done(&got);
    csv_close(c);
}
#define CSV_SAYS(text, want) csv_says(text, sizeof text - 1, want)

static void csv_reads_what_rfc_4180_says(void **state)
{
    (void)state;
    CSV_SAYS("a,b\n1,2\n3,4\n", "1|2\n3|4\n");
    CSV_SAYS("a,b\r\n1,2\r\n3,4", "1|2\n3|4\n");
    CSV_SAYS("\xEF\xBB\xBF"
             "a,b\n\n1,\n,\n\n",
             "1|\n|\n");
    CSV_SAYS("a,b\n\"x,\"\"y\"\"\nz\",\"\"\n", "x,\"y\"\nz|\n");
    CSV_SAYS("a;b\n1,5;2\n", "1,5|2\n");
    CSV_SAYS("a\tb\n1\t2\n", "1|2\n");
    CSV_SAYS("a\n1\r", "1\n");
    CSV_SAYS("a,b\n", "");
}

static int stop_at_third(void *user, shoal_err *err)
{
    size_t *n = user;
    return ++*n == 3 ? err_set(err, SHOAL_ECANCELLED, "enough") : 0;
}

static void csv_ends_when_nobody_waits_for_its_rows(void **state)
{
    static const char text[] = "a,b\n1,2\n3,4\n5,6\n7,8\n";
    csv *c = NULL;
    size_t n = 0;
    shoal_err err = {0};
    assert_int_equal(csv_over(&c, text, sizeof text - 1, "f.csv", &err), 0);
    csv_set_cancel(c, &(cancel_check){stop_at_third, &n});
    assert_int_equal(csv_next(c, &err), 1);
    assert_int_equal(csv_next(c, &err), 1);
    assert_string_equal(csv_field(c, 1), "4");
    assert_int_equal(csv_next(c, &err), SHOAL_ECANCELLED);
    assert_int_equal(n, 3);
    csv_close(c);
}

static void csv_errors_name_line_and_column(void **state)
{
    (void)state;
    CSV_SAYS("", "f.csv: empty: a header line is wanted");
    CSV_SAYS("a,b\n1,2\n1\n", "f.csv: line 3: 1 fields, but the header has 2");
    CSV_SAYS("a,b\n1,\"x\n", "f.csv: line 2, column 2: a quote is opened here and never closed");
    CSV_SAYS("a,b\n\n1,\"x\"y\n", "f.csv: line 3, column 2: text behind a closing quote");
    CSV_SAYS("a,b\nx\"y,1\n", "f.csv: line 2, column 1: a quote within a field that does not begin with one");
    CSV_SAYS("a,b\n1,\0\n", "f.csv: line 2, column 2: a NUL byte: this is no text");
    CSV_SAYS("a,b\n1\r2,3\n", "f.csv: line 2, column 1: a carriage return without a line feed");
}

static void csv_numbers_are_strict(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double want;
    } good[] = {{"1.5", 1.5},  {" -2e3 ", -2000}, {"", NAN}, {"NaN", NAN},
                {"null", NAN}, {".5", 0.5},       {"+1", 1}};
    static const char *const bad[] = {"0x10", "inf", "1,5x", "1 2", "1e999", "--1", "e", "nanx"};
    char text[64];
    shoal_err err = {0};
    double v = 0;
    for (size_t i = 0; i < sizeof good / sizeof *good + sizeof bad / sizeof *bad; i++) {
        bool ok = i < sizeof good / sizeof *good;
        csv *c = NULL;
        snprintf(text, sizeof text, "h;g\n%s;\n", ok ? good[i].text : bad[i - sizeof good / sizeof *good]);
        assert_int_equal(csv_over(&c, text, strlen(text), "f.csv", &err), 0);
        assert_int_equal(csv_next(c, &err), 1);
        int rc = csv_number(c, 0, &v, &err);
        if (ok ? rc != 0 || !(v == good[i].want || (isnan(v) && isnan(good[i].want))) : rc != SHOAL_EFORMAT)
            fail_msg("%s: %d %g", text, rc, v);
        if (!ok) assert_non_null(strstr(err.message, "f.csv: line 2, column 1 (h): \""));
        csv_close(c);
    }
}

/* ---- running medians ----------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The window that ends at row t of one channel x, straight from the definition. */
static bool plain_window(const series_spec *spec, const double *x, size_t t, double floor_, float *z)
{
    double s[64], d[64], last = 0;
    size_t n = 0, end = t + 1 - spec->window, begin = end > spec->baseline ? end - spec->baseline : 0;
    for (size_t i = begin; i < end; i++)
        if (!isnan(x[i])) s[n++] = x[i];
    if (n < spec->least_baseline) return false;
    qsort(s, n, sizeof *s, ascending);
    double m = s[n / 2];
    for (size_t i = 0; i < n; i++) d[i] = fabs(s[i] - m);
    qsort(d, n, sizeof *d, ascending);
    size_t high = (size_t)ceil(0.95 * (double)(n - 1)), low = (size_t)floor(0.05 * (double)(n - 1));
    double scale = fmax(fmax(1.4826 * d[n / 2], (s[high] - s[low]) / 3.29), floor_);
    for (size_t i = 0; i < spec->window; i++) {
        if (!isnan(x[end + i])) last = fmin(spec->clip, fmax(-spec->clip, (x[end + i] - m) / scale));
        z[i] = (float)last;
    }
    return true;
}

static void running_windows_equal_plain_ones(void **state)
{
    (void)state;
    static const char config[] = "{\"channels\":[\"a\"],\"normalization\":{\"window\":5,\"baseline\":37,"
                                 "\"least_baseline\":3,\"stride\":1,"
                                 "\"floor\":{\"a\":0.01},\"clip\":3}}";
    series_spec *spec = NULL;
    series *s = NULL;
    shoal_err err;
    double x[600];
    float z[5], want[5];
    size_t n_windows = 0;
    unsigned seed = 1;
    assert_int_equal(series_spec_parse(&spec, config, strlen(config), "c", &err), 0);
    assert_int_equal(series_new(&s, spec, &err), 0);
    for (size_t t = 0; t < 600; t++) {
        seed = seed * 1103515245 + 12345;
        unsigned r = seed >> 16;
        x[t] = r % 7 == 0 || (t > 200 && t < 260)
                   ? NAN
                   : (double)(r % 19) / (t > 400 ? 1.7 : 19) - 5; /* many are equal */
        int rc = series_push(s, &x[t], z, &err);
        bool due = t >= 8 && plain_window(spec, x, t, 0.01, want);
        assert_int_equal(rc, due);
        if (rc == 1 && memcmp(z, want, sizeof z) != 0) fail_msg("row %zu: %g is not %g", t, z[0], want[0]);
        n_windows += due;
    }
    assert_true(n_windows > 450);
    series_free(s);
    series_spec_free(spec);
}

/* ---- features ------------------------------------------------------------------------------------------ */

/* A float tensor of a safetensors file whose header is known to be good. */
static const float *tensor(const buf *file, const char *name)
{
    uint64_t n;
    json_t *head = NULL;
    shoal_err err;
    memcpy(&n, file->data, sizeof n);
    assert_int_equal(json_parse(&head, file->data + 8, (size_t)n, name, &err), 0);
    double from = at(json_object_get(json_object_get(head, name), "data_offsets"), 0);
    json_decref(head);
    return (const void *)(file->data + 8 + n + (size_t)from);
}

static void features_equal_the_reference(void **state)
{
    (void)state;
    series_spec *spec = spec_of(DATA "trees/config.json");
    json_t *root = json_file(DATA "trees/expected.json");
    buf file = {0};
    shoal_err err;
    assert_int_equal(file_read(&file, DATA "trees/expected.safetensors", 1 << 20, &err), 0);
    const float *z = tensor(&file, "windows");
    for (size_t i = 0; i < 50; i++) {
        double f[20];
        const json_t *want = json_object_get(json_array_get(json_object_get(root, "rows"), i), "x");
        series_features(spec, z + i * 64 * 4, f);
        for (size_t k = 0; k < 20; k++)
            if (fabs(f[k] - at(want, k)) > 1e-6 * fmax(1, fabs(at(want, k))))
                fail_msg("row %zu, %s: %.9g is not %.9g", i, spec->names[k], f[k], at(want, k));
    }
    buf_done(&file);
    json_decref(root);
    series_spec_free(spec);
}

/* ---- the demo ------------------------------------------------------------------------------------------ */

enum { SENSORS = 200, WINDOWS = 150 };
static const double LAST_ALARM_S = 300; /* alarms closer than this are one (training/train_sensors.py) */

typedef struct demo {
    scorer *s;
    const json_t *checks;
    size_t n_checked, n_rows;
    double worst;
    struct {
        size_t n, t[WINDOWS];
        double p[WINDOWS];
    } of[SENSORS];
} demo;

static void check_worked_window(demo *d, const scorer_row *r)
{
    size_t i;
    json_t *c;
    json_array_foreach((json_t *)d->checks, i, c)
    {
        if (strcmp(json_string_value(json_object_get(c, "sensor")), r->item.sensor) != 0) continue;
        if ((size_t)json_integer_value(json_object_get(c, "t")) != r->item.row) continue;
        double x[20], raw[3];
        for (size_t k = 0; k < 20; k++) {
            x[k] = at(json_object_get(c, "features"), k);
            d->worst = fmax(d->worst, fabs(r->item.features[k] - x[k]) / fmax(1, fabs(x[k])));
        }
        /* From the worked features: the reference there kept z in double, and where a sensor is stuck its
         * slope is the sign of a rounding error, on which trees split. */
        forest_score(scorer_forest(d->s), x, 1, raw, NULL);
        for (size_t k = 0; k < 3; k++)
            if (fabs(raw[k] - at(json_object_get(c, "trees_raw"), k)) > 1e-12 * fmax(1, fabs(raw[k])))
                fail_msg("%s at %zu: %.17g", r->item.sensor, r->item.row, raw[k]);
        d->n_checked++;
    }
}

static int keep(const scorer_row *r, void *user, shoal_err *err)
{
    demo *d = user;
    (void)err;
    size_t sensor = (size_t)atoi(r->item.sensor + 1), n = d->of[sensor].n++;
    assert_true(sensor < SENSORS && n < WINDOWS);
    assert_int_equal(atoi(r->item.time), r->item.row);
    d->of[sensor].t[n] = r->item.row;
    d->of[sensor].p[n] = 1 - r->classes[0];
    d->n_rows++;
    check_worked_window(d, r);
    return 0;
}

/* Alarms of one sensor: each begins and ends at a score that, as the one before, passes the threshold. */
static size_t find_alarms(const demo *d, size_t sensor, double threshold, size_t (*alarm)[2])
{
    size_t n = 0;
    for (size_t i = 1; i < d->of[sensor].n; i++) {
        size_t t = d->of[sensor].t[i];
        if (d->of[sensor].p[i] <= threshold || d->of[sensor].p[i - 1] <= threshold) continue;
        if (n && (double)(t - alarm[n - 1][1]) < LAST_ALARM_S)
            alarm[n - 1][1] = t;
        else
            alarm[n][0] = alarm[n][1] = t, n++;
    }
    return n;
}

typedef struct verdict {
    size_t found, false_alarms;
    double delay[SENSORS];
} verdict;

static const json_t *fault_of(const json_t *faults, size_t sensor)
{
    char name[16];
    size_t i;
    json_t *f;
    snprintf(name, sizeof name, "m%03zu", sensor);
    json_array_foreach((json_t *)faults, i,
                       f) if (strcmp(json_string_value(json_object_get(f, "sensor")), name) == 0) return f;
    return NULL;
}

/* A fault is found by an alarm that goes on into it and begins before its end and a window. */
static void judge(const demo *d, size_t sensor, const json_t *fault, double threshold, verdict *v)
{
    size_t alarm[WINDOWS][2], n = find_alarms(d, sensor, threshold, alarm);
    size_t from = fault ? (size_t)json_integer_value(json_object_get(fault, "from_s")) : (size_t)-1;
    size_t to = fault ? (size_t)json_integer_value(json_object_get(fault, "to_s")) : 0;
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        v->false_alarms += alarm[i][0] < from;
        if (!fault || alarm[i][1] < from || alarm[i][0] >= to + 64 || found) continue;
        found = true;
        v->delay[v->found++] = alarm[i][0] > from ? (double)(alarm[i][0] - from) : 0;
    }
}

static void the_demo_s_faults_are_found_as_claimed(void **state)
{
    (void)state;
    csv *c = NULL;
    shoal_err err = {0};
    demo *d = calloc(1, sizeof *d);
    verdict v = {0};
    assert_non_null(d);
    json_t *root = json_file(DATA "demo.json");
    const json_t *faults = json_object_get(root, "faults");
    const json_t *claim = json_object_get(json_object_get(root, "at_the_models_thresholds"), "trees");
    double threshold = json_number_value(json_object_get(root, "trees_threshold"));
    d->checks = json_object_get(root, "checks");
    if (scorer_open(&d->s, DATA "trees", &err) != 0 || csv_open(&c, DATA "demo.csv.gz", &err) != 0 ||
        scorer_run(d->s, c, keep, d, &err) != 0)
        fail_msg("%s", err.message);
    assert_string_equal(scorer_label(d->s, 2), "fault");
    assert_int_equal(d->n_checked, json_array_size(d->checks));
    /* The worked windows kept z in double; features_equal_the_reference has the exact comparison. */
    if (d->worst > 3e-6) fail_msg("a feature is off by %g", d->worst);
    for (size_t i = 0; i < SENSORS; i++) judge(d, i, fault_of(faults, i), threshold, &v);
    qsort(v.delay, v.found, sizeof *v.delay, ascending);
    assert_int_equal(v.found, json_integer_value(json_object_get(claim, "found")));
    assert_int_equal(json_array_size(faults), json_integer_value(json_object_get(claim, "of")));
    assert_int_equal(v.false_alarms, json_integer_value(json_object_get(claim, "false_alarms")));
    double median = (v.delay[v.found / 2] + v.delay[(v.found - 1) / 2]) / 2;
    assert_true(median == json_number_value(json_object_get(claim, "median_delay_s")));
    csv_close(c);
    scorer_close(d->s);
    json_decref(root);
    free(d);
}

/* ---- tables and what does not fit ---------------------------------------------------------------------- */

static int keep_best(const scorer_row *r, void *user, shoal_err *err)
{
    (void)err;
    buf_printf(user, "%zu:%zu ", r->item.line, r->best);
    return 0;
}

static void a_table_of_features_is_scored_row_by_row(void **state)
{
    (void)state;
    scorer *s = NULL;
    csv *c = NULL;
    buf text = {0}, got = {0}, want = {0};
    shoal_err err = {0};
    json_t *root = json_file(DATA "trees/expected.json");
    size_t i, k;
    json_t *row, *name;
    json_array_foreach(json_object_get(root, "features"), k, name)
        buf_printf(&text, "%s%s", k ? "," : "", json_string_value(name));
    json_array_foreach(json_object_get(root, "rows"), i, row)
    {
        for (k = 0; k < 20; k++)
            buf_printf(&text, "%s%.17g", k ? "," : "\n", at(json_object_get(row, "x"), k));
        size_t best = 0;
        for (k = 1; k < 3; k++)
            best = at(json_object_get(row, "prob"), k) > at(json_object_get(row, "prob"), best) ? k : best;
        buf_printf(&want, "%zu:%zu ", i + 2, best);
    }
    assert_int_equal(scorer_open(&s, DATA "trees/model.txt.gz", &err), 0);
    assert_int_equal(csv_over(&c, text.data, text.len, "t.csv", &err), 0);
    assert_int_equal(scorer_run(s, c, keep_best, &got, &err), 0);
    assert_string_equal(got.data, want.data);
    csv_close(c);
    scorer_close(s);
    json_decref(root);
    buf_done(&text);
    buf_done(&got);
    buf_done(&want);
}

static void columns_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const char text[] = "t,sensor,vibration,temperature,current\n0,a,1,2,3\n";
    scorer *s = NULL;
    csv *c = NULL;
    shoal_err err = {0};
    buf got = {0};
    assert_int_equal(scorer_open(&s, DATA "trees", &err), 0);
    assert_int_equal(csv_over(&c, text, strlen(text), "t.csv", &err), 0);
    assert_int_equal(scorer_run(s, c, keep_best, &got, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "\"pressure\" is missing"));
    assert_non_null(strstr(err.message, "\"vibration_mean\" is missing"));
    csv_close(c);
    scorer_close(s);
}

static void spec_refuses(const char *json, int code, const char *sentence)
{
    series_spec *spec = NULL;
    shoal_err err = {0};
    int rc = series_spec_parse(&spec, json, strlen(json), "config.json", &err);
    if (rc != code || !strstr(err.message, sentence)) fail_msg("%s: %d \"%s\"", json, rc, err.message);
}

static void configurations_that_are_not_known_are_refused(void **state)
{
    (void)state;
#define NORM(more) "{\"channels\":[\"a\"],\"normalization\":{" more "}}"
    spec_refuses("{", SHOAL_EFORMAT, "not JSON");
    spec_refuses(NORM("\"method\":\"mean\""), SHOAL_EUNSUPPORTED, "\"method\" is \"mean\"");
    spec_refuses(NORM("\"window\":0"), SHOAL_EINVALID, "\"window\" is 0");
    spec_refuses(NORM("\"window\":5"), SHOAL_EINVALID, "\"baseline\" is missing");
    spec_refuses(NORM("\"window\":5,\"baseline\":5,\"least_baseline\":9"), SHOAL_EINVALID,
                 "over \"baseline\"");
    spec_refuses(NORM("\"window\":5,\"baseline\":5"), SHOAL_EINVALID, "no number for \"a\"");
    spec_refuses(NORM("\"baseline_ends_before_window\":false"), SHOAL_EUNSUPPORTED, "overlaps");

    spec_refuses("{\"channels\":[1],\"normalization\":{}}", SHOAL_EINVALID, "\"channels\" entry 0");
    spec_refuses("{\"features\":[\"a_mean\",\"a_mode\"],\"normalization\":{\"window\":5,\"baseline\":5,"
                 "\"floor\":{\"a\":1}}}",
                 SHOAL_EUNSUPPORTED, "a_mode");
    spec_refuses("{\"file\":\"../m\"}", SHOAL_EINVALID, "plain name");
}

static void a_window_model_s_spec_has_channels_alone(void **state)
{
    (void)state;
    series_spec *spec = spec_of(DATA "lstm/config.json");
    assert_int_equal(spec->n_channels, 4);
    assert_int_equal(spec->n_features, 0);
    assert_int_equal(spec->window, 64);
    assert_int_equal(spec->stride, 8);
    assert_string_equal(spec->channels[3], "pressure");
    assert_true(spec->floor[3] == 0.01 && spec->clip == 8);
    series_spec_free(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_reads_what_rfc_4180_says),
        cmocka_unit_test(csv_ends_when_nobody_waits_for_its_rows),
        cmocka_unit_test(csv_errors_name_line_and_column),
        cmocka_unit_test(csv_numbers_are_strict),
        cmocka_unit_test(running_windows_equal_plain_ones),
        cmocka_unit_test(features_equal_the_reference),
        cmocka_unit_test(the_demo_s_faults_are_found_as_claimed),
        cmocka_unit_test(a_table_of_features_is_scored_row_by_row),
        cmocka_unit_test(columns_that_do_not_fit_are_named),
        cmocka_unit_test(configurations_that_are_not_known_are_refused),
        cmocka_unit_test(a_window_model_s_spec_has_channels_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
