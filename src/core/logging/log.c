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
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "logging/tty_style.h"
#include "logging/log_format.h"
#include "logging/log_journal.h"
#include "logging/log_repeat.h"
#include "logging/log_read.h"
#include "logging/log_ring.h"

typedef enum { SINK_FILE, SINK_SOCKET, SINK_OPENED, SINK_POLLED } sink_kind;

static struct {
    atomic_int level; /* a log_level */
    log_form form;
    bool colour;
    sink_kind sink;
    int fd;                  /* of SINK_OPENED */
    int journal;             /* the socket to it; -1: lines go to stderr alone */
    atomic_ullong n_dropped; /* lines, since it was last said */
    atomic_bool is_cut;      /* the last line went out without its end */
} log_config = {.level = LOG_INFO, .fd = -1, .journal = -1};

static struct {
    pthread_mutex_t lock;
    log_repeat r;
    atomic_bool any; /* something is held back */
} repeats = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

static bool form_is(const char *name)
{
    const char *form = getenv("SHOAL_LOG");
    return form && strcmp(form, name) == 0;
}

static bool is_for_journal(void)
{
    if (form_is("journal")) return true;
    return log_journal_is(STDERR_FILENO) && !form_is("json") && !form_is("pairs");
}

static void open_journal(bool wanted)
{
    if (log_config.journal >= 0) close(log_config.journal);
    log_config.journal = wanted ? log_journal_open() : -1;
}

void log_set_level(log_level level)
{
    atomic_store_explicit(&log_config.level, (int)level, memory_order_relaxed);
}

void log_setup(log_level level, bool json)
{
    log_set_level(level);
    log_config.colour = tty_style_shows(STDERR_FILENO);
    log_config.form = json                                          ? LOG_FORM_JSON
                      : isatty(STDERR_FILENO) || tty_style_always() ? LOG_FORM_TERMINAL
                                                                    : LOG_FORM_PAIRS;
    open_sink();
    open_journal(!json && is_for_journal());
}

bool log_wants_json(bool asked)
{
    if (asked || form_is("json")) return true;
    return !(isatty(STDERR_FILENO) || tty_style_always() || form_is("pairs") || is_for_journal());
}

int log_level_parse(const char *name)
{
    for (int i = 0; i <= LOG_OFF; i++)
        if (strcmp(name, log_level_name((log_level)i)) == 0) return i;
    return -1;
}

