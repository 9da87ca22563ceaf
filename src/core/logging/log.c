/* log.c: what is logged, and where it goes, which is never a wait for whoever reads it; how it looks is
 * log_format.c's business.
 *
 * A pipe that nobody empties, or a terminal that is halted, would block the writer: the whole service. So
 * they are written to without blocking, and lines that find no room are counted instead. O_NONBLOCK belongs
 * to the open file, which stderr shares with other processes (the shell, the workers), so it is opened anew.
 */
#define _GNU_SOURCE
#include "logging/log.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "logging/tty_style.h"
#include "logging/log_format.h"
#include "logging/log_ring.h"

typedef enum { SINK_FILE, SINK_SOCKET, SINK_OPENED, SINK_POLLED } sink_kind;

static struct {
    log_level level;
    log_form form;
    bool colour;
    sink_kind sink;
    int fd;                  /* of SINK_OPENED */
    atomic_ullong n_dropped; /* lines, since it was last said */
    atomic_bool is_cut;      /* the last line went out without its end */
} log_config = {.level = LOG_INFO, .fd = -1};

static void open_sink(void)
{
    struct stat st;
    if (log_config.fd >= 0) close(log_config.fd);
    log_config.fd = -1;
    log_config.sink = SINK_FILE;
    if (fstat(STDERR_FILENO, &st) != 0) return;
    if (S_ISSOCK(st.st_mode)) log_config.sink = SINK_SOCKET;
    if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)) return;
    log_config.fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    log_config.sink = log_config.fd >= 0 ? SINK_OPENED : SINK_POLLED;
}

void log_setup(log_level level, bool json)
{
    log_config.level = level;
    log_config.colour = tty_style_shows(STDERR_FILENO);
    log_config.form = json                                          ? LOG_FORM_JSON
                      : isatty(STDERR_FILENO) || tty_style_always() ? LOG_FORM_TERMINAL
                                                                    : LOG_FORM_PAIRS;
    open_sink();
}

bool log_wants_json(bool asked)
{
    const char *form = getenv("SHOAL_LOG");
    return asked || !(isatty(STDERR_FILENO) || tty_style_always() || (form && strcmp(form, "pairs") == 0));
}

int log_level_parse(const char *name)
{
    for (int i = 0; i <= LOG_OFF; i++)
        if (strcmp(name, log_level_name((log_level)i)) == 0) return i;
    return -1;
}

bool log_enabled(log_level level)
{
    return level >= log_config.level;
}

static size_t terminal_columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

static ssize_t write_now(const char *bytes, size_t n)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    switch (log_config.sink) {
    case SINK_SOCKET: return send(STDERR_FILENO, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    case SINK_OPENED: return write(log_config.fd, bytes, n);
    case SINK_POLLED: return poll(&p, 1, 0) == 1 ? write(STDERR_FILENO, bytes, n) : -1;
    default: return write(STDERR_FILENO, bytes, n);
    }
}

/* One line, its newline included. A pipe takes up to PIPE_BUF bytes whole or not at all. */
static bool put_line(const char *line, size_t n)
{
    if (atomic_load(&log_config.is_cut)) {
        if (write_now("\n", 1) != 1) return false;
        atomic_store(&log_config.is_cut, false);
    }
    ssize_t done = write_now(line, n);
    if (done > 0 && (size_t)done < n) atomic_store(&log_config.is_cut, true);
    return done > 0;
}

static void format(buf *b, log_form form, log_level level, const char *component, const char *event,
                   const log_field *fields, size_t n)
{
    log_event e = {.level = level,
                   .component = component,
                   .event = event,
                   .fields = fields,
                   .n_fields = n,
                   .colour = log_config.colour};
    clock_gettime(CLOCK_REALTIME, &e.at);
    log_format(b, form, form == LOG_FORM_TERMINAL ? terminal_columns() : 0, &e);
}

/* The log flows again: say how much of it is missing. False while it does not. */
static bool confess(void)
{
    unsigned long long n = atomic_exchange(&log_config.n_dropped, 0);
    if (n == 0) return true;
    buf b = {0};
    format(&b, log_config.form, LOG_WARN, "log", "lines_dropped", (const log_field[]){LOG_I("lines", n)}, 1);
    bool done = !b.failed && put_line(b.data, b.len);
    if (!done) atomic_fetch_add(&log_config.n_dropped, n);
    buf_done(&b);
    return done;
}

/* For whoever asks later; b is the line as it is written. */
static void log_keep(const buf *b, log_level level, const char *component, const char *event,
                     const log_field *fields, size_t n)
{
    buf json = {0};
    if (!log_ring_is_open()) return;
    if (log_config.form != LOG_FORM_JSON) {
        format(&json, LOG_FORM_JSON, level, component, event, fields, n);
        b = &json;
    }
    if (!b->failed && b->len) log_ring_add(level, b->data, b->len - 1);
    buf_done(&json);
}

void log_write(log_level level, const char *component, const char *event, const log_field *fields, size_t n)
{
    buf b = {0};
    format(&b, log_config.form, level, component, event, fields, n);
    log_keep(&b, level, component, event, fields, n);
    if (b.failed || !confess() || !put_line(b.data, b.len)) atomic_fetch_add(&log_config.n_dropped, 1);
    buf_done(&b);
}
