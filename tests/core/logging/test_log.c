/* How log lines look: whole for machines, in rows that fit for a person. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "logging/log.h"
#include "logging/log_format.h"
#include "logging/log_limit.h"
#include "logging/log_read.h"
#include "logging/log_scan.h"
#include "logging/sanitise.h"

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
    assert_string_equal(s, "01:24:50.635 INFO  worker call_done request_id=e3ffbaac home-chat-s 16.4 ms …\n");
    free(s);
    s = format(LOG_FORM_TERMINAL, 190, LOG_INFO);
    assert_string_equal(s, "01:24:50.635 INFO  worker call_done request_id=e3ffbaac home-chat-s "
                           "prompt_tokens=151 16.4 ms address=unix:/var/lib/a/…e-chat-s.3.sock "
                           "reason=\"the worker was killed by a signal, and will …\n");
    free(s);
    s = format(LOG_FORM_TERMINAL, 80, LOG_WARN);
    assert_string_equal(s, "01:24:50.635 WARN  worker call_done request_id=e3ffbaac home-chat-s 16.4 ms …\n"
                           "    reason: the worker was killed by a signal, and will be started again within\n"
                           "    a second or two\n");
    free(s);
    for (size_t columns = 0; columns < 200; columns++) {
        s = format(LOG_FORM_TERMINAL, columns, LOG_ERROR);
        assert_true(widest(s) <= (columns < 40 ? 40 : columns));
        assert_non_null(strstr(s, "ERROR w"));
        free(s);
    }
}

static void colours_show_where_they_are_asked_for(void **state)
{
    buf b = {0};
    const log_field id = LOG_S("request_id", "e3ffbaac61c5f250");
    log_event e = {.level = LOG_WARN,
                   .component = "gateway",
                   .event = "slow",
                   .colour = true,
                   .fields = &id,
                   .n_fields = 1};
    log_format(&b, LOG_FORM_TERMINAL, 80, &e);
    assert_non_null(strstr(b.data, "\033[33mWARN \033[0m gateway \033[1mslow\033[0m "
                                   "\033[2mrequest_id=\033[0m\033[2me3ffbaac\033[0m\n"));
    buf_clear(&b);
    log_format(&b, LOG_FORM_PAIRS, 80, &e);
    assert_null(strchr(b.data, 033));
    buf_done(&b);
}

/* What an unauthenticated peer sent must not move the cursor. */
static void control_characters_do_not_reach_a_terminal(void **state)
{
    for (int sentence = 0; sentence < 2; sentence++)
        for (log_level level = LOG_DEBUG; level <= LOG_ERROR; level++) {
            buf b = {0};
            const log_field f =
                LOG_S("from", sentence ? "a \033[2J\r\nb\x7f\xc2\x9b" : "\033[2J\r\nb\x7f\xc2\x9b");
            log_event e = {
                .level = level, .component = "control", .event = "refused", .fields = &f, .n_fields = 1};
            log_format(&b, LOG_FORM_TERMINAL, 80, &e);
            assert_null(strchr(b.data, 033));
            assert_null(strchr(b.data, '\r'));
            assert_null(strchr(b.data, 0x7f));
            assert_null(strstr(b.data, "\xc2\x9b"));
            assert_non_null(strstr(b.data, "u001b[2J"));
            buf_done(&b);
        }
}

static size_t n_taken(log_limit *l, const char *from, size_t n, uint64_t now_ms)
{
    size_t taken = 0;
    for (size_t i = 0; i < n; i++) taken += log_limit_take(l, from, now_ms);
    return taken;
}

