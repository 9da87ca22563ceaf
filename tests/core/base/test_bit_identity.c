/* The line that says what decides a model's bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <string.h>

#include "base/bit_identity.h"

static void a_line_names_all_that_decides_the_bits(void **state)
{
    char line[BIT_IDENTITY_BYTES];
    bit_identity m = {.digest = "ab12", .engine = "shoal", .precision = "file,kv=q8_0", .numerics = 3};
    bit_identity_put(line, &m);
    assert_string_equal(line, "sha256:ab12;engine=shoal;precision=file,kv=q8_0;numerics=3");
}

static void what_is_unknown_or_too_long_has_no_line(void **state)
{
    char line[BIT_IDENTITY_BYTES], precision[BIT_IDENTITY_BYTES];
    bit_identity m = {.digest = "", .engine = "shoal", .precision = "file", .numerics = 1};
    bit_identity_put(line, &m);
    assert_string_equal(line, "");
    memset(precision, 'p', sizeof precision - 1);
    precision[sizeof precision - 1] = '\0';
    m.digest = "ab12";
    m.precision = precision;
    bit_identity_put(line, &m);
    assert_string_equal(line, "");
}

static void a_digest_alone_is_ours_in_the_first_contract(void **state)
{
    char line[BIT_IDENTITY_BYTES], other[BIT_IDENTITY_BYTES];
    bit_identity m = {.digest = "ab12", .engine = "shoal", .precision = "file", .numerics = 1};
    bit_identity_of_digest(line, "ab12");
    bit_identity_put(other, &m);
    assert_string_equal(line, other);
}

static void lines_of_peers_are_bounded_and_name_their_digest(void **state)
{
    char longer[BIT_IDENTITY_BYTES + 1] = "sha256:ab12;";
    memset(longer + 12, 'x', sizeof longer - 13);
    assert_true(bit_identity_is_valid("", "ab12"));
    assert_true(bit_identity_is_valid("sha256:ab12;engine=cuda;precision=fp16;numerics=1", "ab12"));
    assert_false(bit_identity_is_valid("sha256:ab13;engine=cuda", "ab12"));
    assert_false(bit_identity_is_valid("sha256:ab12", "ab12"));
    assert_false(bit_identity_is_valid("sha256:ab12;engine=a b", "ab12"));
    assert_false(bit_identity_is_valid("sha256:ab12;engine=a\nb", "ab12"));
    assert_false(bit_identity_is_valid("sha256:ab12;engine=\"", "ab12"));
    assert_false(bit_identity_is_valid(longer, "ab12"));
    longer[BIT_IDENTITY_BYTES - 1] = '\0';
    assert_true(bit_identity_is_valid(longer, "ab12"));
}

static void a_plain_line_is_short(void **state)
{
    char line[BIT_IDENTITY_BYTES], ret[BIT_IDENTITY_BYTES];
    bit_identity_of_digest(line, "ab12");
    assert_string_equal(bit_identity_short(ret, line), "ab12");
    assert_string_equal(bit_identity_short(ret, ""), "");
    const char *others[] = {"sha256:ab12;engine=cuda;precision=file;numerics=1",
                            "sha256:ab12;engine=shoal;precision=file,kv=f32;numerics=1",
                            "sha256:ab12;engine=shoal;precision=file;numerics=2"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_string_equal(bit_identity_short(ret, others[i]), others[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_names_all_that_decides_the_bits),
        cmocka_unit_test(what_is_unknown_or_too_long_has_no_line),
        cmocka_unit_test(a_digest_alone_is_ours_in_the_first_contract),
        cmocka_unit_test(lines_of_peers_are_bounded_and_name_their_digest),
        cmocka_unit_test(a_plain_line_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
