/* What json_parse takes and refuses, and what its errors say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "json/json.h"

static void json_integers_have_any_size(void **state)
{
    static const struct {
        const char *text;
        double real; /* 0: it is an integer */
    } cases[] = {{"{\"u\":\"\\u00fc 99999999999999999999\",\"n\":1000000000000000019884624838656}", 1e30},
                 {"{\"u\":\"\\u00fc\",\"n\":18446744073709551615,\"m\":[-9223372036854775809]}", 0x1p64},
                 {"{\"n\":-9223372036854775809}", -0x1p63},
                 {"{\"n\":9223372036854775808}", 0x1p63},
                 {"{\"n\":9223372036854775807}", 0},
                 {"{\"n\":-9223372036854775808}", 0},
                 {"{\"m\":99999999999999999999,\"n\":0.99999999999999999999999999}", 1},
                 {"{\"m\":99999999999999999999,\"n\":99999999999999999999e-20}", 1},
                 {"{\"m\":99999999999999999999,\"n\":99999999999999999999.5}", 1e20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *v = NULL;
        shoal_err err = {0};
        if (json_parse(&v, cases[i].text, strlen(cases[i].text), "body", &err) != 0)
            fail_msg("%s: %s", cases[i].text, err.message);
        const json_t *n = json_object_get(v, "n");
        assert_int_equal(json_is_real(n), cases[i].real != 0);
        if (cases[i].real != 0 && json_real_value(n) != cases[i].real)
            fail_msg("%s: %.17g", cases[i].text, json_real_value(n));
        json_decref(v);
    }
    static const char *const wrong[] = {"[099999999999999999999]", "[--99999999999999999999]",
                                        "[1e999,99999999999999999999]", "[99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_t *v = NULL;
        shoal_err err = {0};
        assert_int_equal(json_parse(&v, wrong[i], strlen(wrong[i]), "body", &err), SHOAL_EFORMAT);
    }
}

static void json_with_a_nul_byte_is_none(void **state)
{
    static const char text[] = "{\"x\":1\0}";
    json_t *v = NULL;
    shoal_err err = {0};
    assert_int_equal(json_parse(&v, text, sizeof text - 1, "body", &err), SHOAL_EFORMAT);
    assert_string_equal(err.message, "body: not JSON: it contains a NUL byte");
}

static void json_says_where_it_is_wrong(void **state)
{
    shoal_err err = {0};
    json_t *v = NULL;
    assert_int_equal(json_parse(&v, "{\"a\":1,\"a\":2}", 13, "body", &err), SHOAL_EFORMAT);
    char deep[300];
    memset(deep, '[', sizeof deep);
    assert_int_equal(json_parse(&v, deep, sizeof deep, "body", &err), SHOAL_ELIMIT);
    for (size_t n = JSON_DEPTH_MAX + 1; n <= JSON_OWN_DEPTH_MAX + 1;
         n += JSON_OWN_DEPTH_MAX - JSON_DEPTH_MAX) {
        char own[2 * (JSON_OWN_DEPTH_MAX + 1)];
        memset(own, '[', n);
        memset(own + n, ']', n);
        int rc = json_parse_own(&v, own, 2 * n, "an answer", &err);
        assert_int_equal(rc, n > JSON_OWN_DEPTH_MAX ? SHOAL_ELIMIT : 0);
        if (rc == 0) json_decref(v);
    }
    assert_int_equal(json_parse(&v, "{\"n\":3,\"s\":\"x\",\"z\":null}", 24, "body", &err), 0);
    int64_t n = 7;
    const char *s = NULL;
    assert_int_equal(json_get_int(v, "n", 0, 2, &n, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "\"n\""));
    assert_int_equal(n, 7);
    assert_int_equal(json_get_int(v, "z", 0, 2, &n, &err), 0);
    assert_int_equal(n, 7);
    assert_int_equal(json_get_str(v, "s", &s, &err), 0);
    assert_string_equal(s, "x");
    json_decref(v);
    buf b = {0};
    json_put_string(&b, "a\"\\\n\x01\xFF", 6);
    assert_string_equal(b.data, "\"a\\\"\\\\\\n\\u0001\xEF\xBF\xBD\"");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_integers_have_any_size),
        cmocka_unit_test(json_with_a_nul_byte_is_none),
        cmocka_unit_test(json_says_where_it_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
