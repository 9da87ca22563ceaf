/* test_cache_directives.c: what clients may say about the cache, and what is made of nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cache/cache_directives.h"

static cache_directives directives(const char *control)
{
    cache_directives w;
    assert_int_equal(cache_directives_parse(&w, control, NULL, NULL), 0);
    return w;
}

static void directives_are_found_in_any_company(void **state)
{
    static const char *const fresh[] = {"no-store", "No-Cache", "max-age=0, no-cache", " ,, no-store\t,x"};
    static const char *const plain[] = {"", "no-cachet", "no-cache=\"field\"", "private, public", "max-age"};
    for (size_t i = 0; i < sizeof fresh / sizeof *fresh; i++) assert_true(directives(fresh[i]).fresh);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) assert_false(directives(plain[i]).fresh);
    assert_true(directives("max-age=5,only-if-cached").only_if_cached);
    assert_false(directives(NULL).limits_age);
}

static void ages_are_numbers_of_seconds(void **state)
{
    assert_int_equal(directives("max-age=60").max_age_s, 60);
    assert_int_equal(directives("MAX-AGE=\"7\"").max_age_s, 7);
    assert_int_equal(directives("max-age=9, max-age=4, max-age=30").max_age_s, 4);
    assert_int_equal(directives("max-age=99999999999999999999999").max_age_s, (uint64_t)1 << 31);
    static const char *const none[] = {"max-age=",     "max-age=-1",  "max-age=1.5", "max-age=\"",
                                       "max-age=\"\"", "max-age = 5", "s-maxage=5"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_false(directives(none[i]).limits_age);
}

static void tags_are_kept_or_refused(void **state)
{
    cache_directives w;
    shoal_err err;
    char longest[CACHE_DIRECTIVES_TAG_BYTES + 2];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(cache_directives_parse(&w, NULL, " kitchen ,, demo/2", &err), 0);
    assert_int_equal(w.n_tags, 2);
    assert_string_equal(w.tags[0], "kitchen");
    assert_string_equal(w.tags[1], "demo/2");
    assert_int_equal(cache_directives_parse(&w, NULL, longest, &err), SHOAL_EINVALID);
    assert_int_equal(cache_directives_parse(&w, NULL, longest + 1, &err), 0);
    assert_int_equal(cache_directives_parse(&w, NULL, "two words", &err), SHOAL_EINVALID);
    assert_int_equal(cache_directives_parse(&w, NULL,
                                            "k\xC3\xBC"
                                            "che",
                                            &err),
                     SHOAL_EINVALID);
    assert_int_equal(cache_directives_parse(&w, NULL, "1,2,3,4,5,6,7,8", &err), 0);
    assert_int_equal(cache_directives_parse(&w, NULL, "1,2,3,4,5,6,7,8,9", &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "8 tags"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directives_are_found_in_any_company),
        cmocka_unit_test(ages_are_numbers_of_seconds),
        cmocka_unit_test(tags_are_kept_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
