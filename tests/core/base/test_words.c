#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/words.h"

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

/* The words of a text, joined by spaces; a sign in brackets. */
static const char *split(const char *text, words *ret)
{
    static arena *a;
    static char out[1024];
    arena_free(a);
    a = arena_new(0);
    assert_int_equal(words_split(ret, a, text, strlen(text)), 0);
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < ret->n && n < sizeof out; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, ret->at[i].sign ? "%s[%s]" : "%s%s", i ? " " : "",
                              ret->at[i].s);
    return out;
}

static void text_comes_apart_into_words_numbers_and_signs(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", ""},
        {"  \t\n ", ""},
        {"Turn ON the light", "turn on the light"},
        {"40%", "40 [%]"},
        {"8am", "8 am"},
        {"5min", "5 min"},
        {"half-open", "half [-] open"},
        {"21,5 or 0.5", "21,5 or 0.5"},
        {"3.", "3 [.]"},
        {"1,2,3", "1,2 [,] 3"},
        {"light.kitchen", "light [.] kitchen"},
        {"bedroom_lamp", "bedroom lamp"},
        {"0x00158d0001A2b3c4 0X1F", "0x00158d0001a2b3c4 0x1f"},
        {"a4c1382f9b0e b_00158d0001", "a4c1382f9b0e b 00158d0001"},
        {"0x 0xlamp 12345678 deadbeef", "0 x 0 xlamp 12345678 deadbeef"}, /* no ids */
        {"1h30 30s5", "1 h 30 30 s 5"},
        {"don't don\xE2\x80\x99t", "don't don't"},
        {"the kids' room", "the kids room"},
        {"'quoted'", "['] quoted"},
        {"21\xC2\xB0"
         "C",
         "21 [\xC2\xB0] c"},
        {"a\xF0\x9F\x98\x80"
         "b",
         "a [\xF0\x9F\x98\x80] b"},
    };
    words w;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *got = split(rows[i].text, &w);
        if (strcmp(got, rows[i].words) != 0) fail_msg("'%s': '%s'", rows[i].text, got);
        assert_false(w.cut);
    }
}

static void words_are_folded_without_accents_and_case(void **state)
{
    words w;
    assert_string_equal(split("Küchenlicht KÜCHENLICHT Ku\xCC\x88"
                              "chenlicht",
                              &w),
                        "kuchenlicht kuchenlicht kuchenlicht");
    assert_string_equal(split("Straße café ﬁn ＬＡＭＰ", &w), "strasse cafe fin lamp");
}

static void every_word_knows_where_it_stands(void **state)
{
    const char *text = "Küche: 40 % of it";
    words w;
    split(text, &w);
    assert_int_equal(w.n, 6);
    assert_int_equal(w.at[0].begin, 0);
    assert_int_equal(w.at[0].end, 6);
    assert_true(w.at[1].glued && w.at[1].sign);
    assert_false(w.at[2].glued);
    assert_memory_equal(text + w.at[2].begin, "40", 2);
    assert_true(w.at[2].number && w.at[2].value == 40);
    assert_int_equal(w.at[5].end, strlen(text));
}

static void bytes_that_are_no_utf8_separate_words(void **state)
{
    words w;
    assert_string_equal(split("turn\xFF\xFEon", &w), "turn on");
    assert_string_equal(split("\xC3", &w), "");
    assert_string_equal(split("a\xE2\x80", &w), "a");
}

static void numbers_have_values_and_huge_ones_stay_finite(void **state)
{
    words w;
    split("007 0.25 3,5", &w);
    assert_true(w.at[0].value == 7 && w.at[1].value == 0.25 && w.at[2].value == 3.5);
    char digits[600];
    memset(digits, '9', sizeof digits);
    digits[300] = '.';
    digits[sizeof digits - 1] = 0;
    split(digits, &w);
    assert_int_equal(w.n, 1);
    assert_true(w.at[0].value == 1e15);
    memset(digits, '0', 300);
    split(digits, &w);
    assert_true(w.at[0].value > 0.99 && w.at[0].value <= 1);
}

static void more_words_than_fit_are_cut_and_said_so(void **state)
{
    buf b = {0};
    words w;
    arena *a = arena_new(0);
    for (int i = 0; i <= WORDS_MAX; i++) buf_puts(&b, "x ");
    assert_int_equal(words_split(&w, a, b.data, b.len), 0);
    assert_int_equal(w.n, WORDS_MAX);
    assert_true(w.cut);
    buf_done(&b);
    arena_free(a);
}

static void plurals_are_the_same_word(void **state)
{
    static const char *const same[][2] = {{"lamp", "lamps"},        {"lamps", "lamp"}, {"switch", "switches"},
                                          {"battery", "batteries"}, {"box", "boxes"},  {"anna", "anna's"},
                                          {"light", "light"}};
    static const char *const other[][2] = {
        {"lamp", "lamb"}, {"light", "lighter"}, {"lamp", "lampes"}, {"y", "ies"}, {"a", ""}, {"", "s"}};
    for (size_t i = 0; i < COUNT_OF(same); i++)
        if (!words_same_stem(same[i][0], same[i][1])) fail_msg("%s %s", same[i][0], same[i][1]);
    for (size_t i = 0; i < COUNT_OF(other); i++)
        if (words_same_stem(other[i][0], other[i][1])) fail_msg("%s %s", other[i][0], other[i][1]);
    assert_false(words_is_plural_of("", ""));
    assert_true(words_is_plural_of("lamps", "lamp"));
    assert_false(words_is_plural_of("lamp", "lamps"));
}

static void typing_errors_keep_the_first_letter_and_the_digits(void **state)
{
    static const char *const are[][2] = {{"kichen", "kitchen"},
                                         {"lihgt", "light"},
                                         {"thermstat", "thermostat"},
                                         {"trun", "turn"},
                                         {"fann", "fannn"}};
    static const char *const are_not[][2] = {{"ditchen", "kitchen"}, {"light", "night"}, {"lamp", "lamb"},
                                             {"fan", "van"},         {"room1", "room2"}, {"lock", "look"},
                                             {"bedroom", "bathroom"}};
    for (size_t i = 0; i < COUNT_OF(are); i++)
        if (!words_is_typo(are[i][0], are[i][1])) fail_msg("%s %s", are[i][0], are[i][1]);
    for (size_t i = 0; i < COUNT_OF(are_not); i++)
        if (words_is_typo(are_not[i][0], are_not[i][1])) fail_msg("%s %s", are_not[i][0], are_not[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_comes_apart_into_words_numbers_and_signs),
        cmocka_unit_test(words_are_folded_without_accents_and_case),
        cmocka_unit_test(every_word_knows_where_it_stands),
        cmocka_unit_test(bytes_that_are_no_utf8_separate_words),
        cmocka_unit_test(numbers_have_values_and_huge_ones_stay_finite),
        cmocka_unit_test(more_words_than_fit_are_cut_and_said_so),
        cmocka_unit_test(plurals_are_the_same_word),
        cmocka_unit_test(typing_errors_keep_the_first_letter_and_the_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
