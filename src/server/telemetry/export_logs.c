/* export_logs.c: log lines as OTLP log records; see telemetry_impl.h. The lines are our own JSON (logging/log_ring.h). */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "json/json.h"
#include "logging/log_format.h"
#include "logging/log_ring.h"
#include "telemetry/telemetry_impl.h"

static otlp_severity severity_of(const char *level)
{
    static const otlp_severity OF[] = {OTLP_DEBUG, OTLP_INFO, OTLP_WARN, OTLP_ERROR};
    int i = log_level_parse(level);
    return i >= 0 && i < LOG_OFF ? OF[i] : OTLP_INFO;
}

/* "2026-11-21T02:25:42.123Z"; 0: it is no such time. */
static uint64_t time_of(const char *s)
{
    struct tm tm = {0};
    unsigned ms = 0;
    if (sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d.%3uZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &ms) != 7)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    time_t at = timegm(&tm);
    return at < 0 ? 0 : (uint64_t)at * 1000000000u + ms * 1000000u;
}

static void set_trace(otlp_log *l, const char *id)
{
    char traceparent[TRACE_SIZE];
    snprintf(traceparent, sizeof traceparent, "00-%.32s-0000000000000001-00", id);
    trace_bytes(l->of.trace, traceparent);
}

static void take_member(otlp_log *l, otlp_attribute *list, const char *key, const json_t *v)
{
    otlp_attribute a = {.key = key, .text = json_string_value(v)};
    if (strcmp(key, "time") == 0)
        l->at_ns = time_of(a.text ? a.text : "");
    else if (strcmp(key, "level") == 0)
        l->severity_text = a.text;
    else if (strcmp(key, "event") == 0)
        l->body = a.text;
    else if (strcmp(key, "trace_id") == 0)
        set_trace(l, a.text ? a.text : "");
    else if (l->n_attributes < OTLP_ATTRIBUTES_MAX) {
        if (json_is_string(v) && !*a.text) return;
        a.kind = json_is_integer(v)   ? OTLP_INT
                 : json_is_real(v)    ? OTLP_DOUBLE
                 : json_is_boolean(v) ? OTLP_BOOL
                                      : OTLP_TEXT;
        a.i = json_is_true(v) ? 1 : json_integer_value(v);
        a.d = json_real_value(v);
        list[l->n_attributes++] = a;
    }
}

static void put_line(struct telemetry *t, const json_t *line)
{
    otlp_attribute list[OTLP_ATTRIBUTES_MAX];
    otlp_log l = {.observed_ns = (uint64_t)env_wall_ns(&t->g->time), .attributes = list, .body = ""};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)line, key, v) take_member(&l, list, key, v);
    l.severity = severity_of(l.severity_text ? l.severity_text : "");
    buf *item = otlp_exporter_item(t->x);
    otlp_put_log(item, t->s.protocol, &l);
    otlp_exporter_add(t->x, OTLP_LOGS, item);
}

void telemetry_put_logs(struct telemetry *t)
{
    json_t *line;
    otlp_exporter_drop(t->x, OTLP_LOGS, OTLP_DROP_MISSED, log_ring_missed(t->log_at));
    for (buf_clear(&t->line); log_ring_next(&t->log_at, LOG_DEBUG, &t->line); buf_clear(&t->line)) {
        if (!t->line.failed && json_parse_last(&line, t->line.data, t->line.len, "log", NULL) == 0) {
            put_line(t, line);
            json_decref(line);
        } else {
            otlp_exporter_drop(t->x, OTLP_LOGS, OTLP_DROP_MEMORY, 1);
        }
    }
}
