/* Texts without the white space around them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/trim.h"

static void only_outer_space_is_left_out(void **state)
{
    (void)state;
    assert_true(trim_equal(" \tIs it so?\r\n", "Is it so?"));
    assert_true(trim_equal("", " \n"));
    assert_false(trim_equal("Is  it so?", "Is it so?"));
    assert_false(trim_equal("Is it so", "Is it so?"));
    assert_false(trim_equal("a", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_outer_space_is_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
