#include "helper.h"
#include "signal/vad.h"

static double number_at(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void check_case(const json_t *o, size_t index)
{
    const json_t *p64 = json_object_get(o, "p64"), *want = json_object_get(o, "segments");
    size_t n = json_array_size(p64), n_seg = 0;
    float *p = calloc(n, sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = (float)json_number_value(json_array_get(p64, i)) / 64;
    vad_options opt = {.rate = (uint32_t)number_at(o, "rate"),
                       .threshold = number_at(o, "threshold"),
                       .end_threshold = number_at(o, "end_threshold"),
                       .min_speech_ms = number_at(o, "min_speech_ms"),
                       .min_silence_ms = number_at(o, "min_silence_ms"),
                       .max_speech_ms = number_at(o, "max_speech_ms"),
                       .min_cut_ms = number_at(o, "min_cut_ms"),
                       .pad_ms = number_at(o, "pad_ms")};
    opt.window = opt.rate == 8000 ? 256 : 512;
    vad_segment *seg = calloc(n / 2 + 1, sizeof *seg);
    shoal_err err = {0};
    if (vad_segments(p, n, (size_t)number_at(o, "n_samples"), &opt, seg, n / 2 + 1, &n_seg, &err) != 0)
        fail_msg("case %zu: %s", index, err.message);
    if (n_seg != json_array_size(want)) fail_msg("case %zu: %zu stretches", index, n_seg);
    for (size_t i = 0; i < n_seg; i++) {
        const json_t *s = json_array_get(want, i);
        size_t start = (size_t)json_integer_value(json_array_get(s, 0));
        size_t end = (size_t)json_integer_value(json_array_get(s, 1));
        if (seg[i].start != start || seg[i].end != end)
            fail_msg("case %zu stretch %zu: %zu to %zu, not %zu to %zu", index, i, seg[i].start, seg[i].end,
                     start, end);
    }
    free(seg);
    free(p);
}

static void stretches_are_the_references(void **state)
{
    json_t *cases = NULL;
    assert_int_equal(json_parse_file(&cases, DATA("vad.json"), 1 << 20, NULL), 0);
    assert_true(json_array_size(cases) >= 60);
    for (size_t i = 0; i < json_array_size(cases); i++) check_case(json_array_get(cases, i), i);
    json_decref(cases);
}

static void room_that_is_too_small_is_said(void **state)
{
    float p[90] = {0};
    for (size_t i = 0; i < 90; i++) p[i] = i / 15 % 2 ? 1 : 0;
    vad_segment seg[3] = {{0}};
    size_t n = 0;
    shoal_err err = {0};
    assert_int_equal(vad_segments(p, 90, 90 * 512, NULL, seg, 2, &n, &err), SHOAL_EFULL);
    assert_int_equal(n, 3);
    assert_int_equal(seg[0].start, 15 * 512 - 480);
    assert_int_equal(seg[1].start, 45 * 512 - 480);
    assert_int_equal(seg[2].start, 0);
    assert_int_equal(vad_segments(p, 90, 90 * 512, NULL, seg, 3, &n, &err), 0);
    assert_int_equal(seg[2].end, 90 * 512);
    assert_int_equal(vad_segments(p, 0, 0, NULL, NULL, 0, &n, &err), 0);
    assert_int_equal(n, 0);
}

static void options_out_of_range_are_refused(void **state)
{
    static const vad_options bad[] = {
        {.threshold = 1.5},    {.threshold = -1}, {.end_threshold = 0.6},         {.end_threshold = -0.1},
        {.max_speech_ms = 50}, {.pad_ms = 1e10},  {.min_speech_ms = (double)NAN}, {.threshold = (double)NAN}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        float p = 1;
        vad_segment seg;
        size_t n = 77;
        vad_tracker t;
        shoal_err err = {0};
        assert_int_equal(vad_segments(&p, 1, 512, &bad[i], &seg, 1, &n, &err), SHOAL_EINVALID);
        assert_int_equal(vad_tracker_init(&t, &bad[i], &err), SHOAL_EINVALID);
        assert_int_equal(n, 77);
        assert_true(strlen(err.message) > 20);
    }
    float p[2] = {1, 1};
    vad_segment seg[2];
    size_t n;
    assert_int_equal(vad_segments(p, 2, 1025, NULL, seg, 2, &n, NULL), SHOAL_EINVALID);
    assert_int_equal(vad_segments(p, 2, 512, NULL, seg, 2, &n, NULL), SHOAL_EINVALID);
}

static void none_is_not_the_default(void **state)
{
    float p[8] = {0, 0, 1, 0, 0, 0, 0, 0};
    vad_segment seg[5];
    size_t n;
    assert_int_equal(vad_segments(p, 8, 8 * 512, NULL, seg, 5, &n, NULL), 0);
    assert_int_equal(n, 0); /* one window is too short by default */
    vad_options o = {.min_speech_ms = -1, .pad_ms = -1, .min_silence_ms = -1};
    assert_int_equal(vad_segments(p, 8, 8 * 512, &o, seg, 5, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(seg[0].start, 1024);
    assert_int_equal(seg[0].end, 1536);
}

static void a_tracker_says_start_and_end_as_they_come(void **state)
{
    static const float p[] = {0.1f, 0.6f, 0.4f, 0.9f, 0.3f, 0.4f, 0.7f,
                              0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.8f};
    static const vad_event want[] = {VAD_NOTHING, VAD_START,   VAD_NOTHING, VAD_NOTHING, VAD_NOTHING,
                                     VAD_NOTHING, VAD_NOTHING, VAD_NOTHING, VAD_NOTHING, VAD_NOTHING,
                                     VAD_NOTHING, VAD_END,     VAD_NOTHING, VAD_START};
    vad_tracker t;
    uint64_t at[3] = {0}, sample = 0;
    size_t n = 0;
    assert_int_equal(vad_tracker_init(&t, NULL, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(p); i++) {
        assert_int_equal(vad_tracker_push(&t, p[i], &sample), want[i]);
        if (want[i] != VAD_NOTHING) at[n++] = sample;
    }
    assert_int_equal(at[0], 512 - 480);
    assert_int_equal(at[1], 7 * 512 + 480);
    assert_int_equal(at[2], 13 * 512 - 480);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stretches_are_the_references),
        cmocka_unit_test(room_that_is_too_small_is_said),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(none_is_not_the_default),
        cmocka_unit_test(a_tracker_says_start_and_end_as_they_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
