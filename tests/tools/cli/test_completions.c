/* What may stand at which place, as the words of a usage say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/shell/completions.h"

static void words_say_what_they_are(void **state)
{
    static const struct {
        const char *word;
        completion_kind kind;
    } words[] = {{"FILE", TAKES_FILE},
                 {"[FILE]", TAKES_FILE},
                 {"FILE...", TAKES_FILE},
                 {"FILE.csv|-", TAKES_FILE},
                 {"NAME|FILE", TAKES_FILE},
                 {"SHOAL.YAML", TAKES_FILE},
                 {"PAIRS.jsonl", TAKES_FILE},
                 {"PATH[:X]", TAKES_FILE},
                 {"MODEL", TAKES_MODEL},
                 {"[MODEL]", TAKES_MODEL},
                 {"DIR", TAKES_FOLDER},
                 {"TEXT|-", TAKES_ANY},
                 {"N", TAKES_ANY},
                 {"MODELS", TAKES_ANY},
                 {"NAME=TYPE", TAKES_ANY},
                 {"", TAKES_ANY},
                 {"[", TAKES_ANY},
                 {"...", TAKES_ANY}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (completion_of(words[i].word) != words[i].kind) fail_msg("%s", words[i].word);
}

static void places_stand_in_order(void **state)
{
    completion_places p = completion_places_of("ENSEMBLE FILE...");
    assert_int_equal(p.n, 2);
    assert_int_equal(p.at[0], TAKES_ANY);
    assert_int_equal(p.at[1], TAKES_FILE);
    assert_true(p.goes_on);
    p = completion_places_of("MODEL TEXT|-|--image FILE");
    assert_int_equal(p.n, 2);
    assert_false(p.goes_on);
    p = completion_places_of("MODEL --ids 1,2,3|--input FILE");
    assert_int_equal(p.n, 1);
    assert_int_equal(completion_places_of("").n, 0);
    assert_int_equal(completion_places_of("A B C D E F G H").n, COMPLETION_PLACES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_say_what_they_are),
        cmocka_unit_test(places_stand_in_order),
    };
    return cmocka_run_group_tests_name("completions", tests, NULL, NULL);
}
