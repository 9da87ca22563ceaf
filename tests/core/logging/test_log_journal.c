/* What the journal gets, read from a real datagram socket; and lines that repeat. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cur.h"
#include "logging/log.h"
#include "logging/log_journal.h"
#include "logging/log_repeat.h"

static char folder[] = "/tmp/journal-XXXXXX", path[64];

static int listen_as_journal(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* The value of a field, "" where there is none: KEY=VALUE or KEY, 8 bytes of length, VALUE. */
static const char *field_of(const char *message, size_t n, const char *key)
{
    static char value[40000];
    for (size_t at = 0; at < n;) {
        const char *end = memchr(message + at, '\n', n - at), *equals = memchr(message + at, '=', n - at);
        assert_non_null(end);
        bool plain = equals && equals < end;
        const char *name_end = plain ? equals : end, *from = plain ? equals + 1 : end + 9;
        uint64_t len = 0;
        for (int i = 0; !plain && i < 8; i++) len |= (uint64_t)(uint8_t)end[1 + i] << (8 * i);
        if (plain) len = (uint64_t)(end - from);
        assert_true(from + len < message + n && from[len] == '\n');
        if ((size_t)(name_end - message) - at == strlen(key) && memcmp(message + at, key, strlen(key)) == 0) {
            memcpy(value, from, len);
            value[len] = '\0';
            return value;
        }
        at = (size_t)(from + len + 1 - message);
    }
    return "";
}

static void the_journal_gets_fields(void **state)
{
    static char message[100000];
    int fd = listen_as_journal();
    setenv("SHOAL_LOG", "journal", 1);
    setenv("SHOAL_JOURNAL_SOCKET", path, 1);
    assert_false(log_wants_json(false));
    log_setup(LOG_INFO, false);
    LOG(LOG_WARN, "agent", "worker_exited", LOG_S("replica", "home-intent/0"), LOG_I("signal", 11),
        LOG_F("ms", 1.5), LOG_S("reason", "killed\nby=a signal"), LOG_S("empty", NULL));
    ssize_t n = recv(fd, message, sizeof message, 0);
    assert_true(n > 0);
    static const char *const is[][2] = {{"PRIORITY", "4"},
                                        {"SYSLOG_IDENTIFIER", "shoal"},
                                        {"SHOAL_COMPONENT", "agent"},
                                        {"SHOAL_EVENT", "worker_exited"},
                                        {"SHOAL_REPLICA", "home-intent/0"},
                                        {"SHOAL_SIGNAL", "11"},
                                        {"SHOAL_MS", "1.5"},
                                        {"SHOAL_REASON", "killed\nby=a signal"},
                                        {"SHOAL_EMPTY", ""}};
    for (size_t i = 0; i < sizeof is / sizeof *is; i++)
        assert_string_equal(field_of(message, (size_t)n, is[i][0]), is[i][1]);
    assert_string_equal(field_of(message, (size_t)n, "MESSAGE"),
                        "agent worker_exited replica=home-intent/0 signal=11 ms=1.5 "
                        "reason=\"killed\\nby=a signal\" empty=\"\"");
    static char huge[30000];
    memset(huge, 'x', sizeof huge - 1);
    memcpy(huge + LOG_JOURNAL_VALUE_MAX - 1, "\xC3\xA4", 2); /* not cut within a letter */
    LOG(LOG_ERROR, "agent", "long", LOG_S("text", huge));
    n = recv(fd, message, sizeof message, 0);
    assert_int_equal(strlen(field_of(message, (size_t)n, "SHOAL_TEXT")), LOG_JOURNAL_VALUE_MAX - 1);
    assert_string_equal(field_of(message, (size_t)n, "PRIORITY"), "3");
    close(fd);
    unlink(path);
}

/* A journal that is away: stderr, which usually leads there. One that takes nothing: dropped, counted, told. */
static void a_line_is_not_lost_without_a_sign(void **state)
{
    static char message[100000], text[1000];
    FILE *f = tmpfile();
    int kept = dup(2), n_sent = 1000, n_told = 0;
    assert_non_null(f);
    fflush(stderr);
    dup2(fileno(f), 2);
    log_setup(LOG_INFO, false);
    LOG(LOG_INFO, "agent", "nobody_listens", LOG_I("n", 1));
    dup2(kept, 2);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_non_null(strstr(text, "component=agent event=nobody_listens n=1\n"));
    int fd = listen_as_journal();
    for (int i = 0; i < n_sent; i++) LOG(LOG_INFO, "agent", "full", LOG_I("n", i));
    int n_read = 0;
    while (recv(fd, message, sizeof message, 0) > 0) n_read++;
    assert_in_range(n_read, 1, n_sent - 1);
    LOG(LOG_INFO, "agent", "again", LOG_I("n", 1));
    ssize_t n = recv(fd, message, sizeof message, 0);
    assert_true(n > 0);
    assert_string_equal(field_of(message, (size_t)n, "SHOAL_EVENT"), "lines_dropped");
    n_told = atoi(field_of(message, (size_t)n, "SHOAL_LINES"));
    assert_int_equal(n_read + n_told, n_sent);
    close(kept);
    close(fd);
    unlink(path);
}

