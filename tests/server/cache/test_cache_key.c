#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cache/cache_key.h"
#include "base/sha256.h"

static sha256_digest end(cache_key *k)
{
    sha256_digest d;
    assert_true(cache_key_end(k, &d));
    return d;
}

static sha256_digest key_of_two(const char *n1, const char *v1, const char *n2, const char *v2)
{
    cache_key *k = cache_key_new("t");
    cache_key_str(k, n1, v1);
    cache_key_str(k, n2, v2);
    return end(k);
}

#define assert_same(a, b)   assert_memory_equal(&(a), &(b), sizeof(sha256_digest))
#define assert_differ(a, b) assert_memory_not_equal(&(a), &(b), sizeof(sha256_digest))

static void fields_never_run_together(void **state)
{
    sha256_digest a = key_of_two("ab", "c", "d", "e"), b = key_of_two("a", "bc", "d", "e");
    sha256_digest c = key_of_two("ab", "cd", "e", ""), d = key_of_two("ab", "c", "de", "");
    assert_differ(a, b);
    assert_differ(c, d);
}

static void absent_differs_from_empty(void **state)
{
    sha256_digest a = key_of_two("stop", NULL, "n", "1"), b = key_of_two("stop", "", "n", "1");
    assert_differ(a, b);
}

static void numbers_compare_by_value(void **state)
{
    cache_key *a = cache_key_new("t"), *b = cache_key_new("t"), *c = cache_key_new("t");
    cache_key_num(a, "temperature", 0.0);
    cache_key_num(b, "temperature", -0.0);
    cache_key_num(c, "temperature", 5e-324);
    sha256_digest da = end(a), db = end(b), dc = end(c);
    assert_same(da, db);
    assert_differ(da, dc);
}

static void kinds_do_not_share(void **state)
{
    sha256_digest a = end(cache_key_new("classify")), b = end(cache_key_new("tag"));
    assert_differ(a, b);
}

static void null_key_is_harmless(void **state)
{
    sha256_digest d;
    cache_key_str(NULL, "a", "b");
    cache_key_int(NULL, "a", 1);
    cache_key_num(NULL, "a", 1);
    assert_false(cache_key_end(NULL, &d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_never_run_together), cmocka_unit_test(absent_differs_from_empty),
        cmocka_unit_test(numbers_compare_by_value),  cmocka_unit_test(kinds_do_not_share),
        cmocka_unit_test(null_key_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
