/* agent_lines.c: what workers write to standard error.
 *
 * It is a pipe. Lines of their log are JSON, and become events of this process's log with the worker's name, so that they
 * are where ours are: on standard error or in the journal, in what `shoal logs` shows, at a collector. A line as log.h writes
 * it is passed on as it is, with the field added. What is no such line (a library's last words) is an event of its own.
 *
 * The first line is read at once, and those that follow it every READ_MS, READ_BYTES at a time: a busy worker wakes the loop
 * no more often, its lines are written together, and a flood holds up nobody else. Lines wait in the pipe, not in memory. The supervisor keeps the reading end, so that they
 * are read on by the next life of this process. */
#define _GNU_SOURCE
#include "agent/agent_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "json/json.h"
#include "logging/log_read.h"
#include "logging/log_scan.h"
#include "os/handover.h"

enum {
    CHUNK_BYTES = 16 << 10,
    LINE_MAX_BYTES = 64 << 10,
    PIPE_BYTES = 256 << 10,
    TEXT_MAX_BYTES = 500,
    READ_MS = 20,
    READ_BYTES = 64 << 10 /* in that time */
};

struct worker_lines {
    uv_pipe_t pipe;
    uv_timer_t again; /* nothing is read until then */
    int n_open;       /* of the two */
    char *replica;
    int fd;
    size_t n_read; /* since the timer */
    bool skips;    /* the line was too long: its rest */
    buf line;
    char chunk[CHUNK_BYTES];
};

/* ---- a line ------------------------------------------------------------------------------------------- */

/* Case does not count: the journal's names have none. */
static bool is_ours(const char *key)
{
    static const char *const OURS[] = {"time", "level", "component", "event", "replica"};
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++)
        if (strcasecmp(key, OURS[i]) == 0) return true;
    return false;
}

static void pass_event(const char *replica, log_line *l)
{
    log_event *e = &l->event;
    size_t n = 0;
    for (size_t i = 0; i < e->n_fields; i++)
        if (!is_ours(l->fields[i].key)) l->fields[n++] = l->fields[i];
    e->n_fields = n;
    memmove(l->fields + 1, l->fields, e->n_fields * sizeof *l->fields);
    l->fields[0] = LOG_S("replica", replica);
    e->n_fields++;
    log_pass(e);
}

/* False: it is not as log.h writes it. */
static bool pass_as_it_is(const char *replica, const char *s, size_t n)
{
    log_scanned scanned;
    buf b = {0};
    if (!log_scan(&scanned, s, n, "replica")) return false;
    if (!log_enabled(scanned.level)) return true;
    buf_reserve(&b, n + strlen(replica) + 32);
    buf_append(&b, s, scanned.head);
    buf_puts(&b, ",\"replica\":");
    json_put_string(&b, replica, strlen(replica));
    buf_append(&b, s + scanned.head, n - scanned.head);
    buf_putc(&b, '\n');
    if (!b.failed) log_pass_line(scanned.level, b.data, b.len);
    buf_done(&b);
    return true;
}

/* Not as a repeated warning: the lines of a backtrace or a sanitiser's report are not the same one. */
static void pass_text(const char *replica, const char *text)
{
    const log_field fields[] = {LOG_S("replica", replica), LOG_S("text", text)};
    log_event e = {
        .level = LOG_WARN, .component = "worker", .event = "stderr", .fields = fields, .n_fields = 2};
    if (!log_enabled(e.level)) return;
    clock_gettime(CLOCK_REALTIME, &e.at);
    log_pass(&e);
}

void worker_line(const char *replica, const char *s, size_t n)
{
    log_line l;
    char text[TEXT_MAX_BYTES];
    if (pass_as_it_is(replica, s, n)) return;
    if (n > 0 && s[0] == '{' && log_read(&l, s, n)) {
        if (log_enabled(l.event.level)) pass_event(replica, &l);
        log_read_done(&l);
        return;
    }
    while (n > 0 && (s[n - 1] == '\r' || s[n - 1] == ' ')) n--;
    if (n == 0) return;
    snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text), s);
    pass_text(replica, text);
}

static void end_line(worker_lines *w)
{
    if (!w->skips && !w->line.failed && w->line.len) worker_line(w->replica, w->line.data, w->line.len);
    w->skips = false;
    buf_clear(&w->line);
}

