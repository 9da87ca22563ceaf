/* json_put writes what jansson writes, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"

static uint32_t state = 1;

static uint32_t draw(uint32_t n)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
}

/* Of plain letters, of what is escaped, and of characters of two to four bytes. */
static json_t *draw_text(void)
{
    static const char *const PIECES[] = {"a",
                                         "abcdefgh",
                                         "\"",
                                         "\\",
                                         "/",
                                         "\b",
                                         "\f",
                                         "\n",
                                         "\r",
                                         "\t",
                                         "\x01",
                                         "\x1f",
                                         " ",
                                         "\x7f",
                                         "\xc3\xa9",
                                         "\xe2\x98\x83",
                                         "\xf0\x9f\x8c\x8a",
                                         "!#[]"};
    buf b = {0};
    for (uint32_t n = draw(40); n > 0; n--) {
        if (draw(20) == 0)
            buf_putc(&b, '\0');
        else
            buf_puts(&b, PIECES[draw(sizeof PIECES / sizeof *PIECES)]);
    }
    json_t *v = json_stringn(b.data ? b.data : "", b.len);
    buf_done(&b);
    return v;
}

static json_t *draw_real(void)
{
    static const double REALS[] = {0,         -0.0,          1,    0.1, 1e20, 1e-5, 1.5e300,
                                   -2.5e-300, 123456789.125, 1e16, 1e15};
    return json_real(draw(2) ? REALS[draw(sizeof REALS / sizeof *REALS)] : (double)draw(1 << 20) / 7919);
}

static json_t *draw_value(int depth)
{
    json_t *v;
    switch (draw(depth ? 9 : 7)) {
    case 0: return json_true();
    case 1: return json_false();
    case 2: return json_null();
    case 3: return json_integer((json_int_t)draw(1 << 20) * (draw(2) ? 1 : -(json_int_t)(1u << 30)));
    case 4: return draw_real();
    case 5:
    case 6: return draw_text();
    case 7:
        v = json_array();
        for (uint32_t n = draw(6); n > 0; n--) json_array_append_new(v, draw_value(depth - 1));
        return v;
    default:
        v = json_object();
        for (uint32_t n = draw(6); n > 0; n--) {
            json_t *key = draw_text();
            json_object_setn_new(v, json_string_value(key), json_string_length(key), draw_value(depth - 1));
            json_decref(key);
        }
        return v;
    }
}

static void values_are_written_as_jansson_writes_them(void **state_of_test)
{
    static const int DIGITS[] = {17, 15, 9, 6};
    for (int i = 0; i < 20000; i++) {
        json_t *v = draw_value(4);
        int digits = DIGITS[i % 4];
        char *wanted = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        buf got = {0};
        assert_int_equal(json_put_digits(&got, v, digits), 0);
        assert_int_equal(got.len, strlen(wanted));
        assert_memory_equal(got.data, wanted, got.len);
        buf_done(&got);
        free(wanted);
        json_decref(v);
    }
}

static void each_byte_is_escaped_wherever_it_stands(void **state_of_test)
{
    for (int c = 0; c < 128; c++)
        for (size_t at = 0; at < 24; at++) {
            char text[24];
            memset(text, 'x', sizeof text);
            text[at] = (char)c;
            json_t *v = json_stringn(text, sizeof text);
            char *wanted = json_dumps(v, JSON_ENCODE_ANY);
            buf got = {0};
            assert_int_equal(json_put(&got, v), 0);
            assert_string_equal(got.data, wanted);
            buf_done(&got);
            free(wanted);
            json_decref(v);
        }
}

static void no_value_is_a_failure(void **state_of_test)
{
    buf got = {0};
    assert_int_not_equal(json_put(&got, NULL), 0);
    buf_done(&got);
}

static void members_are_written_with_commas_where_they_are_due(void **state_of_test)
{
    static const char *const LIST[] = {"a", "b\"c"};
    buf got = {0}, text = {0};
    buf_puts(&text, "t");
    buf_puts(&got, "data: {");
    json_put_text(&got, "s", "x\n");
    json_put_text(&got, "none", NULL);
    json_put_filled(&got, "empty", "");
    json_put_filled(&got, "nothing", NULL);
    json_put_filled(&got, "f", "y");
    buf_printf(&got, ",\"n\":%d,", 3);
    json_put_bool(&got, "yes", true);
    json_put_bool(&got, "no", false);
    json_put_texts(&got, "l", LIST, 2);
    json_put_texts(&got, "l0", NULL, 0);
    json_put_buf(&got, "b", &text);
    json_put_key(&got, "o");
    buf_putc(&got, '{');
    json_put_text_n(&got, "k", "vw", 1);
    buf_puts(&got, "}}");
    assert_false(got.failed);
    assert_string_equal(got.data,
                        "data: {\"s\":\"x\\n\",\"none\":\"\",\"f\":\"y\",\"n\":3,\"yes\":true,\"no\":false,"
                        "\"l\":[\"a\",\"b\\\"c\"],\"l0\":[],\"b\":\"t\",\"o\":{\"k\":\"v\"}}");
    text.failed = true;
    json_put_buf(&got, "b", &text);
    assert_true(got.failed);
    buf_done(&got);
    buf_done(&text);
}

static void members_that_are_missing_are_empty(void **state_of_test)
{
    json_t *o = json_pack("{s:s, s:f, s:i, s:n}", "s", "x", "d", 1.5, "i", 7, "n");
    assert_string_equal(json_text_of(o, "s"), "x");
    assert_string_equal(json_text_of(o, "i"), "");
    assert_string_equal(json_text_of(NULL, "s"), "");
    assert_true(json_number_of(o, "d") == 1.5 && json_number_of(o, "i") == 7 && json_number_of(o, "s") == 0);
    assert_true(json_integer_of(o, "i") == 7 && json_integer_of(o, "d") == 0 && json_integer_of(o, "z") == 0);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_written_as_jansson_writes_them),
        cmocka_unit_test(each_byte_is_escaped_wherever_it_stands),
        cmocka_unit_test(no_value_is_a_failure),
        cmocka_unit_test(members_are_written_with_commas_where_they_are_due),
        cmocka_unit_test(members_that_are_missing_are_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
