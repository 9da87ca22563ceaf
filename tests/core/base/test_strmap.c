/* A map of names, against a plain list of what it should hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/strmap.h"

enum { NAMES = 400 };

static void strmap_holds_what_was_put_and_not_taken(void **state)
{
    static char names[NAMES][12];
    bool in[NAMES] = {0};
    strmap m = {0};
    size_t n = 0;
    assert_null(strmap_get(&m, "a"));
    assert_null(strmap_take(&m, "a"));
    for (int i = 0; i < NAMES; i++) snprintf(names[i], sizeof names[i], "node-%d", i);
    for (uint64_t step = 0; step < 20000; step++) {
        size_t i = rng_mix(step) % NAMES;
        /* It fills up and empties in turns, so that chains are cut at every place. */
        if (rng_mix(step + 77) % 8 < (step / 2000 % 2 ? 2u : 6u)) {
            assert_true(strmap_put(&m, names[i], names[i]));
            n += !in[i];
            in[i] = true;
        } else {
            assert_ptr_equal(strmap_take(&m, names[i]), in[i] ? names[i] : NULL);
            n -= in[i];
            in[i] = false;
        }
        assert_int_equal(m.n, n);
        if (step % 97 == 0)
            for (size_t k = 0; k < NAMES; k++)
                assert_ptr_equal(strmap_get(&m, names[k]), in[k] ? names[k] : NULL);
    }
    size_t at = 0, seen = 0;
    for (char *v; (v = strmap_next(&m, &at));) {
        assert_true(in[(size_t)(v - names[0]) / sizeof names[0]]);
        seen++;
    }
    assert_int_equal(seen, n);
    strmap_done(&m);
    assert_null(strmap_get(&m, names[0]));
}

static void strmap_gives_a_name_that_is_there_the_new_value(void **state)
{
    strmap m = {0};
    char first[] = "x", second[] = "x";
    assert_true(strmap_put(&m, first, first));
    assert_true(strmap_put(&m, second, second));
    assert_int_equal(m.n, 1);
    assert_ptr_equal(strmap_get(&m, "x"), second);
    first[0] = 'y'; /* its name is the second's now */
    assert_ptr_equal(strmap_take(&m, "x"), second);
    strmap_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strmap_holds_what_was_put_and_not_taken),
        cmocka_unit_test(strmap_gives_a_name_that_is_there_the_new_value),
    };
    return cmocka_run_group_tests_name("strmap", tests, NULL, NULL);
}
