/* Text in the rows of a terminal: folded at words, by display width, whatever pieces it comes in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "logging/fold.h"
#include "logging/sanitise.h"

/* `text` in pieces of n bytes. */
static const char *folded(const char *text, size_t width, size_t margin, size_t indent, size_t n)
{
    static char ret[4096];
    fold f = {.width = width, .margin = margin, .indent = indent};
    buf out = {0};
    for (size_t at = 0, all = strlen(text); at < all; at += n)
        fold_put(&f, &out, text + at, all - at < n ? all - at : n);
    fold_end(&f, &out);
    assert_false(out.failed);
    snprintf(ret, sizeof ret, "%s", out.data ? out.data : "");
    buf_done(&out);
    return ret;
}

static void rows_break_between_words(void **state)
{
    static const struct {
        const char *text, *rows;
        size_t width, margin, indent;
    } cases[] = {
        {"what is no clear request", "what is no\nclear\nrequest", 10, 0, 0},
        {"what is no clear request", "what is no clear request", 0, 0, 0},
        {"ten column and", "ten column\nand", 10, 0, 0},
        {"a b\nc", "  a b\n  c", 20, 2, 0},
        {"one two three", "  one\n    two\n    three", 8, 2, 2},
        {"  indented  line\n\n  code", "  indented  line\n\n  code", 40, 0, 0},
        {"see averyveryverylongword now", "see\naveryveryverylongword\nnow", 10, 0, 0},
        {"ends in spaces   ", "ends in spaces", 40, 0, 0},
        {"a\tb", "a       b", 40, 0, 0},
        {"\u4f60\u597d\u4e16\u754c", "\u4f60\u597d\n\u4e16\u754c", 5, 0, 0},   /* two columns each */
        {"\u4f60\u597d\uff0c\u4e16", "\u4f60\n\u597d\uff0c\n\u4e16", 5, 0, 0}, /* a comma begins no row */
        {"na\u0308chste Stra\u00dfe", "na\u0308chste\nStra\u00dfe", 8, 0, 0},  /* no column for the dots */
        {"\u00fcber allem", "\u00fcber allem", 10, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t n = 1; n < 9; n++)
            assert_string_equal(folded(cases[i].text, cases[i].width, cases[i].margin, cases[i].indent, n),
                                cases[i].rows);
}

/* What is certain is written: a reader waits for no more than one word. */
static void words_are_written_as_they_end(void **state)
{
    fold f = {.width = 80};
    buf out = {0};
    fold_put(&f, &out, "Turning on ", 11);
    assert_string_equal(out.data, "Turning on");
    fold_put(&f, &out, "Kitchen", 7);
    assert_string_equal(out.data, "Turning on");
    fold_end(&f, &out);
    assert_string_equal(out.data, "Turning on Kitchen");
    buf_done(&out);
    fold_put(&f, &out, "a\xe4\xb8", 3); /* half a character at the end of all */
    fold_end(&f, &out);
    assert_int_equal(out.len, 3);
    buf_done(&out);
}

static void a_word_without_an_end_is_not_held_for_ever(void **state)
{
    fold f = {.width = 20};
    buf out = {0};
    for (size_t i = 0; i < 1000; i++) fold_put(&f, &out, "x", 1);
    assert_true(out.len > 950);
    fold_end(&f, &out);
    assert_int_equal(out.len, 1000);
    buf_done(&out);
}

static void lines_are_sanitised_and_end(void **state)
{
    buf out = {0};
    buf_puts(&out, "kept\n");
    buf_puts(&out, "no \x1b[31mfile or folder\n of that name  ");
    fold_line(&out, 5, 12, 2);
    assert_string_equal(out.data, "kept\nno ?[31mfile\n  or folder?\n  of that\n  name\n");
    buf_done(&out);
}

static void tables_are_cut_behind_words(void **state)
{
    static const struct {
        const char *line, *rows;
        size_t width;
    } cases[] = {{"shoal ready degraded", "shoal ready degraded\n", 20},
                 {"shoal ready degraded", "shoal ready…\n", 19},
                 {"shoal ready degraded", "shoal ready…\n", 12},
                 {"shoal ready degraded", "shoal…\n", 11},
                 {"shoal ready degraded", "sh…\n", 3},
                 {"a\u202eb c", "a\\u202eb c\n", 10},
                 {"\u202e", "\\u202e\n", 0},
                 {"\u4f60\u597d\u4e16", "\u4f60\u597d\u4e16\n", 6},
                 {"\u4f60\u597d\u4e16", "\u4f60\u597d…\n", 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf out = {0};
        buf_puts(&out, cases[i].line);
        sanitise_line(&out, 0, cases[i].width);
        assert_string_equal(out.data, cases[i].rows);
        buf_done(&out);
    }
}

static void columns_are_counted_as_they_are_shown(void **state)
{
    assert_int_equal(utf8_columns("a\u00e4", 3), 2);
    assert_int_equal(utf8_columns("a\u0308", 3), 1);
    assert_int_equal(utf8_columns("\u4f60", 3), 2);
    assert_int_equal(utf8_columns("\xff\x1b\x7f", 3), 3);
    assert_int_equal(utf8_columns("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_break_between_words),
        cmocka_unit_test(words_are_written_as_they_end),
        cmocka_unit_test(a_word_without_an_end_is_not_held_for_ever),
        cmocka_unit_test(lines_are_sanitised_and_end),
        cmocka_unit_test(tables_are_cut_behind_words),
        cmocka_unit_test(columns_are_counted_as_they_are_shown),
    };
    return cmocka_run_group_tests_name("fold", tests, NULL, NULL);
}