static void its_stream_is_known_by_device_and_inode(void **state)
{
    int ends[2];
    char stream[64];
    struct stat st;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fstat(ends[0], &st);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    assert_true(log_journal_is(ends[0]));
    assert_false(log_journal_is(ends[1])); /* a child whose standard error leads elsewhere */
    static const char *const wrong[] = {"", "8", "8:", "x:y", "8:1 "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("JOURNAL_STREAM", wrong[i], 1);
        assert_false(log_journal_is(ends[0]));
    }
    setenv("JOURNAL_STREAM", stream, 1);
    unsetenv("SHOAL_LOG");
    int kept = dup(2);
    dup2(ends[0], 2);
    assert_false(log_wants_json(false));
    assert_true(log_wants_json(true));
    setenv("SHOAL_LOG", "json", 1);
    assert_true(log_wants_json(false));
    unsetenv("SHOAL_LOG");
    int fd = listen_as_journal();
    log_setup(LOG_INFO, true);
    LOG(LOG_INFO, "agent", "as_json", LOG_I("n", 1));
    char message[1000];
    assert_int_equal(recv(fd, message, sizeof message, 0), -1);
    ssize_t n = recv(ends[1], message, sizeof message, 0);
    assert_true(n > 0 && message[0] == '{');
    log_setup(LOG_INFO, false);
    LOG(LOG_INFO, "agent", "as_fields", LOG_I("n", 1));
    assert_true(recv(fd, message, sizeof message, 0) > 0);
    dup2(kept, 2);
    close(kept);
    close(fd);
    close(ends[0]);
    close(ends[1]);
    unsetenv("JOURNAL_STREAM");
    log_setup(LOG_OFF, false);
    unlink(path);
}

/* ---- lines that repeat ---------------------------------------------------------------------------------- */

static log_repeat r;

static size_t taken(const char *event, const char *from, size_t n, uint64_t now_ms)
{
    const log_field f[] = {LOG_S("from", from), LOG_S("reason", "a reason")};
    log_event e = {.level = LOG_WARN, .component = "worker", .event = event, .fields = f, .n_fields = 2};
    size_t n_taken = 0;
    for (size_t i = 0; i < n; i++) n_taken += log_repeat_take(&r, &e, now_ms);
    return n_taken;
}

static const char *count_as_text(uint64_t now_ms, bool all)
{
    static char text[400];
    log_count c;
    buf b = {0};
    if (!log_repeat_next(&r, now_ms, all, &c)) return "";
    log_format_message(&b, &c.event);
    snprintf(text, sizeof text, "%s", b.data);
    buf_done(&b);
    return text;
}

static void what_repeats_is_a_few_lines_and_a_count(void **state)
{
    memset(&r, 0, sizeof r);
    assert_int_equal(taken("refused", "192.0.2.7:1000", 20, 5), LOG_REPEAT_LINES);
    assert_int_equal(taken("refused", "192.0.2.7:1001", 22, 6), 0); /* another port is no other place */
    assert_int_equal(taken("refused", "[2001:db8::7]:1", 1, 6), 1);
    assert_int_equal(taken("refused", "2001:db8::7", 1, 6), 1);
    assert_int_equal(taken("expired", "192.0.2.7:1000", 1, 6), 1);
    assert_string_equal(count_as_text(4 + LOG_REPEAT_MS, false), "");
    assert_string_equal(count_as_text(5 + LOG_REPEAT_MS, false),
                        "worker refused from=192.0.2.7 repeated=37 in_s=10");
    assert_string_equal(count_as_text(5 + LOG_REPEAT_MS, false), "");
    assert_int_equal(taken("refused", "192.0.2.7:1", 9, 6 + LOG_REPEAT_MS), LOG_REPEAT_LINES);
    assert_string_equal(count_as_text(7 + LOG_REPEAT_MS, true),
                        "worker refused from=192.0.2.7 repeated=4 in_s=1");
}