/* What log_limit_tell writes. */
static char *told(log_limit *l, uint64_t now_ms)
{
    static char text[2048];
    FILE *f = tmpfile();
    int kept = dup(2);
    assert_non_null(f);
    dup2(fileno(f), 2);
    log_setup(LOG_WARN, false);
    log_limit_tell(l, "control", now_ms);
    dup2(kept, 2);
    close(kept);
    log_setup(LOG_OFF, false);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void who_floods_the_log_is_counted_and_others_are_still_seen(void **state)
{
    static log_limit l;
    assert_int_equal(n_taken(&l, "192.0.2.7", 1000, 5), LOG_LIMIT_LINES);
    assert_int_equal(n_taken(&l, "192.0.2.70", 1, 5), 1);
    assert_string_equal(told(&l, 4 + LOG_LIMIT_MS), "");
    char *s = told(&l, 5 + LOG_LIMIT_MS);
    assert_non_null(strstr(s, "component=control event=lines_held from=192.0.2.7 more=995 in_s=10\n"));
    assert_null(strstr(s, "192.0.2.70"));
    assert_string_equal(told(&l, 6 + 2 * LOG_LIMIT_MS), "");
    assert_int_equal(n_taken(&l, "192.0.2.7", 3, 6 + LOG_LIMIT_MS), 3);
}

static void many_who_flood_the_log_share_an_account(void **state)
{
    static log_limit l;
    size_t n_written = 0;
    for (int i = 0; i < 1000; i++) {
        char from[16];
        snprintf(from, sizeof from, "10.0.%d.%d", i / 250, i % 250);
        n_written += n_taken(&l, from, 10, 1);
    }
    assert_int_equal(n_written, LOG_LIMIT_LINES * (LOG_LIMIT_SOURCES + 1));
    assert_non_null(strstr(told(&l, 1 + LOG_LIMIT_MS), "from=several more=9835 "));
}

static void tamed_text_has_no_controls_and_no_broken_characters(void **state)
{
    const char *const cases[][3] = {
        {"plain na\xC3\xAFve \xF0\x9F\x98\x80", "", "plain na\xC3\xAFve \xF0\x9F\x98\x80"},
        {"a\x1b[2J\x7f", "", "a?[2J?"},
        {"b\xC2\x9b"
         "2J\xC2\x80\xC2\x9F\xC2\xA0",
         "", "b?2J??\xC2\xA0"},
        {"c\x9b\xC2", "", "c??"},
        {"f\u202eg\u2066h\u206a", "", "f?g?h?"},
        {"\u05d0\u200f \U0001F469\u200d\U0001F4BB\ufe0f", "",
         "\u05d0\u200f \U0001F469\u200d\U0001F4BB\ufe0f"},
        {"d\n\te\r", "\n\t", "d\n\te?"},
        {"d\n\te\r", "", "d??e?"},
        {"", "", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[40];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        sanitise_text(text, cases[i][1]);
        assert_string_equal(text, cases[i][2]);
        assert_int_equal(sanitise_is(cases[i][0]),
                         strcmp(cases[i][0], cases[i][2]) == 0 && !strchr(cases[i][0], '\n'));
    }
    buf out = {0};
    sanitise_put(&out, "\u05d0\u202e\u2069\n\t\x1b\xff\U0001F469\u200d\ufe0f\0z", 24, "\n");
    assert_string_equal(out.data, "\u05d0\\u202e\\u2069\n???\U0001F469\u200d\ufe0f?z");
    buf_done(&out);
    char with_nul[] = "a\0b";
    assert_int_equal(sanitise_bytes(with_nul, 3, "\n"), 3);
    assert_string_equal(with_nul, "a?b");
    assert_int_equal(sanitise_control("\xC2\x9b", 2), 2);
    assert_int_equal(sanitise_control("", 0), 0);
    (void)state;
}

/* Lines and dropped lines that the pipe holds. */
static void count_lines(int fd, int *ret_lines, int *ret_dropped)
{
    static char text[1 << 20];
    size_t len = 0;
    for (ssize_t n; (n = read(fd, text + len, sizeof text - 1 - len)) > 0;) len += (size_t)n;
    text[len] = '\0';
    for (char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
        *end = '\0';
        assert_true(strncmp(p, "time=", 5) == 0); /* whole lines only */
        const char *n = strstr(p, "event=lines_dropped lines=");
        if (n)
            *ret_dropped += atoi(strchr(strstr(n, "lines="), '=') + 1);
        else
            (*ret_lines)++;
    }
}

enum { LOGGED = 5000 };

/* stderr is ends[1], and nobody reads ends[0] until all is written. */
static int log_to_nobody(const int *ends)
{
    int lines = 0, dropped = 0;
    alarm(20); /* instead of a wait for ever */
    dup2(ends[1], STDERR_FILENO);
    log_setup(LOG_INFO, false);
    for (int i = 0; i < LOGGED; i++)
        LOG(LOG_INFO, "test", "a_line_that_nobody_reads", LOG_I("number", i),
            LOG_S("text", "some more of it"));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    count_lines(ends[0], &lines, &dropped);
    if (lines == 0 || lines >= LOGGED) return 2;
    LOG(LOG_INFO, "test", "it_flows_again");
    count_lines(ends[0], &lines, &dropped);
    if (lines + dropped != LOGGED + 1) return 3;
    return fcntl(ends[1], F_GETFL) & O_NONBLOCK ? 4 : 0; /* others write there too */
}

static void log_never_waits_for_a_reader(void **state)
{
    int ends[2], status;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) _exit(log_to_nobody(ends));
    waitpid(pid, &status, 0);
    close(ends[0]);
    close(ends[1]);
    if (WIFSIGNALED(status)) fail_msg("killed by signal %d: it waited", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- lines of another process --------------------------------------------------------------------------- */

static bool is_scanned(const char *line, log_scanned *s)
{
    return log_scan(s, line, strlen(line), "replica");
}

static void what_is_scanned_is_read_with_the_same_level(void **state)
{
    log_scanned s;
    log_line l;
    for (log_level level = LOG_DEBUG; level <= LOG_ERROR; level++) {
        char *line = format(LOG_FORM_JSON, 0, level);
        size_t n = strlen(line) - 1, n_taken = 0;
        line[n] = '\0';
        assert_true(is_scanned(line, &s));
        assert_int_equal(s.level, level);
        assert_ptr_equal(strstr(line, ",\"request_id\":"), line + s.head);
        for (size_t cut = 0; cut < n; cut++) assert_false(log_scan(&s, line, cut, NULL));
        for (size_t i = 0; i < n; i++)
            for (int bit = 0; bit < 8; bit++) { /* names and texts may change, and it stays a line */
                line[i] ^= (char)(1 << bit);
                if (log_scan(&s, line, n, NULL)) {
                    n_taken++;
                    assert_true(log_read(&l, line, n));
                    assert_int_equal(l.event.level, s.level);
                    log_read_done(&l);
                }
                line[i] ^= (char)(1 << bit);
            }
        assert_true(n_taken > n && n_taken < 8 * n);
        assert_true(log_read(&l, line, n));
        assert_int_equal(l.event.at.tv_sec, 1795224290);
        assert_int_equal(l.event.at.tv_nsec, 635000000);
        log_read_done(&l);
        free(line);
    }
}

#define HEAD \
    "{\"time\":\"2026-11-21T02:25:42.123Z\",\"level\":\"info\",\"component\":\"worker\",\"event\":\"e\""

static void what_may_be_no_json_is_not_scanned(void **state)
{
    static const char *const fine[] = {
        HEAD "}",
        HEAD ",\"a\":\"\",\"b\":-0.25,\"c\":1e-7,\"d\":999999999999999999}",
        HEAD ",\"a\":\"caf\xc3\xa9 \\\"\\\\\\/\\b\\f\\n\\r\\t\\u001b\"}",
    };
    static const char *const not_so[] = {
        "",
        "{}",
        HEAD,
        HEAD "} ",
        HEAD "}}",
        HEAD ",}",
        HEAD ",\"a\":1,}",
        HEAD ",\"a\":1,\"a\":2}",
        HEAD ",\"replica\":\"other/0\"}",
        HEAD ",\"level\":\"error\"}",
        HEAD ",\"a\":{}}",
        HEAD ",\"a\":[1]}",
        HEAD ",\"a\":01}",
        HEAD ",\"a\":-}",
        HEAD ",\"a\":1.}",
        HEAD ",\"a\":1e999}",
        HEAD ",\"a\":9999999999999999999}",
        HEAD ",\"a\":\"\\ud800\"}",
        HEAD ",\"a\":\"\\u0000\"}",
        HEAD ",\"a\":\"\\x\"}",
        HEAD ",\"a\":\"\\",
        HEAD ",\"a\":\"\xc3\"}",
        HEAD ",\"a\":\"tab\there\"}",
        HEAD ",\"a b\":1}",
        HEAD HEAD "}",
    };
    log_scanned s;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        if (!is_scanned(fine[i], &s)) fail_msg("not taken: %s", fine[i]);
    for (size_t i = 0; i < sizeof not_so / sizeof *not_so; i++)
        if (is_scanned(not_so[i], &s)) fail_msg("taken: %s", not_so[i]);
}

enum { PASSED = 300 };

/* Each datagram is one write. */
static int pass_to(const int ends[2], bool holds, int *ret_writes)
{
    char message[8192];
    ssize_t n;
    int next = 0, room = 1 << 20;
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    dup2(ends[1], STDERR_FILENO);
    log_setup(LOG_INFO, true);
    *ret_writes = 0;
    for (int i = 0; i < PASSED;) {
        if (holds) log_hold();
        for (int end = i + 10; i < end; i++) {
            char line[256];
            int len = snprintf(line, sizeof line, HEAD ",\"number\":%d}\n", i);
            log_pass_line(LOG_INFO, line, (size_t)len);
        }
        if (holds) log_release();
        while ((n = recv(ends[0], message, sizeof message - 1, MSG_DONTWAIT)) > 0) {
            message[n] = '\0';
            ++*ret_writes;
            for (const char *at = message; (at = strstr(at, "\"number\":")); next++)
                if (atoi(at += strlen("\"number\":")) != next) return 2;
            if (message[n - 1] != '\n') return 3;
        }
        if (next != i) return 4; /* nothing waits when they were released */
    }
    return 0;
}

static void lines_that_are_held_are_written_together(void **state)
{
    for (int holds = 0; holds < 2; holds++) {
        int ends[2], status, writes = 0;
        assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            int rc = pass_to(ends, holds, &writes);
            _exit(rc ? rc : writes == (holds ? PASSED / 10 : PASSED) ? 0 : 5);
        }
        waitpid(pid, &status, 0);
        close(ends[0]);
        close(ends[1]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipes_get_everything_on_one_line),
        cmocka_unit_test(a_terminal_gets_rows_that_fit),
        cmocka_unit_test(colours_show_where_they_are_asked_for),
        cmocka_unit_test(control_characters_do_not_reach_a_terminal),
        cmocka_unit_test(who_floods_the_log_is_counted_and_others_are_still_seen),
        cmocka_unit_test(many_who_flood_the_log_share_an_account),
        cmocka_unit_test(tamed_text_has_no_controls_and_no_broken_characters),
        cmocka_unit_test(log_never_waits_for_a_reader),
        cmocka_unit_test(what_is_scanned_is_read_with_the_same_level),
        cmocka_unit_test(what_may_be_no_json_is_not_scanned),
        cmocka_unit_test(lines_that_are_held_are_written_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
