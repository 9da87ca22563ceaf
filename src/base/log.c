#define _GNU_SOURCE
#include "base/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"

static struct {
    log_level level;
    bool json;
} log_config = {.level = LOG_INFO};

static const char *const level_names[] = {"debug", "info", "warn", "error", "off"};

void log_setup(log_level level, bool json)
{
    log_config.level = level;
    log_config.json = json;
}

int log_level_parse(const char *name)
{
    for (int i = 0; i <= LOG_OFF; i++)
        if (strcmp(name, level_names[i]) == 0) return i;
    return -1;
}

bool log_enabled(log_level level)
{
    return level >= log_config.level;
}

static bool needs_quotes(const char *s)
{
    if (!*s) return true;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == '"' || *s == '=' || *s == '\\') return true;
    return false;
}

static void put_pair(buf *b, bool json, const log_field *f)
{
    if (json) {
        buf_putc(b, ',');
        json_put_string(b, f->key, strlen(f->key));
        buf_putc(b, ':');
    } else {
        buf_printf(b, " %s=", f->key);
    }
    const char *s = f->s ? f->s : "";
    switch (f->kind) {
    case LOG_KIND_INT: buf_printf(b, "%lld", (long long)f->i); break;
    case LOG_KIND_NUM:
        if (isfinite(f->f))
            buf_printf(b, "%.6g", f->f);
        else
            buf_puts(b, json ? "null" : "nan");
        break;
    case LOG_KIND_STR:
        if (json || needs_quotes(s))
            json_put_string(b, s, strlen(s));
        else
            buf_puts(b, s);
        break;
    }
}

void log_write(log_level level, const char *component, const char *event, const log_field *fields, size_t n)
{
    struct timespec t;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &tm);
    char stamp[48];
    size_t len = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(stamp + len, sizeof stamp - len, ".%03ldZ", t.tv_nsec / 1000000);
    buf b = {0};
    bool json = log_config.json;
    if (json)
        buf_printf(&b, "{\"time\":\"%s\",\"level\":\"%s\"", stamp, level_names[level]);
    else
        buf_printf(&b, "time=%s level=%s", stamp, level_names[level]);
    put_pair(&b, json, &LOG_S("component", component));
    put_pair(&b, json, &LOG_S("event", event));
    for (size_t i = 0; i < n; i++) put_pair(&b, json, &fields[i]);
    buf_puts(&b, json ? "}\n" : "\n");
    if (!b.failed &&
        write(STDERR_FILENO, b.data, b.len) < 0) { /* a log that cannot be written has nowhere to say so */
    }
    buf_done(&b);
}