static void a_flood_from_anywhere_is_bounded_and_hides_nothing_else(void **state)
{
    size_t n = 0;
    memset(&r, 0, sizeof r);
    for (int i = 0; i < 1000; i++) {
        char from[32];
        snprintf(from, sizeof from, "10.0.%d.%d:7", i / 250, i % 250);
        n += taken("refused", from, 10, 1);
    }
    assert_int_equal(n, LOG_REPEAT_LINES * (LOG_REPEAT_PLACES + 1));
    assert_int_equal(taken("worker_wedged", "home-intent/0", 1, 2), 1);
    size_t n_held = 0, several = 0;
    for (const char *s; *(s = count_as_text(1 + LOG_REPEAT_MS, false));) {
        n_held += (size_t)atoi(strstr(s, "repeated=") + 9);
        several += strstr(s, "from=several ") != NULL;
    }
    assert_int_equal(several, 1);
    assert_int_equal(n_held, 10000 - n);
    assert_int_equal(taken("refused", "10.9.9.9:7", 1, 1 + LOG_REPEAT_MS), 1); /* accounts are free again */
}

static void lines_of_requests_and_news_are_never_held(void **state)
{
    const log_field id = LOG_S("request_id", "abc"), n = LOG_I("n", 1), pid = LOG_I("pid", 7);
    log_event of_process = {
        .level = LOG_WARN, .component = "g", .event = "died", .fields = &pid, .n_fields = 1};
    log_event of_request = {
        .level = LOG_WARN, .component = "g", .event = "failed", .fields = &id, .n_fields = 1};
    log_event news = {.level = LOG_INFO, .component = "g", .event = "began", .fields = &n, .n_fields = 1};
    log_event error = {.level = LOG_ERROR, .component = "g", .event = "refused", .fields = &n, .n_fields = 1};
    log_event placeless = {
        .level = LOG_WARN, .component = "g", .event = "unread", .fields = &n, .n_fields = 1};
    memset(&r, 0, sizeof r);
    for (int i = 0; i < 100; i++) {
        assert_true(log_repeat_take(&r, &of_request, 1));
        assert_true(log_repeat_take(&r, &news, 1));
        assert_true(log_repeat_take(&r, &of_process, 1));
        assert_true(log_repeat_take(&r, &error, 1));
        assert_int_equal(log_repeat_take(&r, &placeless, 1), i < LOG_REPEAT_LINES);
    }
    assert_string_equal(count_as_text(1 + LOG_REPEAT_MS, false), "g unread repeated=95 in_s=10");
}

static void what_a_configuration_bounds_is_never_held(void **state)
{
    const log_field key = LOG_S("key", "listen");
    log_event left = {
        .level = LOG_WARN, .component = "serve", .event = "left", .fields = &key, .n_fields = 1};
    memset(&r, 0, sizeof r);
    for (int i = 0; i < 100; i++) assert_true(log_repeat_take(&r, &left, 1));
}

static void places_that_begin_alike_are_two(void **state)
{
    char place[3 * LOG_REPEAT_PLACE];
    memset(&r, 0, sizeof r);
    memset(place, 'x', sizeof place);
    place[sizeof place - 1] = '\0';
    assert_int_equal(taken("refused", place, 9, 1), LOG_REPEAT_LINES);
    place[sizeof place - 2] = 'y';
    assert_int_equal(taken("refused", place, 9, 1), LOG_REPEAT_LINES);
}

static void names_that_are_too_long_are_cut(void **state)
{
    static char text[1000];
    memset(text, 'x', sizeof text - 1);
    memset(&r, 0, sizeof r);
    assert_int_equal(taken(text, text, 7, 1), LOG_REPEAT_LINES);
    assert_true(strlen(count_as_text(1, true)) < 200);
}

static int open_folder(void **state)
{
    unsetenv("JOURNAL_STREAM");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/socket", folder);
    return 0;
}

static int close_folder(void **state)
{
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_journal_gets_fields),
        cmocka_unit_test(a_line_is_not_lost_without_a_sign),
        cmocka_unit_test(its_stream_is_known_by_device_and_inode),
        cmocka_unit_test(what_repeats_is_a_few_lines_and_a_count),
        cmocka_unit_test(a_flood_from_anywhere_is_bounded_and_hides_nothing_else),
        cmocka_unit_test(lines_of_requests_and_news_are_never_held),
        cmocka_unit_test(what_a_configuration_bounds_is_never_held),
        cmocka_unit_test(places_that_begin_alike_are_two),
        cmocka_unit_test(names_that_are_too_long_are_cut),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
