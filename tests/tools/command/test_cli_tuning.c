/* Flags for the options of a worker: read, put over others, sent as they were given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "command/cli_tuning.h"

static const cli_command command = {"t", "", "", NULL, true};

static void parse(cli_tuning *flags, bool *ret_own, int argc, const char **argv)
{
    const cli_option own[] = {CLI_FLAG(0, "own", "of the command", ret_own), CLI_END};
    cli_args a;
    assert_int_equal(cli_parse(&a, &command, cli_tuning_behind(flags, own), 0, 0, argc, (char **)argv),
                     CLI_GO);
}

static void flags_are_put_over_what_was_said(void **state)
{
    const char *argv[] = {"t", "--own", "--max-batch", "8", "--kv-type", "q8_0", NULL};
    cli_tuning flags = {0};
    tuning t = {.max_batch = 4, .vad = 1};
    bool own = false;
    parse(&flags, &own, 6, argv);
    assert_int_equal(cli_tuning_read(&flags, &t, NULL), 0);
    assert_true(own && t.max_batch == 8 && t.vad == 1);
    assert_string_equal(tuning_kv_type_words[t.kv_type], "q8_0");
}

static void what_cannot_be_is_told_by_its_flag(void **state)
{
    const char *argv[] = {"t", "--prefill-chunk", "4", NULL};
    cli_tuning flags = {0};
    tuning t = {0};
    shoal_err err;
    parse(&flags, &(bool){false}, 3, argv);
    assert_int_equal(cli_tuning_read(&flags, &t, &err), SHOAL_EINVALID);
    assert_string_equal(err.message, "--prefill-chunk wants a whole number of 8 to 65536, not \"4\"");
}

static void a_request_says_them_as_they_were_given(void **state)
{
    const char *argv[] = {"t", "--max-batch", "8", "--max-queue", "many", "--kv-type", "q3", NULL};
    cli_tuning flags = {0};
    json_t *o = json_object();
    parse(&flags, &(bool){false}, 7, argv);
    assert_int_equal(cli_tuning_put_json(&flags, o), 0);
    assert_int_equal(json_object_size(o), 3);
    assert_int_equal(json_integer_value(json_object_get(o, "max_batch")), 8);
    assert_string_equal(json_string_value(json_object_get(o, "max_queue")), "many");
    assert_string_equal(json_string_value(json_object_get(o, "kv_type")), "q3");
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_put_over_what_was_said),
        cmocka_unit_test(what_cannot_be_is_told_by_its_flag),
        cmocka_unit_test(a_request_says_them_as_they_were_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
