/* Texts that repeat themselves or the one before. */
#include "helper.h"

#include "speech/phrases.h"

static double ratio(const char *text, size_t n)
{
    double r = -1;
    assert_int_equal(phrases_compression(text, n, &r), 0);
    return r;
}

/* Python: len(s.encode()) / len(zlib.compress(s.encode())). */
static void the_ratio_is_the_reference(void **state)
{
    char loop[401];
    for (size_t i = 0; i < 400; i++) loop[i] = "thanks. "[i % 8];
    loop[400] = '\0';
    static const char text[] = "turn on the kitchen light and the hall light";
    assert_true(ratio("", 0) == 0 && ratio(" \n ", 3) == 0);
    assert_true(fabs(ratio(text, sizeof text - 1) - 44.0 / 44.0) < 1e-9);
    assert_true(fabs(ratio(loop, 400) - 399.0 / 21.0) < 1e-9);
    assert_true(ratio(" you ", 5) == ratio("you", 3));
}

#define LOOPS(time_0, before, after)                              \
    do {                                                          \
        int32_t ids[] = {UNPACK before}, left[] = {UNPACK after}; \
        size_t n = sizeof ids / sizeof *ids;                      \
        assert_int_equal(phrases_drop_loops(ids, &n, time_0), 0); \
        assert_int_equal(n, sizeof left / sizeof *left);          \
        assert_memory_equal(ids, left, sizeof left);              \
    } while (0)
#define UNPACK(...) __VA_ARGS__

static void three_copies_of_a_phrase_are_left(void **state)
{
    LOOPS(-1, (1, 2, 3), (1, 2, 3));
    LOOPS(-1, (1, 7, 7, 7, 2), (1, 7, 7, 7, 2));
    LOOPS(-1, (1, 7, 7, 7, 7, 7, 7, 2), (1, 7, 7, 7, 2));
    LOOPS(-1, (9, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1), (9, 1, 2, 1, 2, 1, 2, 1));
    LOOPS(100, (100, 5, 6, 101, 101, 5, 6, 102, 102, 5, 6, 103, 103, 5, 6, 104, 4),
          (100, 5, 6, 101, 101, 5, 6, 102, 102, 5, 6, 103, 103, 104, 4));
    int32_t none;
    size_t n_none = 0;
    assert_int_equal(phrases_drop_loops(&none, &n_none, -1), 0);
    assert_int_equal(n_none, 0);
}

static size_t repeated(const char *before, const char *now)
{
    return phrases_repeated(before, strlen(before), now, strlen(now));
}

static void words_heard_twice_are_found(void **state)
{
    assert_int_equal(repeated(" turn on the kitchen", " the kitchen lamp"), strlen(" the kitchen"));
    assert_int_equal(repeated(" Turn on the kitchen.", " the Kitchen, lamp"), strlen(" the Kitchen,"));
    assert_int_equal(repeated(" turn on the kitchen", " n the kitchen lamp"), strlen(" n the kitchen"));
    assert_int_equal(repeated(" turn on the kitchen", " kitchen lamp"), strlen(" kitchen"));
    assert_int_equal(repeated(" turn on the kitchen", " a kitchen lamp"), 0);
    assert_int_equal(repeated(" turn on the kitchen", " off with it"), 0);
    assert_int_equal(repeated(" one", " one one"), strlen(" one"));
    assert_int_equal(repeated("", " one") + repeated(" one", "") + repeated("", ""), 0);
    assert_int_equal(repeated(" a b c d e f g h i j k l", " d e f g h i j k l m"),
                     strlen(" d e f g h i j k l"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ratio_is_the_reference),
        cmocka_unit_test(three_copies_of_a_phrase_are_left),
        cmocka_unit_test(words_heard_twice_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
