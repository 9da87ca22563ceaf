/* test_near.c: the index of what was asked: exact search, bounds, and a model of it that is slow and plain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cache/near.h"

enum { DIMS = 48 };

static sha256_digest digest(const char *kind, unsigned i)
{
    char text[32];
    sha256_digest d;
    snprintf(text, sizeof text, "%s%u", kind, i);
    sha256_of(text, strlen(text), &d);
    return d;
}

static near *make(size_t max_items, size_t max_bytes)
{
    near *n = NULL;
    assert_int_equal(near_new(&n, ISA_SCALAR, max_items, max_bytes, NULL), 0);
    return n;
}

/* Directions that differ a little from one to the next. */
static void direction(int8_t codes[DIMS], unsigned i)
{
    for (int d = 0; d < DIMS; d++) codes[d] = (int8_t)(((unsigned)d * 7 + i * (d % 5 == 0)) % 100);
}

static float scale_of(const int8_t *codes)
{
    double squares = 0;
    for (int d = 0; d < DIMS; d++) squares += (double)codes[d] * codes[d];
    double root = 1; /* Newton: tests link no libm */
    for (int k = 0; k < 60; k++) root = (root + squares / root) / 2;
    return (float)(1 / root);
}

static bool add(near *n, unsigned partition, unsigned i)
{
    int8_t codes[DIMS];
    char text[16];
    sha256_digest s = digest("partition", partition), k = digest("key", i);
    direction(codes, i);
    snprintf(text, sizeof text, "text %u", i);
    return near_add(n, &s, &k, codes, scale_of(codes), DIMS, text);
}

static size_t find(near *n, unsigned partition, unsigned i, double least, near_found *ret)
{
    int8_t codes[DIMS];
    sha256_digest s = digest("partition", partition);
    direction(codes, i);
    return near_find(n, &s, codes, scale_of(codes), DIMS, least, ret, NEAR_FOUND_MAX);
}

static void nearest_come_first_and_only_of_their_partition(void **state)
{
    near *n = make(100, 1 << 20);
    near_found f[NEAR_FOUND_MAX];
    for (unsigned i = 0; i < 20; i++) assert_true(add(n, i % 2, i));
    assert_int_equal(find(n, 0, 6, 0.5, f), NEAR_FOUND_MAX);
    assert_string_equal(f[0].text, "text 6");
    assert_true(f[0].cosine > 0.999f && f[0].cosine < 1.001f);
    for (int i = 1; i < NEAR_FOUND_MAX; i++) assert_true(f[i].cosine <= f[i - 1].cosine);
    assert_int_equal(find(n, 0, 6, 0.9999, f), 1);
    assert_int_equal(find(n, 2, 6, -1, f), 0);
    near_free(n);
}

static void dropped_items_are_not_found(void **state)
{
    near *n = make(100, 1 << 20);
    near_found f[NEAR_FOUND_MAX];
    for (unsigned i = 0; i < 30; i++) add(n, 0, i);
    for (unsigned i = 0; i < 30; i += 2) {
        sha256_digest k = digest("key", i);
        near_drop(n, &k);
        near_drop(n, &k);
    }
    assert_int_equal(near_count(n), 15);
    for (unsigned i = 0; i < 30; i++) {
        size_t k = find(n, 0, i, 0.99999, f);
        assert_int_equal(k > 0 && f[0].cosine > 0.999999f, i % 2);
    }
    near_free(n);
}

static void both_bounds_hold_and_the_least_used_goes(void **state)
{
    near *n = make(10, 1 << 20);
    near_found f[NEAR_FOUND_MAX];
    for (unsigned i = 0; i < 10; i++) add(n, 0, i);
    sha256_digest first = digest("key", 0);
    near_touch(n, &first);
    add(n, 1, 10);
    assert_int_equal(near_count(n), 10);
    assert_int_equal(find(n, 0, 0, 0.99999, f), 1);
    assert_true(find(n, 0, 1, 0.9999999, f) == 0 || strcmp(f[0].text, "text 1") != 0);
    near_free(n);
    n = make(100000, 20000);
    for (unsigned i = 0; i < 3000; i++) {
        add(n, i % 50, i);
        assert_true(near_bytes(n) <= 20000);
    }
    assert_true(near_count(n) > 20);
    near_free(n);
    n = make(10, 10); /* nothing fits */
    assert_false(add(n, 0, 0));
    assert_int_equal(near_count(n), 0);
    near_free(n);
}

static void bytes_return_to_what_they_were(void **state)
{
    near *n = make(100000, 1 << 24);
    size_t before = near_bytes(n);
    for (unsigned i = 0; i < 60; i++) add(n, i % 3, i);
    for (unsigned i = 0; i < 60; i++) {
        sha256_digest k = digest("key", i);
        near_drop(n, &k);
    }
    assert_int_equal(near_bytes(n), before);
    near_free(n);
}

static void one_key_has_one_place(void **state)
{
    near *n = make(100, 1 << 20);
    near_found f[NEAR_FOUND_MAX];
    add(n, 0, 1);
    add(n, 1, 1);
    assert_int_equal(near_count(n), 1);
    assert_int_equal(find(n, 0, 1, 0.9, f), 0);
    assert_int_equal(find(n, 1, 1, 0.9, f), 1);
    near_free(n);
}

/* Thousands of additions and removals against a list that is searched one by one. */
static void same_as_a_plain_list(void **state)
{
    enum { KEYS = 300 };
    static bool there[KEYS];
    near *n = make(KEYS, 1 << 24);
    near_found f[NEAR_FOUND_MAX];
    unsigned draw = 1;
    for (int step = 0; step < 4000; step++) {
        draw = draw * 1103515245u + 12345u;
        unsigned i = (draw >> 8) % KEYS;
        sha256_digest k = digest("key", i);
        if (there[i])
            near_drop(n, &k);
        else
            assert_true(add(n, i % 4, i));
        there[i] = !there[i];
    }
    size_t count = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        count += there[i];
        size_t k = find(n, i % 4, i, 0.999999, f);
        bool found = false;
        for (size_t j = 0; j < k; j++) {
            sha256_digest d = digest("key", i);
            found |= memcmp(&d, &f[j].key, sizeof d) == 0;
        }
        assert_true(!there[i] || found || k == NEAR_FOUND_MAX);
        assert_true(there[i] || !found);
    }
    assert_int_equal(near_count(n), count);
    near_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_come_first_and_only_of_their_partition),
        cmocka_unit_test(dropped_items_are_not_found),
        cmocka_unit_test(both_bounds_hold_and_the_least_used_goes),
        cmocka_unit_test(bytes_return_to_what_they_were),
        cmocka_unit_test(one_key_has_one_place),
        cmocka_unit_test(same_as_a_plain_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
