/* Names of stages: what is one, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/stage_name.h"

static void names_of_stages_say_their_layers(void **state)
{
    size_t n, first, end;
    assert_true(stage_name_parse("home-chat@8:16/0", &n, &first, &end));
    assert_true(n == 9 && first == 8 && end == 16);
    assert_true(stage_name_parse("m@0:1", &n, &first, &end));
    assert_true(n == 1 && first == 0 && end == 1);
    assert_true(stage_name_parse("m@0:1", NULL, NULL, NULL));
}

static void other_names_are_no_stages(void **state)
{
    static const char *const others[] = {"",        "home-chat", "home-chat/0", "@0:1",        "m@",
                                         "m@1",     "m@1:",      "m@:2",        "m@2:2",       "m@3:2",
                                         "m@1:2x",  "m@-1:2",    "pi/m@0:3/0",  "m@1:1234567", "m@1234567:2",
                                         "m@1:2:3", "m@1 :2"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (stage_name_parse(others[i], NULL, NULL, NULL)) fail_msg("\"%s\" is taken for a stage", others[i]);
}

static void names_need_their_room(void **state)
{
    char s[8];
    assert_true(stage_name_put(s, sizeof s, "m", 10, 12));
    assert_string_equal(s, "m@10:12");
    assert_false(stage_name_put(s, sizeof s, "mm", 10, 12));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_stages_say_their_layers),
        cmocka_unit_test(other_names_are_no_stages),
        cmocka_unit_test(names_need_their_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
