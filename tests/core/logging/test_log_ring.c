/* The last lines of the log: which are kept, found by level and number, and counted when they are gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "logging/log_ring.h"

static void add(log_level level, const char *line)
{
    log_ring_add(level, line, strlen(line));
}

/* All lines behind `at`, one behind the other. */
static const char *lines(uint64_t at, log_level least)
{
    static char text[256];
    buf b = {0};
    while (log_ring_next(&at, least, &b)) buf_putc(&b, ' ');
    snprintf(text, sizeof text, "%s", b.data ? b.data : "");
    buf_done(&b);
    return text;
}

static void the_last_lines_are_kept(void **state)
{
    assert_int_equal(log_ring_open(4, 1000, NULL), 0);
    assert_string_equal(lines(0, LOG_DEBUG), "");
    assert_int_equal(log_ring_before(3, LOG_INFO), 0);
    add(LOG_INFO, "a");
    add(LOG_WARN, "b");
    add(LOG_INFO, "c");
    assert_string_equal(lines(0, LOG_INFO), "a b c ");
    assert_string_equal(lines(0, LOG_WARN), "b ");
    assert_string_equal(lines(log_ring_before(2, LOG_INFO), LOG_INFO), "b c ");
    assert_string_equal(lines(log_ring_before(1, LOG_WARN), LOG_WARN), "b ");
    assert_string_equal(lines(log_ring_before(0, LOG_INFO), LOG_INFO), "");
    assert_int_equal(log_ring_missed(0), 0);
    add(LOG_INFO, "d");
    add(LOG_INFO, "e");
    assert_string_equal(lines(0, LOG_INFO), "b c d e ");
    assert_int_equal(log_ring_missed(0), 1);
    assert_int_equal(log_ring_missed(1), 0);
    assert_string_equal(lines(UINT64_MAX - 1, LOG_INFO), "");
    log_ring_close();
    assert_false(log_ring_is_open());
    assert_string_equal(lines(0, LOG_INFO), "");
}

static void bytes_are_bounded(void **state)
{
    assert_int_equal(log_ring_open(100, 10, NULL), 0);
    add(LOG_INFO, "12345");
    add(LOG_INFO, "67890");
    add(LOG_INFO, "abc");
    assert_string_equal(lines(0, LOG_INFO), "67890 abc ");
    add(LOG_INFO, "a line that is longer than all of it");
    assert_string_equal(lines(0, LOG_INFO), "67890 abc ");
    log_ring_close();
}

/* A thread may log on while the process ends. */
static void a_line_behind_the_end_is_not_kept(void **state)
{
    assert_int_equal(log_ring_open(4, 1000, NULL), 0);
    add(LOG_INFO, "a");
    log_ring_close();
    add(LOG_INFO, "b");
    add(LOG_INFO, "");
    assert_string_equal(lines(0, LOG_INFO), "");
    assert_int_equal(log_ring_open(4, 1000, NULL), 0);
    assert_string_equal(lines(0, LOG_INFO), "");
    add(LOG_INFO, "c");
    assert_string_equal(lines(0, LOG_INFO), "c ");
    log_ring_close();
    log_ring_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_lines_are_kept),
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(a_line_behind_the_end_is_not_kept),
    };
    return cmocka_run_group_tests_name("log_ring", tests, NULL, NULL);
}
