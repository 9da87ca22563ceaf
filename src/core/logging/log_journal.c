/* log_journal.c: see log_journal.h. */
#define _GNU_SOURCE
#include "logging/log_journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/utf8.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

enum { NAME_MAX_BYTES = 64 /* the journal's limit */ };

bool log_journal_is(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    int used = 0;
    struct stat st;
    if (!stream || sscanf(stream, "%llu:%llu%n", &device, &inode, &used) != 2 || stream[used]) return false;
    return fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* syslog(3) */
static const char *priority_of(log_level level)
{
    static const char *const OF[] = {"7", "6", "4", "3", "3"};
    return OF[level];
}

static void put_name(buf *out, const char *prefix, const char *key)
{
    size_t n = strlen(prefix);
    buf_puts(out, prefix);
    for (; *key && n < NAME_MAX_BYTES; key++, n++) {
        char c = *key >= 'a' && *key <= 'z' ? (char)(*key - 'a' + 'A') : *key;
        buf_putc(out, (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_');
    }
}

static void put_value(buf *out, const char *s, size_t n)
{
    if (n > LOG_JOURNAL_VALUE_MAX) n = LOG_JOURNAL_VALUE_MAX - utf8_incomplete_tail(s, LOG_JOURNAL_VALUE_MAX);
    if (memchr(s, '\n', n)) {
        char length[8];
        for (size_t i = 0; i < sizeof length; i++) length[i] = (char)((uint64_t)n >> (8 * i));
        buf_putc(out, '\n');
        buf_append(out, length, sizeof length);
    } else {
        buf_putc(out, '=');
    }
    buf_append(out, s, n);
    buf_putc(out, '\n');
}

static void put_text(buf *out, const char *prefix, const char *key, const char *value)
{
    put_name(out, prefix, key);
    put_value(out, value, strlen(value));
}

static void log_journal_put_field(buf *out, const log_field *f)
{
    buf value = {0};
    log_format_value(&value, f);
    put_name(out, "SHOAL_", f->key);
    put_value(out, value.len ? value.data : "", value.len);
    out->failed |= value.failed;
    buf_done(&value);
}

void log_journal_put(buf *out, const log_event *e)
{
    buf message = {0};
    log_format_message(&message, e);
    put_text(out, "", "PRIORITY", priority_of(e->level));
    put_text(out, "", "SYSLOG_IDENTIFIER", "shoal");
    put_name(out, "", "MESSAGE");
    put_value(out, message.len ? message.data : "", message.len);
    put_text(out, "SHOAL_", "component", e->component);
    put_text(out, "SHOAL_", "event", e->event);
    for (size_t i = 0; i < e->n_fields; i++) log_journal_put_field(out, &e->fields[i]);
    out->failed |= message.failed;
    buf_done(&message);
}

int log_journal_open(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* By address each time: a journal that was started again has another socket there. */
log_journal_result log_journal_send(int fd, const char *bytes, size_t n)
{
    const char *given = getenv("SHOAL_JOURNAL_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", given && *given ? given : JOURNAL_SOCKET);
    ssize_t sent = sendto(fd, bytes, n, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to);
    if (sent >= 0) return LOG_JOURNAL_SENT;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? LOG_JOURNAL_FULL : LOG_JOURNAL_AWAY;
}