static void take_lines(worker_lines *w, const char *s, size_t n)
{
    while (n > 0) {
        const char *end = memchr(s, '\n', n);
        size_t len = end ? (size_t)(end - s) : n;
        if (w->line.len + len > LINE_MAX_BYTES && !w->skips) {
            end_line(w);
            w->skips = true;
        }
        bool whole = end && !w->skips && w->line.len == 0;
        if (!w->skips && !whole) buf_append(&w->line, s, len);
        if (!end) return;
        if (whole)
            worker_line(w->replica, s, len);
        else
            end_line(w);
        s = end + 1;
        n -= len + 1;
    }
}

static void take_bytes(worker_lines *w, const char *s, size_t n)
{
    log_hold();
    take_lines(w, s, n);
    log_release();
}

/* ---- the pipe ----------------------------------------------------------------------------------------- */

static worker_lines *lines_of(void *handle)
{
    return ((uv_handle_t *)handle)->data;
}

static void lines_alloc(uv_handle_t *h, size_t hint, uv_buf_t *ret)
{
    worker_lines *w = lines_of(h);
    *ret = uv_buf_init(w->chunk, sizeof w->chunk);
}

static void read_on(uv_timer_t *t);

static void lines_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    worker_lines *w = lines_of(s);
    if (n > 0) take_bytes(w, b->base, (size_t)n);
    if (n > 0) w->n_read += (size_t)n;
    if (n >= 0 && (size_t)n == sizeof w->chunk && w->n_read < READ_BYTES) return; /* there may be more */
    uv_read_stop(s);
    if (n >= 0) uv_timer_start(&w->again, read_on, READ_MS, 0); /* else its process is ending */
}

static void read_on(uv_timer_t *t)
{
    worker_lines *w = lines_of(t);
    w->n_read = 0;
    uv_read_start((uv_stream_t *)&w->pipe, lines_alloc, lines_read);
}

static void lines_closed(uv_handle_t *h)
{
    worker_lines *w = lines_of(h);
    if (--w->n_open) return;
    buf_done(&w->line);
    free(w->replica);
    free(w);
}

static void close_handles(worker_lines *w)
{
    uv_close((uv_handle_t *)&w->pipe, lines_closed);
    uv_close((uv_handle_t *)&w->again, lines_closed);
}

static void close_end(int fd)
{
    handover_forget(fd);
    close(fd);
}

worker_lines *lines_open(uv_loop_t *loop, const char *replica, int fd)
{
    worker_lines *w = calloc(1, sizeof *w);
    char *name = w ? strdup(replica) : NULL;
    if (!name || uv_pipe_init(loop, &w->pipe, 0) != 0) {
        close_end(fd);
        free(name);
        free(w);
        return NULL;
    }
    uv_timer_init(loop, &w->again);
    w->pipe.data = w->again.data = w;
    w->n_open = 2;
    w->replica = name;
    w->fd = fd;
    if (uv_pipe_open(&w->pipe, fd) == 0) {
        uv_read_start((uv_stream_t *)&w->pipe, lines_alloc, lines_read);
        return w;
    }
    LOG(LOG_WARN, "agent", "lines_unread", LOG_S("replica", replica));
    close_end(fd);
    close_handles(w);
    return NULL;
}

/* Its process has ended: what it wrote before is there, which is no more than the pipe takes. A child of its own may have
 * the other end, and write on. */
void lines_close(worker_lines *w)
{
    ssize_t n;
    if (!w) return;
    uv_read_stop((uv_stream_t *)&w->pipe);
    for (size_t left = PIPE_BYTES; left > 0 && (n = read(w->fd, w->chunk, sizeof w->chunk)) > 0;) {
        take_bytes(w, w->chunk, (size_t)n);
        left -= left < (size_t)n ? left : (size_t)n;
    }
    end_line(w);
    handover_forget(w->fd);
    close_handles(w);
}

/* Both ends are close-on-exec; the writing end blocks, as standard error does. */
int lines_pipe(int ret_ends[2])
{
    if (pipe2(ret_ends, O_CLOEXEC) != 0) return -1;
    fcntl(ret_ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ret_ends[0], F_SETPIPE_SZ, PIPE_BYTES); /* else it has its usual size */
    return 0;
}

/* ---- over a crash of this process ---------------------------------------------------------------------- */

static void lines_name(char ret[32], int slot)
{
    snprintf(ret, 32, "lines %d", slot);
}

void lines_keep(int slot, int fd)
{
    char name[32];
    lines_name(name, slot);
    handover_keep(name, fd);
}

int lines_take(int slot)
{
    char name[32];
    lines_name(name, slot);
    return handover_take(name);
}
