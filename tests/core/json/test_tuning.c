/* The options of a worker: as texts and back, what is refused, and what is put over what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "json/tuning.h"

static void every_value_goes_to_text_and_back(void **state)
{
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        const tuning_row *r = &tuning_rows[i];
        const char *const numbers[] = {"17", NULL}, *const *values = r->words ? r->words + 1 : numbers;
        for (; *values; values++) {
            tuning t = {0}, again = {0};
            char text[TUNING_TEXT_BYTES], number[12];
            assert_int_equal(tuning_set(&t, r->key, *values, NULL), 0);
            assert_string_equal(tuning_value(&t, i, number), *values);
            tuning_format(&t, text);
            assert_true(strncmp(text, r->key, strlen(r->key)) == 0 && strchr(text, '='));
            assert_int_equal(tuning_parse(&again, text, NULL), 0);
            assert_memory_equal(&t, &again, sizeof t);
        }
    }
}

static void what_is_not_said_is_no_text(void **state)
{
    tuning t = {0};
    char text[TUNING_TEXT_BYTES], number[12];
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        assert_string_equal(tuning_value(&t, i, number), "");
        if (tuning_rows[i].words)
            assert_int_equal(tuning_set(&t, tuning_rows[i].key, tuning_rows[i].words[0], NULL), 0);
    }
    tuning_format(&t, text);
    assert_string_equal(text, "");
    assert_int_equal(tuning_parse(&t, " max_batch=4  kv_type=q8_0 ", NULL), 0);
    tuning_format(&t, text);
    assert_string_equal(text, "max_batch=4 kv_type=q8_0");
}

static void all_options_together_fit_the_text(void **state)
{
    tuning t = {0}, again = {0};
    char text[TUNING_TEXT_BYTES];
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        unsigned *at = (unsigned *)(void *)((char *)&t + tuning_rows[i].at);
        *at = tuning_rows[i].words ? 1 : tuning_rows[i].most;
    }
    tuning_format(&t, text);
    assert_true(strlen(text) + 1 < sizeof text);
    assert_int_equal(tuning_parse(&again, text, NULL), 0);
    assert_memory_equal(&t, &again, sizeof t);
}

static void what_cannot_be_is_refused_and_changes_nothing(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"kv_type=q4", "kv_type wants auto, f32, f16 or q8_0, not \"q4\""},
        {"kv_type=", "not \"\""},
        {"max_batch=0", "max_batch wants a whole number of 1 to 1024, not \"0\""},
        {"max_batch=1025", "of 1 to 1024"},
        {"max_batch=4x", "not \"4x\""},
        {"max_batch=-1", "not \"-1\""},
        {"kind=fast", "\"kind\" is no option of a model"},
        {"max_batch", "\"max_batch\" is no KEY=VALUE"},
        {"max_batch=4 =3", "no option of a model"},
        {"max_batch=4444444444444444444444444444444444444444444444444444444444444444444", "is no KEY=VALUE"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tuning t = {.max_batch = 7};
        shoal_err err;
        assert_int_equal(tuning_parse(&t, rows[i].text, &err), SHOAL_EINVALID);
        if (!strstr(err.message, rows[i].why)) fail_msg("%s: %s", rows[i].text, err.message);
        assert_int_equal(t.max_batch, 7);
    }
}

static void what_is_said_goes_over_what_was_there(void **state)
{
    tuning t = {0}, over = {0};
    assert_int_equal(tuning_parse(&t, "max_batch=4 drafts=off", NULL), 0);
    assert_int_equal(tuning_parse(&over, "max_batch=8 vad=off", NULL), 0);
    assert_false(tuning_includes(&t, &over));
    tuning_override(&t, &over);
    assert_true(tuning_includes(&t, &over));
    assert_false(tuning_includes(&over, &t));
    assert_true(t.max_batch == 8 && t.drafts == 1 && t.vad == 1);
}

static void json_has_numbers_and_words(void **state)
{
    tuning t = {0};
    json_t *o = json_object();
    assert_int_equal(tuning_parse(&t, "max_batch=8 regroup=s8_128", NULL), 0);
    assert_int_equal(tuning_put_json(o, &t), 0);
    assert_int_equal(json_object_size(o), 2);
    assert_int_equal(json_integer_value(json_object_get(o, "max_batch")), 8);
    assert_string_equal(json_string_value(json_object_get(o, "regroup")), "s8_128");
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_goes_to_text_and_back),
        cmocka_unit_test(what_is_not_said_is_no_text),
        cmocka_unit_test(all_options_together_fit_the_text),
        cmocka_unit_test(what_cannot_be_is_refused_and_changes_nothing),
        cmocka_unit_test(what_is_said_goes_over_what_was_there),
        cmocka_unit_test(json_has_numbers_and_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
