/* How log lines look: whole for machines, in rows that fit for a person. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log_format.h"

static const log_field call[] = {
    LOG_S("request_id", "e3ffbaac61c5f250"),
    LOG_S("model", "home-chat-s"),
    LOG_S("version", "1.0.0"),
    LOG_S("code", ""),
    LOG_S("reason", "the worker was killed by a signal, and will be started again within a second or two"),
    LOG_I("prompt_tokens", 151),
    LOG_F("ms", 16.382812345),
    LOG_S("address", "unix:/var/lib/a/folder/of/a/name/that/is/long/shoal-Q5HNrK/home-chat-s.3.sock"),
};

static char *format(log_form form, size_t columns, log_level level)
{
    buf b = {0};
    setenv("TZ", "UTC", 1);
    log_event e = {.at = {.tv_sec = 1795224290, .tv_nsec = 635000000},
                   .level = level,
                   .component = "worker",
                   .event = "call_done",
                   .fields = call,
                   .n_fields = sizeof call / sizeof *call};
    log_format(&b, form, columns, &e);
    return buf_take(&b);
}

static void pipes_get_everything_on_one_line(void **state)
{
    char *s = format(LOG_FORM_PAIRS, 0, LOG_INFO);
    assert_string_equal(
        s, "time=2026-11-21T01:24:50.635Z level=info component=worker event=call_done "
           "request_id=e3ffbaac61c5f250 model=home-chat-s version=1.0.0 code=\"\" reason=\"the worker "
           "was killed by a signal, and will be started again within a second or two\" "
           "prompt_tokens=151 ms=16.3828 "
           "address=unix:/var/lib/a/folder/of/a/name/that/is/long/shoal-Q5HNrK/home-chat-s.3.sock\n");
    free(s);
    s = format(LOG_FORM_JSON, 0, LOG_WARN);
    assert_ptr_equal(strstr(s, "{\"time\":\"2026-11-21T01:24:50.635Z\",\"level\":\"warn\",\"component\":"),
                     s);
    assert_non_null(strstr(s, "\"version\":\"1.0.0\",\"code\":\"\""));
    assert_ptr_equal(strchr(s, '\n'), s + strlen(s) - 1);
    free(s);
}

static size_t widest(const char *s)
{
    size_t most = 0, n = 0;
    for (; *s; s++) {
        if (*s == '\n')
            n = 0;
        else if (((unsigned char)*s & 0xC0) != 0x80 && ++n > most)
            most = n;
    }
    return most;
}

static void a_terminal_gets_rows_that_fit(void **state)
{
    char *s = format(LOG_FORM_TERMINAL, 80, LOG_INFO);
    assert_string_equal(s,
                        "01:24:50.635 worker call_done request_id=e3ffbaac model=home-chat-s reason=\"the\n"
                        "    worker was killed by a signal, and will be started again within a second or\n"
                        "    two\" prompt_tokens=151 ms=16.4\n"
                        "    address=unix:/var/lib/a/folder/of/a/name/that/is/long/shoal-Q5HNrK/home-cha…\n");
    free(s);
    for (size_t columns = 0; columns < 200; columns++) {
        s = format(LOG_FORM_TERMINAL, columns, LOG_ERROR);
        assert_true(widest(s) <= (columns < 40 ? 40 : columns));
        assert_non_null(strstr(s, "ERROR worker"));
        free(s);
    }
}

static void warnings_are_coloured_where_colours_show(void **state)
{
    buf b = {0};
    log_event e = {.level = LOG_WARN, .component = "gateway", .event = "slow", .colour = true};
    log_format(&b, LOG_FORM_TERMINAL, 80, &e);
    assert_non_null(strstr(b.data, "\033[33m WARN\033[0m gateway slow\n"));
    buf_clear(&b);
    log_format(&b, LOG_FORM_PAIRS, 80, &e);
    assert_null(strchr(b.data, 033));
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipes_get_everything_on_one_line),
        cmocka_unit_test(a_terminal_gets_rows_that_fit),
        cmocka_unit_test(warnings_are_coloured_where_colours_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
