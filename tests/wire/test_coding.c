/* Content codings: which one a client is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/coding.h"

static void coding_is_the_one_that_weighs_most(void **state)
{
    static const struct {
        const char *accept;
        coding wanted;
    } CASES[] = {
        {NULL, CODING_NONE},
        {"", CODING_NONE},
        {"gzip", CODING_GZIP},
        {"GZip", CODING_GZIP},
        {"x-gzip", CODING_GZIP},
        {"gzip, deflate, br", CODING_GZIP},
        {"gzip, deflate, br, zstd", CODING_ZSTD},
        {"zstd;q=0.5, gzip;q=0.8", CODING_GZIP},
        {"zstd ; q=0.5\t,gzip; Q=0.499", CODING_ZSTD},
        {"gzip;q=0", CODING_NONE},
        {"gzip;q=0.000, zstd;q=0.001", CODING_ZSTD},
        {"*", CODING_ZSTD},
        {"*, zstd;q=0", CODING_GZIP},
        {"*;q=0", CODING_NONE},
        {"identity, *;q=0", CODING_NONE},
        {"identity;q=1, gzip;q=0.5", CODING_NONE},
        {"identity;q=0.5, gzip;q=0.5", CODING_GZIP},
        {"identity;q=0, br", CODING_NONE},
        {"gzip;q=2", CODING_NONE},
        {"gzip;q=0.1234", CODING_NONE},
        {"gzip;q=", CODING_NONE},
        {"gzip;q=x", CODING_NONE},
        {"gzip;level=9;q=0", CODING_NONE},
        {"gzip;;q=0", CODING_NONE},
        {"gzipped, zst", CODING_NONE},
        {",,gzip,,", CODING_GZIP},
        {";q=1, gzip", CODING_GZIP},
        {"gzip zstd", CODING_GZIP},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        coding c = coding_choose(CASES[i].accept, CODING_GZIP | CODING_ZSTD);
        if (c != CASES[i].wanted) fail_msg("'%s' gives %s", CASES[i].accept, coding_name(c));
    }
    assert_int_equal(coding_choose("gzip, zstd", CODING_GZIP), CODING_GZIP);
    assert_int_equal(coding_choose("zstd", CODING_GZIP), CODING_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(coding_is_the_one_that_weighs_most)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
