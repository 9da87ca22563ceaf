/* The quick reader of JSON: what it reads is what jansson reads, and what jansson refuses it leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "json/json.h"
#include "json/json_quick.h"

static json_t *slow(const char *s, size_t n)
{
    return json_loadb(s, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

/* What it says of s[n], with jansson for a witness: 1 read, 0 left alone. */
static int quick(const char *s, size_t n)
{
    json_t *a = json_quick(s, n), *b = slow(s, n);
    if (a && !(b && json_equal(a, b) && json_typeof(a) == json_typeof(b)))
        fail_msg("read otherwise than by jansson: %.*s", (int)n, s);
    int was_read = a != NULL;
    json_decref(a);
    json_decref(b);
    return was_read;
}

static const char *const READ[] = {
    "{\"model\":\"home-intent\",\"input\":\"turn off the kitchen light\"}",
    " { \"a\" : [ 1 , -2 , 0 , -0 , 123456789012345678 ] ,\r\n\t\"b\" : { } , \"c\" : [ ] } ",
    "[0.5,-1.25e3,1E+2,7e-320,0.1,3.141592653589793238462643,2e0]",
    "{\"a\\nb\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"c\":\"x\\ty\"}",
    "\"k\u00fcche \u4e2d \xf0\x9f\x92\xa1\\n\xc3\xa9\"",
    "true",
    "false",
    "null",
    "42",
    "\"\"",
    "{\"\":\"\"}",
    "[[[[[[]]]]],{\"a\":{\"b\":[{}]}}]",
};

static const char *const LEFT[] = {
    "",
    " ",
    "{",
    "}",
    "[1,]",
    "{\"a\":1,}",
    "{\"a\":1,\"a\":2}",
    "{\"a\" 1}",
    "{a:1}",
    "01",
    "-",
    "1.",
    ".5",
    "1e",
    "1e+",
    "+1",
    "1.e2",
    "1e999",
    "1234567890123456789",
    "nul",
    "nullx",
    "tru",
    "\"a",
    "\"a\nb\"",
    "\"\\x\"",
    "\"\\u0041\"",
    "\"\\",
    "1 2",
    "[1 2]",
    "\"\xff\"",
    "\"\xc0\x80\"",
    "\"\xed\xa0\x80\"",
    "'a'",
    "\x01",
    "[1]]",
    "\xef\xbb\xbf{}",
};

static void what_is_common_is_read_as_jansson_reads_it(void **state)
{
    for (size_t i = 0; i < sizeof READ / sizeof *READ; i++)
        if (!quick(READ[i], strlen(READ[i]))) fail_msg("not read: %s", READ[i]);
}

static void what_is_rare_or_wrong_is_left_to_jansson(void **state)
{
    for (size_t i = 0; i < sizeof LEFT / sizeof *LEFT; i++)
        if (quick(LEFT[i], strlen(LEFT[i]))) fail_msg("read: %s", LEFT[i]);
    assert_int_equal(quick("\"\0\"", 3), 0);
    assert_null(json_quick(NULL, 0));
}

static void depth_is_bounded(void **state)
{
    char text[2 * (JSON_DEPTH_MAX + 1)];
    for (size_t n = JSON_DEPTH_MAX; n <= JSON_DEPTH_MAX + 1; n++) {
        memset(text, '[', n);
        memset(text + n, ']', n);
        assert_int_equal(quick(text, 2 * n), n == JSON_DEPTH_MAX);
    }
}

/* Bytes changed, dropped and doubled: whatever is still read is read alike. */
static void damaged_texts_are_read_as_jansson_reads_them(void **state)
{
    static const char bytes[] = "{}[]\",:\\0123456789.eE+-tfn \n\xc3\xa9\xff\x01u";
    size_t n_read = 0;
    for (uint64_t k = 0; k < 60000; k++) {
        const char *from = READ[rng_mix(k) % (sizeof READ / sizeof *READ)];
        size_t n = strlen(from), edits = 1 + rng_mix(k + 1) % 3;
        char *text = malloc(n + edits);
        assert_non_null(text);
        memcpy(text, from, n);
        for (size_t i = 0; i < edits && n > 0; i++) {
            uint64_t draw = rng_mix(k * 8 + i + 2);
            size_t at = draw % n, kind = draw >> 32 & 3;
            if (kind == 0) memmove(text + at, text + at + 1, --n - at);
            if (kind == 1) memmove(text + at + 1, text + at, n++ - at);
            if (kind > 1) text[at] = bytes[(draw >> 40) % (sizeof bytes - 1)];
        }
        n_read += (size_t)quick(text, n);
        free(text);
    }
    assert_true(n_read > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_common_is_read_as_jansson_reads_it),
        cmocka_unit_test(what_is_rare_or_wrong_is_left_to_jansson),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(damaged_texts_are_read_as_jansson_reads_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