bool log_enabled(log_level level)
{
    return (int)level >= atomic_load_explicit(&log_config.level, memory_order_relaxed);
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

/* Lines with their ends; how many bytes of them went out. A pipe takes up to PIPE_BUF bytes whole or not at all. */
static size_t put_lines(const char *lines, size_t n)
{
    if (atomic_load(&log_config.is_cut)) {
        if (write_now("\n", 1) != 1) return 0;
        atomic_store(&log_config.is_cut, false);
    }
    ssize_t done = write_now(lines, n);
    if (done <= 0) return 0;
    if (lines[done - 1] != '\n') atomic_store(&log_config.is_cut, true);
    return (size_t)done;
}

static _Thread_local struct {
    bool on;
    size_t n;
    char bytes[PIPE_BUF];
} held;

static void put_held(void)
{
    unsigned n_lost = 0;
    size_t n = held.n ? put_lines(held.bytes, held.n) : 0;
    bool cut = n > 0 && held.bytes[n - 1] != '\n'; /* whose beginning is there */
    for (; n < held.n; n++) n_lost += held.bytes[n] == '\n';
    if (n_lost > cut) atomic_fetch_add(&log_config.n_dropped, n_lost - cut);
    held.n = 0;
}

void log_hold(void)
{
    held.on = true;
}

void log_release(void)
{
    put_held();
    held.on = false;
}

/* One line, its end included. False: it is lost. */
static bool put_line(const char *line, size_t n)
{
    if (held.n + n > sizeof held.bytes) put_held();
    if (!held.on || n > sizeof held.bytes || log_config.form == LOG_FORM_TERMINAL)
        return put_lines(line, n) > 0;
    memcpy(held.bytes + held.n, line, n);
    held.n += n;
    return true;
}

static void format(buf *b, log_form form, const log_event *e)
{
    log_format(b, form, form == LOG_FORM_TERMINAL ? terminal_columns() : 0, e);
}

/* AWAY: the line goes to stderr, which usually leads there, too. */
static log_journal_result put_journal(const log_event *e)
{
    buf b = {0};
    if (log_config.journal < 0) return LOG_JOURNAL_AWAY;
    log_journal_put(&b, e);
    log_journal_result r = b.failed ? LOG_JOURNAL_FULL : log_journal_send(log_config.journal, b.data, b.len);
    buf_done(&b);
    return r;
}

/* b: the event as a line. */
static bool put(const log_event *e, const buf *b)
{
    log_journal_result r = put_journal(e);
    if (r != LOG_JOURNAL_AWAY) return r == LOG_JOURNAL_SENT;
    return !b->failed && put_line(b->data, b->len);
}

/* The log flows again: say how much of it is missing. False while it does not. */
static bool confess(void)
{
    unsigned long long n = atomic_exchange(&log_config.n_dropped, 0);
    if (n == 0) return true;
    buf b = {0};
    const log_field f = LOG_I("lines", n);
    log_event e = {
        .level = LOG_WARN, .component = "log", .event = "lines_dropped", .fields = &f, .n_fields = 1};
    clock_gettime(CLOCK_REALTIME, &e.at);
    format(&b, log_config.form, &e);
    bool done = put(&e, &b);
    if (!done) atomic_fetch_add(&log_config.n_dropped, n);
    buf_done(&b);
    return done;
}

/* For whoever asks later; b is the line as it is written. */
static void log_keep(const buf *b, const log_event *e)
{
    buf json = {0};
    if (!log_ring_is_open()) return;
    if (log_config.form != LOG_FORM_JSON) {
        format(&json, LOG_FORM_JSON, e);
        b = &json;
    }
    if (!b->failed && b->len) log_ring_add(e->level, b->data, b->len - 1);
    buf_done(&json);
}

static void log_pass_event(const log_event *given, bool keep)
{
    buf b = {0};
    log_event e = *given;
    e.colour = log_config.colour;
    format(&b, log_config.form, &e);
    if (keep) log_keep(&b, &e);
    if (!confess() || !put(&e, &b)) atomic_fetch_add(&log_config.n_dropped, 1);
    buf_done(&b);
}

void log_pass(const log_event *e)
{
    log_pass_event(e, true);
}

void log_pass_line(log_level level, const char *line, size_t n)
{
    log_line l;
    log_ring_add(level, line, n - 1);
    if (log_config.form == LOG_FORM_JSON && log_config.journal < 0) {
        if (!confess() || !put_line(line, n)) atomic_fetch_add(&log_config.n_dropped, 1);
    } else if (log_read(&l, line, n - 1)) {
        log_pass_event(&l.event, false);
        log_read_done(&l);
    }
}

/* ---- what repeats -------------------------------------------------------------------------------------- */

static bool is_let_through(const log_event *e)
{
    if (e->level < LOG_WARN) return true;
    pthread_mutex_lock(&repeats.lock);
    bool through = log_repeat_take(&repeats.r, e, clock_ns() / 1000000 + 1);
    atomic_store(&repeats.any, repeats.r.n_held > 0);
    pthread_mutex_unlock(&repeats.lock);
    return through;
}

void log_tell_repeats(bool at_end)
{
    log_count c;
    for (bool more = atomic_load_explicit(&repeats.any, memory_order_relaxed); more;) {
        pthread_mutex_lock(&repeats.lock);
        more = log_repeat_next(&repeats.r, clock_ns() / 1000000 + 1, at_end, &c);
        atomic_store(&repeats.any, repeats.r.n_held > 0);
        pthread_mutex_unlock(&repeats.lock);
        if (!more) break;
        clock_gettime(CLOCK_REALTIME, &c.event.at);
        if (log_enabled(c.event.level)) log_pass(&c.event);
    }
}

void log_write(log_level level, const char *component, const char *event, const log_field *fields, size_t n)
{
    log_event e = {.level = level, .component = component, .event = event, .fields = fields, .n_fields = n};
    log_tell_repeats(false);
    if (!is_let_through(&e)) return;
    clock_gettime(CLOCK_REALTIME, &e.at);
    log_pass(&e);
}
