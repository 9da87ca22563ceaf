/* How alike two answers are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "answers/shadow.h"

static void likeness_is_the_share_of_common_words(void **state)
{
    static const struct row {
        const char *a, *b;
        double likeness;
    } rows[] = {
        {"", "", 1},
        {" \n", "", 1},
        {"yes", "", 0},
        {"turning off the light", "turning off the light", 1},
        {"turning off  the\nlight", "light the off turning", 1},
        {"a b c d", "a b x y", 0.5},
        {"a a a", "a", 0.5}, /* as often */
        {"on", "one", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double likeness = shadow_likeness(rows[i].a, rows[i].b);
        if (fabs(likeness - rows[i].likeness) > 1e-9)
            fail_msg("'%s' and '%s': %g", rows[i].a, rows[i].b, likeness);
        assert_true(likeness == shadow_likeness(rows[i].b, rows[i].a));
    }
}

static void of_long_answers_the_beginning_counts(void **state)
{
    static char a[20000], b[20000];
    for (size_t i = 0; i + 2 < sizeof a; i += 2) memcpy(a + i, "w ", 2);
    memcpy(b, a, sizeof a);
    memset(b + 2 * SHADOW_WORDS_MAX, 'x', sizeof b - 2 * SHADOW_WORDS_MAX - 1);
    assert_true(shadow_likeness(a, b) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(likeness_is_the_share_of_common_words),
        cmocka_unit_test(of_long_answers_the_beginning_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
