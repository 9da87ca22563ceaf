/* Mapped memory: zeros on a border, writable to its end, and resident no further than it is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/pages.h"
#include "base/sys.h"

static void mappings_begin_on_borders_and_are_zero(void **state)
{
    static const size_t sizes[] = {1, 4096, PAGES_HUGE - 1, PAGES_HUGE, PAGES_HUGE + 1, 5 * PAGES_HUGE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned flags = 0; flags <= PAGES_WHOLE; flags++) {
            uint8_t *p = pages_map(sizes[i], flags);
            assert_non_null(p);
            assert_true((uintptr_t)p % PAGES_HUGE == 0 && p[0] == 0 && p[sizes[i] - 1] == 0);
            memset(p, 1, sizes[i]);
            pages_populate(p, sizes[i]);
            assert_int_equal(p[sizes[i] / 2], 1);
            pages_unmap(p, sizes[i]);
        }
    assert_null(pages_map(0, 0));
    assert_null(pages_map(SIZE_MAX - 1, 0));
    assert_null(pages_map(SIZE_MAX / 2, 0));
    pages_unmap(NULL, 7);
}

/* A ceiling of a gigabyte is no gigabyte. */
static void only_what_is_touched_is_resident(void **state)
{
    size_t bytes = (size_t)1 << 30, before = sys_rss_bytes(0);
    uint8_t *p = pages_map(bytes, 0);
    assert_non_null(p);
    p[0] = p[bytes / 2] = 1;
    assert_true(sys_rss_bytes(0) < before + ((size_t)16 << 20));
    pages_unmap(p, bytes);
    p = mem_calloc64(1, bytes);
    assert_non_null(p);
    p[0] = p[bytes / 2] = 1;
    assert_true(sys_rss_bytes(0) < before + ((size_t)16 << 20));
    free(p);
}

/* Wherever it begins and ends in its pages, what was there is gone, and what is beside it stays. */
static void cleared_memory_is_zero_to_its_ends(void **state)
{
    enum { ROOM = 300 << 10 };
    static const size_t ends[][2] = {{0, ROOM}, {1, 4096}, {100, 70000}, {4095, 131072}, {4096, 200001}};
    uint8_t *all = malloc(ROOM);
    assert_non_null(all);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        memset(all, 7, ROOM);
        pages_clear(all + ends[i][0], ends[i][1] - ends[i][0]);
        for (size_t k = 0; k < ROOM; k++) assert_int_equal(all[k], k < ends[i][0] || k >= ends[i][1] ? 7 : 0);
    }
    free(all);
}

/* As large as a huge page and more, or not: freed as all others are. */
static void large_buffers_are_aligned_and_zero(void **state)
{
    for (size_t bytes = PAGES_HUGE - 100; bytes < PAGES_HUGE + 100; bytes += 50) {
        uint8_t *p = mem_calloc64(1, bytes);
        assert_non_null(p);
        assert_true((uintptr_t)p % (bytes < PAGES_HUGE ? 64 : PAGES_HUGE) == 0);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(p[i], 0);
        memset(p, 9, bytes);
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mappings_begin_on_borders_and_are_zero),
        cmocka_unit_test(only_what_is_touched_is_resident),
        cmocka_unit_test(cleared_memory_is_zero_to_its_ends),
        cmocka_unit_test(large_buffers_are_aligned_and_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
