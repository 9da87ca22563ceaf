/* Sampling defaults: as text and from JSON and back, what is put over what, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "json/sampling.h"

static sampling_defaults from(const char *text)
{
    sampling_defaults d;
    shoal_err err = {0};
    if (sampling_parse(&d, text, &err) != 0) fail_msg("%s: %s", text, err.message);
    return d;
}

static void text_gives_the_same_back(void **state)
{
    static const char *const TEXTS[] = {"", "temperature=0", "temperature=0.7,top_p=0.9",
                                        "top_k=1000000,repetition_penalty=1.05",
                                        "temperature=2,top_k=40,top_p=0.95,min_p=0.05,repetition_penalty=1.1,"
                                        "presence_penalty=-2,frequency_penalty=-0.5"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        char back[SAMPLING_TEXT_BYTES];
        sampling_defaults d = from(TEXTS[i]);
        sampling_format(&d, back);
        assert_string_equal(back, TEXTS[i]);
    }
    sampling_defaults longest =
        from("temperature=0.123456789,top_k=999999,top_p=0.987654321,min_p=0.000000001,"
             "repetition_penalty=1.234567891,presence_penalty=-1.234567891,"
             "frequency_penalty=-1.987654321");
    char text[SAMPLING_TEXT_BYTES];
    sampling_format(&longest, text);
    assert_true(from(text).presence_penalty == longest.presence_penalty);
    assert_true(from(text).min_p == longest.min_p);
}

static void what_cannot_be_is_named(void **state)
{
    static const struct {
        const char *text, *named;
    } BAD[] = {{"temperature=3", "temperature is 3"},
               {"temp=1", "\"temp\" is no sampling field"},
               {"top_k=1.5", "whole number"},
               {"top_p", "top_p wants a number"},
               {"top_p=", "top_p wants a number"},
               {"top_p=nan", "top_p wants a number"},
               {"repetition_penalty=0.001", "0.01 to 10"},
               {",", "is no sampling field"}};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        sampling_defaults d = {.said = 77};
        shoal_err err = {0};
        assert_int_equal(sampling_parse(&d, BAD[i].text, &err), SHOAL_EINVALID);
        if (!strstr(err.message, BAD[i].named)) fail_msg("%s: %s", BAD[i].text, err.message);
        assert_int_equal(d.said, 77);
    }
}

static void json_is_read_alike(void **state)
{
    static const struct {
        const char *json, *text, *named; /* text NULL: refused */
    } CASES[] = {{"{\"temperature\": 0, \"top_k\": 5}", "temperature=0,top_k=5", NULL},
                 {"null", "", NULL},
                 {"{}", "", NULL},
                 {"[]", NULL, "an object"},
                 {"{\"temperature\": \"0\"}", NULL, "a number"},
                 {"{\"seed\": 1}", NULL, "no \"seed\""},
                 {"{\"min_p\": 2}", NULL, "min_p is 2"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        json_t *o = json_loads(CASES[i].json, JSON_DECODE_ANY, NULL);
        sampling_defaults d;
        shoal_err err = {0};
        char text[SAMPLING_TEXT_BYTES];
        int rc = sampling_from_json(&d, o, &err);
        json_decref(o);
        assert_int_equal(rc, CASES[i].text ? 0 : SHOAL_EINVALID);
        if (rc == 0) {
            sampling_format(&d, text);
            assert_string_equal(text, CASES[i].text);
        } else if (!strstr(err.message, CASES[i].named)) {
            fail_msg("%s: %s", CASES[i].json, err.message);
        }
    }
}

static void what_is_said_later_wins_field_by_field(void **state)
{
    sampling_defaults d = SAMPLING_LAST, file = from("temperature=0.6,top_p=0.8"),
                      own = from("temperature=0");
    char text[SAMPLING_TEXT_BYTES];
    double v = 0;
    sampling_override(&d, &file);
    sampling_override(&d, &own);
    sampling_format(&d, text);
    assert_string_equal(text,
                        "temperature=0,top_k=0,top_p=0.8,min_p=0.05,repetition_penalty=1,presence_penalty=0,"
                        "frequency_penalty=0");
    assert_true(sampling_get(&file, "top_p", &v) && v == (double)0.8f);
    assert_false(sampling_get(&file, "top_k", &v) || sampling_get(&file, "seed", &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_gives_the_same_back),
        cmocka_unit_test(what_cannot_be_is_named),
        cmocka_unit_test(json_is_read_alike),
        cmocka_unit_test(what_is_said_later_wins_field_by_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
