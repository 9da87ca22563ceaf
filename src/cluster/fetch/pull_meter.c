/* pull_meter.c: see pull_meter.h. */
#include "fetch/pull_meter.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "json/json_put.h"
#include "logging/sanitise.h"
#include "fetch/pull_plan.h"

#define EVENT_S 0.1

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void pull_meter_init(pull_meter *m, FILE *to)
{
    *m = (pull_meter){.to = to, .live = to && isatty(fileno(to))};
}

static int columns(const pull_meter *m)
{
    struct winsize w = {0};
    return ioctl(fileno(m->to), TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

static void put_rate(const pull_meter *m, buf *line)
{
    double spent = now_s() - m->began_s, rate = spent > 0.2 ? (double)(m->at - m->from) / spent : 0;
    if (rate <= 0) return;
    buf_puts(line, "  ");
    pull_put_size(line, (uint64_t)rate);
    buf_puts(line, "/s");
    if (!m->has_total || m->at >= m->total) return;
    double left = (double)(m->total - m->at) / rate;
    if (left < 360000) buf_printf(line, "  %d:%02d left", (int)left / 60, (int)left % 60);
}

static void put_state(const pull_meter *m, buf *line)
{
    if (m->has_total && m->total) buf_printf(line, "%3.0f %%  ", 100 * (double)m->at / (double)m->total);
    pull_put_size(line, m->at);
    if (m->has_total) {
        buf_puts(line, " of ");
        pull_put_size(line, m->total);
    }
    put_rate(m, line);
}

/* The state stays readable on a narrow screen: the name gives way. */
static void pull_meter_draw(pull_meter *m)
{
    buf state = {0};
    put_state(m, &state);
    int room = columns(m) - (int)state.len - 3, len = (int)strlen(m->name);
    const char *name = len > room && room >= 8 ? m->name + (len - room) : room < 8 ? "" : m->name;
    if (!state.failed) fprintf(m->to, "\r\033[K%s  %s", name, state.data);
    fflush(m->to);
    buf_done(&state);
}

static void plain_line(pull_meter *m, const char *how)
{
    buf state = {0};
    put_state(m, &state);
    if (!state.failed)
        fprintf(m->to, "%s%s  %s%s%s\n", m->live ? "\r\033[K" : "", m->name, state.data, how ? "  " : "",
                how ? how : "");
    fflush(m->to);
    buf_done(&state);
}

static void event_line(pull_meter *m)
{
    buf line = {0};
    buf_putc(&line, '{');
    json_put_text(&line, "file", m->name);
    if (m->sha256 && *m->sha256) buf_printf(&line, ",\"sha256\":\"%.64s\"", m->sha256);
    if (m->has_total) buf_printf(&line, ",\"total\":%llu", (unsigned long long)m->total);
    buf_printf(&line, ",\"completed\":%llu}\n", (unsigned long long)m->at);
    if (!line.failed) fputs(line.data, m->to);
    fflush(m->to);
    m->drawn_s = now_s();
    buf_done(&line);
}

void pull_meter_begin(pull_meter *m, const char *name, bool has_total, uint64_t total, uint64_t from)
{
    m->name = name;
    m->has_total = has_total;
    m->total = total;
    m->from = m->at = from;
    m->began_s = m->drawn_s = now_s();
    m->quarter = has_total && total ? (int)(4 * (from / 4) / (total / 4 + 1)) : 0;
    if (m->to && m->events)
        event_line(m);
    else if (m->to && m->live)
        pull_meter_draw(m);
    else if (m->to)
        plain_line(m, from ? "resumed" : NULL);
}

void pull_meter_at(pull_meter *m, uint64_t bytes)
{
    m->at = bytes;
    if (!m->to) return;
    if (m->events) {
        if (now_s() - m->drawn_s >= EVENT_S) event_line(m);
        return;
    }
    if (m->live) {
        double now = now_s();
        if (now - m->drawn_s < 0.2) return;
        m->drawn_s = now;
        pull_meter_draw(m);
        return;
    }
    int quarter = m->has_total && m->total ? (int)(4.0 * (double)bytes / (double)m->total) : 0;
    if (quarter <= m->quarter || quarter >= 4) return;
    m->quarter = quarter;
    plain_line(m, NULL);
}

void pull_meter_end(pull_meter *m, const char *how)
{
    if (m->to && m->name && m->events)
        event_line(m);
    else if (m->to && m->name)
        plain_line(m, how);
    m->name = NULL;
}

void pull_meter_say(pull_meter *m, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    if (!m->to || m->events) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    sanitise_text(line, "");
    fprintf(m->to, "%s%s\n", m->live ? "\r\033[K" : "", line);
    fflush(m->to);
}
