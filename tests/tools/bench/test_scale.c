/* Numbers of threads compared: what --threads says, what speeds come to, and the chart of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench_scale.h"

static const char *read_threads(bench_list *l, const char *text)
{
    static shoal_err err;
    *l = (bench_list){0};
    return bench_threads_read(l, text, &err) == 0 ? NULL : err.message;
}

static void thread_counts_are_read_in_ascending_order(void **state)
{
    (void)state;
    bench_list l;
    assert_null(read_threads(&l, "8,1,4"));
    assert_int_equal(l.n, 3);
    assert_true(l.v[0] == 1 && l.v[1] == 4 && l.v[2] == 8);
    assert_null(read_threads(&l, "64,1"));
    assert_null(read_threads(&l, "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"));
    assert_int_equal(l.n, 16);
}

static void one_number_may_mean_all_cores(void **state)
{
    (void)state;
    bench_list l;
    assert_null(read_threads(&l, "0"));
    assert_true(l.n == 1 && l.v[0] == 0);
    assert_null(read_threads(&l, "64"));
    assert_true(l.n == 1 && l.v[0] == 64);
}

static void bad_thread_counts_are_named(void **state)
{
    (void)state;
    bench_list l;
    static const char *const bad[] = {"",
                                      ",",
                                      "4,,2",
                                      "1,",
                                      ",1",
                                      "0,2",
                                      "2,0",
                                      "65",
                                      "1,65",
                                      "-1",
                                      "1;2",
                                      "1, 2",
                                      "two",
                                      "18446744073709551617",
                                      "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *why = read_threads(&l, bad[i]);
        assert_non_null(why);
        assert_non_null(strstr(why, "--threads wants a whole number from 0 to 64, or up to 16 from 1 to 64"));
    }
    assert_string_equal(read_threads(&l, "1,1"), "--threads 1,1 names 1 twice");
    assert_string_equal(read_threads(&l, "4,2,04"), "--threads 4,2,04 names 4 twice");
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* 100 tokens in 200, 100 and 80 ms, with 1, 2 and 4 threads and 200, 150 and 160 ms of CPU time. */
static const bench_row row = {
    .test = "pp100", .n_tokens = 100, .cost = {.bytes = 4e6, .multiply_adds = 8e9}, .set_bytes = 1};
static const bench_scale_point times[] = {
    {.n_threads = 1,
     .ms = 200,
     .fastest_ms = 190,
     .slowest_ms = 210,
     .cores = 1,
     .cpu_ms = 200,
     .adds_limit = 8e10,
     .read_limit = 4e7},
    {.n_threads = 2,
     .ms = 100,
     .fastest_ms = 90,
     .slowest_ms = 110,
     .cores = 1.5,
     .cpu_ms = 150,
     .adds_limit = 16e10,
     .read_limit = 8e7},
    {.n_threads = 4,
     .ms = 80,
     .fastest_ms = 70,
     .slowest_ms = 90,
     .cores = 2,
     .cpu_ms = 160,
     .adds_limit = 20e10,
     .read_limit = 1e8},
};
enum { N_TIMES = sizeof times / sizeof *times };

static void speed_ups_follow_from_times(void **state)
{
    (void)state;
    bench_scale_point p[N_TIMES];
    memcpy(p, times, sizeof p);
    bench_scale_compare(&row, p, N_TIMES);
    assert_true(is_near(p[0].tokens_per_s, 500) && is_near(p[2].tokens_per_s, 1250));
    assert_true(p[0].speed_up == 1 && is_near(p[1].speed_up, 2) && is_near(p[2].speed_up, 2.5));
    assert_true(p[0].efficiency == 1 && is_near(p[1].efficiency, 1) && is_near(p[2].efficiency, 0.625));
    assert_true(is_near(p[0].cpu_s_per_token, 0.002) && is_near(p[1].cpu_s_per_token, 0.0015));
    assert_true(is_near(p[2].cpu_s_per_token, 0.0016));
    /* 4e6 bytes in 0.2 s of 4e7 a second; 8e9 multiply-adds in 0.08 s of 20e10 a second. */
    assert_true(is_near(p[0].share_of_reading, 0.5) && is_near(p[2].share_of_multiply_adds, 0.5));
}

