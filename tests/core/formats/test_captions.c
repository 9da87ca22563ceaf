#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "formats/captions.h"
#include "json/json.h"

#define TEXT(s) .text = s, .len = sizeof s - 1

static void check(captions_format f, const transcript *t, const char *want)
{
    buf b = {0};
    assert_int_equal(captions_write(&b, f, t), 0);
    assert_string_equal(b.data, want);
    buf_done(&b);
}

static const uint32_t IDS[] = {374, 295};
static const caption TWO[] = {
    {.start_ms = 0, .end_ms = 1200, TEXT(" Turn on"), .ids = IDS, .n_ids = 2, .avg_logprob = -0.25},
    {.start_ms = 3599999, .end_ms = 36000007, TEXT(" the \"light\".\n"), .seek = 300}};

static void every_format_is_written(void **state)
{
    transcript t = {.language = "english", .duration_ms = 8470, .segments = TWO, .n_segments = 2};
    check(CAPTIONS_JSON, &t,
          "{\"text\":\"Turn on the \\\"light\\\".\",\"usage\":{\"type\":\"duration\",\"seconds\":8.470}}");
    check(CAPTIONS_TEXT, &t, "Turn on the \"light\".\n");
    check(CAPTIONS_SRT, &t,
          "1\n00:00:00,000 --> 00:00:01,200\nTurn on\n\n"
          "2\n00:59:59,999 --> 10:00:00,007\nthe \"light\".\n\n");
    check(CAPTIONS_VTT, &t,
          "WEBVTT\n\n00:00:00.000 --> 00:00:01.200\nTurn on\n\n"
          "00:59:59.999 --> 10:00:00.007\nthe \"light\".\n\n");
    check(CAPTIONS_VERBOSE_JSON, &t,
          "{\"task\":\"transcribe\",\"language\":\"english\",\"duration\":8.470,"
          "\"text\":\"Turn on the \\\"light\\\".\",\"segments\":["
          "{\"id\":0,\"seek\":0,\"start\":0.000,\"end\":1.200,\"text\":\" Turn on\",\"tokens\":[374,295],"
          "\"temperature\":0,\"avg_logprob\":-0.25,\"compression_ratio\":0,\"no_speech_prob\":0},"
          "{\"id\":1,\"seek\":300,\"start\":3599.999,\"end\":36000.007,\"text\":\" the "
          "\\\"light\\\".\\n\",\"tokens\":[],"
          "\"temperature\":0,\"avg_logprob\":0,\"compression_ratio\":0,\"no_speech_prob\":0}],\"usage\":{"
          "\"type\":\"duration\",\"seconds\":8.470}}");
}

static void nothing_said_is_a_valid_answer(void **state)
{
    static const caption blank = {.end_ms = 10, TEXT(" \n")};
    transcript t = {.translated = true, .segments = &blank, .n_segments = 1}, none = {0};
    check(CAPTIONS_JSON, &none, "{\"text\":\"\",\"usage\":{\"type\":\"duration\",\"seconds\":0.000}}");
    check(CAPTIONS_TEXT, &t, "\n");
    check(CAPTIONS_VTT, &none, "WEBVTT\n\n");
    check(CAPTIONS_VTT, &t, "WEBVTT\n\n");
    check(CAPTIONS_VERBOSE_JSON, &none,
          "{\"task\":\"transcribe\",\"language\":null,\"duration\":0.000,\"text\":\"\",\"segments\":[],"
          "\"usage\":{\"type\":\"duration\",\"seconds\":0.000}}");
    buf b = {0};
    assert_int_equal(captions_write(&b, CAPTIONS_SRT, &t), 0);
    assert_int_equal(b.len, 0);
    buf_done(&b);
}

static void a_text_of_its_own_goes_first(void **state)
{
    transcript t = {.text = "  whole\ntext ", .text_len = 13, .segments = TWO, .n_segments = 2};
    check(CAPTIONS_TEXT, &t, "whole\ntext\n");
    check(CAPTIONS_JSON, &t,
          "{\"text\":\"whole\\ntext\",\"usage\":{\"type\":\"duration\",\"seconds\":0.000}}");
}

static void no_text_forges_a_cue(void **state)
{
    static const caption evil = {.start_ms = -5,
                                 .end_ms = -9,
                                 TEXT("a\n\n2\r00:00:01,000 --> 00:00:02,000\n<b>&\xE2\x80\xA8\xC2\x85x")};
    transcript t = {.segments = &evil, .n_segments = 1};
    check(CAPTIONS_SRT, &t,
          "1\n00:00:00,000 --> 00:00:00,000\na  2 00:00:01,000 -- > 00:00:02,000 <b>&  x\n\n");
    check(CAPTIONS_VTT, &t,
          "WEBVTT\n\n00:00:00.000 --> 00:00:00.000\n"
          "a  2 00:00:01,000 --&gt; 00:00:02,000 &lt;b&gt;&amp;  x\n\n");
}

static void arrows_of_any_length_are_broken(void **state)
{
    static const caption arrows = {TEXT("--> ----> ->")};
    transcript t = {.segments = &arrows, .n_segments = 1};
    check(CAPTIONS_SRT, &t, "1\n00:00:00,000 --> 00:00:00,000\n-- > ---- > ->\n\n");
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    static const caption torn = {TEXT("caf\xC3"), .avg_logprob = -1 / 0.0, .temperature = 0.0 / 0.0};
    transcript t = {.segments = &torn, .n_segments = 1};
    check(CAPTIONS_TEXT, &t, "caf\xEF\xBF\xBD\n");
    check(CAPTIONS_SRT, &t, "1\n00:00:00,000 --> 00:00:00,000\ncaf\xEF\xBF\xBD\n\n");
    buf b = {0};
    json_t *j = NULL;
    assert_int_equal(captions_write(&b, CAPTIONS_VERBOSE_JSON, &t), 0);
    assert_int_equal(json_parse(&j, b.data, b.len, "answer", NULL), 0);
    json_decref(j);
    buf_done(&b);
}

static void formats_have_names(void **state)
{
    for (int i = 0; i < CAPTIONS_COUNT; i++) {
        captions_format f = CAPTIONS_COUNT;
        assert_true(captions_parse(captions_name((captions_format)i), &f));
        assert_int_equal(f, i);
        assert_non_null(strchr(captions_type(f), '/'));
    }
    captions_format f = CAPTIONS_VTT;
    assert_false(captions_parse("SRT", &f));
    assert_int_equal(f, CAPTIONS_VTT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_is_written),
        cmocka_unit_test(nothing_said_is_a_valid_answer),
        cmocka_unit_test(a_text_of_its_own_goes_first),
        cmocka_unit_test(no_text_forges_a_cue),
        cmocka_unit_test(arrows_of_any_length_are_broken),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced),
        cmocka_unit_test(formats_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