static void without_one_thread_the_fewest_are_the_measure(void **state)
{
    (void)state;
    bench_scale_point p[2] = {times[1], times[2]};
    bench_scale_compare(&row, p, 2);
    assert_true(p[0].speed_up == 1 && is_near(p[1].speed_up, 1.25));
    assert_true(p[0].efficiency == 1 && is_near(p[1].efficiency, 0.625));
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) n++;
    return n;
}

static void draw(const bench_scale *s, int n_cores, buf *out)
{
    buf_clear(out);
    bench_scale_put_svg(s, n_cores, out);
    assert_false(out->failed);
    assert_string_equal(out->data + out->len - 7, "</svg>\n");
}

static void the_chart_has_a_line_a_test_and_panel(void **state)
{
    (void)state;
    bench_scale_test tests[2] = {{.name = "pp100"}, {.name = "tg32"}};
    bench_scale s = {.about = {.threads = {.v = {1, 2, 4}, .n = 3}, .model = "a<b&c", .type = "Q8_0"},
                     .tests = tests,
                     .n_tests = 2};
    for (size_t k = 0; k < 2; k++) {
        memcpy(tests[k].p, times, sizeof times);
        bench_scale_compare(&row, tests[k].p, N_TIMES);
    }
    buf out = {0};
    draw(&s, 2, &out);
    assert_int_equal(count(out.data, "<polyline "), 4);
    assert_int_equal(count(out.data, "<line class=\"ideal\""), 3); /* a panel each, and the legend */
    assert_int_equal(count(out.data, "<line class=\"cores\""), 2);
    assert_int_equal(count(out.data, "threads offered (logarithmic scale)"), 2);
    assert_non_null(strstr(out.data, "a&#60;b&#38;c"));
    assert_non_null(strstr(out.data, "prefers-color-scheme: dark"));
    assert_null(strstr(out.data, "nan"));
    assert_null(strstr(out.data, "inf"));
    draw(&s, 4, &out); /* nobody shares a core */
    assert_int_equal(count(out.data, "<line class=\"cores\""), 0);
    buf_done(&out);
}

/* More threads that are slower, and a test that is faster than the ideal, stay within the panels. */
static void what_is_drawn_stays_within_its_panel(void **state)
{
    (void)state;
    bench_scale_test t = {.name = "tg8"};
    memcpy(t.p, times, sizeof times);
    t.p[1].ms = 900;
    t.p[2].ms = 20;
    bench_scale_compare(&row, t.p, N_TIMES);
    bench_scale s = {.about = {.threads = {.v = {1, 2, 4}, .n = 3}, .model = "m", .type = "Q8_0"},
                     .tests = &t,
                     .n_tests = 1};
    buf out = {0};
    draw(&s, 4, &out);
    assert_non_null(strstr(out.data, ">1/8\xc3\x97<")); /* 900 ms instead of 200 */
    const char *p = out.data;
    for (int panel = 0; panel < 2; panel++) {
        float x[3], y[3];
        p = strstr(p, "points=\"");
        assert_non_null(p);
        assert_int_equal(sscanf(p, "points=\"%f,%f %f,%f %f,%f\"", &x[0], &y[0], &x[1], &y[1], &x[2], &y[2]),
                         6);
        p++;
        assert_true(x[0] < x[1] && x[1] < x[2]);
        for (int i = 0; i < 3; i++) assert_true(y[i] >= 96 && y[i] <= 96 + 260);
        assert_true(y[1] > y[0] && y[2] < y[0]);
    }
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thread_counts_are_read_in_ascending_order),
        cmocka_unit_test(one_number_may_mean_all_cores),
        cmocka_unit_test(bad_thread_counts_are_named),
        cmocka_unit_test(speed_ups_follow_from_times),
        cmocka_unit_test(without_one_thread_the_fewest_are_the_measure),
        cmocka_unit_test(the_chart_has_a_line_a_test_and_panel),
        cmocka_unit_test(what_is_drawn_stays_within_its_panel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
